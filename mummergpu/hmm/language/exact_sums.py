"""Sums with an exponent for each state, for sequences whose states have no common scale.

Programs that scale whole columns give up where a state is 2**584 times behind another. These take
longer, and lose nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.indexed import ShapeArrays
from mummergpu.hmm.language.pieces import MapPieces, pieces_of
from mummergpu.hmm.language.posteriors import PIECE_VALUES
from mummergpu.hmm.language.processor_text import Kept
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

_EXPONENT_OF_0: Final = -(1 << 50)
_STEP: Final = 64
_LARGE: Final = 2.0**_STEP
"""Factors are 1 or larger, so that products grow; of those so large a power of 2 is taken off."""

_POWERS: Final = np.append(2.0 ** -np.arange(256.0), 0.0)
"""What numbers are multiplied with that are so many powers of 2 behind; the last are nothing."""


class Powers(NamedTuple):
    """Numbers times powers of 2; those that are not 0 are 1 or larger, and less than 2**100."""

    numbers: Float64Array
    exponents: Int64Array

    @classmethod
    def of(cls, values: Float64Array) -> Powers:
        """Return some values."""
        numbers, exponents = np.frexp(values)
        exponents = np.where(numbers > 0, exponents.astype(np.int64) - 1, _EXPONENT_OF_0)
        return cls(2 * numbers, exponents)

    @classmethod
    def room(cls, *shape: int) -> Powers:
        """Return room for values."""
        return cls(np.empty(shape), np.empty(shape, dtype=np.int64))

    def logs(self) -> Float64Array:
        """Return natural logarithms."""
        with np.errstate(divide="ignore"):
            found: Float64Array = np.log(self.numbers) + self.exponents * np.log(2)
        return found


class ExactSums:
    """The sums of a chain from its start: of a reversed one, from the end of sequences."""

    def __init__(self, chain: Chain) -> None:
        self.nodes, self._emitting = chain.shape.nodes, chain.shape.emitting
        self._shape = ShapeArrays.of(chain.shape)
        self._steps = Powers.of(np.append(chain.probabilities, chain.start))
        self._emissions = Powers.of(chain.emissions)
        with np.errstate(divide="ignore"):
            self._ends = np.log(chain.end)

    def run(
        self, codes: ByteArray, before: Powers | None = None, kept: Kept = Kept.NOTHING
    ) -> tuple[Powers, Powers]:
        """Return the values behind some symbols, and what is kept of each of them.

        They begin with the start, or with the values before them.
        """
        both = Powers.room(2, self.nodes)
        columns = Powers.room(codes.size if kept else 0, self.nodes)
        if before is not None:
            both.numbers[0], both.exponents[0] = before
        codes = np.ascontiguousarray(codes)
        conditions = before is None, Kept.BEFORE in kept
        _run(self._shape, self._steps, self._emissions, codes, *conditions, _POWERS, both, columns)
        last = codes.size % 2
        return Powers(both.numbers[last], both.exponents[last]), columns

    def score(self, behind: Powers) -> float:
        """Return the logarithm of the sum over all paths, from the values behind a sequence."""
        return float(np.logaddexp.reduce(behind.logs()[: self._emitting] + self._ends))


class ExactPosteriors:
    """The posterior probabilities of a sequence, piece by piece, as `LongPosteriors`."""

    def __init__(
        self, both: tuple[ExactSums, ExactSums], codes: ByteArray, map_pieces: MapPieces
    ) -> None:
        self._both = both
        pieces = pieces_of(codes.size, max(1, PIECE_VALUES // (2 * both[0].nodes)))
        # From each end, the symbols of pieces.
        self._codes = [
            [codes[piece.begin : piece.end] for piece in pieces],
            [codes[piece.begin : piece.end][::-1] for piece in reversed(pieces)],
        ]
        self._before = list(map_pieces(self._borders, range(2)))

    def _borders(self, end: int) -> list[Powers | None]:
        """Return the values before each piece, from an end of the sequence on."""
        found: list[Powers | None] = [None]
        for codes in self._codes[end][:-1]:
            found.append(self._both[end].run(codes, found[-1])[0])
        return found

    def groups(self) -> list[list[int]]:
        """Return the numbers of pieces, each by itself."""
        return [[number] for number in range(len(self._before[0]))]

    def of_group(self, numbers: list[int], states: Int64Array) -> Float64Array:
        """Return the probabilities of the states of each symbol; `states` are those of nodes."""
        forward = self._columns(0, numbers[0], Kept.COLUMN)
        backward = self._columns(1, -1 - numbers[0], Kept.BEFORE)
        found = np.zeros((len(forward.numbers), int(states.max()) + 1))
        _fill_posteriors(forward, backward, states, _POWERS, found)
        return found

    def _columns(self, end: int, number: int, kept: Kept) -> Powers:
        codes, before = self._codes[end][number], self._before[end][number]
        return self._both[end].run(codes, before, kept)[1]


@inline_without_refcounts
def _sum_into(
    shape: ShapeArrays, steps: Powers, powers: Float64Array, values: Powers, side: int, node: int
) -> tuple[float, int]:
    """Return the sum of all ways into a node, and its exponent."""
    begin, end = shape.first_steps[node], shape.first_steps[node + 1]
    most = 4 * _EXPONENT_OF_0
    for step in range(begin, end):
        exponent = values.exponents[side, shape.sources[step]] + steps.exponents[step]
        most = max(most, exponent)
    total = 0.0
    for step in range(begin, end):
        source = shape.sources[step]
        behind = most - values.exponents[side, source] - steps.exponents[step]
        factor = powers[min(behind, powers.size - 1)]
        total += values.numbers[side, source] * steps.numbers[step] * factor
    return total, most


@jit_without_refcounts
def _run(
    shape: ShapeArrays,
    steps: Powers,
    emissions: Powers,
    codes: ByteArray,
    is_start: bool,
    keeps_before: bool,
    powers: Float64Array,
    values: Powers,
    columns: Powers,
) -> None:
    """Compute columns; those before and behind a symbol take turns in `values`."""
    nodes, emitting = shape.first_steps.size - 1, shape.emissions.size
    first_start = shape.first_steps[nodes]
    for at in range(codes.size):
        before, found = at % 2, 1 - at % 2
        for node in range(nodes):
            if node >= emitting:
                total, exponent = _sum_into(shape, steps, powers, values, found, node)
            elif is_start and at == 0:
                total, exponent = (
                    steps.numbers[first_start + node],
                    steps.exponents[first_start + node],
                )
            else:
                total, exponent = _sum_into(shape, steps, powers, values, before, node)
            if keeps_before:
                columns.numbers[at, node] = total
                columns.exponents[at, node] = exponent if total > 0 else _EXPONENT_OF_0
            if node < emitting:
                total *= emissions.numbers[shape.emissions[node], codes[at]]
                exponent += emissions.exponents[shape.emissions[node], codes[at]]
            if total >= _LARGE:
                total /= _LARGE
                exponent += _STEP
            values.numbers[found, node] = total
            values.exponents[found, node] = exponent if total > 0 else _EXPONENT_OF_0
        if columns.numbers.shape[0] > 0 and not keeps_before:
            for node in range(nodes):
                columns.numbers[at, node] = values.numbers[found, node]
                columns.exponents[at, node] = values.exponents[found, node]


@jit_without_refcounts
def _fill_posteriors(
    forward: Powers,
    backward: Powers,
    states: Int64Array,
    powers: Float64Array,
    found: Float64Array,
) -> None:
    """Write the probabilities of the states of each symbol, as `fill_posteriors` does."""
    for row in range(found.shape[0]):
        back, most, total = found.shape[0] - 1 - row, 4 * _EXPONENT_OF_0, 0.0
        for node in range(states.size):
            most = max(most, forward.exponents[row, node] + backward.exponents[back, node])
        for node in range(states.size):
            behind = most - forward.exponents[row, node] - backward.exponents[back, node]
            value = forward.numbers[row, node] * backward.numbers[back, node]
            value *= powers[min(behind, powers.size - 1)]
            found[row, states[node]] += value
            total += value
        for state in range(found.shape[1]):
            found[row, state] /= total
