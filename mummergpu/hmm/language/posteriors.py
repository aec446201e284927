"""Posterior probabilities: products of what states have from both ends of a sequence."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from mummergpu.hmm.language.pieces import LongSequence, MapPieces, Piece, pieces_of
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.processor_text import LANES, SMALLEST_TOTAL_POWER, Kept, ProgramKind
from mummergpu.hmm.language.tables import Numbers
from mummergpu.hmm.language.traces import Runs
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts

PIECE_VALUES: Final = 1 << 19
"""About how many values of states a piece of a long sequence has from one end."""

_SMALLEST_TOTAL: Final = 2.0**SMALLEST_TOTAL_POWER

MAX_WHOLE_VALUES: Final = 1 << 22
"""How many values of states a sequence has that is computed whole: half a gigabyte."""


class _OneEnd(LongSequence):
    """The sums from one end of a sequence, in pieces."""

    def __init__(
        self,
        programs: ChainPrograms,
        codes: ByteArray,
        map_pieces: MapPieces,
        pieces: list[Piece],
    ) -> None:
        super().__init__(programs, codes, True, map_pieces)
        self._cut = pieces
        # Now: in a thread that has a group of pieces, this would wait for other threads.
        self._behind = self._borders.values

    @cached_property
    def _pieces(self) -> list[Piece]:
        return self._cut

    def columns(self, numbers: list[int], kept: Kept) -> Numbers:
        """Return what is kept of pieces of one size, a lane each; of the first one alone."""
        rows, before = self._rows([self._pieces[number] for number in numbers]), None
        if numbers[0] > 0:
            values = self._behind[np.array(numbers) - 1]
            before = np.append(values, np.zeros((len(numbers), 1)), axis=1)
        return self._run(ProgramKind(True, kept), rows, before).columns


class LongPosteriors:
    """The posterior probabilities of a long sequence, from both ends of each of its pieces.

    Whole, each symbol would need two values of each state, in each lane.
    """

    def __init__(
        self,
        both: tuple[ChainPrograms, ChainPrograms],
        codes: ByteArray,
        map_pieces: MapPieces,
    ) -> None:
        size = max(1, PIECE_VALUES // both[0].chain.shape.nodes)
        self._pieces = pieces_of(codes.size, size)
        # From the end on the same pieces, so that the first of them may be shorter.
        turned = [Piece(codes.size - one.end, codes.size - one.begin) for one in self._pieces]
        self._ahead = _OneEnd(both[0], codes, map_pieces, self._pieces)
        backwards = np.ascontiguousarray(codes[::-1])
        self._back = _OneEnd(both[1], backwards, map_pieces, turned[::-1])

    def groups(self) -> list[list[int]]:
        """Return the numbers of pieces that are computed together.

        The first and the last stand alone: from one end, each begins with a start.
        """
        count = len(self._pieces)
        middle = list(range(1, count - 1))
        groups = [middle[at : at + LANES] for at in range(0, len(middle), LANES)]
        return [[0], *groups, *([[count - 1]] if count > 1 else [])]

    def of_group(self, numbers: list[int], states: Int64Array) -> Float64Array:
        """Return the probabilities of the states of each symbol; `states` are those of nodes."""
        first, last = self._pieces[numbers[0]], self._pieces[numbers[-1]]
        offsets = np.array([self._pieces[one].begin for one in numbers] + [last.end]) - first.begin
        forward = self._ahead.columns(numbers, Kept.COLUMN)
        opposite = [len(self._pieces) - 1 - number for number in numbers]
        backward = self._back.columns(opposite, Kept.BEFORE)
        found = np.zeros((int(offsets[-1]), int(states.max()) + 1))
        first_rows = np.zeros(len(numbers), dtype=np.int64)
        fill_posteriors(first_rows, offsets, forward, backward, states, found)
        return found


@jit_without_refcounts
def fill_posteriors(
    first_rows: Int64Array,
    offsets: Int64Array,
    forward: Float64Array,
    backward: Float64Array,
    states: Int64Array,
    found: Float64Array,
) -> None:
    """Write the probabilities of the states of each symbol: products of both ends, that sum to 1.

    The rows of `backward` are in the other order. Those of a symbol are no numbers without a path,
    and where a sum has become too small beside others.
    """
    for number in range(first_rows.size):
        lane = number % LANES
        begin, end = offsets[number], offsets[number + 1]
        first = first_rows[number]
        for at in range(begin, end):
            row, back = first + at - begin, first + end - 1 - at
            total = 0.0
            for node in range(states.size):
                value = forward[row, node, lane] * backward[back, node, lane]
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
