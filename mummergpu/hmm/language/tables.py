"""The numbers of a chain for the programs of a processor or a device."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.processor_text import (
    IMPOSSIBLE,
    LOG_BITS,
    LOST,
    OFFSET_BITS,
    SMALLEST_POWER,
)
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.jit import flattened, jit

Numbers = npt.NDArray[Any]
"""float64, or int64 for best paths."""

LONGEST_CHUNK: Final = 64

NEVER: Final = -(1 << 60)
"""The exponent of a path that is impossible, of logarithms that each have one."""


class NumberRange(NamedTuple):
    """The range of numbers, in powers of 2: the smallest, and the smallest that sums keep."""

    least: int
    kept: int


DOUBLES: Final = NumberRange(-1022, SMALLEST_POWER)
FLOATS: Final = NumberRange(-126, -65)

_LOG_2: Final = math.log(2)
_MAX_LOG: Final = 700.0
LOG_UNITS: Final = float(1 << LOG_BITS)
EMISSION_ROW: Final = 256
"""The places of an emission in a table; the one after the symbols is that of padding."""


class ShapeArrays(NamedTuple):
    """A shape for compiled functions."""

    # (n_nodes + 1,): where the steps into each node begin, and where the last ends.
    first_steps: Int64Array
    # Of each step; after the steps, for each node that emits, the start: the number of nodes.
    sources: Int64Array
    emissions: Int64Array  # (n_nodes,): those of nodes; of a silent one the number of emissions
    emitting: int

    @classmethod
    def of(cls, shape: Shape) -> ShapeArrays:
        """Return the arrays of a shape."""
        counts = [len(steps) for steps in shape.into()]
        sources = [source for source, _ in shape.steps] + [shape.nodes] * shape.emitting
        emissions = [*shape.emissions, *[shape.emission_count] * shape.silent]
        return cls(
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            np.array(sources, dtype=np.int64),
            np.array(emissions, dtype=np.int64),
            shape.emitting,
        )


class ChainTables(NamedTuple):
    """A chain in numbers."""

    numbers: Numbers  # The probabilities of transitions, and then of the start
    # (n_emissions, EMISSION_ROW): the probabilities of symbols; after them 1 for the padding.
    emissions: Numbers
    end: Numbers  # The probabilities of the end
    # The columns between two scalings of values; 0 if sums may be too small for doubles after a
    # single one.
    chunk: int
    float_chunk: int = 0  # The same for floats


def sum_tables(chain: Chain) -> ChainTables:
    """Return the numbers of a chain for sums."""
    numbers = np.concatenate([chain.probabilities, chain.start])
    emissions = np.zeros((chain.emissions.shape[0], EMISSION_ROW))
    symbols = chain.emissions.shape[1]
    emissions[:, :symbols] = chain.emissions
    if symbols < EMISSION_ROW:
        emissions[:, symbols] = 1
    chunks = [_chunk(chain, limits) for limits in (DOUBLES, FLOATS)]
    return ChainTables(numbers, emissions, chain.end.copy(), *chunks)


def best_tables(chain: Chain) -> ChainTables:
    """Return the numbers of a chain for best paths: logarithms in units of 2**-LOG_BITS."""
    numbers = log_units(np.concatenate([chain.probabilities, chain.start]))
    emissions = np.full((chain.emissions.shape[0], EMISSION_ROW), IMPOSSIBLE, dtype=np.int64)
    symbols = chain.emissions.shape[1]
    emissions[:, :symbols] = log_units(chain.emissions)
    if symbols < EMISSION_ROW:
        emissions[:, symbols] = 0
    # A column adds a transition for each silent state at most.
    most = 745.0 * (chain.shape.silent + 2)
    chunk = max(1, min(LONGEST_CHUNK, int((1 << 22) / most)))
    return ChainTables(numbers, emissions, log_units(chain.end), chunk)


def log_units(values: Float64Array) -> Int64Array:
    """Return natural logarithms in units of 2**-LOG_BITS, `IMPOSSIBLE` for 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(values) * LOG_UNITS
    return np.where(values > 0, np.rint(np.maximum(logs, -1e15)), IMPOSSIBLE).astype(np.int64)


