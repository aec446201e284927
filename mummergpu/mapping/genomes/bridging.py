"""Finds out whether an alignment goes on from one cluster to another: it must not break before."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.mapping.genomes.anchors import Anchors, Sequences
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.band import Scratch
from mummergpu.viterbi.tiles.drop_extension import longest_window, reach_before_drop
from mummergpu.viterbi.tiles.gap_fill import fill_gap
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch


class Extender(NamedTuple):
    """What extends alignments: the sequences, the scores, and memory of one thread.

    Attributes
    ----------
    break_length : int
        The bases of both sequences that may lie between two extensions that meet.
    window : int
        The bases of the query in which an extension must get better; 0 for no extension.
    operations : ndarray, dtype=uint32, shape=(FAR_OPERATIONS,)
        Memory for the operations of a part.
    """

    sequences: Sequences
    costs: Costs
    break_length: int
    window: int
    scratch: Scratch
    matrix: MatrixScratch
    operations: OperationArray


FAR_OPERATIONS: Final = 1 << 18
"""The most operations of the part of a tile that is found from its far corner; more than a break
has."""

_GAIN_OF_LONG_WINDOWS: Final = 3
"""A long window must score at least one part in so many of what its bases would if all matched."""

NO_TARGET: Final = -1
"""In place of a cluster or an anchor: there is none."""


@inline
def is_reached(end: tuple[int, int], begin: tuple[int, int], extender: Extender) -> bool:
    """Return whether an alignment goes from the end of a cluster to the begin of another one.

    It does so if extensions from both meet or leave no more than a break between them, and if what
    they leave costs no more than a break of matches scores. Extensions that break try again with
    the longest window: unlike others, they know where to go. What they go through must be worth
    it: long gaps between bases that are much alike, and no long stretch of what is hardly alike,
    which nucmer leaves out.
    """
    query, reference = extender.sequences.query, extender.sequences.reference
    costs, window, scratch = extender.costs, extender.window, extender.scratch
    break_length = extender.break_length
    query_at, reference_at = end
    gap, other_gap = begin[0] - end[0], begin[1] - end[1]
    for turn in range(4):
        if turn > 0 and gap + other_gap <= break_length:
            break
        # Odd turns extend backwards from the begin; those from 2 on try with the longest window.
        back = turn & 1
        tile = tile_at(
            query_at + back * (gap - 1),
            gap,
            reference_at + back * (other_gap - 1),
            other_gap,
            1 - 2 * back,
        )
        used, reference_used = reach_before_drop(
            query,
            reference,
            tile,
            costs,
            window if turn < 2 else longest_window(window),
            0 if turn < 2 else costs.match // _GAIN_OF_LONG_WINDOWS,
            scratch,
        )
        gap -= used
        other_gap -= reference_used
        query_at += used * (1 - back)
        reference_at += reference_used * (1 - back)
    if gap + other_gap > break_length:
        return False
    tile = tile_at(query_at, gap, reference_at, other_gap, 1)
    score, _ = fill_gap(
        query, reference, tile, costs, scratch, extender.matrix, extender.operations, 0
    )
    return score >= -costs.match * break_length


@inline
def first_after(
    anchors: Anchors, offsets: Int64Array, cluster: int, query_end: int, reference_end: int
) -> tuple[int, int]:
    """Return the first anchor of a cluster that ends after an end in both sequences.

    The bases before the end are cut off: how many is returned, too. Both alignments of them match,
    so it costs nothing where the one stops and the other begins.
    """
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    lengths = anchors.lengths
    anchor = offsets[cluster + 1] - 1
    before = max(query_end - query_starts[anchor], reference_end - reference_starts[anchor])
    if before >= lengths[anchor]:
        return NO_TARGET, 0
    anchor = offsets[cluster]
    while True:
        before = max(query_end - query_starts[anchor], reference_end - reference_starts[anchor])
        if before < lengths[anchor]:
            return anchor, max(before, 0)
        anchor += 1
