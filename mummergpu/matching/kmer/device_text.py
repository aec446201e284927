"""Makes the text of matches on the device, and copies it to the host.

The text of a row has some 30 bytes, its three columns have 24. The host needs far longer to make
the text than the bus needs to copy it. For the 40.8 million rows of SSUIS (forward strand, 1.5 GB
of text) two kernels read 2 GB of columns and write 1.5 GB, in about 1 ms at 4 TB/s; the copy takes
28 ms at 55 GB/s. The kernels are therefore simple: they count the bytes of each tile of 32 lines,
and then look at each row a second time instead of keeping its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Argument, Program, Stream
from mummergpu.cuda.launcher import Launcher
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.program import WARP_LANES
from mummergpu.cuda.workspace import Workspace
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import DeviceMems
from mummergpu.matching.block_text import BlockText, RowFormat, TextArray
from mummergpu.matching.kmer.cuda_program import TILE_LINES
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand

TEXT_KERNELS: Final = ("count_text", "write_text")
"""The kernels whose resources are reported, besides those of the search."""

WINDOW_BYTES: Final = 1 << 25
"""About how many bytes of a block's text are on the device at once. Larger windows need no more
launches than a block does; smaller ones would leave part of the device idle."""

MAX_TEXT_BYTES: Final = 1 << 30
"""A block with a longer text is cut in two, to limit the memory of the host."""

NO_ROWS: Final = DeviceMems(0, (0, 0, 0), 0)
"""The rows of a strand that is not searched."""


@frozen
class ResidentFormat:
    """The format of the text, with the names of the records on the device as kernel arguments."""

    row_format: RowFormat
    record_arguments: tuple[int, ...]


class TextMaker:
    """Makes the text of one block at a time, on the stream of a searcher."""

    def __init__(
        self,
        stream: Stream,
        workspace: Workspace,
        launcher: Launcher,
        staging: Staging,
        stats: Stats,
    ) -> None:
        self._stream = stream
        self._workspace = workspace
        self._launcher = launcher
        self._staging = staging
        self._stats = stats

    def make(
        self,
        program: Program,
        resident: ResidentFormat,
        block: QueryBlock,
        block_offsets: int,
        found: Mapping[Strand, DeviceMems],
    ) -> BlockText | None:
        """Return the text of MEMs on the device, or None if it is longer than `MAX_TEXT_BYTES`.

        The forward strand comes first in `found`, and `block_offsets` is the device address of
        where each query begins. `DeviceMemoryError` is raised if a part of the text does not fit.
        """
        row_format = resident.row_format
        count = sum(mems.count for mems in found.values())
        lines = len(found) * block.query_count + count
        if lines == 0:
            return BlockText((), count)
        text: tuple[Argument, ...] = (
            *strand_arguments(list(found.values())),
            *self._query_arguments(block, block_offsets),
            *resident.record_arguments,
            np.uint32(len(found)),
            np.uint32(Strand.FORWARD not in found),
            np.uint32(row_format.forward_coordinates),
            np.uint32(row_format.show_query_lengths),
            lines,
        )
        tiles = -(-lines // TILE_LINES)
        tile_bytes = self._workspace.buffer("bytes of text tiles", 8 * tiles)
        offsets = self._workspace.buffer("offsets of text tiles", 8 * (tiles + 1))
        self._launcher.launch_on(program, "count_text", WARP_LANES * tiles, (*text, tile_bytes))
        self._launcher.scan(program, tile_bytes, tiles, offsets)
        tile_offsets = np.empty(tiles + 1, dtype=np.int64)
        # The stage must not count the kernels that are still running.
        self._stream.synchronize()
        self._copy_text_out([tile_offsets], offsets)
        if tile_offsets[-1] > MAX_TEXT_BYTES:
            return None
        pieces: list[TextArray] = []
        windows = list(_windows(tile_offsets))
        size = max(int(tile_offsets[end] - tile_offsets[begin]) for begin, end in windows)
        written = self._workspace.buffer("text", size)
        for begin, end in windows:
            self._launcher.launch_on(
                program,
                "write_text",
                WARP_LANES * (end - begin),
                (*text, offsets, begin, end, written),
            )
            self._stream.synchronize()
            window = _new_pieces(row_format, int(tile_offsets[end] - tile_offsets[begin]))
            self._copy_text_out(window, written)
            pieces += window
        return BlockText(pieces, count)

    def _query_arguments(self, block: QueryBlock, block_offsets: int) -> tuple[int, ...]:
        """Copy the names of the queries to the device; return the arguments with the queries."""
        names = self._workspace.buffer("query names", block.names.nbytes)
        name_offsets = self._workspace.buffer("query name offsets", block.name_offsets.nbytes)
        self._staging.copy_in(names, block.names)
        self._staging.copy_in(name_offsets, block.name_offsets)
        self._stats.add_bytes(to_device=block.names.nbytes + block.name_offsets.nbytes)
        return block_offsets, names, name_offsets, block.query_count

    def _copy_text_out(self, arrays: Sequence[AnyArray], address: int) -> None:
        with self._stats.stage("matches_from_device"):
            self._staging.copy_out_all(arrays, address)
        self._stats.add_bytes(from_device=sum(array.nbytes for array in arrays))


def strand_arguments(found: Sequence[DeviceMems]) -> tuple[int, ...]:
    """Return the kernel arguments that describe the rows of one or two strands."""
    first, second = (*found, NO_ROWS)[:2]
    return (first.query_offsets, *first.columns, second.query_offsets, *second.columns)


def _windows(tile_offsets: Int64Array) -> Iterator[tuple[int, int]]:
    """Yield ranges of tiles of at most `WINDOW_BYTES`, or of one tile that is longer."""
    begin = 0
    while begin < tile_offsets.size - 1:
        limit = tile_offsets[begin] + WINDOW_BYTES
        end = int(np.searchsorted(tile_offsets, limit, side="right")) - 1
        end = max(end, begin + 1)
        yield begin, end
        begin = end


def _new_pieces(row_format: RowFormat, size: int) -> list[TextArray]:
    """Return arrays for `size` bytes together."""
    step = row_format.piece_bytes
    return [row_format.new_piece(min(step, size - begin)) for begin in range(0, size, step)]