def log_of_units(values: Int64Array, offsets: Int64Array) -> Float64Array:
    """Return the natural logarithms of values with their offsets.

    They are -inf where no path is possible, and NaN where one may be lost.
    """
    found = values / LOG_UNITS + offsets * ((1 << OFFSET_BITS) / LOG_UNITS)
    impossible = (values < IMPOSSIBLE // 2) | (offsets <= NEVER // 2)
    found = np.where(impossible, -np.inf, found)
    return np.where(offsets > LOST // 2, np.nan, found)


class _Extremes(NamedTuple):
    """The logarithms of the least and the greatest of some numbers and 1, without zeros."""

    min_log: float
    max_log: float

    @classmethod
    def of(cls, values: Float64Array) -> _Extremes:
        """Return those of some numbers."""
        some = values[values > 0]
        logs = np.log(some) if some.size else np.zeros(1)
        return cls(min(0.0, float(logs.min())), max(0.0, float(logs.max())))


def _chunk(chain: Chain, limits: NumberRange) -> int:
    """Return the number of columns between two scalings of sums, so that every loss is noticed.

    After each scaling a value is 0, or at least the smallest that is kept, where the largest is
    about 1. Up to the next one no product may be too small for a number, nor become so when it is
    scaled: then a value below the smallest that is kept can be distinguished from 0.
    """
    kept, room = -limits.kept * _LOG_2, (limits.kept - limits.least) * _LOG_2
    start, end = _Extremes.of(chain.start), _Extremes.of(chain.end)
    if start.max_log - start.min_log > kept or max(-end.min_log, end.max_log, start.max_log) > room:
        return 0
    numbers = _Factors.of(chain)
    chunk, total = _columns_within(chain.shape, numbers, room)
    if chunk > 0:
        return chunk
    # In a line of silent states the first one that is too small follows one that is not. As each of
    # them is looked at after each column, that one is seen, also if those after it become 0.
    fall = numbers.falls.max() + numbers.emitted_falls.max()
    return int(2 * fall + math.log(total) <= room)


class _Factors(NamedTuple):
    """The factors of values: chances of steps, and emissions.

    The falls are negative logarithms of chances; emissions have only extremes.
    """

    chances: Float64Array
    falls: Float64Array
    emitted_falls: Float64Array
    emitted_most: Float64Array

    @classmethod
    def of(cls, chain: Chain) -> _Factors:
        """Return those of a chain."""
        # An array of nothing has no largest number.
        chances = np.append(chain.probabilities, 1.0)
        falls = np.maximum(0.0, -np.log(np.where(chances > 0, chances, 1.0)))
        extremes = np.array([_Extremes.of(row) for row in chain.emissions])
        emitted = extremes[list(chain.shape.emissions)]
        most = np.exp(np.minimum(emitted[:, 1], _MAX_LOG))
        return cls(chances, falls, -emitted[:, 0], most)


def _columns_within(shape: Shape, factors: _Factors, room: float) -> tuple[int, float]:
    """Return the columns, up to the longest chunk, in which products fall within room.

    The second number is the largest sum after the last column that was looked at. The logarithms
    are taken here: an image of compiled code can call none.
    """
    arrays, factors = flattened(ShapeArrays.of(shape)), flattened(factors)
    falls, sums = np.zeros((2, shape.nodes)), np.ones((2, shape.nodes))
    total = 1.0
    for column in range(LONGEST_CHUNK):
        _add_column(arrays, factors, column % 2, falls, sums)
        current = 1 - column % 2
        total = float(sums[current].max())
        if falls[current].max() + math.log(total) > room:
            return column, total
    return LONGEST_CHUNK, total


@jit
def _add_column(
    shape: ShapeArrays, factors: _Factors, before: int, falls: Float64Array, sums: Float64Array
) -> None:
    """Write the largest falls below 1 of values after a further column, and the largest sums.

    The falls are those of single paths. Rows of both arrays take turns, as `before` says.
    """
    current = 1 - before
    for node in range(falls.shape[1]):
        is_silent = node >= factors.emitted_falls.size
        side = current if is_silent else before
        fall, total = 0.0, 0.0
        for step in range(shape.first_steps[node], shape.first_steps[node + 1]):
            source = shape.sources[step]
            if factors.chances[step] > 0:
                fall = max(fall, falls[side, source] + factors.falls[step])
                total += sums[side, source] * factors.chances[step]
        if not is_silent:
            fall += factors.emitted_falls[node]
            total = max(total, 1.0) * factors.emitted_most[node]
        falls[current, node] = fall
        sums[current, node] = max(total, 1.0)
