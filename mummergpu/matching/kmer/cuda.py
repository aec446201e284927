"""The k-mer search on a GPU: a warp searches 32 samples, a thread block a frequent k-mer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from mummergpu.cuda.bit_planes import BIT_PLANES_BYTES, PADDING_WORDS, WORD_BASES
from mummergpu.cuda.device import Argument, Buffer, DeviceMemoryError, Program
from mummergpu.cuda.program import WARP_LANES
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_table import MAXIMUM_TABLE_BASES
from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.device_codes import WORD_BYTES
from mummergpu.matching.backends.stream_searcher import (
    COUNTER_BYTES,
    DeviceMems,
    StreamSearcher,
    UploadedBlock,
)
from mummergpu.matching.backends.streaming import StreamingBackend
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.kmer.cuda_arrays import (
    KmerSearchContext,
    PackedQueries,
    ResidentTable,
)
from mummergpu.matching.kmer.cuda_program import (
    COUNT_BYTES,
    KEPT_MEM_BYTES,
    KEPT_MEMS_OF_TILE,
    KMER_PROGRAM,
    MOST_OCCURRENCES,
    TILE_BYTES,
    TILE_SAMPLES,
)
from mummergpu.matching.merge import merge_pages
from mummergpu.sequence.codes import CodeArray, Strand

PADDING_BYTES: Final = BIT_PLANES_BYTES * PADDING_WORDS
"""The bytes of the padding on each side of a sequence of bit planes."""

QUERY_OF_WARP: Final = 512
"""A warp marks the words of a query if the queries of the block have at least this many bases on
average; otherwise one thread does."""

UPLOAD_BASES: Final = 1 << 26
"""The bases of the reference that are copied to the device at a time and packed there."""

SKIPPED_COUNT: Final = 8
"""The offset of the number of skipped samples in the buffer of counters, in bytes."""

NO_LIMIT: Final = MAXIMUM_TABLE_BASES
"""More occurrences than a k-mer can have."""

PIECE_BASES: Final = 1 << 16
"""The starts that a piece of a long query owns. Many threads search a piece, but one thread
extends a match."""

LONG_QUERY: Final = 1 << 17

KERNELS: Final[tuple[str, ...]] = (
    *("pack_codes", "count_kmer_mems", "count_frequent_kmer_mems"),
    *("write_kmer_mems", "write_frequent_kmer_mems"),
)
"""The kernels whose resources are reported."""


def bit_planes_bytes(bases: int) -> int:
    """Return the bytes of the bit planes of `bases` bases on the device, padding included."""
    return BIT_PLANES_BYTES * (-(-bases // WORD_BASES) + 2 * PADDING_WORDS)


class KmerStreamSearcher(StreamSearcher[KmerSearchContext, PackedQueries]):
    """Searches k-mer tables on one stream (`stream_searcher.StreamSearcher`)."""

    stage = "kmer_kernel"

    _skipped = 0
    """The samples of the block that were skipped so far."""

    def find_mems(
        self,
        context: KmerSearchContext,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block (`stream_searcher`); count the samples that were skipped."""
        self._skipped = 0
        found = super().find_mems(context, block, strands, max_rows)
        # Without a result, the block is searched again in parts.
        if found is not None:
            self._count_skipped()
        return found

    def _count_skipped(self) -> None:
        """Count the skipped samples of a block that has been searched."""
        if self._skipped:
            self._stats.add(skipped_lookups=self._skipped)

    def _search_strand(
        self, context: KmerSearchContext, block: PackedQueries, strand: Strand, max_rows: int
    ) -> MemColumns | None:
        """Return the MEMs of a block in all parts, or None if there are too many."""
        queries = block if strand is Strand.FORWARD else self._reverse(context, block)
        found = []
        for table in context.tables:
            mems = self._search_part(context, table, queries, max_rows)
            if mems is None:
                return None
            max_rows -= mems.count
            found.append(
                self._download(queries.count, mems.query_offsets, mems.columns, mems.count)
            )
        return merge_pages(found)

    def _prepare(self, context: KmerSearchContext, block: UploadedBlock) -> PackedQueries:
        """Turn the codes of a block into bit planes, and mark where queries begin."""
        buffer = self._workspace.buffer
        words = -(-block.base_count // WORD_BASES)
        packed = PackedQueries(
            block.query_count,
            block.base_count,
            block.offsets,
            buffer("bit planes", bit_planes_bytes(block.base_count)) + PADDING_BYTES,
            buffer("queries of words", 4 * (words + 1)),
        )
        self._launcher.launch_on(
            context.program,
            "pack_codes",
            words + 2 * PADDING_WORDS,
            (block.codes, block.base_count, packed.bit_planes, PADDING_WORDS, PADDING_WORDS),
        )
        is_long = block.base_count >= block.query_count * QUERY_OF_WARP
        threads = WARP_LANES if is_long else 1
        self._launcher.launch_on(
            context.program,
            "mark_queries",
            block.query_count * threads,
            (
                *(packed.offsets, packed.count, np.uint32(threads)),
                *(packed.bit_planes, packed.queries_of_words),
            ),
        )
        return packed

    def _reverse(self, context: KmerSearchContext, queries: PackedQueries) -> PackedQueries:
        """Return the reverse complements of packed queries."""
        reverse = self._reverse_planes(queries)
        self._launcher.launch_on(
            context.program,
            "reverse_bit_planes",
            -(-queries.base_count // WORD_BASES) + 2 * PADDING_WORDS,
            (
                *(queries.bit_planes, queries.base_count),
                *(queries.offsets, queries.queries_of_words, reverse),
            ),
        )
        return replace(queries, bit_planes=reverse)

    def _reverse_planes(self, queries: PackedQueries) -> int:
        """Return the address for the bit planes of the reverse complements of packed queries."""
        size = bit_planes_bytes(queries.base_count)
        return self._workspace.buffer("reverse bit planes", size) + PADDING_BYTES

    def _search_part(
        self,
        context: KmerSearchContext,
        table: ResidentTable,
        queries: PackedQueries,
        max_rows: int,
        set_number: int = 0,
    ) -> DeviceMems | None:
        """Return the MEMs whose first sample occurs in one part of the reference.

        They stay in the buffers of the set until the next search that is given its number.
        """
        buffer = self._workspace.buffer
        program = context.program
        # A block shorter than a k-mer has no samples: the division rounds down.
        count = max(0, (queries.base_count - table.kmer_length) // context.step + 1)
        searched: tuple[Argument, ...] = (
            queries.bit_planes,
            count,
            np.uint32(context.step),
            np.uint32(context.period),
            np.uint32(context.minimum_length),
            np.uint32(NO_LIMIT if context.most_occurrences is None else context.most_occurrences),
            *context.arguments(table),
        )
        tiles = -(-count // TILE_SAMPLES)
        kept = buffer("kept mems", KEPT_MEM_BYTES * KEPT_MEMS_OF_TILE * tiles)
        known = buffer("tiles", TILE_BYTES * tiles)
        counts = buffer("mem counts", 4 * count)
        tile_counts = buffer("mem counts of tiles", COUNT_BYTES * tiles)
        frequent_samples = buffer("frequent samples", 4 * count)
        frequent_count = buffer("counters", COUNTER_BYTES)
        self._stream.fill_zero(frequent_count, COUNTER_BYTES)
        frequent = (frequent_samples, frequent_count)
        counted = (counts, tile_counts)
        blocks = self._device.resident_blocks
        if count > 0:
            self._launcher.launch_on(
                program,
                "count_kmer_mems",
                WARP_LANES * tiles,
                (
                    *(*searched, kept, known, *counted, *frequent),
                    frequent_count + SKIPPED_COUNT,
                ),
            )
            self._launcher.launch(
                program, "count_frequent_kmer_mems", blocks, (*searched, *frequent, *counted)
            )
        offsets = buffer("mem offsets of tiles", 8 * (tiles + 1))
        self._launcher.scan(program, tile_counts, tiles, offsets)
        query_offsets = buffer(f"offsets of mems {set_number}", 8 * (queries.count + 1))
        self._launcher.launch_on(
            program,
            "offset_query_mems",
            queries.count + 1,
            (
                *(offsets, counts, count, np.uint32(context.step)),
                *(queries.offsets, queries.count, query_offsets),
            ),
        )
        found = self._read_total(offsets, tiles)
        if context.most_occurrences is not None:
            self._stream.copy_out(self._counters, frequent_count)
            self._stream.synchronize()
            self._skipped += int(self._counters[SKIPPED_COUNT // 8])
        if found > max_rows:
            return None
        columns = self._columns(set_number, found)
        if found > 0:
            rows = (counts, offsets, *columns, queries.offsets, queries.queries_of_words)
            self._launcher.launch_on(
                program, "write_kmer_mems", WARP_LANES * tiles, (*searched, kept, known, *rows)
            )
            self._launcher.launch(
                program, "write_frequent_kmer_mems", blocks, (*searched, *frequent, *rows)
            )
            if context.period > context.step:
                self._sort(program, queries.count, query_offsets, columns)
        return DeviceMems(query_offsets, columns, found)

    def _sort(
        self, program: Program, query_count: int, query_offsets: int, columns: tuple[int, ...]
    ) -> None:
        """Sort the rows of each query."""
        long_queries = self._workspace.buffer("long queries", 4 * query_count)
        long_count = self._workspace.buffer("counters", COUNTER_BYTES)
        self._stream.fill_zero(long_count, COUNTER_BYTES)
        listed = (long_queries, long_count)
        self._launcher.launch_on(
            program,
            "sort_query_mems",
            query_count,
            (query_offsets, query_count, *columns, *listed),
        )
        self._launcher.launch(
            program,
            "sort_long_query_mems",
            self._device.resident_blocks,
            (query_offsets, *listed, *columns),
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

        Parameters
        ----------
        pages : sequence of KmerPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.

        Raises
        ------
        BackendError
            If they do not fit the device's memory.
        """
        with self.device.current():
            self._let_go()
            program = self._program(KMER_PROGRAM)
            codes = pages[0].joined_reference
            total_bytes = codes.size + sum(page.table.byte_count for page in pages)
            try:
                with (
                    self._stats.stage("trees_to_device"),
                    self._uploader.prepared(total_bytes),
                ):
                    reference = self._place_reference(program, codes)
                    tables = [self._place_table(page, minimum_length) for page in pages]
            except DeviceMemoryError as error:
                self._let_go()
                raise BackendError(
                    "cuda",
                    f"the tables do not fit the device's memory ({error}); "
                    "use a smaller --page-size or --backend cpu",
                ) from error
        self._context = KmerSearchContext(
            program,
            minimum_length,
            pages[0].query_step(minimum_length),
            pages[0].period(minimum_length),
            reference,
            tables,
            pages[0].most_occurrences,
        )

    def _let_go(self) -> None:
        self._context = None
        while self._buffers:
            self._buffers.pop().free()

    def _allocate(self, size: int) -> Buffer:
        buffer = self.device.allocate(size)
        self._buffers.append(buffer)
        return buffer

    def _place_table(self, page: KmerPage, minimum_length: int) -> ResidentTable:
        table, sampling = page.table, page.table.sampling
        longest_whole = table.longest_whole(page.period(minimum_length))
        # Other kernels search shorter lists, and rely on their order.
        assert longest_whole >= MOST_OCCURRENCES
        offsets = self._allocate(table.offsets.nbytes)
        positions = self._allocate(max(1, table.positions.nbytes))
        self._uploader.copy_in(offsets.address, table.offsets)
        self._uploader.copy_in(positions.address, table.positions)
        self._stats.add_bytes(to_device=table.byte_count)
        return ResidentTable(
            offsets, positions, page.page.begin, sampling.kmer_length, longest_whole
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
