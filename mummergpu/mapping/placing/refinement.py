"""Scores templates, with gaps where it may matter, and drops candidates that lie on one path.

The score of a template is what the best placements of a read or of two mates reach together, in
fixed point (`candidates.UNIT`). A template is named by its first read; `Pairing.mates` says how
many reads it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidate_scores import bound_of_flank
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    EXACT,
    LEFT_GAPPED,
    NOTHING_KNOWN,
    RIGHT_GAPPED,
    UNGAPPED,
    UNIT,
    Candidates,
    Scoring,
    circle_of,
    read_length,
)
from mummergpu.mapping.placing.pairing import (
    Placing,
    best_partner,
    first_not_before,
    nearest_diagonal,
)
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

    A candidate that cannot reach `enough` in all may keep the score without gaps.
    """
    reads, target, costs = scoring.reads, scoring.target, scoring.costs
    reference, numbers = target.codes, table.numbers
    begin, length = reads.offsets[read], read_length(reads, read)
    codes = reads.codes if numbers[row, column.STRAND] == 0 else reads.reverse_codes
    seed_begin = as_int64(numbers[row, column.SEED_BEGIN])
    seed_bases = as_int64(numbers[row, column.SEED_BASES])
    seed_end = seed_begin + seed_bases
    seed_score = seed_bases * costs.match
    left = as_int64(numbers[row, column.LEFT_SCORE])
    right = as_int64(numbers[row, column.RIGHT_SCORE])
    record = numbers[row, column.RECORD]
    at = table.diagonals[row] + seed_begin
    behind = table.diagonals[row] + seed_end
    right_bound = max(right, bound_of_flank(length - seed_end, 0, costs, NOTHING_KNOWN))
    gapped = 0
    # A flank that cannot have enough with a gap keeps its score. The other one must reach the rest
    # of what is enough, so the left one is given the most that the right one can have.
    needed = max(left + 1, enough - seed_score - right_bound)
    if needed <= bound_of_flank(seed_begin, 0, costs, NOTHING_KNOWN):
        tile = tile_at(
            MARGIN + begin + seed_begin - 1,
            seed_begin,
            MARGIN + at - 1,
            at - target.record_starts[record],
            -1,
        )
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > left:
            left = found[0]
            numbers[row, column.LEFT_SCORE] = left
            numbers[row, column.LEFT_QUERY_BASES] = found[1]
            numbers[row, column.LEFT_SHIFT] = found[1] - found[2]
            gapped |= LEFT_GAPPED
    # The left flank is known by now, which makes this bound tighter.
    needed = max(right + 1, enough - seed_score - left)
    if needed <= right_bound:
        tile = tile_at(
            MARGIN + begin + seed_end,
            length - seed_end,
            MARGIN + behind,
            target.record_ends[record] - behind,
            1,
        )
        found = extend_score(codes, reference, tile, costs, FIRST_BAND, needed, scratch)
        if found[0] > right:
            right = found[0]
            numbers[row, column.RIGHT_SCORE] = right
            numbers[row, column.RIGHT_QUERY_BASES] = found[1]
            numbers[row, column.RIGHT_SHIFT] = found[2] - found[1]
            gapped |= RIGHT_GAPPED
    # Credit is known of a path without gaps only.
    if gapped != 0:
        numbers[row, column.CREDIT] = 0
    numbers[row, column.GAPPED] = gapped
    numbers[row, column.SCORE] = left + seed_score + right
    numbers[row, column.BOUND] = left + seed_score + right
    numbers[row, column.STATE] = EXACT
    return gapped != 0


@inline
def drop_same_paths(
    table: Candidates, read: int, max_gap: int, row: int, circles: Int64Array
) -> None:
    """Drop the worse ones of a candidate with a gap and those that share a diagonal with it."""
    diagonals, numbers = table.diagonals, table.numbers
    strand, score = numbers[row, column.STRAND], numbers[row, column.SCORE]
    # A flank ends no farther from its candidate's diagonal than the longest gap.
    first = table.offsets[read]
    end = first + table.counts[read]
    circle = circle_of(circles, numbers[row, column.RECORD])
    if circle == 0:
        first = first_not_before(table, first, end, strand, diagonals[row] - 2 * max_gap)
        end = first_not_before(table, first, end, strand, diagonals[row] + 2 * max_gap + 1)
    left = diagonals[row] + numbers[row, column.LEFT_SHIFT]
    right = diagonals[row] + numbers[row, column.RIGHT_SHIFT]
    for other in range(first, end):
        if (
            other == row
            or numbers[other, column.STATE] == DEAD
            or numbers[other, column.STRAND] != strand
        ):
            continue
        diagonal = nearest_diagonal(table, row, other, circles)
        other_left = diagonal + numbers[other, column.LEFT_SHIFT]
        other_right = diagonal + numbers[other, column.RIGHT_SHIFT]
        if other_left == left or other_right == right or other_left == right or other_right == left:
            if numbers[other, column.SCORE] <= score:
                numbers[other, column.STATE] = DEAD
            else:
                numbers[row, column.STATE] = DEAD
                return


