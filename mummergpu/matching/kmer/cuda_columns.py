"""The k-mer search on a GPU that also leaves the columns of the matches there, for its users."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from mummergpu.cuda.device import Argument, DeviceMemoryError
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import DeviceMems, UploadedBlock
from mummergpu.matching.device_columns import (
    COLUMN_TYPES,
    ColumnParts,
    DeviceColumns,
    RecordPlaces,
    new_columns_on,
)
from mummergpu.matching.kmer.cuda_arrays import KmerSearchContext
from mummergpu.matching.kmer.cuda_text import KmerTextBackend, KmerTextSearcher
from mummergpu.matching.kmer.device_text import strand_arguments
from mummergpu.matching.search import UNBOUNDED
from mummergpu.sequence.codes import Strand


class KmerColumnsSearcher(KmerTextSearcher):
    """Searches k-mer tables on one stream; the columns can stay on the device."""

    def add_columns(
        self,
        context: KmerSearchContext,
        record_arguments: tuple[int, ...],
        block: QueryBlock,
        strands: Sequence[Strand],
        parts: ColumnParts,
    ) -> None:
        """Search a block, and add the columns of its matches to those of the blocks before.

        The context has a single table. `DeviceMemoryError` is raised if the block or its MEMs do
        not fit, and nothing is added; `BackendError` if the columns do not fit.
        """
        self._begin_counts()
        try:
            uploaded = self._upload_block(block)
            prepared = self._prepare(context, uploaded)
            found = self._find_strands(context, prepared, strands, UNBOUNDED)
            assert found is not None
            columns = self._write_columns(context, record_arguments, uploaded, found, parts)
        finally:
            self._stream.synchronize()
        self._launcher.report()
        self._count_skipped()
        parts.add(columns)

    def join(self, parts: ColumnParts) -> DeviceColumns:
        """Return the columns of all blocks (`ColumnParts.join`)."""
        return parts.join(self._stream)

    def _write_columns(
        self,
        context: KmerSearchContext,
        record_arguments: tuple[int, ...],
        block: UploadedBlock,
        found: dict[Strand, DeviceMems],
        parts: ColumnParts,
    ) -> DeviceColumns:
        """Turn the MEMs of a block into columns of its own, numbered after those of `parts`."""
        rows = sum(mems.count for mems in found.values())
        columns = new_columns_on(self._device, rows, block.query_count)
        mems: tuple[Argument, ...] = (
            *strand_arguments(list(found.values())),
            *(block.offsets, block.query_count),
            *(np.uint32(len(found)), np.uint32(Strand.FORWARD not in found)),
        )
        addresses = [getattr(columns, name).address for name in COLUMN_TYPES]
        self._launcher.launch_on(
            context.program,
            "write_match_columns",
            rows,
            (*mems, *record_arguments, parts.queries, rows, *addresses),
        )
        self._launcher.launch_on(
            context.program,
            "write_row_offsets",
            block.query_count + 1,
            (*mems, parts.rows, columns.offsets.address),
        )
        return columns


class KmerColumnsBackend(KmerTextBackend):
    """Searches k-mer tables on a GPU; leaves columns there if the reference is in one part."""

    searcher = KmerColumnsSearcher

    _records: RecordPlaces | None = None
    _record_arguments: tuple[int, ...] | None = None

    @property
    def leaves_columns(self) -> bool:
        """Whether it can leave the columns of the matches on the loaded pages on the device."""
        return self._record_arguments is not None

    def set_records(self, records: RecordPlaces) -> None:
        """Set the places of the records; the next pages that are loaded follow them."""
        self._records = records

    def load_pages(self, pages: Sequence[KmerPage], minimum_length: int) -> None:
        """Copy pages to the device, and the places of the records (`KmerCudaBackend`)."""
        super().load_pages(pages, minimum_length)
        if self._records is not None and len(pages) == 1:
            with self.device.current(), suppress(DeviceMemoryError):
                starts, buckets, shift = self._records
                addresses = self._place(starts), self._place(buckets)
                self._stream.synchronize()
                self._record_arguments = (*addresses, shift)

    def find_columns(
        self, blocks: Iterable[QueryBlock], strands: Sequence[Strand]
    ) -> DeviceColumns:
        """Return the columns of the matches of blocks (`interface.ColumnsBackend`)."""
        parts = ColumnParts(self.device)
        with self._idle_searcher() as searcher:
            assert isinstance(searcher, KmerColumnsSearcher)
            for block in blocks:
                self._add_in_halves(searcher, block, strands, parts)
            return searcher.join(parts)

    def _add_in_halves(
        self,
        searcher: KmerColumnsSearcher,
        block: QueryBlock,
        strands: Sequence[Strand],
        parts: ColumnParts,
    ) -> None:
        """Search a block, in halves if it does not fit the device's memory."""
        assert self._context is not None and self._record_arguments is not None
        try:
            searcher.add_columns(self._context, self._record_arguments, block, strands, parts)
            return
        except DeviceMemoryError as error:
            searcher.release()
            if block.query_count == 1:
                raise BackendError(
                    "cuda",
                    f"a query of {block.base_count:,} bases, or its matches, do not fit the "
                    f"device's memory ({error}); 'match' searches long queries in pieces",
                ) from error
            self._notice(f"{block.query_count:,} queries do not fit the device: {error}; halving")
        for half in block.halves():
            self._add_in_halves(searcher, half, strands, parts)

    def _let_go(self) -> None:
        self._record_arguments = None
        super()._let_go()
