"""Consumers of the matches of a k-mer search on the device: text, columns, or further work.

The text of a row has some 30 bytes, its three columns have 24. The host needs far longer to make
the text than the bus needs to copy it. For the 40.8 million rows of SSUIS (forward strand, 1.5 GB
of text) two kernels read 2 GB of columns and write 1.5 GB, in about 1 ms at 4 TB/s; the copy takes
28 ms at 55 GB/s. The kernels are therefore simple: they count the bytes of each tile of 32 lines,
and then look at each row a second time instead of keeping its size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Argument, DeviceMemoryError, Program
from mummergpu.cuda.program import WARP_LANES, ProgramSource
from mummergpu.cuda.resident_matches import DeviceMems, ResidentMatches
from mummergpu.errors import BackendError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import BlockText, RowFormat, TextArray, join_texts
from mummergpu.matching.backends.stream_searcher import Consumer, Result
from mummergpu.matching.device_columns import (
    COLUMN_TYPES,
    ColumnParts,
    DeviceColumns,
    new_columns_on,
)
from mummergpu.matching.kmer.cuda_program import TILE_LINES
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.matching.search import UNBOUNDED
from mummergpu.runtime.arrays import Int64Array
from mummergpu.sequence.strand import Strand


class ResidentColumns(Consumer[KmerStreamSearcher, ColumnParts]):
    """Leaves the columns of the matches on some strands on the device.

    `records` are the kernel arguments that say where the records of the reference are.
    """

    def __init__(
        self, records: Sequence[int], strands: Sequence[Strand], parts: ColumnParts
    ) -> None:
        self._records = records
        self._strands = strands
        self._parts = parts

    def take(self, searcher: KmerStreamSearcher, block: QueryBlock, max_rows: int) -> ColumnParts:
        """Add the columns of a block to those of the blocks before (`Consumer`)."""
        found = searcher.find_strands(self._strands, UNBOUNDED)
        assert found is not None
        self._parts.add(self.write(searcher, block, found))
        return self._parts

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Raise `BackendError` (`Consumer`)."""
        raise BackendError(
            "cuda",
            f"a query of {block.base_count:,} bases, or its matches, do not fit the "
            f"device's memory ({error}); 'match' searches long queries in pieces",
        ) from error

    def write(
        self, searcher: KmerStreamSearcher, block: QueryBlock, found: dict[Strand, DeviceMems]
    ) -> DeviceColumns:
        """Turn the MEMs of a block into columns of its own, numbered after those before."""
        parts, queries = self._parts, searcher.queries
        rows = sum(mems.count for mems in found.values())
        columns = new_columns_on(searcher.device, rows, block.query_count)
        mems: tuple[Argument, ...] = (
            *strand_arguments(found),
            *(queries.offsets, queries.count),
            *(np.uint32(len(found)), np.uint32(Strand.FORWARD not in found)),
        )
        addresses = [getattr(columns, name).address for name in COLUMN_TYPES]
        searcher.launch_on(
            "write_match_columns", rows, (*mems, *self._records, parts.queries, rows, *addresses)
        )
        searcher.launch_on(
            "write_row_offsets", block.query_count + 1, (*mems, parts.rows, columns.offsets.address)
        )
        return columns


