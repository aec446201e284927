"""The scores of templates: what the best placements of a read or of two mates reach together.

A template is called by its first read; `Pairing.mates` says how many reads it has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    DEAD,
    SCORE,
    STATE,
    UNGAPPED,
    Candidates,
    Scoring,
)
from mummergpu.mapping.placing.log_odds import UNIT
from mummergpu.mapping.placing.pairing import Pairing, best_partner
from mummergpu.mapping.placing.refinement import drop_same_paths, refine
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.viterbi.tiles.band import Scratch


class Tops(NamedTuple):
    """The best score of the candidates of each mate, and the highest bound of one, in points."""

    scores: Int64Array
    bounds: Int64Array


def new_tops() -> Tops:
    """Return the arrays for the best scores and bounds of two mates."""
    return Tops(np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64))


@jit
def score_template(
    template: int, scoring: Scoring, pairing: Pairing, table: Candidates, tops: Tops
) -> int:
    """Return the best joint score from what is known, in units, and set the tops of each mate."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, bounds = tops.scores, tops.bounds
    for mate in range(pairing.mates):
        best[mate], bounds[mate] = 0, 0
        first = offsets[template + mate]
        for row in range(first, first + counts[template + mate]):
            if numbers[row, STATE] != DEAD:
                best[mate] = max(best[mate], numbers[row, SCORE])
                bounds[mate] = max(bounds[mate], numbers[row, BOUND])
    if pairing.mates == 1:
        return best[0] * UNIT  # type: ignore[no-any-return]
    if best[0] == 0 or best[1] == 0:
        return (best[0] + best[1]) * UNIT  # type: ignore[no-any-return]
    joint = (best[0] + best[1] - pairing.unpaired) * UNIT
    if pairing.last_size > 0:
        for row in range(offsets[template], offsets[template] + counts[template]):
            score = as_int64(numbers[row, SCORE])
            # No partner adds more than the best score of the mate.
            if numbers[row, STATE] != DEAD and (score + best[1]) * UNIT > joint:
                partner = best_partner(table, row, template, template + 1, scoring, pairing, SCORE)
                joint = max(joint, score * UNIT + partner)
    return joint  # type: ignore[no-any-return]


@inline
def max_mate_score(
    template: int,
    mate: int,
    row: int,
    scoring: Scoring,
    pairing: Pairing,
    table: Candidates,
    top: Int64Array,
    field: int,
) -> int:
    """Return the most that the other mate adds to a candidate of a mate, in units; 0 if none.

    `field` says what counts of the other mate, and `top` is the most of it that each has in points:
    `candidates.SCORE` or `candidates.BOUND`.
    """
    if pairing.mates == 1 or top[1 - mate] == 0:
        return 0
    best = (top[1 - mate] - pairing.unpaired) * UNIT
    if pairing.last_size > 0:
        read, other = template + mate, template + 1 - mate
        best = max(best, best_partner(table, row, read, other, scoring, pairing, field))
    return best  # type: ignore[no-any-return]


@inline
def first_best(table: Candidates, read: int) -> int:
    """Return the first candidate of a read with the best score; some number if it has none."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    top = offsets[read]
    for row in range(offsets[read], offsets[read] + counts[read]):
        if numbers[row, STATE] != DEAD and numbers[row, SCORE] > numbers[top, SCORE]:
            top = row
    return top  # type: ignore[no-any-return]


@jit
def refine_template(
    template: int,
    scoring: Scoring,
    margin: int,
    pairing: Pairing,
    scratch: Scratch,
    table: Candidates,
    tops: Tops,
    joint: int,
) -> int:
    """Score with gaps what may come within the margin of the best; return the joint score in units.

    `margin` is in points; `joint` is the best joint score so far. The best scores in `tops` rise.
    """
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, bounds = tops.scores, tops.bounds
    for mate in range(pairing.mates):
        read = template + mate
        first = offsets[read]
        top = first_best(table, read)
        for turn in range(first, first + counts[read]):
            # The best one first, so that others need not be looked at.
            row = top if turn == first else (first if turn == top else turn)
            if numbers[row, STATE] != UNGAPPED:
                continue
            needed = joint - margin * UNIT
            bound = as_int64(numbers[row, BOUND]) * UNIT
            # The bound of all mates first: to look for partners takes far longer.
            if pairing.mates == 2 and bound + bounds[1 - mate] * UNIT < needed:
                continue
            support = max_mate_score(template, mate, row, scoring, pairing, table, bounds, BOUND)
            if bound + support < needed:
                continue
            before = numbers[row, SCORE]
            enough = (needed - support) // UNIT
            if refine(scoring, read, enough, scratch, table, row):
                drop_same_paths(table, read, scoring.costs.max_gap, row, scoring.target.circles)
            if numbers[row, STATE] != DEAD and numbers[row, SCORE] > before:
                score = as_int64(numbers[row, SCORE])
                best[mate] = max(best[mate], score)
                support = max_mate_score(template, mate, row, scoring, pairing, table, best, SCORE)
                joint = max(joint, score * UNIT + support)
    return joint
