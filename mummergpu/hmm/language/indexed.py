"""The recurrence in loops over the transitions, for chains too large for a program of their own.

What is computed, and where it is left, is what `processor_text` says; nothing is compiled for a
shape.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.language.processor_text import IMPOSSIBLE, LANES, OFFSET_BITS, SMALLEST_POWER
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array, UInt16Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

_SMALLEST: Final = 2.0**SMALLEST_POWER
_LEAST: Final = 2.0**-1022


class ShapeArrays(NamedTuple):
    """A shape: where the steps into each node begin, their sources, and the emissions of nodes."""

    first_steps: Int64Array
    sources: Int64Array
    emissions: Int64Array

    @classmethod
    def of(cls, shape: Shape) -> ShapeArrays:
        """Return the arrays of a shape."""
        counts = [len(steps) for steps in shape.into()]
        sources = [source for source, _ in shape.steps] or [0]
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.array(sources, dtype=np.int64),
            np.array(shape.emissions, dtype=np.int64),
        )


class Keeps(NamedTuple):
    """What is kept of each row: the columns, those before states emit, the ranks of best ways."""

    columns: bool
    before: bool
    ranks: bool


@inline_without_refcounts
def _join_sums(
    shape: ShapeArrays, numbers: Float64Array, before: Float64Array, node: int, to: Float64Array
) -> None:
    """Write the sums of all ways into a node."""
    for lane in range(LANES):
        to[node, lane] = 0.0
    for step in range(shape.first_steps[node], shape.first_steps[node + 1]):
        source, weight = shape.sources[step], numbers[step]
        for lane in range(LANES):
            to[node, lane] += before[source, lane] * weight


@inline_without_refcounts
def _seen(value: float) -> float:
    """Return a value, or no number if it is too small and not 0."""
    return np.nan if value > 0 and value < _SMALLEST else value


@inline_without_refcounts
def _join_best(
    shape: ShapeArrays,
    numbers: Int64Array,
    before: Int64Array,
    node: int,
    to: Int64Array,
    ranks: UInt16Array,
) -> None:
    """Write the best way into a node, and its rank."""
    for lane in range(LANES):
        to[node, lane] = IMPOSSIBLE
        ranks[node, lane] = 0
    first = shape.first_steps[node]
    for step in range(first, shape.first_steps[node + 1]):
        source, weight, rank = shape.sources[step], numbers[step], step - first
        for lane in range(LANES):
            value = before[source, lane] + weight
            is_better = value > to[node, lane]
            to[node, lane] = value if is_better else to[node, lane]
            ranks[node, lane] = rank if is_better else ranks[node, lane]


@jit_without_refcounts
def run_sums(  # noqa: C901
    shape: ShapeArrays,
    numbers: Float64Array,
    emissions: Float64Array,
    rows: ByteArray,
    segments: Int64Array,
    chunk: int,
    keeps: Keeps,
    slots: Float64Array,
    exponents: Int64Array,
    columns: Float64Array,
    scratch: Float64Array,
) -> None:
    """Run segments of sums; `exponents` are the last numbers of `slots` and `columns` as integers.

    Its first dimension has the slots, and then the rows of the columns if those are kept.
    """
    nodes, emitting = shape.first_steps.size - 1, shape.emissions.size
    steps = shape.first_steps[nodes]
    before, found, shown, factors = scratch[0], scratch[1], scratch[2], scratch[3, 0]
    scale = exponents[-1]
    for segment in range(segments.shape[0]):
        first, count, source = segments[segment]
        for lane in range(LANES):
            scale[lane] = exponents[source, lane] if source >= 0 else 0
        if source >= 0:
            for node in range(nodes):
                for lane in range(LANES):
                    before[node, lane] = slots[source, node, lane]
        for row in range(first, first + count):
            for node in range(emitting):
                if row == first and source < 0:
                    for lane in range(LANES):
                        found[node, lane] = numbers[steps + node]
                else:
                    _join_sums(shape, numbers, before, node, found)
                for lane in range(LANES):
                    shown[node, lane] = found[node, lane]
                    found[node, lane] *= emissions[shape.emissions[node], rows[row, lane]]
            for node in range(emitting, nodes):
                _join_sums(shape, numbers, found, node, found)
                for lane in range(LANES):
                    shown[node, lane] = found[node, lane]
            is_last = row == first + count - 1
            if keeps.columns or is_last or (row - first) % chunk == chunk - 1:
                for lane in range(LANES):
                    factors[lane] = 0.0
                for node in range(nodes):
                    for lane in range(LANES):
                        # What is no number is not larger.
                        if found[node, lane] > factors[lane]:
                            factors[lane] = found[node, lane]
                        if keeps.before and shown[node, lane] > factors[lane]:
                            factors[lane] = shown[node, lane]
                for lane in range(LANES):
                    most, factors[lane] = factors[lane], 1.0
                    if most >= _LEAST and most < np.inf:
                        power = math.frexp(most)[1]
                        factors[lane] = math.ldexp(1.0, 1 - power)
                        scale[lane] += power - 1
                for node in range(nodes):
                    for lane in range(LANES):
                        found[node, lane] = _seen(found[node, lane] * factors[lane])
                        shown[node, lane] = _seen(shown[node, lane] * factors[lane])
            if keeps.columns:
                for node in range(nodes):
                    for lane in range(LANES):
                        value = shown[node, lane] if keeps.before else found[node, lane]
                        columns[row, node, lane] = value
                for lane in range(LANES):
                    exponents[slots.shape[0] + row, lane] = scale[lane]
            before, found = found, before
        for node in range(nodes):
            for lane in range(LANES):
                slots[segment, node, lane] = before[node, lane]
        for lane in range(LANES):
            exponents[segment, lane] = scale[lane]


@jit_without_refcounts
def run_best(  # noqa: C901
    shape: ShapeArrays,
    numbers: Int64Array,
    emissions: Int64Array,
    rows: ByteArray,
    segments: Int64Array,
    chunk: int,
    keeps: Keeps,
    slots: Int64Array,
    columns: Int64Array,
    scratch: Int64Array,
    ranks: UInt16Array,
) -> None:
    """Run segments of best paths."""
    nodes, emitting = shape.first_steps.size - 1, shape.emissions.size
    steps = shape.first_steps[nodes]
    before, found, offset = scratch[0], scratch[1], scratch[2, 0]
    for segment in range(segments.shape[0]):
        first, count, source = segments[segment]
        for lane in range(LANES):
            offset[lane] = slots[source, nodes, lane] if source >= 0 else 0
        if source >= 0:
            for node in range(nodes):
                for lane in range(LANES):
                    before[node, lane] = slots[source, node, lane]
        for row in range(first, first + count):
            kept = ranks[row if keeps.ranks else 0]
            for node in range(emitting):
                if row == first and source < 0:
                    for lane in range(LANES):
                        found[node, lane] = numbers[steps + node]
                else:
                    _join_best(shape, numbers, before, node, found, kept)
                for lane in range(LANES):
                    value = found[node, lane] + emissions[shape.emissions[node], rows[row, lane]]
                    found[node, lane] = max(value, IMPOSSIBLE)
            for node in range(emitting, nodes):
                _join_best(shape, numbers, found, node, found, kept)
            if keeps.columns or (row - first) % chunk == chunk - 1:
                for lane in range(LANES):
                    most = found[0, lane]
                    for node in range(nodes):
                        most = max(most, found[node, lane])
                    taken = most >> OFFSET_BITS if most > IMPOSSIBLE // 2 else 0
                    for node in range(nodes):
                        is_alive = found[node, lane] > IMPOSSIBLE // 2
                        value = found[node, lane] - (taken << OFFSET_BITS)
                        found[node, lane] = value if is_alive else IMPOSSIBLE
                    offset[lane] += taken
            if keeps.columns:
                for node in range(nodes):
                    for lane in range(LANES):
                        columns[row, node, lane] = found[node, lane]
                for lane in range(LANES):
                    columns[row, nodes, lane] = offset[lane]
            before, found = found, before
        for node in range(nodes):
            for lane in range(LANES):
                slots[segment, node, lane] = before[node, lane]
        for lane in range(LANES):
            slots[segment, nodes, lane] = offset[lane]
