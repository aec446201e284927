"""Expected counts of the steps of a chain, from the columns of both ends of sequences.

The expected number of times that paths take a step is its chance times the sum, over all symbols,
of

    forward[before the symbol, source] * emission[symbol] * backward[symbol, target] / total

where the total is the probability of the sequence.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.language.looped import Values
from mummergpu.hmm.language.processor_text import LANES, SMALLEST_TOTAL_POWER
from mummergpu.hmm.language.tables import EMISSION_ROW, NEVER, ShapeArrays
from mummergpu.runtime.arrays import BoolArray, ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit
from mummergpu.runtime.llvm import intrinsic, types
from mummergpu.runtime.vectors import FloatVectors, Vectors

_POWER_BIAS: Final = 1023
_SMALLEST_TOTAL: Final = 2.0**SMALLEST_TOTAL_POWER


class Counts(NamedTuple):
    """Sums over symbols.

    Those of steps are to be multiplied with their chances, the others are expected numbers.
    """

    steps: Float64Array
    starts: Float64Array  # (n_emitting,): of paths that begin in each node
    ends: Float64Array
    emitted: Float64Array  # (n_emissions, n_symbols)

    @classmethod
    def none(cls, shape: ShapeArrays, emissions: tuple[int, int]) -> Counts:
        """Return zeros."""
        # An array of nothing has no address.
        steps = np.zeros(max(1, int(shape.first_steps[-1])))
        ends = np.zeros(shape.emitting), np.zeros(shape.emitting)
        return cls(steps, *ends, np.zeros(emissions))

    def add(self, other: Counts) -> None:
        """Add the sums of other symbols."""
        for own, more in zip(self, other, strict=True):
            own += more


class CountLanes(NamedTuple):
    """The sums of sequences side by side, and values at a symbol, in registers of `LANES` lanes."""

    lengths: Int64Array  # One register: of the sequences
    steps: Float64Array  # The sums of each step
    emitted: Float64Array  # Of each symbol of each emission, as in `Counts`
    before: Values  # The values of nodes before the first symbol, if paths do not begin with it
    back: Values  # Those from the end; then divided by totals, with the symbol emitted
    shares: Float64Array  # The probabilities of nodes at the symbol
    starts: Float64Array  # The same at the first and at the last symbol
    ends: Float64Array

    @classmethod
    def of(cls, shape: ShapeArrays, emissions: tuple[int, int]) -> CountLanes:
        """Return memory for a shape."""
        nodes, steps = shape.first_steps.size - 1, max(1, int(shape.first_steps[-1]))

        def numbers(registers: int) -> Float64Array:
            return np.zeros(registers * LANES)

        def values() -> Values:
            return Values(numbers(nodes), np.zeros(nodes * LANES, dtype=np.int64))

        shares = numbers(nodes), numbers(nodes), numbers(nodes)
        sums = numbers(steps), numbers(math.prod(emissions))
        return cls(np.zeros(LANES, dtype=np.int64), *sums, values(), values(), *shares)


class Rows(NamedTuple):
    """Sequences, or pieces of one, in the columns of both ends."""

    codes: ByteArray
    begins: Int64Array  # Of each in `codes`
    lengths: Int64Array
    first_rows: Int64Array  # The rows of its columns; those from the end are in the other order
    # (n, n_nodes): the values before each piece, if paths do not begin with it.
    before: Values
    is_first: bool
    is_last: bool


class Columns(NamedTuple):
    """The columns of both ends, of `width` registers: values, and one exponent or one of each."""

    ahead: Values
    back: Values
    width: int
    exact: bool


def _products(
    typing_context: Any,
    sums: Any,
    ahead: Any,
    ahead_exponents: Any,
    back: Any,
    back_exponents: Any,
    to: Any,
    source: Any,
    source_exponent: Any,
    target: Any,
) -> Any:
    """Add the products of two registers of values, each with its exponents, to a register."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, whole = FloatVectors(builder, LANES, 64), Vectors(builder, 64, LANES)
        own, one, other = numbers.arrays(context, signature, arguments, 0, 1, 3)
        powers = whole.arrays(context, signature, arguments, 2, 4)
        to, source, source_exponent, target = arguments[5:]
        # The bits of a power of 2; what is too small for them is 0.
        power = whole.load(powers[0], source_exponent)
        power = builder.add(power, whole.load(powers[1], target))
        power = builder.add(power, whole.constant(_POWER_BIAS))
        power = whole.call("smax", power, whole.constant(0))
        power = whole.call("smin", power, whole.constant(2 * _POWER_BIAS))
        power = builder.bitcast(builder.shl(power, whole.constant(52)), numbers.kind)
        product = builder.fmul(numbers.load(one, source), numbers.load(other, target))
        product = builder.fmul(product, power)
        numbers.store(builder.fadd(numbers.load(own, to), product), own, to)
        return context.get_dummy_value()

    arrays = (sums, ahead, ahead_exponents, back, back_exponents)
    return types.void(*arrays, *[types.int64] * 4), generate


