"""From matches to candidates: the diagonals on which a read may lie, scored without gaps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.key_sort import sort_by_key
from mummergpu.mapping.ungapped import (
    DELETION_EXTEND,
    DELETION_OPEN,
    END_BONUS,
    INSERTION_EXTEND,
    INSERTION_OPEN,
    MATCH,
    MISMATCH,
    MOST_GAP,
    Qualities,
    score_tail,
)
from mummergpu.runtime.jit import (
    inline_without_refcounts,
    jit_without_refcounts,
    prefetch,
    widened,
)
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.viterbi.model import CostTuple

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]

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

NO_MATCH_KNOWN: Final = 1 << 30
"""In place of the seed length, where nothing is known about matches beside a core."""

MATCHES_AHEAD: Final = 32
"""How many matches before it is used the reference beside a match is fetched."""

CACHE_LINE: Final = 64
"""The bytes that the memory fetches at once."""

_DIAGONAL_OFFSET: Final = 1 << 40
_STRAND_BIT: Final = 1 << 61
"""How a diagonal and its strand become a key to sort by."""


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


Reads = tuple[Int64Array, CodeArray, CodeArray]
"""Where each read of a block begins, and where the last one ends; the codes of all reads and those
of their reverse complements, both with margins."""

Target = tuple[CodeArray, Int64Array, Int64Array]
"""The codes of the reference with margins; where each of its records begins and ends."""

Table = tuple[Int64Array, Int64Array, Int64Array, Int32Array]
"""The arrays of `Candidates`."""

MatchColumns = tuple[Int64Array, Int64Array, Int64Array, Int64Array]
"""The arrays of `matches.Matches`: where the rows of each read begin, the starts in the read and in
the reference, and the lengths."""


@inline_without_refcounts
def read_length(reads: Reads, read: int) -> int:
    """Return the number of bases of a read.

    Parameters
    ----------
    reads : tuple of ndarray
        The reads (`Reads`).
    read : int
        The read, counted from 0.

    Returns
    -------
    int
        Its bases.
    """
    return widened(reads[0][read + 1]) - widened(reads[0][read])


@jit_without_refcounts
def find_candidates(
    matches: tuple[MatchColumns, MatchColumns],
    reads: Reads,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    seed_length: int,
    rescue_rows: int,
    scratch: tuple[Int64Array, Int64Array],
    table: Table,
) -> None:
    """Merge the matches of each read by diagonal, and score each diagonal without gaps.

    Parameters
    ----------
    matches : tuple
        The matches on the forward and on the reverse strand (`MatchColumns`).
    reads, target : tuple of ndarray
        The reads and the reference (`Reads`, `Target`).
    costs : tuple of int
        The scores (`viterbi.model.Costs`).
    qualities : tuple of ndarray
        The qualities of the reads, and the credits (`ungapped.Qualities`).
    seed_length : int
        All matches of at least so many bases are given.
    rescue_rows : int
        The rows that are kept free behind the candidates of each read.
    scratch : tuple of ndarray, dtype=int64
        Two arrays to write to, each as long as the most matches of a read.
    table : tuple of ndarray
        Output: the arrays of `Candidates`; the last two have a row for each match, and
        `rescue_rows` more for each read.
    """
    candidate_offsets, counts, diagonals, numbers = table
    keys, values = scratch
    filled = 0
    for read in range(counts.size):
        prefetch_reference(matches, read, read_length(reads, read), target[0])
        count = collect_matches(matches, read, keys, values)
        sort_by_key(keys, values, count)
        candidate_offsets[read] = filled
        first = 0
        while first < count:
            key = keys[first]
            core_begin, core_length = 0, 0
            has_neighbour = first > 0 and key - keys[first - 1] <= costs[MOST_GAP]
            at_first = first
            while first < count and keys[first] == key:
                if values[first] & 0xFFFFFFFF > core_length:
                    core_length = values[first] & 0xFFFFFFFF
                    core_begin = values[first] >> 32
                first += 1
            has_neighbour |= first - at_first > 1
            has_neighbour |= first < count and keys[first] - key <= costs[MOST_GAP]
            strand = 1 if key >= _STRAND_BIT else 0
            diagonal = key - _DIAGONAL_OFFSET - strand * _STRAND_BIT
            diagonals[filled] = diagonal
            numbers[filled, STRAND] = strand
            numbers[filled, RECORD] = find_record(target[1], diagonal + core_begin)
            numbers[filled, CORE_BEGIN] = core_begin
            numbers[filled, CORE_LENGTH] = core_length
            free_of_matches = NO_MATCH_KNOWN if has_neighbour else seed_length
            score_candidate(reads, read, target, costs, qualities, free_of_matches, table, filled)
            filled += 1
        counts[read] = filled - candidate_offsets[read]
        filled += rescue_rows
        candidate_offsets[read + 1] = filled


@inline_without_refcounts
def prefetch_reference(
    matches: tuple[MatchColumns, MatchColumns], read: int, length: int, reference: CodeArray
) -> None:
    """Have the memory fetch the reference beside matches that come a little later.

    Parameters
    ----------
    matches : tuple
        The matches on both strands (`MatchColumns`).
    read, length : int
        The read that is looked at now, and its bases.
    reference : ndarray, dtype=uint8
        The codes of the reference, with margins.
    """
    for strand in range(2):
        offsets, starts, reference_starts, _ = matches[0] if strand == 0 else matches[1]
        end = min(offsets[read + 1] + MATCHES_AHEAD, starts.size)
        for row in range(offsets[read] + MATCHES_AHEAD, end):
            at = MARGIN + reference_starts[row] - starts[row]
            for place in range(at, at + length, CACHE_LINE):
                prefetch(reference, place)


@inline_without_refcounts
def collect_matches(
    matches: tuple[MatchColumns, MatchColumns], read: int, keys: Int64Array, values: Int64Array
) -> int:
    """Write a key and a value for each match of a read; return how many there are.

    Parameters
    ----------
    matches : tuple
        The matches on both strands (`MatchColumns`).
    read : int
        The read.
    keys : ndarray, dtype=int64
        Output: the strand and the diagonal of each match, by which matches are sorted.
    values : ndarray, dtype=int64
        Output: where the match begins in the read, in the upper half, and its bases.

    Returns
    -------
    int
        The number of matches.
    """
    count = 0
    for strand in range(2):
        offsets, starts, reference_starts, lengths = matches[0] if strand == 0 else matches[1]
        for row in range(offsets[read], offsets[read + 1]):
            diagonal = reference_starts[row] - starts[row]
            keys[count] = diagonal + _DIAGONAL_OFFSET + strand * _STRAND_BIT
            values[count] = starts[row] << 32 | lengths[row]
            count += 1
    return count


@inline_without_refcounts
def score_candidate(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    seed_length: int,
    table: Table,
    row: int,
) -> None:
    """Score a candidate without gaps, and bound its score with gaps.

    Parameters
    ----------
    reads, target : tuple of ndarray
        The reads and the reference (`Reads`, `Target`).
    read : int
        The read.
    costs : tuple of int
        The scores (`viterbi.model.Costs`).
    qualities : tuple of ndarray
        The qualities of the reads, and the credits (`ungapped.Qualities`).
    seed_length : int
        No match of so many bases lies beside the core within the most gap.
    table : tuple of ndarray
        The candidates, with their cores; the scores are set.
    row : int
        The candidate.
    """
    reference, record_starts, record_ends = target
    diagonals, numbers = table[2], table[3]
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[1] if numbers[row, STRAND] == 0 else reads[2]
    core_begin = widened(numbers[row, CORE_BEGIN])
    core_length = widened(numbers[row, CORE_LENGTH])
    core_end = core_begin + core_length
    at = diagonals[row] + core_begin
    behind = at + core_length
    record = numbers[row, RECORD]
    quality_at, quality_step = -MARGIN, 1
    if numbers[row, STRAND] == 1:
        quality_at, quality_step = 2 * begin + length - 1 + MARGIN, -1
    left = score_tail(
        codes, MARGIN + begin + core_begin, core_begin,
        reference, MARGIN + at, at - record_starts[record], True, costs,
        qualities, quality_at, quality_step,
    )  # fmt: skip
    right = score_tail(
        codes, MARGIN + begin + core_end, length - core_end,
        reference, MARGIN + behind, record_ends[record] - behind, False, costs,
        qualities, quality_at, quality_step,
    )  # fmt: skip
    core_score = core_length * costs[MATCH]
    left_bound = max(left[0], bound_of_tail(core_begin, costs, seed_length))
    right_bound = max(right[0], bound_of_tail(length - core_end, costs, seed_length))
    numbers[row, LEFT_SCORE] = left[0]
    numbers[row, LEFT_TAKEN] = left[1]
    numbers[row, RIGHT_SCORE] = right[0]
    numbers[row, RIGHT_TAKEN] = right[1]
    numbers[row, SCORE] = left[0] + core_score + right[0]
    numbers[row, BOUND] = left_bound + core_score + right_bound
    numbers[row, CREDIT] = left[2] + right[2]
    numbers[row, GAPPED] = 0
    numbers[row, LEFT_SHIFT] = 0
    numbers[row, RIGHT_SHIFT] = 0
    is_exact = left_bound == left[0] and right_bound == right[0]
    numbers[row, STATE] = EXACT if is_exact else UNGAPPED


@inline_without_refcounts
def bound_of_tail(length: int, costs: CostTuple, seed_length: int) -> int:
    """Return the most that a tail with a gap may score.

    A tail without matches of `seed_length` bases has an edit for each `seed_length` bases begun:
    the base beside the core differs or is in a gap, and so on after each match.

    Parameters
    ----------
    length : int
        The bases of the tail.
    costs : tuple of int
        The scores (`viterbi.model.Costs`).
    seed_length : int
        The tail has no match of so many bases.

    Returns
    -------
    int
        The bound; one of the edits is a gap.
    """
    edits = (length - 1) // seed_length
    gap = min(
        costs[DELETION_OPEN] + costs[DELETION_EXTEND],
        costs[INSERTION_OPEN] + costs[INSERTION_EXTEND],
    )
    loss = min(costs[MISMATCH] + costs[MATCH], gap)
    return length * costs[MATCH] + costs[END_BONUS] - gap - edits * loss


@inline_without_refcounts
def find_record(record_starts: Int64Array, position: int) -> int:
    """Return the record that a position of the joined reference lies in.

    Parameters
    ----------
    record_starts : ndarray, dtype=int64, shape=(n_records,)
        Where each record begins.
    position : int
        The position, 0-based.

    Returns
    -------
    int
        The record, counted from 0.
    """
    low, high = 0, record_starts.size
    while high - low > 1:
        middle = (low + high) // 2
        if record_starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low
