"""Scores a candidate with gaps, and recognises candidates that lie on one path."""

from __future__ import annotations

from mummergpu.mapping.candidates.candidate_scores import bound_of_tail
from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CORE_BEGIN,
    CORE_LENGTH,
    CREDIT,
    DEAD,
    EXACT,
    GAPPED,
    LEFT_GAPPED,
    LEFT_SCORE,
    LEFT_SHIFT,
    LEFT_TAKEN,
    NOTHING_KNOWN,
    RECORD,
    RIGHT_GAPPED,
    RIGHT_SCORE,
    RIGHT_SHIFT,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    Reads,
    Table,
    Target,
    read_length,
)
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import MARGIN
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.extension import extend_score
from mummergpu.viterbi.tiles.scratch import Scratch

FIRST_BAND = 8
"""The band that the extension of a tail begins with, in bases."""


@jit_without_refcounts
def refine(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    least: int,
    scratch: Scratch,
    table: Table,
    row: int,
) -> bool:
    """Score both tails of a candidate with gaps; return whether that raised its score."""
    reference, record_starts, record_ends = target
    diagonals, numbers = table[2], table[3]
    begin, length = reads[0][read], read_length(reads, read)
    codes = reads[1] if numbers[row, STRAND] == 0 else reads[2]
    core_begin = as_int64(numbers[row, CORE_BEGIN])
    core_length = as_int64(numbers[row, CORE_LENGTH])
    core_end = core_begin + core_length
    core_score = core_length * costs.match
    left = as_int64(numbers[row, LEFT_SCORE])
    right = as_int64(numbers[row, RIGHT_SCORE])
    record = numbers[row, RECORD]
    at = diagonals[row] + core_begin
    behind = diagonals[row] + core_end
    right_bound = max(right, bound_of_tail(length - core_end, 0, costs, NOTHING_KNOWN))
    gapped = 0
    if left < bound_of_tail(core_begin, 0, costs, NOTHING_KNOWN):
        tile = tile_at(
            MARGIN + begin + core_begin - 1,
            core_begin,
            MARGIN + at - 1,
            at - record_starts[record],
            -1,
        )
        needed = max(left + 1, least - core_score - right_bound)
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > left:
            left = found[0]
            numbers[row, LEFT_SCORE] = left
            numbers[row, LEFT_TAKEN] = found[1]
            numbers[row, LEFT_SHIFT] = found[1] - found[2]
            gapped |= LEFT_GAPPED
    if right < right_bound:
        tile = tile_at(
            MARGIN + begin + core_end,
            length - core_end,
            MARGIN + behind,
            record_ends[record] - behind,
            1,
        )
        needed = max(right + 1, least - core_score - left)
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > right:
            right = found[0]
            numbers[row, RIGHT_SCORE] = right
            numbers[row, RIGHT_TAKEN] = found[1]
            numbers[row, RIGHT_SHIFT] = found[2] - found[1]
            gapped |= RIGHT_GAPPED
    if gapped != 0:
        numbers[row, CREDIT] = 0
    numbers[row, GAPPED] = gapped
    numbers[row, SCORE] = left + core_score + right
    numbers[row, BOUND] = left + core_score + right
    numbers[row, STATE] = EXACT
    return gapped != 0


@inline_without_refcounts
def drop_same_paths(table: Table, read: int, row: int) -> None:
    """Drop the worse ones of a candidate with a gap and those that share a diagonal with it."""
    offsets, counts, diagonals, numbers = table
    strand, score = numbers[row, STRAND], numbers[row, SCORE]
    left = diagonals[row] + numbers[row, LEFT_SHIFT]
    right = diagonals[row] + numbers[row, RIGHT_SHIFT]
    for other in range(offsets[read], offsets[read] + counts[read]):
        if other == row or numbers[other, STRAND] != strand or numbers[other, STATE] == DEAD:
            continue
        other_left = diagonals[other] + numbers[other, LEFT_SHIFT]
        other_right = diagonals[other] + numbers[other, RIGHT_SHIFT]
        if other_left == left or other_right == right or other_left == right or other_right == left:
            if numbers[other, SCORE] <= score:
                numbers[other, STATE] = DEAD
            else:
                numbers[row, STATE] = DEAD
                return
