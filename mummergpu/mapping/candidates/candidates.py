"""Candidates: the diagonals on which a read may lie, with their scores.

A point of a score is a factor of 4 in the odds of a placement, so the five points of a mismatch are
30 on the Phred scale: about the evidence of a base of average quality.

A read that lies at two places has a candidate for each part. They do not compete: only candidates
of the same part make each other doubtful, as with bwa mem's mask level.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping.candidates import column
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, inline, jit, prefetch
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray, write_reverse_complements
from mummergpu.viterbi.recurrence.model import Costs

NUMBERS: Final = 16
"""How many numbers a candidate has (`column`)."""

UNGAPPED: Final = 0
EXACT: Final = 1
DEAD: Final = 2
"""The states of a candidate: scored without gaps only; with its best score; dropped, because
another candidate on its path scores as much or more."""

LEFT_GAPPED: Final = 1
RIGHT_GAPPED: Final = 2

RESCUE_ROWS: Final = 8
"""The candidates of a read that rescue may add."""


class SeedFreeFlank(NamedTuple):
    """Facts about the bases next to a seed, known because no other match lies there."""

    # There is an edit in each run of this many bases: no match within the longest gap is as long.
    match_bases: int
    # No match there contains a whole window of the read of this many bases (`windows`); 0 if that
    # is not known. If `match_bases` is that of `NOTHING_KNOWN`, the read has unknown bases.
    window: int


NOTHING_KNOWN: Final = SeedFreeFlank(1 << 30, 0)
"""The facts where other matches may lie."""

CACHE_LINE: Final = 64
"""The bytes that one memory access fetches."""


ALL_FOUND: Final = 255
"""The `Candidates.seeds_kept` of a read with no place left out."""


class Candidates(NamedTuple):
    """The candidates of a block of reads."""

    # Where the candidates of each read begin, and where the last ones end. Those of a read ascend
    # by strand, then by diagonal. Rescue moves those of a read to the end. (n_reads + 1,)
    offsets: Int64Array
    counts: Int64Array  # How many candidates each read has.
    # Where in the joined reference the read's first base would lie, on the strand of the candidate;
    # may be negative.
    diagonals: Int64Array
    numbers: Int32Array  # The columns of `column`; (n_candidates, NUMBERS).
    # How many disjoint seeds of each read have kept all their matches: all of its places with fewer
    # differences are there, except those that an earlier pass would have found. `ALL_FOUND` if no
    # match was left out.
    seeds_kept: ByteArray


def no_candidates(read_count: int) -> Candidates:
    """Return no candidates for each of some reads."""
    return Candidates(
        np.zeros(read_count + 1, dtype=np.int64),
        np.zeros(read_count, dtype=np.int64),
        np.empty(0, dtype=np.int64),
        np.empty((0, NUMBERS), dtype=np.int32),
        np.zeros(read_count, dtype=np.uint8),
    )


class Reads(NamedTuple):
    """The reads of a block."""

    # Where each read begins, and where the last one ends; without the margin; (n_reads + 1,).
    offsets: Int64Array
    # All reads one after the other, and the reverse complement of each at the same place; with
    # margins.
    codes: CodeArray
    reverse_codes: CodeArray


class Target(NamedTuple):
    """The reference: its codes with margins; where each of its records begins and ends.

    `circles` are those of `UnrolledReference`, empty if no record is circular.
    """

    codes: CodeArray
    record_starts: Int64Array
    record_ends: Int64Array
    circles: Int64Array = NO_CIRCLES


@inline
def fill_reverse_codes(reads: Reads) -> None:
    """Write the reverse complements of reads, and the margins of their codes."""
    end = reads.codes.size - MARGIN
    reads.reverse_codes[:MARGIN] = BREAK
    reads.reverse_codes[end:] = BREAK
    inner = reads.reverse_codes[MARGIN:end]
    write_reverse_complements(reads.codes[MARGIN:end], reads.offsets, inner)


@inline
def circle_of(circles: Int64Array, record: int) -> int:
    """Return the bases of a circular record, 0 for others."""
    return as_int64(circles[record]) if circles.size > 0 else as_int64(0)


class Qualities(NamedTuple):
    """The Phred qualities of the bases of a block, and the credit of a mismatch at each quality."""

    base_qualities: ByteArray  # Those of all reads, one after the other.
    # The credit of a base that differs, for each quality (`credits_of_qualities`).
    credits: Int32Array


class Scoring(NamedTuple):
    """The inputs of scoring: the reads, the reference, and the costs of differences."""

    reads: Reads
    target: Target
    costs: Costs
    qualities: Qualities


@inline
def read_length(reads: Reads, read: int) -> int:
    """Return the number of bases of a read."""
    return as_int64(reads.offsets[read + 1]) - as_int64(reads.offsets[read])


@inline
def has_breaks(reads: Reads, read: int) -> bool:
    """Return whether a read has unknown bases, which cost less than bases that differ."""
    begin = MARGIN + reads.offsets[read]
    # Breaks have the highest code.
    highest = np.uint8(0)
    for code in reads.codes[begin : begin + read_length(reads, read)]:
        highest = max(highest, code)
    return bool(highest >= BREAK)


@inline
def aligned_part(table: Candidates, row: int) -> tuple[int, int]:
    """Return the part of its read that a candidate aligns, counted on the candidate's strand."""
    numbers = table.numbers
    begin = as_int64(numbers[row, column.SEED_BEGIN])
    end = (
        begin
        + as_int64(numbers[row, column.SEED_BASES])
        + as_int64(numbers[row, column.RIGHT_QUERY_BASES])
    )
    return begin - as_int64(numbers[row, column.LEFT_QUERY_BASES]), end


