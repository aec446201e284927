"""Keeps the candidates that may matter, and drops the others before they take time and memory.

Reads from repeats have many candidates, and few of them can be right. A candidate matters if, with
the most that its mate may add, it may come within the margin of the best placement of its template;
if it is so good that it has a weight in the mapping quality; if it may align the bases that a
better one clips; or if it is one of the best of its read, whose second best score is reported.
"""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    FARTHEST,
    NUMBERS,
    UNIT,
    Candidates,
    aligned_part,
    read_length,
)
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.choice import reported_score
from mummergpu.mapping.placing.mapping_quality import score_fixed_of
from mummergpu.mapping.placing.pairing import NOTHING, Placing, pair_penalty, partner_range
from mummergpu.mapping.placing.refinement import Tops, score_template
from mummergpu.mapping.placing.rescue import max_rescued_score
from mummergpu.mapping.placing.secondary import MIN_CLIPPED
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.viterbi.recurrence.model import Costs

BEST_KEPT: Final = 3
"""The candidates of a read that are kept because no others have better scores: the best one, the
second, and one more, since a path with a gap may take two."""

Support = tuple[int, int]
"""The most that the other mate adds to a candidate, in units: if all scores with gaps are the
highest possible, and without gaps."""


@jit
def prune_template(template: int, placing: Placing, limits: Limits, tops: Tops) -> int:
    """Drop the candidates of a template that do not matter; return where the next ones begin.

    Its candidates, scored without gaps, are the last ones of the table; those that are kept move
    together.
    """
    pairing, table = placing.pairing, placing.table
    mates = pairing.mates
    most = as_int64(0)
    for read in range(template, template + mates):
        most = max(most, as_int64(table.counts[read]))
    if most <= BEST_KEPT:
        # Each of them is one of the best of its read.
        return as_int64(table.offsets[template + mates])
    pair_score = score_template(template, placing, tops)
    best_fixed = best_score_fixed(template, table), as_int64(NOTHING)
    if mates == 2:
        best_fixed = best_fixed[0], best_score_fixed(template + 1, table)
    for mate in range(mates):
        mark_candidates(template, mate, placing, limits, tops, best_fixed, pair_score)
    return move_marked(template, mates, table)


@inline
def best_score_fixed(read: int, table: Candidates) -> int:
    """Return the most units of a candidate of a read, `pairing.NOTHING` if it has none."""
    best = as_int64(NOTHING)
    for row in range(table.offsets[read], table.offsets[read] + table.counts[read]):
        best = max(best, score_fixed_of(table, row))
    return best


@jit
def mark_candidates(
    template: int,
    mate: int,
    placing: Placing,
    limits: Limits,
    tops: Tops,
    best_fixed: tuple[int, int],
    pair_score: int,
) -> None:
    """Mark the candidates of a mate that may matter.

    `best_fixed` are the most of a candidate of each mate, `pair_score` in fixed point.
    """
    scoring, pairing, table = placing
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    read = template + mate
    length = read_length(scoring.reads, read)
    rescued = as_int64(NOTHING)
    if pairing.mates == 2 and pairing.last_size > 0:
        other_length = read_length(scoring.reads, template + 1 - mate)
        rescued = max_rescued_score(other_length, limits.seed_length, scoring.costs) * UNIT
    # No partner adds more than the best of the mate: to look for partners takes far longer.
    support = as_int64(0), as_int64(0)
    if pairing.mates == 2:
        support = as_int64(tops.bounds[1 - mate]) * UNIT, max(0, best_fixed[1 - mate])
    has_clip = False
    for row in range(offsets[read], offsets[read] + counts[read]):
        bound, score = as_int64(numbers[row, column.BOUND]) * UNIT, score_fixed_of(table, row)
        matters = is_near(bound, score, support, rescued, pair_score, limits.margin)
        if matters and pairing.mates == 2:
            own = support_of(template, mate, row, placing, tops, best_fixed)
            matters = is_near(bound, score, own, rescued, pair_score, limits.margin)
        numbers[row, column.MARK] = 1 if matters else 0
        has_clip |= matters and clipped_bases(table, row, length) >= MIN_CLIPPED
    # A candidate that aligns a long clip may score little, so all candidates matter then.
    if has_clip:
        for row in range(offsets[read], offsets[read] + counts[read]):
            numbers[row, column.MARK] = 1
    else:
        mark_best(read, length, scoring.costs, table)


@inline
def is_near(
    bound: int, score: int, support: Support, rescued: int, pair_score: int, margin: int
) -> bool:
    """Return whether a candidate may matter for the choice, or for the mapping quality.

    All numbers but the margin are in units; `rescued` is the most that a rescued mate adds.
    """
    if bound + max(support[0], rescued) >= pair_score - margin * UNIT:
        return True
    return score + max(support[1], rescued) >= pair_score - FARTHEST


@inline
def support_of(
    template: int, mate: int, row: int, placing: Placing, tops: Tops, best_fixed: tuple[int, int]
) -> Support:
    """Return the most that the other mate adds to a candidate, as a proper pair or not."""
    scoring, pairing, table = placing
    other_best = best_fixed[1 - mate]
    if pairing.mates == 1 or other_best == NOTHING:
        return 0, 0
    by_bound = (as_int64(tops.bounds[1 - mate]) - pairing.unpaired) * UNIT
    by_score = other_best - pairing.unpaired * UNIT
    if pairing.last_size > 0:
        read, other_read = template + mate, template + 1 - mate
        length = read_length(scoring.reads, read)
        other_length = read_length(scoring.reads, other_read)
        begin, end = partner_range(table, row, read, other_read, scoring, pairing)
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if penalty >= 0:
                bound = as_int64(table.numbers[other, column.BOUND]) * UNIT
                by_bound = max(by_bound, bound - penalty)
                by_score = max(by_score, score_fixed_of(table, other) - penalty)
    return by_bound, by_score


@inline
def clipped_bases(table: Candidates, row: int, length: int) -> int:
    """Return the bases that a candidate clips at the end where it clips more."""
    begin, end = aligned_part(table, row)
    return max(begin, length - end)


@inline
def mark_best(read: int, length: int, costs: Costs, table: Candidates) -> None:
    """Mark the `BEST_KEPT` candidates of a read with the best reported scores; first ones first."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    last_score, last_row = as_int64(1 << 40), as_int64(-1)
    for _ in range(BEST_KEPT):
        best, best_row = as_int64(NOTHING), as_int64(-1)
        for row in range(offsets[read], offsets[read] + counts[read]):
            score = reported_score(table, row, length, costs)
            is_left = score < last_score or (score == last_score and row > last_row)
            if is_left and score > best:
                best, best_row = score, as_int64(row)
        if best_row < 0:
            break
        numbers[best_row, column.MARK] = 1
        last_score, last_row = best, best_row


@inline
def move_marked(template: int, mates: int, table: Candidates) -> int:
    """Move the marked candidates of a template together; return where the next ones begin."""
    offsets, counts = table.offsets, table.counts
    diagonals, numbers = table.diagonals, table.numbers
    filled = as_int64(offsets[template])
    # Rows only move to lower numbers, so none is overwritten before it has moved.
    for read in range(template, template + mates):
        begin = as_int64(offsets[read])
        end = begin + as_int64(counts[read])
        offsets[read] = filled
        for row in range(begin, end):
            if numbers[row, column.MARK] != 0:
                if row != filled:
                    diagonals[filled] = diagonals[row]
                    for number in range(NUMBERS):
                        numbers[filled, number] = numbers[row, number]
                filled += 1
        counts[read] = filled - offsets[read]
    offsets[template + mates] = filled
    return filled