class HandedOver(Consumer[KmerStreamSearcher, Result]):
    """Hands the matches on both strands to a function that works on them on the device."""

    may_be_cut = False

    def __init__(
        self,
        load_program: Callable[[ProgramSource], Program],
        use: Callable[[ResidentMatches], Result],
        notice: Callable[[str], None],
    ) -> None:
        self._load_program = load_program
        self._use = use
        self._notice = notice

    def take(self, searcher: KmerStreamSearcher, block: QueryBlock, max_rows: int) -> Result | None:
        """Return the function's result for a block (`Consumer`)."""
        found = searcher.find_strands(tuple(Strand), max_rows)
        if found is None:
            return None
        queries = searcher.queries
        return self._use(
            ResidentMatches(
                *(searcher, self._load_program),
                *(queries.count, queries.offsets, queries.bit_planes),
                *(searcher.reverse_planes(), searcher.context.reference),
                *(found[Strand.FORWARD], found[Strand.REVERSE]),
            )
        )

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Leave it to the caller to cut the block (`Consumer`)."""
        self._notice(f"{block.query_count:,} queries do not fit the device: {error}")


WINDOW_BYTES: Final = 1 << 25
"""About how many bytes of a block's text are on the device at once. Larger windows need no more
launches than a block does; smaller ones would leave part of the device idle."""

MAX_TEXT_BYTES: Final = 1 << 30
"""A block with a longer text is cut in two, to limit the memory of the host."""

NO_ROWS: Final = DeviceMems(0, (0, 0, 0), 0)
"""The rows of a strand that is not searched."""


class DeviceText(Consumer[KmerStreamSearcher, BlockText]):
    """Makes the text of the matches on some strands.

    The arguments of kernels that describe the records are in the order of `RowFormat`.
    """

    def __init__(
        self, row_format: RowFormat, records: Sequence[int], strands: Sequence[Strand]
    ) -> None:
        self._row_format = row_format
        self._records = records
        self._strands = strands

    def take(
        self, searcher: KmerStreamSearcher, block: QueryBlock, max_rows: int
    ) -> BlockText | None:
        """Return the text, with the columns if the format asks for them (`Consumer`)."""
        found = searcher.find_strands(self._strands, max_rows)
        text = None if found is None else self.make(searcher, block, found)
        if text is None or found is None or not self._row_format.with_columns:
            return text
        columns = {
            strand: searcher.download(block.query_count, mems) for strand, mems in found.items()
        }
        return replace(text, mems=columns)

    def count(self, result: BlockText) -> int:
        """Return the number of rows (`Consumer`)."""
        return result.count

    def join(self, first: BlockText, second: BlockText) -> BlockText | None:
        """Append the text of the second half (`Consumer`)."""
        return None if first.size + second.size > MAX_TEXT_BYTES else join_texts(first, second)

    def refuse(self, block: QueryBlock, error: DeviceMemoryError) -> None:
        """Make no text: the columns of one strand at a time may fit (`Consumer`)."""

    def make(
        self, searcher: KmerStreamSearcher, block: QueryBlock, found: Mapping[Strand, DeviceMems]
    ) -> BlockText | None:
        """Return the text of MEMs on the device, or None if it is longer than `MAX_TEXT_BYTES`.

        The forward strand comes first in `found`.
        """
        row_format, buffer = self._row_format, searcher.buffer
        count = sum(mems.count for mems in found.values())
        lines = len(found) * block.query_count + count
        if lines == 0:
            return BlockText((), count)
        text: tuple[Argument, ...] = (
            *strand_arguments(found),
            *_query_arguments(searcher, block),
            *self._records,
            np.uint32(len(found)),
            np.uint32(Strand.FORWARD not in found),
            np.uint32(row_format.forward_coordinates),
            np.uint32(row_format.show_query_lengths),
            lines,
        )
        tiles = -(-lines // TILE_LINES)
        tile_bytes = buffer("bytes of text tiles", 8 * tiles)
        offsets = buffer("offsets of text tiles", 8 * (tiles + 1))
        searcher.launch_on("count_text", WARP_LANES * tiles, (*text, tile_bytes))
        searcher.launcher.scan(searcher.context.program, tile_bytes, tiles, offsets)
        tile_offsets = np.empty(tiles + 1, dtype=np.int64)
        # The stage must not count the kernels that are still running.
        searcher.stream.synchronize()
        _copy_out(searcher, [tile_offsets], offsets)
        if tile_offsets[-1] > MAX_TEXT_BYTES:
            return None
        pieces: list[TextArray] = []
        windows = list(_windows(tile_offsets))
        size = max(int(tile_offsets[end] - tile_offsets[begin]) for begin, end in windows)
        written = buffer("text", size)
        for begin, end in windows:
            searcher.launch_on(
                "write_text", WARP_LANES * (end - begin), (*text, offsets, begin, end, written)
            )
            searcher.stream.synchronize()
            window = _new_pieces(row_format, int(tile_offsets[end] - tile_offsets[begin]))
            _copy_out(searcher, window, written)
            pieces += window
        return BlockText(pieces, count)


def _query_arguments(searcher: KmerStreamSearcher, block: QueryBlock) -> tuple[int, ...]:
    """Copy the names of the queries to the device; return the arguments with the queries."""
    names = searcher.upload("query names", block.names)
    name_offsets = searcher.upload("query name offsets", block.name_offsets)
    searcher.stats.add_bytes(to_device=block.names.nbytes + block.name_offsets.nbytes)
    return searcher.queries.offsets, names, name_offsets, block.query_count


def _copy_out(searcher: KmerStreamSearcher, arrays: Sequence[AnyArray], address: int) -> None:
    with searcher.stats.stage("matches_from_device"):
        searcher.staging.copy_out_all(arrays, address)
    searcher.stats.add_bytes(from_device=sum(array.nbytes for array in arrays))


def strand_arguments(found: Mapping[Strand, DeviceMems]) -> tuple[int, ...]:
    """Return the kernel arguments that describe the rows of one or two strands."""
    first, second = (*found.values(), NO_ROWS)[:2]
    return *first.arguments, *second.arguments


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