_add_products = cast(Any, intrinsic(_products))
"""Called with the sums, the values and exponents of both ends, and the registers of the sum, of the
value and the exponent ahead, and of both behind."""


@jit
def add_counts(
    shape: ShapeArrays,
    emissions: Float64Array,
    rows: Rows,
    columns: Columns,
    lanes: CountLanes,
    counts: Counts,
    lost: BoolArray,
) -> None:
    """Add the counts of sequences, `LANES` of them in turns; mark those without a common scale.

    The total of all nodes that emit is the same number at each symbol, but for its exponent: so
    values from the end are divided by it there.
    """
    nodes, ahead, back = shape.first_steps.size - 1, columns.ahead, lanes.back
    own = 1 if columns.exact else 0
    for group in range(0, rows.lengths.size, LANES):
        count = min(group + LANES, rows.lengths.size) - group
        longest = _begin_group(shape, rows, group, count, lanes, lost)
        first = rows.first_rows[group]
        for place in range(longest):
            values = (first + place) * columns.width
            exponents = values + nodes
            _load_back(shape, rows, columns, group, place, lanes)
            for node in range(shape.emitting):
                _add_products(
                    *(lanes.shares, ahead.numbers, ahead.exponents, back.numbers, back.exponents),
                    *(node, values + node, exponents + own * node, node),
                )
            _emit(shape, emissions, counts.emitted.shape[1], rows, group, place, lanes, lost)
            if place == 0 and rows.is_first:
                continue
            for node in range(nodes):
                for step in range(shape.first_steps[node], shape.first_steps[node + 1]):
                    source = shape.sources[as_index(step)]
                    if place == 0:
                        _add_products(
                            *(lanes.steps, lanes.before.numbers, lanes.before.exponents),
                            *(back.numbers, back.exponents, step, source, source, node),
                        )
                        continue
                    at = values - columns.width + source
                    power = exponents - columns.width + own * source
                    _add_products(
                        *(lanes.steps, ahead.numbers, ahead.exponents),
                        *(back.numbers, back.exponents, step, at, power, node),
                    )
        for lane in range(count):
            _add_lane(shape, rows, lane, lost[group + lane], lanes, counts)


@inline
def _begin_group(
    shape: ShapeArrays, rows: Rows, group: int, count: int, lanes: CountLanes, lost: BoolArray
) -> int:
    """Make the lanes ready for some sequences; return the length of the longest."""
    longest = 0
    lanes.steps[:] = 0.0
    lanes.shares[:] = 0.0
    lanes.lengths[:] = 0
    for lane in range(count):
        lanes.lengths[lane] = rows.lengths[group + lane]
        longest = max(longest, rows.lengths[group + lane])
        lost[group + lane] = False
        for node in range(0 if rows.is_first else shape.first_steps.size - 1):
            at = node * LANES + lane
            lanes.before.numbers[at] = rows.before.numbers[group + lane, node]
            lanes.before.exponents[at] = rows.before.exponents[group + lane, node]
    return longest


