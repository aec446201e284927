"""Keeps the candidates that may matter, and drops the others before they take time and memory.

Reads from repeats have many candidates, and few of them can be right. A candidate matters if, with
the most that its mate may add, it may come within the margin of the best placement of its template;
if it is so good that it weighs something in the mapping quality; if it may align what a better one
clips; or if it is one of the best of its read, of which the score of the second best is reported.
"""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CORE_BEGIN,
    CORE_LENGTH,
    LEFT_TAKEN,
    MARK,
    NUMBERS,
    RIGHT_TAKEN,
    Reads,
    Table,
    read_length,
)
from mummergpu.mapping.placing.choice import reported_score
from mummergpu.mapping.placing.evidence import FARTHEST, UNIT
from mummergpu.mapping.placing.joint_scores import Template, Tops, score_template
from mummergpu.mapping.placing.mapping_quality import units_of
from mummergpu.mapping.placing.pairing import (
    LAST_SIZE,
    NOTHING,
    UNPAIRED,
    Pairing,
    pair_penalty,
    partner_range,
)
from mummergpu.mapping.placing.rescue import most_of_rescued
from mummergpu.mapping.placing.split_reads import LEAST_CLIPPED
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple

BEST_KEPT: Final = 3
"""The candidates of a read that are kept because no others have better scores: the best one, the
second, and one more, since a path with a gap may take two."""

Pruning = tuple[bool, int, int]
"""Whether candidates are dropped at all, the seed length, and the margin
(`options.MappingOptions`)."""

Support = tuple[int, int]
"""The most that the other mate adds to a candidate, in units: if all scores with gaps are the
highest possible, and without gaps."""


@jit_without_refcounts
def prune_template(
    template: Template,
    reads: Reads,
    costs: CostTuple,
    pruning: Pruning,
    pairing: Pairing,
    tops: Tops,
    rescue_rows: int,
    table: Table,
) -> int:
    """Drop the candidates of a template that do not matter; return where the next ones begin."""
    joint = score_template(template, reads, costs, pairing, table, tops)
    units = best_units(template, 0, table), best_units(template, 1, table)
    for mate in range(template[1]):
        mark_candidates(template, mate, reads, costs, pruning, pairing, tops, units, joint, table)
    return move_marked(template, rescue_rows, table)


@inline_without_refcounts
def best_units(template: Template, mate: int, table: Table) -> int:
    """Return the most units of a candidate of a mate, `pairing.NOTHING` if it has none."""
    best = as_int64(NOTHING)
    if mate < template[1]:
        read = template[0] + mate
        for row in range(table[0][read], table[0][read] + table[1][read]):
            best = max(best, units_of(table, row))
    return best


@jit_without_refcounts
def mark_candidates(
    template: Template,
    mate: int,
    reads: Reads,
    costs: CostTuple,
    pruning: Pruning,
    pairing: Pairing,
    tops: Tops,
    units: tuple[int, int],
    joint: int,
    table: Table,
) -> None:
    """Mark the candidates of a mate that may matter."""
    offsets, counts, _, numbers = table
    read = template[0] + mate
    length = read_length(reads, read)
    rescued = as_int64(NOTHING)
    if template[1] == 2 and pairing[LAST_SIZE] > 0:
        other_length = read_length(reads, template[0] + 1 - mate)
        rescued = most_of_rescued(other_length, pruning[1], costs) * UNIT
    has_clip = False
    for row in range(offsets[read], offsets[read] + counts[read]):
        by_bound, by_units = support_of(
            template, mate, row, reads, costs, pairing, tops, units, table
        )
        most = as_int64(numbers[row, BOUND]) * UNIT + max(by_bound, rescued)
        weighed = units_of(table, row) + max(by_units, rescued)
        matters = most >= joint - pruning[2] * UNIT or weighed >= joint - FARTHEST
        numbers[row, MARK] = 1 if matters else 0
        has_clip |= matters and clipped_bases(table, row, length) >= LEAST_CLIPPED
    if has_clip:
        for row in range(offsets[read], offsets[read] + counts[read]):
            numbers[row, MARK] = 1
    else:
        mark_best(read, length, costs, table)


@inline_without_refcounts
def support_of(
    template: Template,
    mate: int,
    row: int,
    reads: Reads,
    costs: CostTuple,
    pairing: Pairing,
    tops: Tops,
    units: tuple[int, int],
    table: Table,
) -> Support:
    """Return the most that the other mate adds to a candidate."""
    other_best = units[1 - mate]
    if template[1] == 1 or other_best == NOTHING:
        return 0, 0
    by_bound = (as_int64(tops[1][1 - mate]) - pairing[UNPAIRED]) * UNIT
    by_units = other_best - pairing[UNPAIRED] * UNIT
    if pairing[LAST_SIZE] > 0:
        read, other_read = template[0] + mate, template[0] + 1 - mate
        length, other_length = read_length(reads, read), read_length(reads, other_read)
        begin, end = partner_range(
            table, row, length, other_read, other_length, pairing, costs.most_gap
        )
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if penalty >= 0:
                bound = as_int64(table[3][other, BOUND]) * UNIT
                by_bound = max(by_bound, bound - penalty)
                by_units = max(by_units, units_of(table, other) - penalty)
    return by_bound, by_units


@inline_without_refcounts
def clipped_bases(table: Table, row: int, length: int) -> int:
    """Return the bases that a candidate clips at the end where it clips more."""
    numbers = table[3]
    core_begin = as_int64(numbers[row, CORE_BEGIN])
    end = core_begin + as_int64(numbers[row, CORE_LENGTH]) + as_int64(numbers[row, RIGHT_TAKEN])
    return max(core_begin - as_int64(numbers[row, LEFT_TAKEN]), length - end)


@inline_without_refcounts
def mark_best(read: int, length: int, costs: CostTuple, table: Table) -> None:
    """Mark the `BEST_KEPT` candidates of a read with the best reported scores; first ones first."""
    offsets, counts, _, numbers = table
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
        numbers[best_row, MARK] = 1
        last_score, last_row = best, best_row


@inline_without_refcounts
def move_marked(template: Template, rescue_rows: int, table: Table) -> int:
    """Move the marked candidates of a template together; return where the next ones begin."""
    offsets, counts, diagonals, numbers = table
    filled = as_int64(offsets[template[0]])
    for read in range(template[0], template[0] + template[1]):
        begin = as_int64(offsets[read])
        end = begin + as_int64(counts[read])
        offsets[read] = filled
        for row in range(begin, end):
            if numbers[row, MARK] != 0:
                if row != filled:
                    diagonals[filled] = diagonals[row]
                    for number in range(NUMBERS):
                        numbers[filled, number] = numbers[row, number]
                filled += 1
        counts[read] = filled - offsets[read]
        filled += rescue_rows
    offsets[template[0] + template[1]] = filled
    return filled
