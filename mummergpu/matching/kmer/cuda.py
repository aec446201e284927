"""The k-mer search on a GPU: tables that stay there, and searchers on several streams."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final, Self

from mummergpu.cuda.device import Buffer, DeviceMemoryError, Program
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.matching.backends.device_codes import WORD_BYTES
from mummergpu.matching.backends.streaming import LONGEST_MATCH, StreamingBackend
from mummergpu.matching.kmer.cuda_arrays import KmerSearchContext, ResidentTable
from mummergpu.matching.kmer.cuda_program import KMER_PROGRAM, MOST_OCCURRENCES, SEED_PROGRAM
from mummergpu.matching.kmer.cuda_search import KmerStreamSearcher
from mummergpu.sequence.bit_planes import (
    BIT_PLANES_BYTES,
    PADDING_BYTES,
    PADDING_WORDS,
    WORD_BASES,
    bit_planes_bytes,
)
from mummergpu.sequence.codes import CodeArray

UPLOAD_BASES: Final = 1 << 26
"""The bases of the reference that are copied to the device at a time and packed there."""

PIECE_BASES: Final = 1 << 16
"""The starts that a piece of a long query owns. Many threads search a piece, but one thread
extends a match."""

LONG_QUERY: Final = 1 << 17

KERNELS: Final[tuple[str, ...]] = (
    *("pack_codes", "count_kmer_mems", "count_frequent_kmer_mems"),
    *("write_kmer_mems", "write_frequent_kmer_mems"),
)
"""The kernels whose resources are reported."""


def _context_of(
    page: KmerPage,
    minimum_length: int,
    program: Program,
    reference: int,
    tables: Sequence[ResidentTable],
) -> KmerSearchContext:
    """Return what all searches share, of tables that are on the device."""
    return KmerSearchContext(
        program,
        min(minimum_length, LONGEST_MATCH),
        page.query_step(minimum_length),
        page.period(minimum_length),
        page.sample_step or 0,
        page.table.sampling.leads,
        reference,
        tables,
        None,
        page.max_matches,
        page.only_unique,
    )


class KmerCudaBackend(StreamingBackend[KmerPage, KmerSearchContext]):
    """Searches k-mer tables on a GPU (`streaming.StreamingBackend`)."""

    kernels = KERNELS
    searcher = KmerStreamSearcher
    piece_bases = PIECE_BASES
    long_query = LONG_QUERY

    def memory_for_pages(self, reference_bases: int) -> int:
        """Return the bytes that the packed reference leaves to tables (`interface.Backend`)."""
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
                with (
                    self._stats.stage("trees_to_device"),
                    self._uploader.prepared(total_bytes),
                ):
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

    def for_windows(self, page: KmerPage, minimum_length: int) -> Self:
        """Return this backend as one that searches its tables as a page says (`sample_step`).

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
        """Return the program that searches as a page says."""
        return self._program(SEED_PROGRAM if page.is_for_mapping else KMER_PROGRAM)

    def _let_go(self) -> None:
        self._context = None
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
            offsets,
            positions,
            page.page.begin,
            table.sampling,
            table.longest_ascending,
            table.ordered_bases,
        )

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