@inline
def prefetch_bases(codes: CodeArray, at: int, length: int) -> None:
    """Prefetch some codes that are used a little later."""
    for place in range(at, at + length, CACHE_LINE):
        prefetch(codes, place)


SHARED_PARTS: Final = 2
"""Two alignments of a read are of two parts of it if they share less than one in this many of the
bases of the shorter one."""

Interval = tuple[int, int]
"""A half-open range of the bases of a read."""


@inline
def read_interval(table: Candidates, row: int, length: int) -> Interval:
    """Return the part of a read that a candidate aligns, on the read's own strand."""
    begin, end = aligned_part(table, row)
    if table.numbers[row, column.STRAND] == 0:
        return begin, end
    return length - end, length - begin


@inline
def shared_bases(one: Interval, other: Interval) -> int:
    """Return how many bases of a read two parts of it share."""
    return as_int64(min(one[1], other[1]) - max(one[0], other[0]))


@inline
def are_apart(one: Interval, other: Interval) -> bool:
    """Return whether two parts of a read share little."""
    return shared_bases(one, other) * SHARED_PARTS < min(one[1] - one[0], other[1] - other[0])


@inline
def is_rival(table: Candidates, row: int, chosen: int, length: int) -> bool:
    """Return whether a candidate competes with the chosen one of its read."""
    if row == chosen or table.numbers[row, column.STATE] == DEAD:
        return False
    return not are_apart(read_interval(table, chosen, length), read_interval(table, row, length))


UNIT: Final = 64
"""The fractions of a point in which the scores of pairs are counted."""

FARTHEST: Final = 30 * UNIT
"""Placements that are worse by more than this, in units, weigh nothing."""

PHRED_OF_POINT: Final = 20 * float(np.log10(2.0))
"""A factor of 4 on the Phred scale."""

PHRED_OF_BASE: Final = 10 * float(np.log10(3.0))
"""A factor of 3 on the Phred scale: an error makes one of three bases."""

HIGHEST_PHRED: Final = 33.0
"""The most evidence of a mismatch, on the Phred scale: the read may truly differ there."""

BEST_QUALITY: Final = 60
"""The best mapping quality."""


def credits_of_qualities(costs: Costs) -> Int32Array:
    """Return how much weaker than its cost the evidence of a mismatch is, for each base quality."""
    phred = np.minimum(np.arange(256) + PHRED_OF_BASE, HIGHEST_PHRED)
    points = costs.match + costs.mismatch - phred / PHRED_OF_POINT
    credits: Int32Array = np.rint(points * UNIT).astype(np.int32)
    credits[94:] = 0
    return credits


