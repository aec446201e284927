"""The recurrence in loops over the transitions, with an exponent for each value.

The programs of `processor_text` have each transition in their text, and one scale for all states
after a symbol. The loops are for chains of more transitions, and for sequences in which two states
differ so much that they have no common scale. After a symbol x, each node n has

    sums:        emission[n][x] * sum(value[source] * chance for source, chance in ways_into[n])
    best paths:  emission[n][x] + max(value[source] + chance for source, chance in ways_into[n])

of the values before x, or after it if n is silent and emits nothing. A value is a number and an
exponent: number * 2**exponent, or the logarithm number + exponent * 2**OFFSET_BITS.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.hmm.language.processor_text import IMPOSSIBLE, LANES, OFFSET_BITS
from mummergpu.hmm.language.tables import EMISSION_ROW, NEVER, Numbers, ShapeArrays
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.runtime.jit import as_index, inline, jit
from mummergpu.runtime.llvm import intrinsic, ir, load_from, types
from mummergpu.runtime.vectors import FloatVectors, Vectors, join_turns

_EXPONENT_OF_0: Final = -(1 << 50)
_POWER: Final = 64
"""Factors are 1 or larger, so that products grow: numbers stay below this power of 2."""

_REST: Final = (1 << OFFSET_BITS) - 1


class Values(NamedTuple):
    """Numbers and their exponents; a number that is not 0 is 1 or larger."""

    numbers: Numbers
    exponents: Int64Array

    @classmethod
    def of(cls, values: Numbers) -> Values:
        """Return probabilities, or logarithms in whole units, as values."""
        if values.dtype.kind == "i":
            possible = values > IMPOSSIBLE // 2
            exponents = np.where(possible, values >> OFFSET_BITS, NEVER)
            return cls(np.where(possible, values & _REST, 0), exponents)
        numbers, exponents = np.frexp(values)
        exponents = np.where(numbers > 0, exponents.astype(np.int64) - 1, _EXPONENT_OF_0)
        return cls(2 * numbers, exponents)

    @classmethod
    def within(cls, columns: Numbers) -> Values:
        """Return columns of registers whose second half are exponents; places are those of both."""
        flat = columns.reshape(-1)
        return cls(flat, flat.view(np.int64))


class KeptRows(NamedTuple):
    """Whether each row's columns, those before states emit, and ranks of best ways are kept."""

    columns: bool
    before: bool
    ranks: bool


