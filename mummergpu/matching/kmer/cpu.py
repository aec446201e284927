"""The k-mer search: it looks up a k-mer at every step of a query and extends its occurrences.

A MEM of at least `l` bases contains a k-mer that begins at a multiple of the query step in its
query and at a listed position of the reference (`kmer_sampling`). The search looks up each such
sample in the table of the reference's k-mers. It extends each occurrence to the left by less than
a period of pairs, and then to the right. If the match reaches a period or more to the left, an
earlier sample has found the same MEM. So every MEM is found exactly once. Long lists are sorted
in such a way that occurrences of the last kind lie side by side (`kmer_order`): all of them are
skipped at once.

Samples are processed in batches. Each memory access is prefetched for a whole batch before
its use: the table's offsets, then its positions, then the reference.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mummergpu.index.damage import damage_error
from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_sampling import MAXIMUM_PERIOD
from mummergpu.index.kmer_table import MAXIMUM_TABLE_BASES, PositionArray
from mummergpu.input.blocks.queries import OffsetArray, QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.backends.page_by_page import PageByPageBackend
from mummergpu.matching.kmer.cpu_samples import (
    DAMAGED_HERE,
    RowArrays,
    extend_sample,
    find_lists,
)
from mummergpu.matching.row_order import LEFT_BITS, sort_rows_of_queries
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit_without_refcounts, prefetch
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray, Strand
from mummergpu.sequence.extension import kmer_at
from mummergpu.sequence.mems import MemColumns, new_columns

if TYPE_CHECKING:
    from mummergpu.index.minimizer_index import MinimizerPage
    from mummergpu.matching.kmer.unique import UniqueSearch

BATCH: Final = 64
"""The samples whose memory accesses run at the same time."""

BATCH_NUMBERS: Final = 4
"""The numbers of a sample: its query, its position, and the start and end of its list."""

assert MAXIMUM_PERIOD <= 1 << LEFT_BITS

SIZES: Final = WorkSizes(
    block_bases=1 << 22,
    piece_bases=1 << 16,
    long_query=1 << 17,
    part_bases=1 << 20,
    most_rows=1 << 21,
    trial_bases=1 << 19,
)
"""A block is so large that many threads seldom wait for the lock of the interpreter. One with many
matches is cut into parts that are about as large as `trial_bases` or larger."""

LEAST_ROOM: Final = 1 << 12
"""The least number of rows to allocate."""

QUERY, SAMPLE, FILLED, SKIPPED = 0, 1, 2, 3
"""The elements of the state that the kernel keeps when it stops because the rows are full."""

ROWS_FULL, DONE, DAMAGED = 0, 1, 2
"""The reasons why the kernel stops."""


class _Found(threading.local):
    """What a thread has found in its block besides MEMs: samples whose k-mers are too frequent."""

    skipped = 0


class KmerCpuBackend(PageByPageBackend[KmerPage]):
    """Searches k-mer tables on the processor (`page_by_page.PageByPageBackend`)."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)
        self._rows_per_base = 0.0
        self._found = _Found()
        self._unique: UniqueSearch | None = None

    @property
    def only_unique(self) -> bool:
        """Whether the loaded page serves only matches that are unique in the reference."""
        return self._unique is not None

    def load_pages(
        self, pages: Sequence[KmerPage] | Sequence[MinimizerPage], minimum_length: int
    ) -> None:
        """Load pages with tables of k-mers, or one with a table of minimizers."""
        self.release_pages()
        tables = [page for page in pages if isinstance(page, KmerPage)]
        for page in pages:
            if not isinstance(page, KmerPage):
                # Most searches are by tables of k-mers, and start without these modules.
                from mummergpu.matching.kmer.unique import UniqueSearch

                self._unique = UniqueSearch(page, minimum_length, self.stats)
        super().load_pages(tables, minimum_length)

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        self._unique = None
        super().release_pages()

    def find_unique(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block that are unique in the reference (`UniqueBackend`)."""
        assert self._unique is not None
        return self._unique.find(block, strands, max_rows, map_function, tell)

    def find_mems(
        self, block: QueryBlock, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block (`page_by_page`); count the samples that were skipped."""
        self._found.skipped = 0
        found = super().find_mems(block, strands, max_rows)
        # Without a result, the block is searched again in parts.
        if found is not None and self._found.skipped:
            self.stats.add(skipped_lookups=self._found.skipped)
        return found

    def _search_page(
        self, indexed: KmerPage, offsets: OffsetArray, padded_codes: CodeArray, max_rows: int
    ) -> MemColumns | None:
        with self.stats.stage("kmer_kernel"):
            return self._search_part(indexed, offsets, padded_codes, max_rows)

    def _search_part(
        self, indexed: KmerPage, offsets: OffsetArray, padded_codes: CodeArray, max_rows: int
    ) -> MemColumns | None:
        """Return the MEMs whose first sample occurs in one part of the reference."""
        table, sampling = indexed.table, indexed.table.sampling
        period = indexed.period(self.minimum_length)
        most_occurrences = indexed.most_occurrences
        if most_occurrences is None:
            most_occurrences = MAXIMUM_TABLE_BASES
        counts = np.zeros(offsets.size, dtype=np.int64)
        state = np.zeros(4, dtype=np.int64)
        batch = np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64)
        # Somewhat more rows than the last block needed; a wrong guess costs a copy of the rows.
        room = LEAST_ROOM + int(1.25 * self._rows_per_base * offsets[-1])
        rows = new_columns(min(room, max_rows))
        while True:
            ending = kmer_kernel(
                table.offsets,
                table.positions,
                sampling.kmer_length,
                indexed.page.begin,
                indexed.padded_reference,
                padded_codes,
                offsets,
                self.minimum_length,
                indexed.query_step(self.minimum_length),
                period,
                table.longest_whole(period),
                most_occurrences,
                batch,
                state,
                counts[1:],
                rows,
            )
            if ending == DONE:
                break
            if ending == DAMAGED:
                raise damage_error(indexed.page, indexed.index_path)
            filled, room = int(state[FILLED]), rows[0].size
            if room == max_rows:
                return None
            larger = new_columns(min(2 * room, max_rows))
            for column, larger_column in zip(rows, larger, strict=True):
                larger_column[:filled] = column[:filled]
            rows = larger
        self._found.skipped += int(state[SKIPPED])
        filled = int(state[FILLED])
        self._rows_per_base = filled / max(1, int(offsets[-1]))
        np.cumsum(counts, out=counts)
        starts, reference_starts, lengths = (column[:filled] for column in rows)
        if sampling.reference_step > 1:
            sort_rows_of_queries(counts, starts, reference_starts, lengths)
        return MemColumns(counts, starts, reference_starts, lengths)


