"""Scores a candidate with gaps, and recognises candidates that lie on one path."""

from __future__ import annotations

from mummergpu.mapping.candidates.candidate_scores import bound_of_flank
from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CREDIT,
    DEAD,
    EXACT,
    GAPPED,
    LEFT_GAPPED,
    LEFT_QUERY_BASES,
    LEFT_SCORE,
    LEFT_SHIFT,
    NOTHING_KNOWN,
    RECORD,
    RIGHT_GAPPED,
    RIGHT_QUERY_BASES,
    RIGHT_SCORE,
    RIGHT_SHIFT,
    SCORE,
    SEED_BASES,
    SEED_BEGIN,
    STATE,
    STRAND,
    Candidates,
    Scoring,
    circle_of,
    read_length,
)
from mummergpu.mapping.placing.pairing import first_not_before, nearest_diagonal
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import MARGIN
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.band import Scratch
from mummergpu.viterbi.tiles.extension import extend_score

FIRST_BAND = 8
"""The band that the extension of a flank begins with, in bases."""


@jit
def refine(
    scoring: Scoring, read: int, enough: int, scratch: Scratch, table: Candidates, row: int
) -> bool:
    """Score both flanks of a candidate with gaps; return whether one of them has a gap now.

    What cannot reach a score of `enough` in all may keep the score without gaps.
    """
    reads, target, costs = scoring.reads, scoring.target, scoring.costs
    reference, numbers = target.codes, table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.codes if numbers[row, STRAND] == 0 else reads.reverse_codes
    seed_begin = as_int64(numbers[row, SEED_BEGIN])
    seed_bases = as_int64(numbers[row, SEED_BASES])
    seed_end = seed_begin + seed_bases
    seed_score = seed_bases * costs.match
    left = as_int64(numbers[row, LEFT_SCORE])
    right = as_int64(numbers[row, RIGHT_SCORE])
    record = numbers[row, RECORD]
    at = table.diagonals[row] + seed_begin
    behind = table.diagonals[row] + seed_end
    right_bound = max(right, bound_of_flank(length - seed_end, 0, costs, NOTHING_KNOWN))
    gapped = 0
    # A flank that has its highest score without gaps cannot gain from one. The other one must reach
    # the rest of what is enough, so the left one is given the most that the right one can have.
    if left < bound_of_flank(seed_begin, 0, costs, NOTHING_KNOWN):
        tile = tile_at(
            MARGIN + begin + seed_begin - 1,
            seed_begin,
            MARGIN + at - 1,
            at - target.record_starts[record],
            -1,
        )
        needed = max(left + 1, enough - seed_score - right_bound)
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > left:
            left = found[0]
            numbers[row, LEFT_SCORE] = left
            numbers[row, LEFT_QUERY_BASES] = found[1]
            numbers[row, LEFT_SHIFT] = found[1] - found[2]
            gapped |= LEFT_GAPPED
    if right < right_bound:
        tile = tile_at(
            MARGIN + begin + seed_end,
            length - seed_end,
            MARGIN + behind,
            target.record_ends[record] - behind,
            1,
        )
        # The left flank is known by now, which makes this bound tighter.
        needed = max(right + 1, enough - seed_score - left)
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > right:
            right = found[0]
            numbers[row, RIGHT_SCORE] = right
            numbers[row, RIGHT_QUERY_BASES] = found[1]
            numbers[row, RIGHT_SHIFT] = found[2] - found[1]
            gapped |= RIGHT_GAPPED
    # Credit is known of a path without gaps only.
    if gapped != 0:
        numbers[row, CREDIT] = 0
    numbers[row, GAPPED] = gapped
    numbers[row, SCORE] = left + seed_score + right
    numbers[row, BOUND] = left + seed_score + right
    numbers[row, STATE] = EXACT
    return gapped != 0


@inline
def drop_same_paths(
    table: Candidates, read: int, max_gap: int, row: int, circles: Int64Array
) -> None:
    """Drop the worse ones of a candidate with a gap and those that share a diagonal with it."""
    diagonals, numbers = table.diagonals, table.numbers
    strand, score = numbers[row, STRAND], numbers[row, SCORE]
    # A flank ends no farther from its candidate's diagonal than by the most gap.
    first = table.offsets[read]
    end = first + table.counts[read]
    circle = circle_of(circles, numbers[row, RECORD])
    if circle == 0:
        first = first_not_before(table, first, end, strand, diagonals[row] - 2 * max_gap)
        end = first_not_before(table, first, end, strand, diagonals[row] + 2 * max_gap + 1)
    left = diagonals[row] + numbers[row, LEFT_SHIFT]
    right = diagonals[row] + numbers[row, RIGHT_SHIFT]
    for other in range(first, end):
        if other == row or numbers[other, STATE] == DEAD or numbers[other, STRAND] != strand:
            continue
        diagonal = nearest_diagonal(table, row, other, circles)
        other_left = diagonal + numbers[other, LEFT_SHIFT]
        other_right = diagonal + numbers[other, RIGHT_SHIFT]
        if other_left == left or other_right == right or other_left == right or other_right == left:
            if numbers[other, SCORE] <= score:
                numbers[other, STATE] = DEAD
            else:
                numbers[row, STATE] = DEAD
                return
