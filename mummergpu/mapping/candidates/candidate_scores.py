"""Scores candidates without gaps, and bounds their scores with gaps."""

from __future__ import annotations

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CREDIT,
    EXACT,
    GAPPED,
    LEFT_QUERY_BASES,
    LEFT_SCORE,
    LEFT_SHIFT,
    NOTHING_KNOWN,
    RECORD,
    RIGHT_QUERY_BASES,
    RIGHT_SCORE,
    RIGHT_SHIFT,
    SCORE,
    SEED_BASES,
    SEED_BEGIN,
    STATE,
    STRAND,
    UNGAPPED,
    Candidates,
    Scoring,
    SeedFreeFlank,
    read_length,
)
from mummergpu.mapping.candidates.ungapped import Flank, score_flank
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.viterbi.recurrence.model import Costs


@inline
def score_candidate(
    scoring: Scoring, read: int, beside: SeedFreeFlank, table: Candidates, row: int
) -> None:
    """Score a candidate, whose seed is known, without gaps, and bound its score with gaps."""
    reads, target, costs = scoring.reads, scoring.target, scoring.costs
    numbers = table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.codes if numbers[row, STRAND] == 0 else reads.reverse_codes
    seed_begin = as_int64(numbers[row, SEED_BEGIN])
    seed_bases = as_int64(numbers[row, SEED_BASES])
    seed_end = seed_begin + seed_bases
    at = table.diagonals[row] + seed_begin
    behind = at + seed_bases
    record = numbers[row, RECORD]
    # Qualities are kept on the forward strand only.
    quality_at, quality_step = -MARGIN, 1
    if numbers[row, STRAND] == 1:
        quality_at, quality_step = 2 * begin + length - 1 + MARGIN, -1
    left_flank = Flank(
        codes, MARGIN + begin + seed_begin, seed_begin,
        MARGIN + at, at - target.record_starts[record], quality_at, quality_step,
    )  # fmt: skip
    right_flank = Flank(
        codes, MARGIN + begin + seed_end, length - seed_end,
        MARGIN + behind, target.record_ends[record] - behind, quality_at, quality_step,
    )  # fmt: skip
    left = score_flank(left_flank, True, scoring)
    right = score_flank(right_flank, False, scoring)
    seed_score = seed_bases * costs.match
    left_windows, right_windows = 0, 0
    window = beside.window
    if window > 0:
        # Only windows that lie in a flank as a whole say something about it.
        first, last = (seed_end + window - 1) // window, length // window
        left_windows = edited_windows(codes, MARGIN + begin, 0, seed_begin // window, beside)
        right_windows = edited_windows(codes, MARGIN + begin, first, last, beside)
    left_bound = max(left[0], bound_of_flank(seed_begin, left_windows, costs, beside))
    right_bound = max(right[0], bound_of_flank(length - seed_end, right_windows, costs, beside))
    numbers[row, LEFT_SCORE] = left[0]
    numbers[row, LEFT_QUERY_BASES] = left[1]
    numbers[row, RIGHT_SCORE] = right[0]
    numbers[row, RIGHT_QUERY_BASES] = right[1]
    numbers[row, SCORE] = left[0] + seed_score + right[0]
    numbers[row, BOUND] = left_bound + seed_score + right_bound
    numbers[row, CREDIT] = left[2] + right[2]
    numbers[row, GAPPED] = 0
    numbers[row, LEFT_SHIFT] = 0
    numbers[row, RIGHT_SHIFT] = 0
    is_exact = left_bound == left[0] and right_bound == right[0]
    numbers[row, STATE] = EXACT if is_exact else UNGAPPED


@inline
def edited_windows(codes: CodeArray, at: int, first: int, end: int, beside: SeedFreeFlank) -> int:
    """Return how many of some windows, which have no match, must have an edit.

    `at` is where the read begins. A window with an unknown base may have no match without an edit.
    """
    if beside.match_bases < NOTHING_KNOWN.match_bases:
        return max(0, end - first)
    edited = 0
    for begin in range(at + first * beside.window, at + end * beside.window, beside.window):
        has_break = False
        for place in range(begin, begin + beside.window):
            has_break |= codes[place] == BREAK
        edited += 0 if has_break else 1
    return edited


@inline
def min_loss(costs: Costs) -> int:
    """Return the fewest points that an edit takes from a score."""
    return min(
        costs.match + costs.mismatch,
        costs.deletion_open + costs.deletion_extend,
        costs.insertion_open + costs.insertion_extend + costs.match,
    )


@inline
def bound_of_flank(length: int, windows: int, costs: Costs, beside: SeedFreeFlank) -> int:
    """Return the most that a flank with a gap may score.

    A flank without matches of n bases has an edit for each n bases begun: the base beside the seed
    differs or is in a gap, and so on after each match. And each whole window has an edit: one that
    is in a gap, or a base that differs; an insertion of two bases may lie in two windows.
    """
    gap = min(
        costs.deletion_open + costs.deletion_extend,
        costs.insertion_open + costs.insertion_extend,
    )
    loss = min(costs.mismatch + costs.match, gap)
    least = gap + (length - 1) // beside.match_bases * loss
    if windows > 1:
        # More windows in one insertion would cost more than all of their bases.
        loss = min(loss, beside.window * costs.match)
        of_two = costs.insertion_open + 2 * (costs.insertion_extend + costs.match)
        least = max(least, min(gap + loss, of_two) + (windows - 2) * loss)
    return length * costs.match + costs.end_bonus - least


@inline
def find_record(record_starts: Int64Array, position: int) -> int:
    """Return the record that a position of the joined reference lies in."""
    low, high = 0, record_starts.size
    while high - low > 1:
        middle = (low + high) // 2
        if record_starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low
