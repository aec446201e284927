"""The scores of templates: what the best placements of a read or of two mates reach together."""

from __future__ import annotations

import numpy as np

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    DEAD,
    SCORE,
    STATE,
    UNGAPPED,
    Reads,
    Table,
    Target,
)
from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.mapping.placing.pairing import LAST_SIZE, UNPAIRED, Pairing, best_partner
from mummergpu.mapping.placing.refinement import drop_same_paths, refine
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.scratch import Scratch

Template = tuple[int, int]
"""The first read of a template, and how many reads it has: 1 or 2."""

Tops = tuple[Int64Array, Int64Array]
"""The best score of the candidates of each mate, and the highest bound of one, in points."""


def new_tops() -> Tops:
    """Return the arrays for the best scores and bounds of two mates."""
    return np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)


@jit_without_refcounts
def score_template(
    template: Template,
    reads: Reads,
    costs: CostTuple,
    pairing: Pairing,
    table: Table,
    tops: Tops,
) -> int:
    """Return the best joint score from what is known, in units."""
    offsets, counts, _, numbers = table
    best, bounds = tops
    read, mates = template
    for mate in range(mates):
        best[mate], bounds[mate] = 0, 0
        first = offsets[read + mate]
        for row in range(first, first + counts[read + mate]):
            if numbers[row, STATE] != DEAD:
                best[mate] = max(best[mate], numbers[row, SCORE])
                bounds[mate] = max(bounds[mate], numbers[row, BOUND])
    if mates == 1:
        return best[0] * UNIT  # type: ignore[no-any-return]
    if best[0] == 0 or best[1] == 0:
        return (best[0] + best[1]) * UNIT  # type: ignore[no-any-return]
    joint = (best[0] + best[1] - pairing[UNPAIRED]) * UNIT
    if pairing[LAST_SIZE] > 0:
        for row in range(offsets[read], offsets[read] + counts[read]):
            score = as_int64(numbers[row, SCORE])
            if numbers[row, STATE] != DEAD and (score + best[1]) * UNIT > joint:
                partner = best_partner(table, row, reads, read, read + 1, pairing, costs, SCORE)
                joint = max(joint, score * UNIT + partner)
    return joint  # type: ignore[no-any-return]


@inline_without_refcounts
def most_of_mate(
    template: Template,
    mate: int,
    row: int,
    reads: Reads,
    costs: CostTuple,
    pairing: Pairing,
    table: Table,
    top: Int64Array,
    field: int,
) -> int:
    """Return the most that the other mate adds to a candidate, in units."""
    read, mates = template
    if mates == 1 or top[1 - mate] == 0:
        return 0
    most = (top[1 - mate] - pairing[UNPAIRED]) * UNIT
    if pairing[LAST_SIZE] > 0:
        other = read + 1 - mate
        most = max(most, best_partner(table, row, reads, read + mate, other, pairing, costs, field))
    return most  # type: ignore[no-any-return]


@inline_without_refcounts
def first_best(table: Table, read: int) -> int:
    """Return the first candidate of a read with the best score."""
    offsets, counts, _, numbers = table
    top = offsets[read]
    for row in range(offsets[read], offsets[read] + counts[read]):
        if numbers[row, STATE] != DEAD and numbers[row, SCORE] > numbers[top, SCORE]:
            top = row
    return top  # type: ignore[no-any-return]


@jit_without_refcounts
def refine_template(
    template: Template,
    reads: Reads,
    target: Target,
    costs: CostTuple,
    margin: int,
    pairing: Pairing,
    scratch: Scratch,
    table: Table,
    tops: Tops,
    joint: int,
) -> int:
    """Score with gaps what may come within the margin of the best; return the joint score."""
    offsets, counts, _, numbers = table
    best, bounds = tops
    for mate in range(template[1]):
        read = template[0] + mate
        first = offsets[read]
        top = first_best(table, read)
        for turn in range(first, first + counts[read]):
            # The best one first, so that others need not be looked at.
            row = top if turn == first else (first if turn == top else turn)
            if numbers[row, STATE] != UNGAPPED:
                continue
            needed = joint - margin * UNIT
            bound = as_int64(numbers[row, BOUND]) * UNIT
            if template[1] == 2 and bound + bounds[1 - mate] * UNIT < needed:
                continue
            support = most_of_mate(template, mate, row, reads, costs, pairing, table, bounds, BOUND)
            if bound + support < needed:
                continue
            before = numbers[row, SCORE]
            least = (needed - support) // UNIT
            if refine(reads, read, target, costs, least, scratch, table, row):
                drop_same_paths(table, read, row)
            if numbers[row, STATE] != DEAD and numbers[row, SCORE] > before:
                score = as_int64(numbers[row, SCORE])
                best[mate] = max(best[mate], score)
                support = most_of_mate(
                    template, mate, row, reads, costs, pairing, table, best, SCORE
                )
                joint = max(joint, score * UNIT + support)
    return joint