def likelihoods_of_scores() -> Float64Array:
    """Return the odds of a placement by how many units it is worse than another."""
    return np.asarray(2.0 ** (-np.arange(FARTHEST + 1) / (UNIT // 2)))


def quality_thresholds() -> Float64Array:
    """Return the largest probability of an error that each mapping quality allows."""
    errors = np.asarray(10.0 ** (-np.arange(BEST_QUALITY + 2) / 10))
    errors[-1] = -1.0
    return errors


CANDIDATE: Final = np.dtype(
    [
        ("diagonal", np.int64),
        *((name, np.int32) for name in ("strand", "record", "seed_begin", "seed_bases")),
        *((name, np.int32) for name in ("left_score", "left_query_bases")),
        *((name, np.int32) for name in ("right_score", "right_query_bases")),
        *((name, np.int32) for name in ("bound", "credit")),
    ]
)
"""A candidate of a device: see ``kernels/mapping/candidates.cuh``."""

CandidateArray = npt.NDArray[np.void]
"""Candidates as a device writes them, dtype=CANDIDATE."""


@frozen
class FoundCandidates:
    """The candidates of a block that a device found and kept."""

    # Where the candidates of each read begin, and where the last ones end; (n_reads + 1,).
    offsets: Int64Array
    rows: CandidateArray  # The candidates, those of a read by strand, then by diagonal.
    seeds_kept: ByteArray  # As `Candidates.seeds_kept`.

    def fill(self, scoring: Scoring, table: Candidates) -> None:
        """Write the candidates to a table, and the reverse complements of their reads."""
        # The array of a field is not contiguous: no function is compiled for those beforehand.
        words = self.rows.view(np.int32).reshape(-1, CANDIDATE.itemsize // 4)
        pairs = self.rows.view(np.int64).reshape(-1, CANDIDATE.itemsize // 8)
        fill_rows(self.offsets, pairs, words, self.seeds_kept, scoring, table)


@jit
def fill_rows(
    offsets: Int64Array,
    pairs: Int64Array,
    words: Int32Array,
    seeds_kept: ByteArray,
    scoring: Scoring,
    table: Candidates,
) -> None:
    """Write each read's candidates, six numbers of 64 bits each, or twelve words, to its rows."""
    counts, numbers = table.counts, table.numbers
    fill_reverse_codes(scoring.reads)
    filled = 0
    for read in range(counts.size):
        table.offsets[read] = filled
        counts[read] = offsets[read + 1] - offsets[read]
        table.seeds_kept[read] = seeds_kept[read]
        for row in range(offsets[read], offsets[read + 1]):
            table.diagonals[filled] = pairs[row, 0]
            numbers[filled, column.STRAND] = words[row, 2]
            numbers[filled, column.RECORD] = words[row, 3]
            numbers[filled, column.SEED_BEGIN] = words[row, 4]
            numbers[filled, column.SEED_BASES] = words[row, 5]
            numbers[filled, column.LEFT_SCORE] = words[row, 6]
            numbers[filled, column.LEFT_QUERY_BASES] = words[row, 7]
            numbers[filled, column.RIGHT_SCORE] = words[row, 8]
            numbers[filled, column.RIGHT_QUERY_BASES] = words[row, 9]
            numbers[filled, column.BOUND] = words[row, 10]
            numbers[filled, column.CREDIT] = words[row, 11]
            score = as_int64(words[row, 6]) + as_int64(words[row, 8])
            score += as_int64(words[row, 5]) * scoring.costs.match
            numbers[filled, column.SCORE] = score
            numbers[filled, column.LEFT_SHIFT] = 0
            numbers[filled, column.RIGHT_SHIFT] = 0
            numbers[filled, column.GAPPED] = 0
            # No flank can score more with gaps if the bounds of both together equal their scores.
            numbers[filled, column.STATE] = (
                EXACT if numbers[filled, column.BOUND] == score else UNGAPPED
            )
            filled += 1
    table.offsets[counts.size] = filled
