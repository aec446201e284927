"""The k-mer search on a GPU: tables that stay there, and searchers on several streams."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import Final, Self

from mummergpu.cuda.device import AnyArray, Buffer, DeviceMemoryError, Program
from mummergpu.cuda.resident_matches import ResidentMatches
from mummergpu.errors import BackendError
from mummergpu.index.kmer_table import KmerPage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.cuda_streams import LONGEST_MATCH, CudaStreamsBackend
from mummergpu.matching.backends.interface import BlockText, ResidentBackend, RowFormat
from mummergpu.matching.backends.stream_searcher import WORD_BYTES, Result
from mummergpu.matching.device_columns import ColumnParts, DeviceColumns, RecordPlaces
from mummergpu.matching.kmer.cuda_consumers import DeviceText, HandedOver, ResidentColumns
from mummergpu.matching.kmer.cuda_program import (
    KMER_PROGRAM,
    MOST_OCCURRENCES,
    SEED_PROGRAM,
    TEXT_KERNELS,
)
from mummergpu.matching.kmer.cuda_search import KmerSearchContext, KmerStreamSearcher, ResidentTable
from mummergpu.matching.search import UNBOUNDED
from mummergpu.sequence.bit_planes import (
    BIT_PLANES_BYTES,
    PADDING_BYTES,
    PADDING_WORDS,
    WORD_BASES,
    bit_planes_bytes,
)
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.strand import Strand

UPLOAD_BASES: Final = 1 << 26
"""The bases of the reference that are copied to the device at a time and packed there."""

PIECE_BASES: Final = 1 << 16
"""The starts that a piece of a long query owns. Many threads search a piece, but one thread
extends a match."""

LONG_QUERY: Final = 1 << 17

KERNELS: Final[tuple[str, ...]] = (
    *("pack_codes", "count_kmer_mems", "count_frequent_kmer_mems"),
    *("write_kmer_mems", "write_frequent_kmer_mems"),
    *TEXT_KERNELS,
)
"""The kernels whose resources are reported."""


def _context_of(
    page: KmerPage,
    minimum_length: int,
    program: Program,
    reference: int,
    tables: Sequence[ResidentTable],
) -> KmerSearchContext:
    """Return the context that all searches share, of tables that are on the device."""
    return KmerSearchContext(
        program,
        min(minimum_length, LONGEST_MATCH),
        page.query_step(minimum_length),
        page.sampling_step(minimum_length),
        page.window_bases or 0,
        page.table.sampling.kmers_of_window,
        reference,
        tables,
        page.max_matches,
        page.only_unique,
    )


class KmerCudaBackend(CudaStreamsBackend[KmerPage, KmerSearchContext], ResidentBackend[KmerPage]):
    """Searches k-mer tables on a GPU (`cuda_streams.CudaStreamsBackend`).

    If the reference is in one part, it can also make text of the matches there, leave their columns
    there, or hand them to further work.
    """

    kernels = KERNELS
    searcher = KmerStreamSearcher
    piece_bases = PIECE_BASES
    long_query = LONG_QUERY

    may_make_text = True
    """Whether text is made on the device; without it, the host makes the same text of columns."""

    _row_format: RowFormat | None = None
    _records: RecordPlaces | None = None
    _text_arguments: tuple[int, ...] = ()
    _column_arguments: tuple[int, ...] = ()
    """The kernel arguments that describe the records, for text and for columns."""

    def set_format(self, row_format: RowFormat) -> None:
        """Set the format of the text; the next pages that are loaded follow it."""
        self._row_format = row_format

    def set_records(self, records: RecordPlaces) -> None:
        """Set the places of the records; the next pages that are loaded follow them."""
        self._records = records

    def find_text(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> BlockText | None:
        """Return a block's text, None if it does not fit (`ResidentBackend.find_text`)."""
        with self._idle_searcher() as searcher:
            assert self._row_format is not None and self.makes_text
            consumer = DeviceText(self._row_format, self._text_arguments, strands)
            return self._consume(searcher, block, max_rows, consumer)

    def find_columns(
        self, blocks: Iterable[QueryBlock], strands: Sequence[Strand]
    ) -> DeviceColumns:
        """Return the columns of the matches of blocks (`ResidentBackend.find_columns`)."""
        parts = ColumnParts(self.device)
        with self._idle_searcher() as searcher:
            assert self.leaves_columns
            consumer = ResidentColumns(self._column_arguments, strands, parts)
            for block in blocks:
                self._consume(searcher, block, UNBOUNDED, consumer)
            return parts.join(searcher.stream)

    def use_matches(
        self, block: QueryBlock, max_rows: int, use: Callable[[ResidentMatches], Result]
    ) -> Result | None:
        """Return what is made of a block's matches (`ResidentBackend.use_matches`)."""
        consumer = HandedOver(self.program, use, self._notice)
        with self._idle_searcher() as searcher:
            return self._consume(searcher, block, max_rows, consumer)

    def memory_for_pages(self, reference_bases: int) -> int:
        """Return the bytes that the packed reference leaves for tables (`interface.Backend`)."""
        return max(0, self.page_memory - bit_planes_bytes(reference_bases))

    def load_pages(self, pages: Sequence[KmerPage], minimum_length: int) -> None:
        """Copy the tables of a group of parts, and the whole reference, to the device.

        `BackendError` is raised if they do not fit the device's memory.
        """
        with self.device.current():
            self._let_go()
            program = self._program_for(pages[0])
            codes = pages[0].joined_reference
            total_bytes = codes.size + sum(page.table.byte_count for page in pages)
            try:
                with self._stats.stage("trees_to_device"), self._uploader.prepared(total_bytes):
                    reference = self._place_reference(program, codes)
                    tables = [self._place_table(page) for page in pages]
            except DeviceMemoryError as error:
                self._let_go()
                raise BackendError(
                    "cuda",
                    f"the tables do not fit the device's memory ({error}); "
                    "use --backend cpu, or an index with smaller pages (see 'mummergpu index "
                    "--page-size')",
                ) from error
            self._context = _context_of(pages[0], minimum_length, program, reference, tables)
            self.hands_over = len(pages) == 1
            if self.hands_over:
                self._place_records()

    def for_windows(self, page: KmerPage, minimum_length: int) -> Self:
        """Return a copy of this backend that searches with a page's windows (`KmerPage`).

        Both share the device, the tables and the streams; this one is closed.
        """
        assert self._context is not None
        other = copy(self)
        loaded = self._context
        with self.device.current():
            program = self._program_for(page)
        other._context = _context_of(page, minimum_length, program, loaded.reference, loaded.tables)
        return other

    def _program_for(self, page: KmerPage) -> Program:
        """Return the program of the kind of search that a page is for."""
        return self._program(SEED_PROGRAM if page.is_for_mapping else KMER_PROGRAM)

    def _let_go(self) -> None:
        self._context = None
        self.makes_text = self.leaves_columns = self.hands_over = False
        while self._buffers:
            self._buffers.pop().free()

    def _allocate(self, size: int) -> Buffer:
        buffer = self.device.allocate(size)
        self._buffers.append(buffer)
        return buffer

    def _place_table(self, page: KmerPage) -> ResidentTable:
        table = page.table
        # Other kernels search shorter lists, and rely on their order.
        assert table.longest_ascending >= MOST_OCCURRENCES
        offsets = self._allocate(table.offsets.nbytes)
        positions = self._allocate(max(1, table.positions.nbytes))
        self._uploader.copy_in(offsets.address, table.offsets)
        self._uploader.copy_in(positions.address, table.positions)
        self._stats.add_bytes(to_device=table.byte_count)
        return ResidentTable(
            *(offsets.address, positions.address, page.page.begin),
            *(table.sampling, table.longest_ascending, table.ordered_bases),
        )

    def _place_records(self) -> None:
        """Copy the names and the places of the records to the device, if they fit."""
        if self.may_make_text and (form := self._row_format) is not None:
            names = form.record_names, form.record_name_offsets
            if placed := self._place(form.record_starts, form.buckets, *names):
                lookup = (*placed[:2], form.bucket_shift)
                self._text_arguments = (*lookup, *placed[2:], form.head_bytes)
                self.makes_text = True
        if self._records is not None:
            starts, buckets, shift = self._records
            if placed := self._place(starts, buckets):
                self._column_arguments = (*placed, shift)
                self.leaves_columns = True

    def _place(self, *arrays: AnyArray) -> list[int]:
        """Copy arrays to the device, and return their addresses; none if they do not fit."""
        addresses = []
        try:
            for array in arrays:
                addresses.append(self._allocate(max(1, array.nbytes)).address)
                self._uploader.copy_in(addresses[-1], array)
                self._stats.add_bytes(to_device=array.nbytes)
            self._stream.synchronize()
        except DeviceMemoryError:
            return []
        return addresses

    def _place_reference(self, program: Program, codes: CodeArray) -> int:
        """Copy the reference to the device, pack it there piece by piece; return its address."""
        address = self._allocate(bit_planes_bytes(codes.size)).address + PADDING_BYTES
        text = self.device.allocate(min(UPLOAD_BASES, codes.size) + WORD_BYTES)
        try:
            for begin in range(0, codes.size, UPLOAD_BASES):
                stretch = codes[begin : begin + UPLOAD_BASES]
                last_word = stretch.size // WORD_BYTES * WORD_BYTES
                self._stream.fill_zero(text.address + last_word, WORD_BYTES)
                self._uploader.copy_in(text.address, stretch)
                before = PADDING_WORDS if begin == 0 else 0
                after = PADDING_WORDS if begin + UPLOAD_BASES >= codes.size else 0
                words = -(-stretch.size // WORD_BASES) + 2 * PADDING_WORDS
                self._stream.launch(
                    program,
                    "pack_codes",
                    min(-(-words // self.device.block_threads), self.device.resident_blocks),
                    (
                        text.address,
                        stretch.size,
                        address + begin // WORD_BASES * BIT_PLANES_BYTES,
                        before,
                        after,
                    ),
                )
            self._stream.synchronize()
        finally:
            text.free()
        self._stats.add_bytes(to_device=codes.size)
        return address
