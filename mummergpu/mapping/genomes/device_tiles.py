"""Aligns the tiles between anchors on a device, where they are enough for that to be faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.genomes.chaining import LinkedAnchors
from mummergpu.mapping.genomes.columns import Anchors, Sequences
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import jit
from mummergpu.viterbi.device.tile_set import AlignedTiles, TileSet, fit_two
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.gap_fill import is_diagonal_best

TileAligner = Callable[[ByteArray, ByteArray, TileSet], AlignedTiles | None]
"""Aligns tiles on a device (`viterbi.device_tiles.DeviceTiles.align`); None if it has no room."""


class ReadyTiles(NamedTuple):
    """Tiles that are aligned already."""

    # The number of the tile after each anchor, `NOT_READY` for none; empty if no tile is aligned;
    # (n_anchors,).
    numbers: Int64Array
    # Where the operations of each tile begin, and where the last ones end; (n_tiles + 1,).
    offsets: Int64Array
    operations: OperationArray  # The operations as BAM packs them.


MIN_CELLS: Final = 1 << 36
"""With fewer cells, processors finish before a device: they compute narrow bands."""

NOT_READY: Final = -1


def no_tiles() -> ReadyTiles:
    """Return no aligned tiles."""
    none = np.empty(0, dtype=np.int64)
    return ReadyTiles(none, np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint32))


def align_tiles_ahead(
    linked: LinkedAnchors, sequences: Sequences, costs: Costs, align: TileAligner
) -> ReadyTiles:
    """Align the tiles between anchors that need their matrix, if they are many."""
    total = int(linked.offsets[-1])
    anchors = np.empty(total, dtype=np.int64)
    count = list_tiles(linked.offsets, linked.anchors, sequences, costs, anchors)
    anchors = anchors[:count]
    query_starts, reference_starts = linked.anchors.query_starts, linked.anchors.reference_starts
    lengths = linked.anchors.lengths
    ends = query_starts[anchors] + lengths[anchors]
    reference_ends = reference_starts[anchors] + lengths[anchors]
    sides = query_starts[anchors + 1] - ends, reference_starts[anchors + 1] - reference_ends
    fits = fit_two(costs, *sides)
    tiles = TileSet(ends[fits], sides[0][fits], reference_ends[fits], sides[1][fits])
    if tiles.cells < MIN_CELLS:
        return no_tiles()
    aligned = align(*sequences, tiles)
    if aligned is None:
        return no_tiles()
    numbers = np.full(total, NOT_READY, dtype=np.int64)
    numbers[anchors[fits]] = np.arange(tiles.count)
    return ReadyTiles(numbers, aligned.offsets, aligned.operations)


@jit
def list_tiles(
    offsets: Int64Array, anchors: Anchors, sequences: Sequences, costs: Costs, found: Int64Array
) -> int:
    """List the anchors before a tile that needs its matrix; return how many."""
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    lengths, query, reference = anchors.lengths, sequences.query, sequences.reference
    end = 0
    for alignment in range(offsets.size - 1):
        for anchor in range(offsets[alignment], offsets[alignment + 1] - 1):
            query_at = query_starts[anchor] + lengths[anchor]
            reference_at = reference_starts[anchor] + lengths[anchor]
            length = query_starts[anchor + 1] - query_at
            reference_length = reference_starts[anchor + 1] - reference_at
            if length == 0 or reference_length == 0 or length >= MOST_BASES:
                continue
            tile = tile_at(query_at, length, reference_at, reference_length, 1)
            if length == reference_length and is_diagonal_best(query, reference, tile, costs):
                continue
            found[end] = anchor
            end += 1
    return end
