"""Scores candidates without gaps, and bounds their scores with gaps.

A flank is the part of a read before or after an exact match. It is compared with the reference on
the diagonal of the match, one vector register at a time; only the bases that differ are looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    EXACT,
    NOTHING_KNOWN,
    UNGAPPED,
    Candidates,
    Scoring,
    SeedFreeFlank,
    read_length,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, lowest_bit
from mummergpu.sequence.codes import BREAK, MARGIN, STEP, CodeArray
from mummergpu.sequence.extension import differences_left, differences_right
from mummergpu.viterbi.recurrence.model import Costs

Part = tuple[int, int, int]
"""The score of the best part of a flank, the bases of the read in it, and its credit."""


class Flank(NamedTuple):
    """The part of a read before or after a match, and the reference there."""

    codes: CodeArray  # The reads on the strand of the match.
    # The index of its base next to the match, or of the match's first base if it is left of that;
    # and the number of bases up to the end of the read.
    at: int
    bases: int
    # The same in the reference, up to the end of the record.
    reference_at: int
    reference_bases: int
    # The quality of the base at an index of `codes` is at `quality_at` plus `quality_step` times
    # that index.
    quality_at: int
    quality_step: int


@inline
def score_flank(flank: Flank, is_left: bool, scoring: Scoring) -> Part:
    """Return the best part of a flank without gaps; of two with one score, the longer one.

    A part begins next to the match, and has the end bonus if it reaches the end of the read. The
    credit is that of its bases that differ.
    """
    read, reference, costs = flank.codes, scoring.target.codes, scoring.costs
    base_qualities, credits = scoring.qualities.base_qualities, scoring.qualities.credits
    at, reference_at = flank.at, flank.reference_at
    best, taken, score, credit, best_credit = 0, 0, 0, 0, 0
    end = min(flank.bases, flank.reference_bases)
    done = 0
    # A part can only end before a base that differs, or at the end: only there scores are compared.
    while done < end:
        if is_left:
            mask = differences_left(read, at - done, reference, reference_at - done)
        else:
            mask = differences_right(read, at + done, reference, reference_at + done)
        count = min(STEP, end - done)
        mask &= (np.uint64(1) << np.uint64(count)) - np.uint64(1)
        behind = 0
        while mask != np.uint64(0):
            place = lowest_bit(mask)
            score += (place - behind) * costs.match
            if score >= best:
                best, taken, best_credit = score, done + place, credit
            base = at - 1 - done - place if is_left else at + done + place
            if read[as_index(base)] == BREAK:
                score -= costs.unknown
            else:
                score -= costs.mismatch
                quality = base_qualities[as_index(flank.quality_at + flank.quality_step * base)]
                credit += credits[as_index(quality)]
            behind = place + 1
            mask &= mask - np.uint64(1)
        score += (count - behind) * costs.match
        done += count
        if score >= best:
            best, taken, best_credit = score, done, credit
        elif score + (end - done) * costs.match + costs.end_bonus < best:
            # Even if all other bases matched, no longer part would be better.
            return best, taken, best_credit
    if end == flank.bases:
        if score + costs.end_bonus >= best:
            best, taken, best_credit = score + costs.end_bonus, flank.bases, credit
    return best, taken, best_credit


@inline
def score_candidate(
    scoring: Scoring, read: int, beside: SeedFreeFlank, table: Candidates, row: int
) -> None:
    """Score a candidate, whose seed is known, without gaps, and bound its score with gaps."""
    reads, target, costs = scoring.reads, scoring.target, scoring.costs
    numbers = table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.codes if numbers[row, column.STRAND] == 0 else reads.reverse_codes
    seed_begin = as_int64(numbers[row, column.SEED_BEGIN])
    seed_bases = as_int64(numbers[row, column.SEED_BASES])
    seed_end = seed_begin + seed_bases
    at = table.diagonals[row] + seed_begin
    behind = at + seed_bases
    record = numbers[row, column.RECORD]
    # Qualities are kept on the forward strand only.
    quality_at, quality_step = -MARGIN, 1
    if numbers[row, column.STRAND] == 1:
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
        # Only windows that lie in a flank as a whole are evidence about it.
        first, last = (seed_end + window - 1) // window, length // window
        left_windows = edited_windows(codes, MARGIN + begin, 0, seed_begin // window, beside)
        right_windows = edited_windows(codes, MARGIN + begin, first, last, beside)
    left_bound = max(left[0], bound_of_flank(seed_begin, left_windows, costs, beside))
    right_bound = max(right[0], bound_of_flank(length - seed_end, right_windows, costs, beside))
    numbers[row, column.LEFT_SCORE] = left[0]
    numbers[row, column.LEFT_QUERY_BASES] = left[1]
    numbers[row, column.RIGHT_SCORE] = right[0]
    numbers[row, column.RIGHT_QUERY_BASES] = right[1]
    numbers[row, column.SCORE] = left[0] + seed_score + right[0]
    numbers[row, column.BOUND] = left_bound + seed_score + right_bound
    numbers[row, column.CREDIT] = left[2] + right[2]
    numbers[row, column.GAPPED] = 0
    numbers[row, column.LEFT_SHIFT] = 0
    numbers[row, column.RIGHT_SHIFT] = 0
    is_exact = left_bound == left[0] and right_bound == right[0]
    numbers[row, column.STATE] = EXACT if is_exact else UNGAPPED


@inline
def edited_windows(codes: CodeArray, at: int, first: int, end: int, beside: SeedFreeFlank) -> int:
    """Return how many of some windows, none of which has a match, must have an edit.

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

    A flank without matches of n bases has an edit for each n bases begun: the base next to the seed
    differs or is in a gap, and so on after each match. And each whole window has an edit: one that
    is in a gap, or a base that differs; an insertion of two bases may lie in two windows.
    """
    gap = min(
        costs.deletion_open + costs.deletion_extend, costs.insertion_open + costs.insertion_extend
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
    """Return the record that contains a position of the joined reference."""
    low, high = 0, record_starts.size
    while high - low > 1:
        middle = (low + high) // 2
        if record_starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low
