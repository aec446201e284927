"""Aligns many tiles on a device: whole matrices, two at a time in the halves of words.

The tiles between the matches of an alignment are independent of each other (Du, Yin and Bader
2010, section IV C), so all of them are computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.program import WARP_LANES
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.device.cuda_program import (
    LANE_ROWS,
    MIDDLE_GROUP,
    SMALL_GROUP,
    WHOLE_TILE,
    DeviceWork,
)
from mummergpu.viterbi.device.tile_set import CORNER_OF_TWO, AlignedTiles, TileSet
from mummergpu.viterbi.recurrence.operations import OperationArray

DIRECTION_BYTES: Final = 8
"""The directions of a column of the rows of a lane, of both tiles of a pair."""

MOST_ELEMENTS: Final = 1 << 29
"""The most directions of a batch, in elements of `DIRECTION_BYTES`."""

MOST_BLOCKS: Final = 4
"""The most blocks of threads that are launched, as a multiple of those that are resident at
once."""

_NO_TILE: Final = -1
"""The partner of the last tile if the number of tiles is odd."""

_KERNELS: Final = {
    SMALL_GROUP: "fill_small_tile_pairs",
    MIDDLE_GROUP: "fill_middle_tile_pairs",
    WARP_LANES: "fill_tile_pairs",
}
"""The kernels by the lanes that compute a pair of tiles; those of few lanes for few rows."""


@frozen
class _Batch:
    """Tiles that are computed together, each by the same number of lanes.

    Attributes
    ----------
    group : int
        The lanes.
    numbers : ndarray, dtype=int64, shape=(2 * n_pairs,)
        The tiles; those of a pair are adjacent.
    directions_at : ndarray, dtype=int64, shape=(n_pairs + 1,)
        Where the directions of each pair begin, in elements.
    """

    group: int
    numbers: Int64Array
    directions_at: Int64Array

    @property
    def pairs(self) -> int:
        """The number of pairs."""
        return self.numbers.size // 2


class DeviceTiles(DeviceWork):
    """Aligns tiles (`DeviceWork`)."""

    def align(self, queries: CodeArray, reference: CodeArray, tiles: TileSet) -> AlignedTiles:
        """Align tiles from corner to corner, for all of which `fit_two` holds."""
        scores = np.zeros(tiles.count, dtype=np.int64)
        counts = np.zeros(tiles.count, dtype=np.int64)
        room_ends = np.cumsum(tiles.lengths + tiles.reference_lengths)
        rooms = np.empty(int(room_ends[-1]) if tiles.count else 0, dtype=np.uint32)
        for batch in self._batches(tiles):
            self._align_batch(batch, queries, reference, tiles, (room_ends, rooms, scores, counts))
        offsets = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        operations = np.empty(int(offsets[-1]), dtype=np.uint32)
        gather_ends(rooms, room_ends, offsets, operations)
        return AlignedTiles(scores, offsets, operations)

    def _batches(self, tiles: TileSet) -> Iterator[_Batch]:
        """Yield the tiles in batches, in which tiles of similar shape are adjacent."""
        groups = sorted(_KERNELS)
        classes = np.searchsorted(np.array(groups[:-1]) * LANE_ROWS, tiles.lengths)
        for number, group in enumerate(groups):
            numbers = np.flatnonzero(classes == number)
            keys = tiles.lengths[numbers], tiles.reference_lengths[numbers]
            # The widest come first, so that the last warps have the least work.
            numbers = numbers[np.lexsort(keys)[::-1]]
            if numbers.size % 2:
                numbers = np.append(numbers, _NO_TILE)
            if numbers.size:
                yield from self._cut(group, numbers, tiles)

    def _cut(self, group: int, numbers: Int64Array, tiles: TileSet) -> Iterator[_Batch]:
        """Yield pairs in batches whose directions have room."""
        ours = numbers.reshape(-1, 2)
        rows, columns = (
            np.where(ours == _NO_TILE, 0, lengths[ours]).max(axis=1)
            for lengths in (tiles.lengths, tiles.reference_lengths)
        )
        elements = -(-rows // (group * LANE_ROWS)) * (columns + group - 1) * group
        ends = np.cumsum(elements)
        max_elements = min(MOST_ELEMENTS, self.memory // (2 * DIRECTION_BYTES))
        first = 0
        while first < len(ours):
            before = int(ends[first - 1]) if first else 0
            end = int(np.searchsorted(ends, before + max_elements, side="right"))
            end = max(end, first + 1)
            places = np.concatenate(([0], ends[first:end] - before))
            yield _Batch(group, numbers[2 * first : 2 * end], places)
            first = end

    def _align_batch(
        self,
        batch: _Batch,
        queries: CodeArray,
        reference: CodeArray,
        tiles: TileSet,
        found: tuple[Int64Array, OperationArray, Int64Array, Int64Array],
    ) -> None:
        """Align a batch; fill the rooms of its operations, its scores and its counts."""
        room_ends, rooms, scores, counts = found
        numbers = batch.numbers
        is_tile = numbers != _NO_TILE
        lengths = np.where(is_tile, tiles.lengths[numbers], 0)
        reference_lengths = np.where(is_tile, tiles.reference_lengths[numbers], 0)
        bases, query_places = _gathered(queries, tiles.query_starts[numbers], lengths)
        others, reference_places = _gathered(
            reference, tiles.reference_starts[numbers], reference_lengths
        )
        ends = np.cumsum(lengths + reference_lengths)
        described = np.zeros(numbers.size, dtype=WHOLE_TILE)
        described["query_at"], described["reference_at"] = query_places, reference_places
        described["directions_at"] = np.repeat(batch.directions_at[:-1], 2)
        described["operations_end"] = ends
        described["length"], described["reference_length"] = lengths, reference_lengths
        described["max_operations"] = lengths + reference_lengths
        written = np.empty(int(ends[-1]), dtype=np.uint32)
        own_scores = np.empty(numbers.size, dtype=np.uint32)
        own_counts = np.empty(numbers.size, dtype=np.uint32)
        self._run(batch, bases, others, described, (written, own_scores, own_counts))
        tile_numbers = numbers[is_tile]
        scores[tile_numbers] = own_scores[is_tile].astype(np.int64) - CORNER_OF_TWO
        counts[tile_numbers] = own_counts[is_tile]
        copy_ends(written, ends, own_counts.astype(np.int64), numbers * is_tile, rooms, room_ends)

    def _run(
        self,
        batch: _Batch,
        bases: CodeArray,
        others: CodeArray,
        described: npt.NDArray[np.void],
        found: tuple[OperationArray, OperationArray, OperationArray],
    ) -> None:
        """Run the kernels of a batch, and copy their results to the host."""
        buffer = self.buffer
        written, scores, counts = found
        queries, reference = buffer("queries", bases.size), buffer("reference", others.size)
        tiles, costs = buffer("tiles", described.nbytes), buffer("costs", self.costs.nbytes)
        directions = buffer("directions", int(batch.directions_at[-1]) * DIRECTION_BYTES)
        operations = buffer("operations", written.nbytes)
        score_places, count_places = (
            buffer("scores", scores.nbytes),
            buffer("counts", counts.nbytes),
        )
        # A thread block has at least a warp.
        block_threads = max(WARP_LANES, self.device.block_threads)
        blocks = -(-batch.group * batch.pairs // block_threads)
        blocks = min(blocks, MOST_BLOCKS * self.device.resident_blocks)
        columns = int(described["reference_length"].max()) + 1
        edges = buffer("edges", 8 * columns * (blocks * block_threads // batch.group))
        for address, array in ((queries, bases), (reference, others), (costs, self.costs)):
            self.stream.copy_in(address, array)
        self.stream.copy_in(tiles, described.view(np.uint8))
        self.launcher.launch(
            self.program,
            _KERNELS[batch.group],
            blocks,
            (
                *(queries, reference, tiles, batch.pairs, costs, directions, edges),
                *(np.uint32(columns), score_places),
            ),
        )
        self.launcher.launch_on(
            self.program,
            "trace_tile_pairs",
            WARP_LANES * scores.size,
            (
                *(tiles, scores.size, np.uint32(batch.group), directions),
                *(operations, count_places),
            ),
        )
        self.stream.copy_out(written, operations)
        self.stream.copy_out(scores, score_places)
        self.stream.copy_out(counts, count_places)
        self.stream.synchronize()
        self.launcher.report()


def _gathered(
    codes: CodeArray, starts: Int64Array, lengths: Int64Array
) -> tuple[CodeArray, Int64Array]:
    """Return concatenated stretches of codes, and the start of each."""
    ends = np.cumsum(lengths)
    gathered = np.empty(int(ends[-1]), dtype=np.uint8)
    places = ends - lengths
    gather_codes(codes, starts, lengths, places, gathered)
    return gathered, places


@jit
def gather_codes(
    codes: CodeArray,
    starts: Int64Array,
    lengths: Int64Array,
    places: Int64Array,
    gathered: CodeArray,
) -> None:
    """Copy stretches of codes, each from its start to its place."""
    for number in range(starts.size):
        for k in range(lengths[number]):
            gathered[places[number] + k] = codes[starts[number] + k]


@jit
def copy_ends(
    written: OperationArray,
    ends: Int64Array,
    counts: Int64Array,
    numbers: Int64Array,
    rooms: OperationArray,
    room_ends: Int64Array,
) -> None:
    """Copy the operations that end in each room of a batch to the end of the room of their tile."""
    for row in range(ends.size):
        to = room_ends[numbers[row]]
        for k in range(1, counts[row] + 1):
            rooms[to - k] = written[ends[row] - k]


@jit
def gather_ends(
    rooms: OperationArray, room_ends: Int64Array, offsets: Int64Array, operations: OperationArray
) -> None:
    """Copy the operations at the end of each room, one tile after the other."""
    for tile in range(room_ends.size):
        count = offsets[tile + 1] - offsets[tile]
        for k in range(count):
            operations[offsets[tile] + k] = rooms[room_ends[tile] - count + k]