@inline
def _load_back(
    shape: ShapeArrays, rows: Rows, columns: Columns, group: int, place: int, lanes: CountLanes
) -> None:
    """Load the values from the end before a symbol; sequences that have ended get zeros.

    Their exponents are less by the largest sum of those from both ends.
    """
    nodes, own = shape.first_steps.size - 1, LANES if columns.exact else 0
    for lane in range(LANES):
        at = as_index(lane)
        if place >= lanes.lengths[at]:
            for _ in range(nodes):
                lanes.back.numbers[at] = 0.0
                at += as_index(LANES)
            continue
        row = rows.first_rows[group] + place
        opposite = rows.first_rows[group] + lanes.lengths[at] - 1 - place
        ahead = as_index((row * columns.width + nodes) * LANES + lane)
        back = as_index(opposite * columns.width * LANES + lane)
        powers, most = back + as_index(nodes * LANES), NEVER
        for node in range(shape.emitting):
            power = as_index(node * own)
            both = columns.ahead.exponents[ahead + power] + columns.back.exponents[powers + power]
            most = max(most, both)
        for node in range(nodes):
            # From the end, silent states are in the other order.
            place_back = node if node < shape.emitting else nodes - 1 - node + shape.emitting
            lanes.back.numbers[at] = columns.back.numbers[back + as_index(place_back * LANES)]
            power = columns.back.exponents[powers + as_index(place_back * own)]
            lanes.back.exponents[at] = power - most
            at += as_index(LANES)


@inline
def _emit(
    shape: ShapeArrays,
    emissions: Float64Array,
    symbols: int,
    rows: Rows,
    group: int,
    place: int,
    lanes: CountLanes,
    lost: BoolArray,
) -> None:
    """Count a symbol, and emit it in the values from the end, divided by the total."""
    for lane in range(LANES):
        if place >= lanes.lengths[lane]:
            continue
        total, at = 0.0, as_index(lane)
        for _ in range(shape.emitting):
            total += lanes.shares[at]
            at += as_index(LANES)
        # This is so for NaN, too.
        if not total > _SMALLEST_TOTAL:
            lost[group + lane] = True
            total = 1.0
        factor, at = 1.0 / total, as_index(lane)
        symbol = np.int64(rows.codes[as_index(rows.begins[group + lane] + place)])
        for node in range(shape.first_steps.size - 1):
            value = lanes.back.numbers[at] * factor
            if node < shape.emitting:
                emission = shape.emissions[as_index(node)]
                emitted = as_index((emission * symbols + symbol) * LANES + lane)
                share = lanes.shares[at] * factor
                lanes.shares[at] = 0.0
                lanes.ends[at] = share
                if place == 0:
                    lanes.starts[at] = share
                lanes.emitted[emitted] += share
                value *= emissions[as_index(emission * EMISSION_ROW + symbol)]
            lanes.back.numbers[at] = value
            at += as_index(LANES)


@inline
def _add_lane(
    shape: ShapeArrays, rows: Rows, lane: int, is_lost: bool, lanes: CountLanes, counts: Counts
) -> None:
    """Add the sums of a lane to the counts, unless its sequence is lost."""
    at = lane
    for emission in range(counts.emitted.shape[0]):
        for symbol in range(counts.emitted.shape[1]):
            if not is_lost:
                counts.emitted[emission, symbol] += lanes.emitted[at]
            lanes.emitted[at] = 0.0
            at += LANES
    if is_lost:
        return
    for step in range(shape.first_steps[shape.first_steps.size - 1]):
        counts.steps[step] += lanes.steps[step * LANES + lane]
    for node in range(shape.emitting):
        if rows.is_first:
            counts.starts[node] += lanes.starts[node * LANES + lane]
        if rows.is_last:
            counts.ends[node] += lanes.ends[node * LANES + lane]
