"""The k-mer search: it looks up a k-mer at every step of a query and extends its occurrences.

A MEM of at least `l` bases contains a k-mer that begins at a multiple of the query step in its
query and at a listed position of the reference (`kmer_sampling`). The search looks up each such
k-mer in the table of the reference's k-mers. It extends each occurrence to the left by less than
a sampling step, and then to the right. If the match reaches a sampling step or more to the left,
an earlier k-mer has found the same MEM. So every MEM is found exactly once. Long lists are sorted
so that occurrences of the last kind lie side by side (`kmer_order`): all of them are skipped at
once.

Where the table lists picked k-mers (`sequence.picked_kmers`), a search looks up those of the spans
at every step of a query. `seed_search` is the search of a mapper, which wants matches
with whole windows of its reads, in bounded numbers.

K-mers are processed in batches. Each memory access is prefetched for a whole batch before
its use: the table's offsets, then its positions, then the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mummergpu.index.kmer_sampling import MAX_SAMPLING_STEP
from mummergpu.index.kmer_table import KmerPage
from mummergpu.index.pages import damage_error
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import QueryCodes, UniqueBackend, WorkSizes
from mummergpu.matching.backends.paged_cpu import PagedCpuBackend
from mummergpu.matching.kmer.lookup import (
    BATCH,
    BATCH_NUMBERS,
    DAMAGED,
    DAMAGED_HERE,
    DONE,
    KMER_OFFSET,
    LEFT_LIMIT,
    LIST_BEGIN,
    LIST_END,
    PLACE,
    PLACES_AHEAD,
    QUERY_OF,
    ROWS_FULL,
    ROWS_FULL_HERE,
    KmerLookup,
    QuerySteps,
    extend_at_most,
    find_lists,
    is_long_list,
    lookup_of,
    next_batch,
    places_to_extend,
)
from mummergpu.matching.row_order import (
    LEFT_BITS,
    START_BITS,
    decode_rows,
    sort_rows_of_queries,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, prefetch
from mummergpu.runtime.row_sort import sort_rows
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.extension import extend_right
from mummergpu.sequence.mems import MemColumns, MemRows, longer_rows, new_rows
from mummergpu.sequence.strand import Strand

if TYPE_CHECKING:
    from mummergpu.index.minimizer_index import MinimizerPage
    from mummergpu.matching.kmer.seed_search import PageRoom
    from mummergpu.matching.kmer.unique import UniqueSearch

assert MAX_SAMPLING_STEP <= 1 << LEFT_BITS

SIZES: Final = WorkSizes(
    block_bases=1 << 22,
    piece_bases=1 << 16,
    long_query=1 << 17,
    batch_bases=1 << 20,
    max_rows=1 << 21,
    first_batch_bases=1 << 19,
)
"""Blocks are large enough that threads seldom wait for the lock of the interpreter. One with many
matches is cut into parts that are about as large as `first_batch_bases` or larger."""

MIN_ROOM: Final = 1 << 12
"""The least number of rows to allocate."""

QUERY, NEXT_PLACE, FILLED = range(3)
STATE_NUMBERS: Final = 3
"""The elements of the state that the kernel keeps when it stops because the rows are full: the
query of the next k-mer, its position in the block, and the filled rows."""


class KmerCpuBackend(PagedCpuBackend[KmerPage], UniqueBackend[KmerPage]):
    """Searches k-mer tables on the processor (`paged_cpu.PagedCpuBackend`)."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)
        self._rows_per_base = 0.0
        self._unique: UniqueSearch | None = None
        self._rooms: PageRoom | None = None

    @property
    def only_unique(self) -> bool:
        """Whether a table of minimizers is loaded (`interface.UniqueBackend`)."""
        return self._unique is not None

    def load_pages(
        self, pages: Sequence[KmerPage] | Sequence[MinimizerPage], minimum_length: int
    ) -> None:
        """Load pages with tables of k-mers, or one with a table of minimizers."""
        self.release_pages()
        tables = [page for page in pages if isinstance(page, KmerPage)]
        for page in pages:
            if not isinstance(page, KmerPage):
                # Most searches are by tables of k-mers, and start without this module.
                from mummergpu.matching.kmer.unique import UniqueSearch

                self._unique = UniqueSearch(page, minimum_length, self.stats)
        super().load_pages(tables, minimum_length)

    def release_pages(self) -> None:
        """Release the pages and their memory."""
        self._unique = self._rooms = None
        super().release_pages()

    def find_unique(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the MEMs of a block that are unique (`interface.UniqueBackend.find_unique`)."""
        assert self._unique is not None
        return self._unique.find(block, strands, max_rows, map_function, tell)

    def _search_page(
        self, indexed: KmerPage, queries: QueryCodes, max_rows: int, counted: Counter[str]
    ) -> MemColumns | None:
        """Return the MEMs whose first k-mer occurs in one part of the reference."""
        # Somewhat more rows than the last block needed; a wrong guess costs a copy of the rows.
        bases = int(queries.offsets[-1])
        room = min(MIN_ROOM + int(1.25 * self._rows_per_base * bases), max_rows)
        with self.stats.stage("kmer_kernel"):
            if indexed.is_for_mapping:
                # A run that maps no reads starts without this module.
                from mummergpu.matching.kmer.seed_search import PageRoom, find_seed_matches

                length = self.minimum_length
                # Two threads may make one each, and use one of the two or both.
                rooms = self._rooms = self._rooms or PageRoom()
                found = find_seed_matches(indexed, queries, length, room, max_rows, counted, rooms)
            else:
                found = self._find_all(indexed, queries, room, max_rows)
        if found is not None:
            self._rows_per_base = found.count / max(1, bases)
        return found

    def _find_all(
        self, indexed: KmerPage, queries: QueryCodes, room: int, max_rows: int
    ) -> MemColumns | None:
        """Return all MEMs of queries, or None if there are too many; begin with `room` rows."""
        min_length = self.minimum_length
        steps = QuerySteps(
            min_length, indexed.query_step(min_length), indexed.sampling_step(min_length)
        )
        lookup = lookup_of(indexed)
        counts = np.zeros(queries.offsets.size, dtype=np.int64)
        state = np.zeros(STATE_NUMBERS, dtype=np.int64)
        batch = np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64)
        rows = new_rows(room)
        while (
            ending := kmer_kernel(lookup, queries, steps, batch, state, counts[1:], rows)
        ) != DONE:
            if ending == DAMAGED:
                raise damage_error(indexed.page, indexed.index_path)
            if room == max_rows:
                return None
            room = min(2 * room, max_rows)
            rows = longer_rows(rows, int(state[FILLED]), room)
        filled = int(state[FILLED])
        np.cumsum(counts, out=counts)
        rows = MemRows(*(column[:filled] for column in rows))
        if indexed.table.sampling.kmers_of_window > 1:
            sort_rows_of_queries(counts, rows)
        return MemColumns(counts, *rows)


@jit
def kmer_kernel(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: QuerySteps,
    batch: Int64Array,
    state: Int64Array,
    counts: Int64Array,
    rows: MemRows,
) -> int:
    """Find the MEMs of queries with one table; return why the kernel stopped.

    After `ROWS_FULL` the caller calls the kernel again with longer rows. The number of matches of
    each query is added to its count.
    """
    query, at, filled = as_int64(state[QUERY]), as_int64(state[NEXT_PLACE]), state[FILLED]
    while query < queries.offsets.size - 1:
        # A batch takes three turns, for each of which the one before prefetches memory: its k-mers,
        # their lists, and the extension of their occurrences.
        size, query, at = next_batch(lookup, queries, steps, batch, query, at)
        if not find_lists(lookup, batch, size):
            return DAMAGED
        for query_kmer in range(size):
            row = extend_query_kmer(lookup, queries, steps, batch, query_kmer, filled, rows)
            if row < 0:
                if row == DAMAGED_HERE:
                    return DAMAGED
                # The next call begins with this k-mer, and the rows of earlier ones stay.
                state[QUERY] = batch[query_kmer, QUERY_OF]
                state[NEXT_PLACE] = batch[query_kmer, PLACE]
                if lookup.picked_of > 0:
                    # The first span whose picked k-mer this is.
                    state[NEXT_PLACE] -= batch[query_kmer, LEFT_LIMIT] - steps.sampling_step
                state[FILLED] = filled
                return ROWS_FULL
            counts[batch[query_kmer, QUERY_OF]] += row - filled
            filled = row
    state[QUERY], state[NEXT_PLACE], state[FILLED] = query, at, filled
    return DONE


@inline
def extend_query_kmer(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: QuerySteps,
    batch: Int64Array,
    query_kmer: int,
    filled: int,
    rows: MemRows,
) -> int:
    """Write the MEMs for which this is the first k-mer; return where their rows end.

    `ROWS_FULL_HERE` is returned if not all of them fit, and `DAMAGED_HERE` if a position is larger
    than the last one.
    """
    positions, reference, codes = lookup.positions, lookup.reference, queries.codes
    kmer_length, kmer_offset = lookup.kmer_length, batch[query_kmer, KMER_OFFSET]
    # If a match reaches this far to the left, an earlier k-mer has found it.
    left_limit = batch[query_kmer, LEFT_LIMIT]
    at = batch[query_kmer, PLACE]
    query_begin = queries.offsets[batch[query_kmer, QUERY_OF]]
    query_end = queries.offsets[batch[query_kmer, QUERY_OF] + 1]
    max_left = min(left_limit, at - query_begin)
    behind = at + kmer_length
    places = places_to_extend(lookup, queries, batch, query_kmer)
    place, stop = places.begin, places.skipped_begin
    row = filled
    while place < places.end:
        for one in range(place, stop):
            if one + PLACES_AHEAD < places.end:
                coming = as_int64(positions[as_index(one + PLACES_AHEAD)])
                prefetch(reference, MARGIN + lookup.part_begin + coming)
            position = as_int64(positions[as_index(one)])
            if position > lookup.last_position:
                return DAMAGED_HERE
            found = lookup.part_begin + position
            left = extend_at_most(
                codes, MARGIN + at, reference, MARGIN + found, max_left, left_limit
            )
            if left < kmer_offset or left == left_limit:
                continue
            length = left + kmer_length
            length += extend_right(
                codes, MARGIN + behind, reference, MARGIN + found + kmer_length, query_end - behind
            )
            if length < steps.min_length:
                continue
            if row == rows.lengths.size:
                return ROWS_FULL_HERE
            # The key sorts by query start, then by reference start (`decode_rows`).
            rows.query_starts[row] = at - query_begin
            rows.reference_starts[row] = (left_limit - 1 - left) << START_BITS | (found - left)
            rows.lengths[row] = length
            row += 1
        place, stop = places.end if stop == places.end else places.skipped_end, places.end
    # If matches of an ascending list all begin at one place, they ascend too.
    is_sorted_by_bases = is_long_list(
        lookup, batch[query_kmer, LIST_BEGIN], batch[query_kmer, LIST_END]
    )
    if row - filled > 1 and (left_limit - kmer_offset > 1 or is_sorted_by_bases):
        sort_rows(rows.reference_starts, rows.lengths, filled, row)
    decode_rows(rows, filled, row, left_limit)
    return row
