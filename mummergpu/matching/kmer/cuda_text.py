"""The k-mer search on a GPU that also makes the text of the matches there.

The text of a row has some 30 bytes, its three columns have 24. The host needs far longer to make
the text than the bus needs to copy it. For the 40.8 million rows of SSUIS (forward strand, 1.5 GB
of text) two kernels read 2 GB of columns and write 1.5 GB, in about 1 ms at 4 TB/s; the copy takes
28 ms at 55 GB/s. The kernels are therefore simple: they count the bytes of each tile of 32 lines,
and then look at each row a second time instead of keeping its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.device import AnyArray, Argument, DeviceMemoryError, Program
from mummergpu.cuda.program import WARP_LANES
from mummergpu.index.kmer_page import KmerPage
from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import DeviceMems, UploadedBlock
from mummergpu.matching.block_text import BlockText, RowFormat, TextArray, join_texts
from mummergpu.matching.kmer.cuda import (
    KERNELS,
    KmerCudaBackend,
    KmerSearchContext,
    KmerStreamSearcher,
    PackedQueries,
)
from mummergpu.matching.kmer.cuda_program import TILE_LINES
from mummergpu.sequence.codes import Strand

TEXT_KERNELS: Final = ("count_text", "write_text")
"""The kernels whose resources are reported, besides those of the search."""

WINDOW_BYTES: Final = 1 << 25
"""About how many bytes of a block's text are on the device at once. Larger windows need no more
launches than a block does; smaller ones would leave part of the device idle."""

MOST_TEXT_BYTES: Final = 1 << 30
"""A block with a longer text is cut in two, to limit the memory of the host."""

NO_ROWS: Final = DeviceMems(0, (0, 0, 0), 0)
"""The rows of a strand that is not searched."""


@dataclass(frozen=True)
class ResidentFormat:
    """The format of the text, with the names of the records on the device.

    Attributes
    ----------
    row_format : RowFormat
        The format.
    record_arguments : tuple of int
        The kernel arguments that describe the records.
    """

    row_format: RowFormat
    record_arguments: tuple[int, ...]


class KmerTextSearcher(KmerStreamSearcher):
    """Searches k-mer tables on one stream, and returns columns or text."""

    stages = dict.fromkeys(TEXT_KERNELS, "text_kernel")

    def find_text(
        self,
        context: KmerSearchContext,
        resident: ResidentFormat,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
    ) -> BlockText | None:
        """Return the text of a block's MEMs, or None if there are too many.

        Parameters
        ----------
        context : KmerSearchContext
            The data that all searches of a run share, with a single table.
        resident : ResidentFormat
            The format of the text.
        block : QueryBlock
            The queries.
        strands : sequence of Strand
            The strands of the queries to search.
        max_rows : int
            The most rows to return, on all strands together.

        Returns
        -------
        BlockText or None
            The text, as for `interface.TextBackend.find_text`.

        Raises
        ------
        DeviceMemoryError
            If the block or its MEMs do not fit.
        """
        try:
            uploaded = self._upload_block(block)
            found = self._find_strands(context, self._prepare(context, uploaded), strands, max_rows)
            text = None
            if found is not None:
                text = self._write_text(context.program, resident, block, uploaded, found)
        finally:
            self._stream.synchronize()
        self._launcher.report()
        return text

    def _find_strands(
        self,
        context: KmerSearchContext,
        block: PackedQueries,
        strands: Sequence[Strand],
        max_rows: int,
    ) -> dict[Strand, DeviceMems] | None:
        """Return the MEMs on each strand, in the order of the text, or None if too many."""
        (table,) = context.tables
        found: dict[Strand, DeviceMems] = {}
        for strand in Strand:
            if strand not in strands:
                continue
            queries = block if strand is Strand.FORWARD else self._reverse(context, block)
            mems = self._search_part(context, table, queries, max_rows, len(found))
            if mems is None:
                return None
            max_rows -= mems.count
            found[strand] = mems
        return found

    def _write_text(
        self,
        program: Program,
        resident: ResidentFormat,
        block: QueryBlock,
        uploaded: UploadedBlock,
        found: dict[Strand, DeviceMems],
    ) -> BlockText | None:
        """Return the text of MEMs that are on the device, or None if it is too long."""
        row_format = resident.row_format
        count = sum(mems.count for mems in found.values())
        lines = len(found) * block.query_count + count
        if lines == 0:
            return BlockText((), count)
        text: tuple[Argument, ...] = (
            *self._strand_arguments(list(found.values())),
            *self._query_arguments(block, uploaded),
            *resident.record_arguments,
            np.uint32(Strand.FORWARD not in found),
            np.uint32(row_format.forward_coordinates),
            np.uint32(row_format.show_query_lengths),
            np.uint32(0),
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
        if tile_offsets[-1] > MOST_TEXT_BYTES:
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

    def _strand_arguments(self, found: Sequence[DeviceMems]) -> tuple[int, ...]:
        """Return the kernel arguments that describe the rows of one or two strands."""
        first, second = (*found, NO_ROWS)[:2]
        return (
            *(first.query_offsets, *first.columns),
            *(second.query_offsets, *second.columns),
            len(found),
        )

    def _query_arguments(self, block: QueryBlock, uploaded: UploadedBlock) -> tuple[int, ...]:
        """Copy the names of the queries to the device; return the arguments with the queries."""
        names = self._workspace.buffer("query names", block.names.nbytes)
        name_offsets = self._workspace.buffer("query name offsets", block.name_offsets.nbytes)
        self._staging.copy_in(names, block.names)
        self._staging.copy_in(name_offsets, block.name_offsets)
        self._stats.add_bytes(to_device=block.names.nbytes + block.name_offsets.nbytes)
        return uploaded.offsets, names, name_offsets, block.query_count

    def _copy_text_out(self, arrays: Sequence[AnyArray], address: int) -> None:
        with self._stats.stage("matches_from_device"):
            self._staging.copy_out_all(arrays, address)
        self._stats.add_bytes(from_device=sum(array.nbytes for array in arrays))


def _windows(tile_offsets: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
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


class KmerTextBackend(KmerCudaBackend):
    """Searches k-mer tables on a GPU, and makes text if the reference is in one part."""

    kernels = (*KERNELS, *TEXT_KERNELS)
    searcher = KmerTextSearcher

    may_make_text = True
    """Benchmarks clear this to measure the search with columns."""

    _row_format: RowFormat | None = None
    _resident: ResidentFormat | None = None

    @property
    def makes_text(self) -> bool:
        """Whether it makes text of the matches on the loaded pages."""
        return self._resident is not None

    def set_format(self, row_format: RowFormat) -> None:
        """Set the format of the text; the next pages that are loaded follow it."""
        self._row_format = row_format

    def load_pages(self, pages: Sequence[KmerPage], minimum_length: int) -> None:
        """Copy pages to the device, and the names of the records (`KmerCudaBackend`)."""
        super().load_pages(pages, minimum_length)
        if self.may_make_text and self._row_format is not None and len(pages) == 1:
            with self.device.current():
                self._resident = self._place_format(self._row_format)

    def find_text(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> BlockText | None:
        """Return the text of the MEMs between the loaded pages and a block of queries.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        strands : sequence of Strand
            The strands of the queries to search.
        max_rows : int
            The most rows of the text, on all strands together.

        Returns
        -------
        BlockText or None
            The text, or None if it has too many rows or bytes, or if that of a single query does
            not fit the device's memory.

        Raises
        ------
        BackendError
            If the device fails, or the backend was closed.
        """
        with self._idle_searcher() as searcher:
            assert isinstance(searcher, KmerTextSearcher)
            return self._text_in_halves(searcher, block, strands, max_rows)

    def _text_in_halves(
        self,
        searcher: KmerTextSearcher,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
    ) -> BlockText | None:
        """Search a block, in halves if it does not fit the device's memory."""
        assert self._context is not None and self._resident is not None
        try:
            return searcher.find_text(self._context, self._resident, block, strands, max_rows)
        except DeviceMemoryError as error:
            searcher.release()
            if block.query_count == 1:
                # The columns of one strand at a time may fit.
                return None
            self._notice(f"{block.query_count:,} queries do not fit the device: {error}; halving")
        one, other = block.halves()
        first = self._text_in_halves(searcher, one, strands, max_rows)
        if first is None:
            return None
        second = self._text_in_halves(searcher, other, strands, max_rows - first.count)
        return None if second is None else join_texts(first, second)

    def _let_go(self) -> None:
        self._resident = None
        super()._let_go()

    def _place_format(self, row_format: RowFormat) -> ResidentFormat | None:
        """Copy the names of the records to the device; return None if they do not fit."""
        try:
            starts = self._place(row_format.record_starts)
            buckets = self._place(row_format.buckets)
            names = self._place(row_format.record_names)
            name_offsets = self._place(row_format.record_name_offsets)
            self._stream.synchronize()
        except DeviceMemoryError:
            return None
        return ResidentFormat(
            row_format,
            (
                *(starts, buckets, row_format.bucket_shift),
                *(names, name_offsets, row_format.head_bytes),
            ),
        )

    def _place(self, array: AnyArray) -> int:
        address = self._allocate(max(1, array.nbytes)).address
        self._uploader.copy_in(address, array)
        self._stats.add_bytes(to_device=array.nbytes)
        return address
