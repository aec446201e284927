"""The sampled search on a GPU: a thread a sample, a block of threads for a long list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.cuda.device import Argument, Buffer, DeviceMemoryError, Program
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage, sampling_step
from mummergpu.input.queries import QueryBlock
from mummergpu.matching.backends.device_codes import WORD_BYTES
from mummergpu.matching.backends.stream_searcher import COUNTER_BYTES, StreamSearcher
from mummergpu.matching.backends.streaming import StreamingBackend
from mummergpu.matching.columns import MemColumns
from mummergpu.matching.merge import merge_pages
from mummergpu.matching.tree.cuda_macros import Specialisation
from mummergpu.sequence.codes import CodeArray

WORD_BASES: Final = 32
PLANES_BYTES: Final = 16
PADDING_WORDS: Final = 2
"""As in ``planes.cuh``."""

LANES: Final = 32
"""The samples of a tile, as in ``warps.cuh``."""

KEPT_BYTES: Final = 8 * 128
TILE_BYTES: Final = 8
"""Of the MEMs of a tile that are kept by the counting kernel, and of what is known of it besides,
as in ``sampled.cu``."""

QUERY_OF_WARP: Final = 512
"""Where queries have so many bases on average, a warp marks the words of each; else a thread."""

UPLOAD_BASES: Final = 1 << 26
"""Of the reference that go to the device as codes at a time, to be packed there."""

PIECE_BASES: Final = 1 << 16
"""Of a long query: many threads work on a piece, but a match is extended by one."""

LONG_QUERY: Final = 1 << 17

KERNELS: Final = (
    *("pack_codes", "count_sampled", "count_long_lists"),
    *("write_sampled", "write_long_lists"),
)


def planes_bytes(bases: int) -> int:
    """Return the bytes that so many bases take on the device, with their padding."""
    return PLANES_BYTES * (-(-bases // WORD_BASES) + 2 * PADDING_WORDS)


@dataclass(frozen=True)
class ResidentTable:
    """A part of a reference on the device: its table, as the kernels take it.

    Attributes
    ----------
    offsets, positions : Buffer
        The two arrays of the table.
    part_begin, kmer_length : int
        Where the part begins, and the bases of a k-mer.
    """

    offsets: Buffer
    positions: Buffer
    part_begin: int
    kmer_length: int


@dataclass(frozen=True)
class SampledJob:
    """What all searches of a run share.

    Attributes
    ----------
    program : Program
        The kernels.
    minimum_length, step : int
        The fewest bases of a MEM, and the bases from one sample to the next.
    reference : int
        The address of the joined reference, as planes.
    tables : sequence of ResidentTable
        The parts to search, in the order of the reference.
    """

    program: Program
    minimum_length: int
    step: int
    reference: int
    tables: Sequence[ResidentTable]

    def arguments(self, table: ResidentTable) -> tuple[Argument, ...]:
        """Return a table and the reference as the kernels take them."""
        return (
            table.offsets.address,
            table.positions.address,
            table.part_begin,
            self.reference,
            np.uint32(table.kmer_length),
        )


@dataclass(frozen=True)
class PackedQueries:
    """A block of queries on the device.

    Attributes
    ----------
    count, base_count : int
        The queries, and their bases together.
    offsets : int
        The address of where each begins.
    planes : int
        The address of their bases.
    words : int
        The address of the query that each word of them begins in.
    """

    count: int
    base_count: int
    offsets: int
    planes: int
    words: int


class SampledSearcher(StreamSearcher[SampledJob]):
    """Searches tables of k-mers (`stream_searcher.StreamSearcher`)."""

    stage = "kmer_kernel"

    def find_mems(
        self, job: SampledJob, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs of a block in all parts, or None if there are too many."""
        try:
            queries = self._upload(job, block, codes)
            found = []
            for table in job.tables:
                columns = self._search_part(job, table, queries, most)
                if columns is None:
                    return None
                most -= columns.count
                found.append(columns)
            return merge_pages(found)
        finally:
            self._stream.synchronize()

    def _upload(self, job: SampledJob, block: QueryBlock, codes: CodeArray) -> PackedQueries:
        """Copy a block to the device, and pack it there."""
        uploaded = self._upload_block(block, codes)
        room = self._workspace.room
        planes = room("planes", planes_bytes(codes.size)) + PLANES_BYTES * PADDING_WORDS
        words = room("queries of words", 4 * (-(-codes.size // WORD_BASES) + 1))
        self._launcher.launch_on(
            job.program,
            "pack_codes",
            -(-codes.size // WORD_BASES) + 2 * PADDING_WORDS,
            (uploaded.codes, codes.size, planes, PADDING_WORDS, PADDING_WORDS),
        )
        is_long = codes.size >= block.query_count * QUERY_OF_WARP
        threads = LANES if is_long else 1
        self._launcher.launch_on(
            job.program,
            "mark_queries",
            block.query_count * threads,
            (uploaded.offsets, block.query_count, np.uint32(threads), planes, words),
        )
        return PackedQueries(block.query_count, codes.size, uploaded.offsets, planes, words)

    def _search_part(
        self, job: SampledJob, table: ResidentTable, queries: PackedQueries, most: int
    ) -> MemColumns | None:
        """Return the MEMs whose first sample is found in one part."""
        room = self._workspace.room
        program = job.program
        # None where there is no room for a k-mer: the division rounds down.
        count = max(0, (queries.base_count - table.kmer_length) // job.step + 1)
        what: tuple[Argument, ...] = (
            queries.planes,
            count,
            np.uint32(job.step),
            np.uint32(job.minimum_length),
            *job.arguments(table),
        )
        tiles = -(-count // LANES)
        kept = room("kept mems", KEPT_BYTES * tiles)
        known = room("tiles", TILE_BYTES * tiles)
        counts = room("mem counts", 4 * count)
        tile_counts = room("mem counts of tiles", 8 * tiles)
        long_samples = room("long samples", 4 * count)
        long_count = room("counters", COUNTER_BYTES)
        self._stream.fill_zero(long_count, COUNTER_BYTES)
        long = (long_samples, long_count)
        counted = (counts, tile_counts)
        blocks = self._device.resident_blocks
        if count > 0:
            self._launcher.launch_on(
                program, "count_sampled", LANES * tiles, (*what, kept, known, *counted, *long)
            )
            self._launcher.launch(program, "count_long_lists", blocks, (*what, *long, *counted))
        offsets = room("mem offsets of tiles", 8 * (tiles + 1))
        self._launcher.scan(program, tile_counts, tiles, offsets)
        query_offsets = room("offsets of mems", 8 * (queries.count + 1))
        self._launcher.launch_on(
            program,
            "offsets_of_sampled",
            queries.count + 1,
            (
                *(offsets, counts, count, np.uint32(job.step)),
                *(queries.offsets, queries.count, query_offsets),
            ),
        )
        found = self._read_total(offsets, tiles)
        if found > most:
            return None
        columns = self._columns(0, found)
        if found > 0:
            rows = (counts, offsets, *columns, queries.offsets, queries.words)
            self._launcher.launch_on(
                program, "write_sampled", LANES * tiles, (*what, kept, known, *rows)
            )
            self._launcher.launch(program, "write_long_lists", blocks, (*what, *long, *rows))
        return self._download(queries.count, query_offsets, columns, found)


class SampledCudaBackend(StreamingBackend[KmerPage, SampledJob]):
    """Searches blocks of queries in tables of k-mers on a GPU (`streaming.StreamingBackend`)."""

    kernels = KERNELS
    searcher = SampledSearcher
    piece_bases = PIECE_BASES
    long_query = LONG_QUERY

    def load_pages(self, pages: Sequence[KmerPage], minimum_length: int) -> None:
        """Take the tables of a group of parts to the device, and the whole reference.

        Parameters
        ----------
        pages : sequence of KmerPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.

        Raises
        ------
        BackendError
            If they do not fit.
        """
        with self._device.current():
            self._let_go()
            program = self._program(Specialisation.of_sampled_search())
            try:
                with self._stats.stage("trees_to_device"):
                    reference = self._place_reference(program, pages[0].joined_reference)
                    tables = [self._place_table(page) for page in pages]
            except DeviceMemoryError as error:
                self._let_go()
                raise BackendError(
                    "cuda",
                    f"the tables do not fit the device's memory ({error}); "
                    "use a smaller --page-size or --backend cpu",
                ) from error
        step = sampling_step(minimum_length, pages[0].table.kmer_length)
        self._job = SampledJob(program, minimum_length, step, reference, tables)

    def _let_go(self) -> None:
        self._job = None
        while self._buffers:
            self._buffers.pop().free()

    def _allocate(self, size: int) -> Buffer:
        buffer = self._device.allocate(size)
        self._buffers.append(buffer)
        return buffer

    def _place_table(self, page: KmerPage) -> ResidentTable:
        table = page.table
        offsets = self._allocate(table.offsets.nbytes)
        positions = self._allocate(max(1, table.positions.nbytes))
        self._stream.copy_in(offsets.address, table.offsets)
        self._stream.copy_in(positions.address, table.positions)
        self._stream.synchronize()
        self._stats.add_bytes(to_device=table.byte_count)
        return ResidentTable(offsets, positions, page.page.begin, table.kmer_length)

    def _place_reference(self, program: Program, codes: CodeArray) -> int:
        """Pack the reference on the device, a stretch at a time; return its address."""
        padding = PLANES_BYTES * PADDING_WORDS
        address = self._allocate(planes_bytes(codes.size)).address + padding
        text = self._device.allocate(min(UPLOAD_BASES, codes.size) + WORD_BYTES)
        try:
            for begin in range(0, codes.size, UPLOAD_BASES):
                stretch = codes[begin : begin + UPLOAD_BASES]
                last_word = stretch.size // WORD_BYTES * WORD_BYTES
                self._stream.fill_zero(text.address + last_word, WORD_BYTES)
                self._stream.copy_in(text.address, stretch)
                before = PADDING_WORDS if begin == 0 else 0
                behind = PADDING_WORDS if begin + UPLOAD_BASES >= codes.size else 0
                words = -(-stretch.size // WORD_BASES) + 2 * PADDING_WORDS
                self._stream.launch(
                    program,
                    "pack_codes",
                    min(-(-words // self._device.block_threads), self._device.resident_blocks),
                    (
                        text.address,
                        stretch.size,
                        address + begin // WORD_BASES * PLANES_BYTES,
                        before,
                        behind,
                    ),
                )
                self._stream.synchronize()
        finally:
            text.free()
        self._stats.add_bytes(to_device=codes.size)
        return address