class Tops(NamedTuple):
    """The best score of the candidates of each mate, and the highest bound of one, in points."""

    scores: Int64Array
    bounds: Int64Array


def new_tops() -> Tops:
    """Return the arrays for the best scores and bounds of two mates."""
    return Tops(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))


@jit
def score_template(template: int, placing: Placing, tops: Tops) -> int:
    """Return the best score of a template from what is known, in fixed point; set the tops."""
    pairing, table = placing.pairing, placing.table
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, bounds = tops.scores, tops.bounds
    for mate in range(pairing.mates):
        best[mate], bounds[mate] = 0, 0
        first = offsets[template + mate]
        for row in range(first, first + counts[template + mate]):
            if numbers[row, column.STATE] != DEAD:
                best[mate] = max(best[mate], numbers[row, column.SCORE])
                bounds[mate] = max(bounds[mate], numbers[row, column.BOUND])
    if pairing.mates == 1:
        return best[0] * UNIT  # type: ignore[no-any-return]
    if best[0] == 0 or best[1] == 0:
        return (best[0] + best[1]) * UNIT  # type: ignore[no-any-return]
    pair_score = (best[0] + best[1] - pairing.unpaired) * UNIT
    if pairing.last_size > 0:
        for row in range(offsets[template], offsets[template] + counts[template]):
            score = as_int64(numbers[row, column.SCORE])
            # No partner adds more than the best score of the mate.
            if numbers[row, column.STATE] != DEAD and (score + best[1]) * UNIT > pair_score:
                partner = best_partner(placing, row, template, template + 1, column.SCORE)
                pair_score = max(pair_score, score * UNIT + partner)
    return pair_score  # type: ignore[no-any-return]


@inline
def max_mate_score(
    template: int, mate: int, row: int, placing: Placing, top: Int64Array, field: int
) -> int:
    """Return the most that the other mate adds to a candidate of a mate, in units; 0 if none.

    `field` is the score of the other mate that counts, and `top` the most of it that each has, in
    points: `column.SCORE` or `column.BOUND`.
    """
    pairing = placing.pairing
    if pairing.mates == 1 or top[1 - mate] == 0:
        return 0
    best = (top[1 - mate] - pairing.unpaired) * UNIT
    if pairing.last_size > 0:
        read, other = template + mate, template + 1 - mate
        best = max(best, best_partner(placing, row, read, other, field))
    return best  # type: ignore[no-any-return]


@inline
def first_best(table: Candidates, read: int) -> int:
    """Return the first candidate of a read with the best score; some number if it has none."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    top = offsets[read]
    for row in range(offsets[read], offsets[read] + counts[read]):
        if (
            numbers[row, column.STATE] != DEAD
            and numbers[row, column.SCORE] > numbers[top, column.SCORE]
        ):
            top = row
    return top  # type: ignore[no-any-return]


@jit
def refine_template(
    template: int, placing: Placing, margin: int, scratch: Scratch, tops: Tops, pair_score: int
) -> int:
    """Score with gaps the candidates that may come within the margin of the best; return the score.

    `margin` is in points; `pair_score` is the best score of the template so far. The best scores in
    `tops` rise.
    """
    scoring, pairing, table = placing
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, bounds = tops.scores, tops.bounds
    for mate in range(pairing.mates):
        read = template + mate
        first = offsets[read]
        top = first_best(table, read)
        for turn in range(first, first + counts[read]):
            # The best one first, so that others need not be looked at.
            row = top if turn == first else (first if turn == top else turn)
            if numbers[row, column.STATE] != UNGAPPED:
                continue
            needed = pair_score - margin * UNIT
            bound = as_int64(numbers[row, column.BOUND]) * UNIT
            # The bound of all mates first: to look for partners takes far longer.
            if pairing.mates == 2 and bound + bounds[1 - mate] * UNIT < needed:
                continue
            support = max_mate_score(template, mate, row, placing, bounds, column.BOUND)
            if bound + support < needed:
                continue
            before = numbers[row, column.SCORE]
            enough = (needed - support) // UNIT
            if refine(scoring, read, enough, scratch, table, row):
                drop_same_paths(table, read, scoring.costs.max_gap, row, scoring.target.circles)
            if numbers[row, column.STATE] != DEAD and numbers[row, column.SCORE] > before:
                score = as_int64(numbers[row, column.SCORE])
                best[mate] = max(best[mate], score)
                support = max_mate_score(template, mate, row, placing, best, column.SCORE)
                pair_score = max(pair_score, score * UNIT + support)
    return pair_score