class _Sums:
    """Sums of probabilities, in code that is written; values are registers of `LANES`."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.numbers, self.whole = FloatVectors(builder, LANES, 64), Vectors(builder, 64, LANES)
        zero, lowest = self.numbers.constant(0), self.whole.constant(4 * _EXPONENT_OF_0)
        self.nothing = (zero, lowest, self.whole.constant(0))

    def along(self, number: Any, exponent: Any, factor: Any, more: Any) -> tuple[Any, Any]:
        """Return a product with another value."""
        return self._builder.fmul(number, factor), self._builder.add(exponent, more)

    def joined(self, found: Any, number: Any, exponent: Any, rank: Any) -> tuple[Any, Any, Any]:
        """Return the sum so far plus a value; the smaller one loses the digits that it must."""
        builder = self._builder
        most = self.whole.call("smax", found[1], exponent)
        one = builder.fmul(found[0], self._power(builder.sub(most, found[1])))
        other = builder.fmul(number, self._power(builder.sub(most, exponent)))
        return builder.fadd(one, other), most, found[2]

    def _power(self, less: Any) -> Any:
        """Return 2**-less, and 0 from 2**-1023 on."""
        builder, whole = self._builder, self.whole
        bits = builder.sub(whole.constant(1023), whole.call("umin", less, whole.constant(1023)))
        return builder.bitcast(builder.shl(bits, whole.constant(52)), self.numbers.kind)

    def settled(self, number: Any, exponent: Any) -> tuple[Any, Any]:
        """Return a value whose number is in its range."""
        builder, numbers, whole = self._builder, self.numbers, self.whole
        is_large = builder.fcmp_ordered(">=", number, numbers.constant(2.0**_POWER))
        less = builder.fmul(number, numbers.constant(2.0**-_POWER))
        more = builder.add(exponent, whole.constant(_POWER))
        exponent = builder.select(is_large, more, exponent)
        is_nothing = builder.fcmp_ordered("==", number, numbers.constant(0))
        exponent = builder.select(is_nothing, whole.constant(_EXPONENT_OF_0), exponent)
        return builder.select(is_large, less, number), exponent


class _Best:
    """The best paths, as `_Sums`."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder
        self.numbers = self.whole = Vectors(builder, 64, LANES)
        zero = self.whole.constant(0)
        self.nothing = (zero, self.whole.constant(4 * NEVER), zero)

    def along(self, number: Any, exponent: Any, factor: Any, more: Any) -> tuple[Any, Any]:
        """Return the logarithm of a product with another value."""
        builder, whole = self._builder, self.whole
        total = builder.add(number, factor)
        above = builder.lshr(total, whole.constant(OFFSET_BITS))
        exponent = builder.add(builder.add(exponent, more), above)
        return builder.and_(total, whole.constant(_REST)), exponent

    def joined(self, found: Any, number: Any, exponent: Any, rank: Any) -> tuple[Any, Any, Any]:
        """Return the better of the best so far and a value, and its rank; ties keep the first."""
        builder = self._builder
        is_better = builder.and_(
            builder.icmp_signed("==", exponent, found[1]),
            builder.icmp_signed(">", number, found[0]),
        )
        is_better = builder.or_(is_better, builder.icmp_signed(">", exponent, found[1]))
        pairs = zip((number, exponent, rank), found, strict=True)
        number, exponent, rank = (builder.select(is_better, *pair) for pair in pairs)
        return number, exponent, rank

    def settled(self, number: Any, exponent: Any) -> tuple[Any, Any]:
        """Return a value, and the same for all impossible ones."""
        builder, whole = self._builder, self.whole
        possible = builder.icmp_signed(">", exponent, whole.constant(NEVER // 2))
        exponent = builder.select(possible, exponent, whole.constant(NEVER))
        return builder.select(possible, number, whole.constant(0)), exponent


def _fill_node(
    typing_context: Any,
    numbers: Any,
    exponents: Any,
    sources: Any,
    step_numbers: Any,
    step_exponents: Any,
    emitted_numbers: Any,
    emitted_exponents: Any,
    rows: Any,
    ranks: Any,
    step: Any,
    end: Any,
    before: Any,
    joined: Any,
    to: Any,
    emission: Any,
    row: Any,
    rank: Any,
) -> Any:
    """Join all ways into a node, and emit the symbols of a row; keep the values before and after.

    Ways are the steps from one to another; places of values are registers of both arrays.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        is_sum = isinstance(signature.args[0].dtype, types.Float)
        arithmetic = _Sums(builder) if is_sum else _Best(builder)
        numbers, whole, index = arithmetic.numbers, arithmetic.whole, ir.IntType(64)
        step, end, before, joined, to, emission, row, rank = arguments[9:]
        (number_registers,) = numbers.arrays(context, signature, arguments, 0)
        (exponent_registers,) = whole.arrays(context, signature, arguments, 1)

        def loaded(vectors: Vectors, of: int, at: Any) -> Any:
            return load_from(
                context, builder, vectors.element, signature.args[of], arguments[of], at
            )

        def store(value: tuple[Any, Any], at: Any) -> None:
            numbers.store(value[0], number_registers, at)
            whole.store(value[1], exponent_registers, at)

        # A loop over the ways into the node: the result so far, joined with source and step.
        begin = builder.block
        head, body, after = (builder.append_basic_block(one) for one in ("head", "way", "joined"))
        builder.branch(head)
        builder.position_at_end(head)
        at = builder.phi(index)
        found = [builder.phi(one.type) for one in arithmetic.nothing]
        builder.cbranch(builder.icmp_signed("<", at, end), body, after)

        # All lanes take the same way, each from its own sequence's value of the source.
        builder.position_at_end(body)
        source = builder.add(before, loaded(whole, 2, at))
        way = arithmetic.along(
            numbers.load(number_registers, source),
            whole.load(exponent_registers, source),
            numbers.splat(loaded(numbers, 3, at)),
            whole.splat(loaded(whole, 4, at)),
        )
        better = arithmetic.joined(found, *way, whole.splat(builder.sub(at, step)))
        following = builder.add(at, ir.Constant(index, 1))
        values = zip(found, arithmetic.nothing, better, strict=True)
        join_turns(((at, step, following), *values), begin, body)
        builder.branch(head)

        # The value before the symbol, and that after it: lanes have symbols of their own, so each
        # looks its emission up by itself.
        builder.position_at_end(after)
        value = arithmetic.settled(found[0], found[1])
        store(value, joined)
        small = Vectors(builder, 8, LANES)
        (symbols,) = small.arrays(context, signature, arguments, 7)
        codes = builder.zext(small.load(symbols, row), whole.kind)
        places = builder.add(codes, whole.splat(emission))
        emitted = []
        for vectors, of in ((numbers, 5), (whole, 6)):
            chosen: Any = ir.Constant(vectors.kind, ir.Undefined)
            for lane in range(LANES):
                one = ir.Constant(ir.IntType(32), lane)
                place = builder.extract_element(places, one)
                chosen = builder.insert_element(chosen, loaded(vectors, of, place), one)
            emitted.append(chosen)
        store(arithmetic.settled(*arithmetic.along(*value, *emitted)), to)
        if not is_sum:
            short = Vectors(builder, 16, LANES)
            (kept,) = short.arrays(context, signature, arguments, 8)
            short.store(builder.trunc(found[2], short.kind), kept, rank)
        return context.get_dummy_value()

    arrays = (numbers, exponents, sources, step_numbers, step_exponents)
    tables = (emitted_numbers, emitted_exponents, rows, ranks)
    return types.void(*arrays, *tables, *[types.int64] * 8), generate


fill_node = cast(Any, intrinsic(_fill_node))
"""Called with the arrays of values, sources, steps and emissions, the symbols and ranks of rows;
the first way and the end of the ways; where the values of sources begin, where those before and
after the symbol go; where the emissions of the node begin, the row, and where the rank goes."""


@inline
def _keep(scratch: Values, begin: int, nodes: int, to: Values, row: int) -> None:
    """Copy a column, which begins at a register, to a row."""
    first, size = begin * LANES, nodes * LANES
    for at in range(size):
        to.numbers[as_index(2 * row * size + at)] = scratch.numbers[as_index(first + at)]
    for at in range(size):
        to.exponents[as_index((2 * row + 1) * size + at)] = scratch.exponents[as_index(first + at)]


@jit
def run(
    shape: ShapeArrays,
    steps: Values,
    emissions: Values,
    rows: ByteArray,
    segments: Int64Array,
    keeps: KeptRows,
    slots: Values,
    columns: Values,
    scratch: Values,
    ranks: UInt16Array,
) -> None:
    """Run segments, as the programs of `processor_text` do.

    `scratch` has the columns before and after a symbol, which take turns, each with the start of
    all paths as its last node; and the values after it before states emit.
    """
    nodes = shape.first_steps.size - 1
    width = nodes + 1
    for segment in range(segments.shape[0]):
        first, count, source = segments[segment]
        side = 0
        if source >= 0:
            for at in range(nodes * LANES):
                place = 2 * source * nodes * LANES + at
                scratch.numbers[at] = slots.numbers[place]
                scratch.exponents[at] = slots.exponents[place + nodes * LANES]
        for row in range(first, first + count):
            after = 1 - side
            for node in range(nodes):
                step, end, before = shape.first_steps[node], shape.first_steps[node + 1], side
                if node >= shape.emitting:
                    before = after
                elif source < 0 and row == first:
                    # One way, from the start.
                    step = shape.first_steps[nodes] + node
                    end = step + 1
                fill_node(
                    scratch.numbers,
                    scratch.exponents,
                    shape.sources,
                    steps.numbers,
                    steps.exponents,
                    emissions.numbers,
                    emissions.exponents,
                    rows,
                    ranks,
                    step,
                    end,
                    before * width,
                    2 * width + node,
                    after * width + node,
                    shape.emissions[node] * EMISSION_ROW,
                    row,
                    (row if keeps.ranks else 0) * nodes + node,
                )
            if keeps.columns:
                _keep(scratch, (2 if keeps.before else after) * width, nodes, columns, row)
            side = after
        _keep(scratch, side * width, nodes, slots, segment)


def new_scratch(nodes: int, dtype: Any) -> Values:
    """Return memory for `run`."""
    numbers = np.zeros((3 * (nodes + 1), LANES), dtype=dtype)
    # The start has the probability 1.
    numbers[nodes :: nodes + 1] = 1 if numbers.dtype.kind == "f" else 0
    return Values(numbers.reshape(-1), np.zeros(numbers.size, dtype=np.int64))
