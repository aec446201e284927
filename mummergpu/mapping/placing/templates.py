"""Maps templates: single reads, or pairs whose mates support each other."""

from __future__ import annotations

from mummergpu.mapping.candidates.candidates import Reads, Table, Target
from mummergpu.mapping.candidates.ungapped import Qualities
from mummergpu.mapping.placing.choice import choose_template
from mummergpu.mapping.placing.joint_scores import Tops, refine_template, score_template
from mummergpu.mapping.placing.mapping_quality import Odds
from mummergpu.mapping.placing.marked_diagonals import DiagonalMarks
from mummergpu.mapping.placing.pairing import LAST_SIZE, Pairing
from mummergpu.mapping.placing.rescue import rescue_template
from mummergpu.mapping.placing.tie_breaks import Names, hash_of_name
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.scratch import Scratch

Limits = tuple[int, int, int]
"""The seed length, the margin and the least score (`options.MappingOptions`)."""


@jit_without_refcounts
def map_templates(
    mates: int,
    reads: Reads,
    names: Names,
    target: Target,
    costs: CostTuple,
    qualities: Qualities,
    limits: Limits,
    pairing: Pairing,
    odds: Odds,
    scratch: Scratch,
    tops: Tops,
    marks: DiagonalMarks,
    table: Table,
    choices: Int32Array,
) -> None:
    """Choose a placement and a mapping quality for each read."""
    seed_length, margin, least_score = limits
    for number in range((reads[0].size - 1) // mates):
        template = (number * mates, mates)
        joint = score_template(template, reads, costs, pairing, table, tops)
        joint = refine_template(
            template, reads, target, costs, margin, pairing, scratch, table, tops, joint
        )
        if mates == 2 and pairing[LAST_SIZE] > 0:
            added = rescue_template(
                template[0], reads, target, costs, qualities, (seed_length, margin), pairing,
                marks, table, joint,
            )  # fmt: skip
            if added > 0:
                joint = score_template(template, reads, costs, pairing, table, tops)
                refine_template(
                    template, reads, target, costs, margin, pairing, scratch, table, tops, joint
                )
        seed = hash_of_name(names, template[0])
        choose_template(template, reads, costs, least_score, pairing, odds, seed, table, choices)
