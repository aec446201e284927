"""Candidates: the diagonals on which a read may lie, with their scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, prefetch
from mummergpu.sequence.codes import CodeArray

STRAND: Final = 0
RECORD: Final = 1
CORE_BEGIN: Final = 2
CORE_LENGTH: Final = 3
LEFT_SCORE: Final = 4
LEFT_TAKEN: Final = 5
RIGHT_SCORE: Final = 6
RIGHT_TAKEN: Final = 7
SCORE: Final = 8
BOUND: Final = 9
LEFT_SHIFT: Final = 10
RIGHT_SHIFT: Final = 11
STATE: Final = 12
CREDIT: Final = 13
GAPPED: Final = 14
MARK: Final = 15
NUMBERS: Final = 16
"""The numbers of a candidate, columns of `Candidates.numbers`."""

UNGAPPED: Final = 0
EXACT: Final = 1
DEAD: Final = 2
"""The states of a candidate: scored without gaps only, with its best score, of a path that another
candidate has with a better score."""

LEFT_GAPPED: Final = 1
RIGHT_GAPPED: Final = 2

RESCUE_ROWS: Final = 8
"""The candidates of a read that rescue may add."""

Beside = tuple[int, int]
"""What is known about the bases beside a core: there is no match of so many bases within the most
gap; and none contains a whole window of the read of so many bases (`windows`), 0 if that is not
known."""

NOTHING_KNOWN: Final = (1 << 30, 0)
"""What is known (`Beside`) if other matches may lie there."""


CACHE_LINE: Final = 64
"""The bytes that the memory fetches at once."""


@dataclass(frozen=True)
class Candidates:
    """The candidates of a block of reads.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where the candidates of each read begin, and where the last ones end. Those of a read
        ascend by strand, then by diagonal.
    counts : ndarray, dtype=int64, shape=(n_reads,)
        How many candidates each read has.
    diagonals : ndarray, dtype=int64, shape=(n_candidates,)
        Where in the joined reference the read's first base would lie, on the strand of the
        candidate; may be negative.
    numbers : ndarray, dtype=int32, shape=(n_candidates, NUMBERS)
        The strand and the record; where in the read the longest match of the diagonal begins, and
        its length (the core); the scores of both tails beside it and the bases of the read in the
        tails' best parts; the score of the whole, and the most that it may be with gaps; by how
        many bases the diagonals at both ends lie right of the candidate's; its state; its credit;
        which tails have gaps (`LEFT_GAPPED`, `RIGHT_GAPPED`); a mark for functions that go
        through the candidates of a read more than once.
    """

    offsets: Int64Array
    counts: Int64Array
    diagonals: Int64Array
    numbers: Int32Array

    @property
    def arrays(self) -> Table:
        """The arrays as compiled functions take them."""
        return self.offsets, self.counts, self.diagonals, self.numbers


def no_candidates(read_count: int) -> Candidates:
    """Return no candidates for each of some reads."""
    return Candidates(
        np.zeros(read_count + 1, dtype=np.int64),
        np.zeros(read_count, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty((0, NUMBERS), dtype=np.int32),
    )


Reads = tuple[Int64Array, CodeArray, CodeArray]
"""Where each read of a block begins, and where the last one ends; the codes of all reads and those
of their reverse complements, both with margins."""

Target = tuple[CodeArray, Int64Array, Int64Array]
"""The codes of the reference with margins; where each of its records begins and ends."""

Table = tuple[Int64Array, Int64Array, Int64Array, Int32Array]
"""The arrays of `Candidates`."""

MatchColumns = tuple[Int64Array, Int64Array, Int64Array, Int64Array]
"""The arrays of `MemColumns`: where the rows of each read begin, the starts in the read and in
the reference, and the lengths."""


@inline_without_refcounts
def read_length(reads: Reads, read: int) -> int:
    """Return the number of bases of a read."""
    return as_int64(reads[0][read + 1]) - as_int64(reads[0][read])


@inline_without_refcounts
def prefetch_bases(codes: CodeArray, at: int, length: int) -> None:
    """Have the memory fetch some codes, which are used a little later."""
    for place in range(at, at + length, CACHE_LINE):
        prefetch(codes, place)
