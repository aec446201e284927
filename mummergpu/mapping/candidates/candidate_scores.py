"""Scores candidates without gaps, and bounds their scores with gaps."""

from __future__ import annotations

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CORE_BEGIN,
    CORE_LENGTH,
    CREDIT,
    EXACT,
    GAPPED,
    LEFT_SCORE,
    LEFT_SHIFT,
    LEFT_TAKEN,
    RECORD,
    RIGHT_SCORE,
    RIGHT_SHIFT,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    UNGAPPED,
    Beside,
    Reads,
    Table,
    Target,
    read_length,
)
from mummergpu.mapping.candidates.ungapped import Qualities, score_tail
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts
from mummergpu.sequence.codes import MARGIN
from mummergpu.viterbi.recurrence.model import CostTuple


@inline_without_refcounts
def score_candidate(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    beside: Beside,
    table: Table,
    row: int,
) -> None:
    """Score a candidate without gaps, and bound its score with gaps."""
    reference, record_starts, record_ends = target
    diagonals, numbers = table[2], table[3]
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[1] if numbers[row, STRAND] == 0 else reads[2]
    core_begin = as_int64(numbers[row, CORE_BEGIN])
    core_length = as_int64(numbers[row, CORE_LENGTH])
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
    core_score = core_length * costs.match
    left_windows, right_windows = 0, 0
    if beside[1] > 0:
        left_windows = core_begin // beside[1]
        right_windows = max(0, length // beside[1] - (core_end + beside[1] - 1) // beside[1])
    left_bound = max(left[0], bound_of_tail(core_begin, left_windows, costs, beside))
    right_bound = max(right[0], bound_of_tail(length - core_end, right_windows, costs, beside))
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
def bound_of_tail(length: int, windows: int, costs: CostTuple, beside: Beside) -> int:
    """Return the most that a tail with a gap may score.

    A tail without matches of n bases has an edit for each n bases begun: the base beside the core
    differs or is in a gap, and so on after each match. And each whole window has an edit: one that
    is in a gap, or a base that differs; an insertion of two bases may lie in two windows.
    """
    gap = min(
        costs.deletion_open + costs.deletion_extend,
        costs.insertion_open + costs.insertion_extend,
    )
    loss = min(costs.mismatch + costs.match, gap)
    least = gap + (length - 1) // beside[0] * loss
    if windows > 1:
        # More windows in one insertion would cost more than all of their bases.
        loss = min(loss, beside[1] * costs.match)
        of_two = costs.insertion_open + 2 * (costs.insertion_extend + costs.match)
        least = max(least, min(gap + loss, of_two) + (windows - 2) * loss)
    return length * costs.match + costs.end_bonus - least


@inline_without_refcounts
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