@jit_without_refcounts
def kmer_kernel(
    table_offsets: PositionArray,
    positions: PositionArray,
    kmer_length: int,
    part_begin: int,
    reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    step: int,
    period: int,
    longest_whole: int,
    most_occurrences: int,
    batch: Int64Array,
    state: Int64Array,
    counts: OffsetArray,
    rows: RowArrays,
) -> int:
    """Find the MEMs of queries with one table; return why the kernel stopped."""
    query, at, filled = state[QUERY], state[SAMPLE], state[FILLED]
    last_position = reference.size - 2 * MARGIN - kmer_length - part_begin
    while query < offsets.size - 1:
        size = 0
        while size < BATCH and query < offsets.size - 1:
            end = offsets[query + 1]
            if at + kmer_length > end or end - offsets[query] < minimum_length:
                query += 1
                at = end
                continue
            kmer = kmer_at(codes, MARGIN + at, kmer_length)
            if kmer >= 0:
                prefetch(table_offsets, kmer)
                batch[size, 0] = query
                batch[size, 1] = at
                batch[size, 2] = kmer
                size += 1
            at += step
        if not find_lists(table_offsets, positions, part_begin, reference, batch, size):
            return DAMAGED
        for sample in range(size):
            if batch[sample, 3] - batch[sample, 2] > most_occurrences:
                state[SKIPPED] += 1
                continue
            row = extend_sample(
                positions, last_position, kmer_length, part_begin, reference, codes, offsets,
                minimum_length, period, longest_whole, batch, sample, filled, rows,
            )  # fmt: skip
            if row < 0:
                if row == DAMAGED_HERE:
                    return DAMAGED
                state[QUERY], state[SAMPLE], state[FILLED] = (
                    batch[sample, 0], batch[sample, 1], filled,
                )  # fmt: skip
                return ROWS_FULL
            counts[batch[sample, 0]] += row - filled
            filled = row
    state[QUERY], state[SAMPLE], state[FILLED] = query, at, filled
    return DONE
