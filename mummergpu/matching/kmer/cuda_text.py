"""The k-mer search on a GPU that also returns the text of the matches, in place of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mummergpu.cuda.device import AnyArray, Device, DeviceMemoryError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import DeviceMems
from mummergpu.matching.block_text import BlockText, RowFormat, join_texts
from mummergpu.matching.kmer.cuda import KERNELS, KmerCudaBackend
from mummergpu.matching.kmer.cuda_arrays import KmerSearchContext, PackedQueries
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.matching.kmer.device_text import (
    MAX_TEXT_BYTES,
    TEXT_KERNELS,
    ResidentFormat,
    TextMaker,
)
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns


class KmerTextSearcher(KmerStreamSearcher):
    """Searches k-mer tables on one stream, and returns columns or text."""

    stages = dict.fromkeys(TEXT_KERNELS, "text_kernel")

    def __init__(self, device: Device, limit: int, stats: Stats) -> None:
        super().__init__(device, limit, stats)
        self._text_maker = TextMaker(
            self._stream, self._workspace, self._launcher, self._staging, stats
        )

    def find_text(
        self,
        context: KmerSearchContext,
        resident: ResidentFormat,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
    ) -> BlockText | None:
        """Return the text of a block's MEMs, or None if too many (`interface.TextBackend`).

        The context has a single table. If the block or its MEMs do not fit, `DeviceMemoryError` is
        raised.
        """
        self._begin_counts()
        try:
            uploaded = self._upload_block(block)
            found = self._find_strands(context, self._prepare(context, uploaded), strands, max_rows)
            text = None
            if found is not None:
                text = self._text_maker.make(
                    context.program, resident, block, uploaded.offsets, found
                )
            if text is not None and resident.row_format.with_columns:
                text = replace(text, mems=self._columns_of(block, found))
        finally:
            self._stream.synchronize()
        self._launcher.report()
        if text is not None:
            self._count_skipped()
        return text

    def _columns_of(
        self, block: QueryBlock, found: Mapping[Strand, DeviceMems] | None
    ) -> dict[Strand, MemColumns]:
        """Copy the MEMs on each strand to the host."""
        assert found is not None
        return {
            strand: self._download(block.query_count, mems.query_offsets, mems.columns, mems.count)
            for strand, mems in found.items()
        }

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


class KmerTextBackend(KmerCudaBackend):
    """Searches k-mer tables on a GPU, and makes text if the reference is in one part."""

    kernels = (*KERNELS, *TEXT_KERNELS)
    searcher = KmerTextSearcher

    may_make_text = True
    """Whether text is made on the device; without it, the host makes the same text of columns."""

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
        """Return a block's text (`interface.TextBackend.find_text`), None if it does not fit."""
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
        if second is None or first.size + second.size > MAX_TEXT_BYTES:
            return None
        return join_texts(first, second)

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
