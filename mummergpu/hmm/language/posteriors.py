"""Posterior probabilities: products of the states' values from both ends of a sequence."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from mummergpu.hmm.language.looped import Values
from mummergpu.hmm.language.pieces import LongSequence, MapPieces, Piece, pieces_of
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.processor_text import LANES, SMALLEST_TOTAL_POWER, Kept, ProgramKind
from mummergpu.hmm.language.tables import NEVER, Numbers
from mummergpu.hmm.language.traces import Runs
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_index, jit

PIECE_VALUES: Final = 1 << 19
"""About the number of state values of a piece of a long sequence, from one end."""

_POWERS: Final = np.append(2.0 ** -np.arange(1022.0), 0.0)
"""Powers of 2 by their negative exponents; the last is 0."""

_SPARE: Final = 160
"""No exponent of a product is so far above the largest one at another symbol: the sums of products
are equal, and numbers are less than 2**64, or 2**128 both together."""

_SMALLEST_TOTAL: Final = 2.0**SMALLEST_TOTAL_POWER

MAX_WHOLE_VALUES: Final = 1 << 22
"""The most state values of a sequence that is computed whole: half a gigabyte."""


class _OneEnd(LongSequence):
    """The sums from one end of a sequence, in pieces."""

    def __init__(
        self, programs: ChainPrograms, codes: ByteArray, map_pieces: MapPieces, pieces: list[Piece]
    ) -> None:
        super().__init__(programs, codes, True, map_pieces)
        self._cut = pieces
        # Computed here: in a thread with a group of pieces, this would wait for other threads.
        _ = self._borders

    @cached_property
    def _pieces(self) -> list[Piece]:
        return self._cut

    def columns(self, numbers: list[int], kept: Kept) -> Numbers:
        """Return the kept columns of pieces of one size, a lane each; the first comes alone."""
        rows = self._rows([self._pieces[number] for number in numbers])
        before = self.values_before(numbers) if numbers[0] > 0 else None
        return self._run(ProgramKind(True, kept), rows, before).columns


class LongPosteriors:
    """The posterior probabilities of a long sequence, from both ends of each of its pieces.

    Computed whole, each symbol would need two values of each state, in each lane.
    """

    def __init__(
        self, both: tuple[ChainPrograms, ChainPrograms], codes: ByteArray, map_pieces: MapPieces
    ) -> None:
        self.programs = both[0]
        size = max(1, PIECE_VALUES // both[0].values_of_column)
        self.pieces = pieces_of(codes.size, size)
        # From the end on the same pieces, so that the first of them may be shorter.
        reversed_pieces = [
            Piece(codes.size - one.end, codes.size - one.begin) for one in self.pieces
        ]
        self._ahead = _OneEnd(both[0], codes, map_pieces, self.pieces)
        backwards = np.ascontiguousarray(codes[::-1])
        self._back = _OneEnd(both[1], backwards, map_pieces, reversed_pieces[::-1])

    def groups(self) -> list[list[int]]:
        """Return the numbers of pieces that are computed together.

        The first and the last stand alone: from one end, each begins with a start.
        """
        count = len(self.pieces)
        middle = list(range(1, count - 1))
        groups = [middle[at : at + LANES] for at in range(0, len(middle), LANES)]
        return [[0], *groups, *([[count - 1]] if count > 1 else [])]

    def of_group(self, numbers: list[int], states: Int64Array) -> Float64Array:
        """Return the probabilities of the states of each symbol; `states` are those of nodes."""
        first, last = self.pieces[numbers[0]], self.pieces[numbers[-1]]
        offsets = np.array([self.pieces[one].begin for one in numbers] + [last.end]) - first.begin
        found = np.zeros((int(offsets[-1]), int(states.max()) + 1))
        first_rows = np.zeros(len(numbers), dtype=np.int64)
        both = self.columns_of(numbers)
        write_posteriors(self.programs, first_rows, offsets, both, states, found)
        return found

    def columns_of(self, numbers: list[int]) -> tuple[Numbers, Numbers]:
        """Return the columns of a group from both ends, those from the end in the other order."""
        opposite = [len(self.pieces) - 1 - number for number in numbers]
        return self._ahead.columns(numbers, Kept.COLUMN), self._back.columns(opposite, Kept.BEFORE)

    def before(self, numbers: list[int]) -> Numbers:
        """Return the values before the pieces of a group, without the first piece."""
        return self._ahead.values_before(numbers)


def write_posteriors(
    programs: ChainPrograms,
    first_rows: Int64Array,
    offsets: Int64Array,
    both: tuple[Numbers, Numbers],
    states: Int64Array,
    found: Float64Array,
) -> None:
    """Write the probabilities of the states of each symbol: products of both ends, that sum to 1.

    The rows of the second columns are in the other order. Those of a symbol are NaN without
    a path, and where a sum has become too small compared with others.
    """
    exact_nodes = programs.chain.shape.nodes if programs.is_exact else 0
    forward, backward = (Values(one, one.view(np.int64)) for one in both)
    most, rows = np.empty(LANES, dtype=np.int64), (first_rows, offsets)
    _fill_posteriors(*rows, forward, backward, exact_nodes, states, _POWERS, most, found)


@jit
def _fill_posteriors(
    first_rows: Int64Array,
    offsets: Int64Array,
    forward: Values,
    backward: Values,
    exact_nodes: int,
    states: Int64Array,
    powers: Float64Array,
    most: Int64Array,
    found: Float64Array,
) -> None:
    """Write the probabilities; `exact_nodes` have exponents after their values.

        found[symbol, state] = sum(forward[symbol, node] * backward[symbol, node]) / total

    over the nodes of a state, where the total is that over all nodes. `most` is memory for a number
    a lane: with exponents, products are taken relative to the largest.
    """
    for group in range(0, first_rows.size, LANES):
        end, longest = min(group + LANES, first_rows.size), 0
        for number in range(group, end):
            longest = max(longest, offsets[number + 1] - offsets[number])
        # The sequences of a group take turns, as they share the memory of rows.
        for place in range(longest):
            for number in range(group, end):
                at, lane = offsets[number] + place, number - group
                if at >= offsets[number + 1]:
                    continue
                row = first_rows[number] + place
                back = first_rows[number] + offsets[number + 1] - 1 - at
                if exact_nodes and place == 0:
                    most[lane] = NEVER
                    for node in range(exact_nodes, exact_nodes + states.size):
                        ahead = forward.exponents[row, node, lane]
                        most[lane] = max(most[lane], ahead + backward.exponents[back, node, lane])
                    # The sum of all products is the same at each symbol.
                    most[lane] += _SPARE
                total = 0.0
                for node in range(states.size):
                    value = forward.numbers[row, node, lane] * backward.numbers[back, node, lane]
                    if exact_nodes:
                        less = most[lane] - forward.exponents[row, exact_nodes + node, lane]
                        less -= backward.exponents[back, exact_nodes + node, lane]
                        value *= powers[as_index(max(0, min(less, powers.size - 1)))]
                    found[at, states[node]] += value
                    total += value
                total = total if total > _SMALLEST_TOTAL else np.nan
                for state in range(found.shape[1]):
                    found[at, state] /= total


def likeliest_runs(rows: Float64Array, offsets: Int64Array, names: Int64Array) -> Runs:
    """Return runs of the likeliest states of symbols; of equal ones the first is taken."""
    path = rows.argmax(axis=1)
    is_new = np.diff(path, prepend=-1) != 0
    is_new[offsets[:-1]] = True
    begins = np.flatnonzero(is_new)
    lengths = np.diff(np.append(begins, path.size))
    return Runs(names[path[begins]], lengths, np.searchsorted(begins, offsets))
