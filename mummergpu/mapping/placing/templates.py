"""Maps templates: single reads, or pairs whose mates support each other."""

from __future__ import annotations

from typing import NamedTuple

from mummergpu.mapping.candidates.candidates import Candidates, Scoring, read_length
from mummergpu.mapping.options import Limits
from mummergpu.mapping.placing.choice import Choices, choose_template
from mummergpu.mapping.placing.joint_scores import Tops, refine_template, score_template
from mummergpu.mapping.placing.mapping_quality import Odds
from mummergpu.mapping.placing.marked_diagonals import DiagonalMarks
from mummergpu.mapping.placing.pairing import Pairing, pairing_of
from mummergpu.mapping.placing.rescue import rescue_template
from mummergpu.mapping.placing.tie_breaks import Names, hash_of_name
from mummergpu.runtime.jit import jit
from mummergpu.viterbi.tiles.band import Scratch


class PlacingRoom(NamedTuple):
    """Memory of one thread: for tiles, `new_tops`, and `new_marks`."""

    scratch: Scratch
    tops: Tops
    marks: DiagonalMarks


@jit
def map_templates(
    scoring: Scoring,
    names: Names,
    limits: Limits,
    of_block: Pairing,
    odds: Odds,
    room: PlacingRoom,
    table: Candidates,
    choices: Choices,
) -> None:
    """Choose a placement and a mapping quality for each read.

    The table is what `candidate_search.find_candidates` wrote; scores with gaps are set, and the
    candidates of rescued mates are added.
    """
    scratch, tops, margin = room.scratch, room.tops, limits.margin
    for number in range((scoring.reads.offsets.size - 1) // of_block.mates):
        pairing = pairing_of(of_block, number)
        template = number * pairing.mates
        joint = score_template(template, scoring, pairing, table, tops)
        joint = refine_template(template, scoring, margin, pairing, scratch, table, tops, joint)
        second = read_length(scoring.reads, template + pairing.mates - 1)
        if pairing.mates == 2 and pairing.last_size > 0 and second > 0:
            added = rescue_template(template, scoring, limits, pairing, room.marks, table, joint)
            if added > 0:
                joint = score_template(template, scoring, pairing, table, tops)
                refine_template(template, scoring, margin, pairing, scratch, table, tops, joint)
        name_hash = hash_of_name(names, template)
        choose_template(
            template, scoring, limits.min_score, pairing, odds, name_hash, table, choices
        )
