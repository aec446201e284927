"""Traces alignments along their anchors: the tiles between them, and the two ends.

Each tile is independent of the others (Du, Yin and Bader 2010, section IV C), so any range of
anchors can be traced by any thread; the operations follow each other in the order of the anchors.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.mapping.genomes.chaining import Extender, LinkedAnchors
from mummergpu.mapping.genomes.columns import Bounds
from mummergpu.mapping.genomes.device_tiles import ReadyTiles
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.cell_recurrence import pair_score
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.operations import (
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    kind_of,
    length_of,
    reverse_operations,
)
from mummergpu.viterbi.recurrence.tile import Tile, rest_of, tile_at
from mummergpu.viterbi.tiles.drop_extension import NO_ROOM, extend_until_drop, longest_window
from mummergpu.viterbi.tiles.gap_fill import fill_gap
from mummergpu.viterbi.whole.whole_matrix import NO_MEMORY, align_whole, fits_matrix


class TracedEnds(NamedTuple):
    """Where traced alignments begin and end, as columns."""

    operation_begins: Int64Array  # Where the operations of each begin.
    # Its first base in both sequences.
    query_begins: Int64Array
    reference_begins: Int64Array
    # The bases after its last ones.
    query_ends: Int64Array
    reference_ends: Int64Array


NEXT_ANCHOR, ALIGNMENT, FILLED = 0, 1, 2
"""The elements of the state of a range of anchors that is traced."""

_RIGHT: Final = 1
_LEFT: Final = -1


@jit
def trace_anchors(
    linked: LinkedAnchors,
    extender: Extender,
    ready: ReadyTiles,
    end_anchor: int,
    operations: OperationArray,
    state: Int64Array,
    ends: TracedEnds,
) -> bool:
    """Trace a range of anchors, and the tile between each and the next one of its alignment.

    Returns whether the range is finished; if not, `operations` has become too short. The state has
    the next anchor, its alignment, and how many operations there are; it is brought up to date.
    Operations of a match may follow each other. For each anchor:

        if it is the first of its alignment: extend to the left, and turn these operations around
        write the match that the anchor is
        if it is the last one: extend to the right
        else: copy the operations up to the next anchor if a GPU has found them, or trace them here
    """
    offsets, anchors = linked.offsets, linked.anchors
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    anchor, alignment, filled = state[NEXT_ANCHOR], state[ALIGNMENT], state[FILLED]
    # The state is that before the next anchor, so a range can go on there with more room.
    while anchor < end_anchor:
        begin, length = filled, anchors.lengths[anchor]
        query_at, reference_at = query_starts[anchor], reference_starts[anchor]
        is_last = anchor == offsets[alignment + 1] - 1
        if filled + 2 > operations.size:
            return False
        if anchor == offsets[alignment]:
            used, reference_used, count = _extend(
                *(linked.bounds, alignment, query_at, reference_at, _LEFT),
                *(extender, operations, filled),
            )
            if count == NO_ROOM or filled + count + 2 > operations.size:
                return False
            reverse_operations(operations, filled, filled + count)
            ends.operation_begins[alignment] = filled
            ends.query_begins[alignment] = query_at - used
            ends.reference_begins[alignment] = reference_at - reference_used
            filled += count
        filled = append_operation(operations, begin, filled, MATCH_OPERATION, length)
        query_at += length
        reference_at += length
        if is_last:
            used, reference_used, count = _extend(
                *(linked.bounds, alignment, query_at, reference_at, _RIGHT),
                *(extender, operations, filled),
            )
            if count == NO_ROOM:
                return False
            ends.query_ends[alignment] = query_at + used
            ends.reference_ends[alignment] = reference_at + reference_used
            alignment += 1
        elif ready.numbers.size > 0 and ready.numbers[anchor] >= 0:
            count = _copy_tile(ready, ready.numbers[anchor], operations, filled)
            if count == NO_ROOM:
                return False
        else:
            tile = tile_at(
                query_at,
                query_starts[anchor + 1] - query_at,
                reference_at,
                reference_starts[anchor + 1] - reference_at,
                _RIGHT,
            )
            count = _trace_tile(tile, extender, operations, filled)
            if count == NO_ROOM:
                return False
        filled += count
        anchor += 1
        state[NEXT_ANCHOR], state[ALIGNMENT], state[FILLED] = anchor, alignment, filled
    return True


@inline
def _extend(
    bounds: Bounds,
    alignment: int,
    query_at: int,
    reference_at: int,
    direction: int,
    extender: Extender,
    operations: OperationArray,
    filled: int,
) -> tuple[int, int, int]:
    """Extend an alignment beyond an end until it gets no better.

    Return the bases used in the query and the reference, and the operations.
    """
    if extender.window == 0:
        return 0, 0, 0
    if direction == _LEFT:
        query_bases = query_at - bounds.query_begins[alignment]
        reference_bases = reference_at - bounds.reference_begins[alignment]
        query_at, reference_at = query_at - 1, reference_at - 1
    else:
        query_bases = bounds.query_ends[alignment] - query_at
        reference_bases = bounds.reference_ends[alignment] - reference_at
    return extend_until_drop(
        extender.sequences.query,
        extender.sequences.reference,
        tile_at(query_at, query_bases, reference_at, reference_bases, direction),
        extender.costs,
        extender.window,
        extender.scratch,
        operations,
        filled,
    )


@inline
def _copy_tile(ready: ReadyTiles, tile: int, operations: OperationArray, filled: int) -> int:
    """Write the operations of a tile that is aligned; return how many there are, or `NO_ROOM`."""
    first = ready.offsets[tile]
    count: int = ready.offsets[tile + 1] - first
    if filled + count + 2 > operations.size:
        return NO_ROOM
    for k in range(count):
        operations[filled + k] = ready.operations[first + k]
    return count


@inline
def _trace_tile(tile: Tile, extender: Extender, operations: OperationArray, filled: int) -> int:
    """Write the operations between two anchors; return how many there are, or `NO_ROOM`.

    A long tile is shortened from both corners, as far as the sequences agree, so that only a small
    middle needs a matrix. If that is too large for one, it is shortened once more, with the longest
    window (`chaining.find_targets` has found that it can be). Given the score of this alignment,
    few cells of the whole tile matter; these are computed.
    """
    query, reference = extender.sequences.query, extender.sequences.reference
    costs, window, scratch = extender.costs, extender.window, extender.scratch
    matrix, far_operations = extender.matrix, extender.operations
    count, far_count = 0, 0
    rest = tile
    if filled + tile.length + tile.reference_length > operations.size:
        return NO_ROOM
    for longer in range(2):
        if longer == 0:
            is_long = rest.length >= MOST_BASES
        else:
            is_long = not fits_matrix(rest.length, rest.reference_length)
        if not is_long:
            break
        reach = longest_window(window) if longer else window
        used, reference_used, more = extend_until_drop(
            query, reference, rest, costs, reach, scratch, operations, filled + count
        )
        if more == NO_ROOM:
            return NO_ROOM
        count += more
        rest = rest_of(rest, used, reference_used)
        used, reference_used, more = extend_until_drop(
            query, reference, _from_the_end(rest), costs, reach, scratch, far_operations, far_count
        )
        # The matrix takes the part that the other corner has no room for.
        if more == NO_ROOM:
            break
        far_count += more
        rest = tile_at(
            rest.read_at,
            rest.length - used,
            rest.reference_at,
            rest.reference_length - reference_used,
            _RIGHT,
        )
    if filled + count + rest.length + rest.reference_length + 3 + far_count > operations.size:
        return NO_ROOM
    _, between = fill_gap(
        query, reference, rest, costs, scratch, matrix, operations, filled + count
    )
    count += between
    # The operations from the far corner were written from the end on.
    for position in range(far_count):
        operations[filled + count + position] = far_operations[far_count - 1 - position]
    count += far_count
    if tile.length < MOST_BASES:
        return count
    # The score bounds how far the best path may stray, so that few cells are left to compute.
    score = _score_of(query, reference, tile, operations, filled, count, costs)
    _, whole = align_whole(query, reference, tile, costs, score, matrix, operations, filled)
    return count if whole == NO_MEMORY else whole


@inline
def _from_the_end(tile: Tile) -> Tile:
    """Return a tile as it is seen from its far corner."""
    return tile_at(
        tile.read_at + tile.length - 1,
        tile.length,
        tile.reference_at + tile.reference_length - 1,
        tile.reference_length,
        _LEFT,
    )


@inline
def _score_of(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    operations: OperationArray,
    first: int,
    count: int,
    costs: Costs,
) -> int:
    """Return the score of some operations; a gap that two of them make counts as two."""
    score = 0
    query_at, reference_at = tile.read_at, tile.reference_at
    for position in range(first, first + count):
        kind, length = kind_of(operations, position), length_of(operations, position)
        if kind == MATCH_OPERATION:
            for k in range(length):
                score += pair_score(query[query_at + k], reference[reference_at + k], costs)
            query_at += length
            reference_at += length
        elif kind == INSERTION_OPERATION:
            score -= costs.insertion_open + costs.insertion_extend * length
            query_at += length
        else:
            score -= costs.deletion_open + costs.deletion_extend * length
            reference_at += length
    return score
