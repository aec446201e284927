"""The k-mer search on a stream: a warp takes 32 query k-mers, a thread block a frequent k-mer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import Argument, Program
from mummergpu.cuda.program import WARP_LANES
from mummergpu.cuda.resident_matches import DeviceMems
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import MAX_TABLE_BASES
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.stream_searcher import (
    COUNTER_BYTES,
    Consumer,
    Result,
    StreamSearcher,
    UploadedBlock,
)
from mummergpu.matching.kmer.cuda_program import (
    COUNT_BYTES,
    KEPT_MEM_BYTES,
    KEPT_MEMS_OF_TILE,
    PLACED_KMER_BYTES,
    SEED_CHOICE_BYTES,
    TEXT_KERNELS,
    TILE_BYTES,
    TILE_KMERS,
)
from mummergpu.matching.row_order import merge_pages
from mummergpu.runtime.frozen import frozen
from mummergpu.sequence.bit_planes import PADDING_BYTES, PADDING_WORDS, WORD_BASES, bit_planes_bytes
from mummergpu.sequence.mems import MemColumns
from mummergpu.sequence.seed_rule import ANYWHERE
from mummergpu.sequence.strand import Strand


@frozen
class ResidentTable:
    """The k-mer table of a part of the reference, on the device."""

    # The addresses of its arrays.
    offsets: int
    positions: int
    part_begin: int  # Where the part begins in the reference.
    sampling: KmerSampling
    # The most positions of a list that ascends, and how many bases before each position longer
    # lists are sorted by (`KmerTable`).
    longest_ascending: int
    ordered_bases: int


@frozen
class KmerSearchContext:
    """The data that all searches of a run share."""

    program: Program
    # The fewest bases of a MEM, and the distances from one query k-mer to the next and from one
    # pair of a MEM to the next (`kmer_sampling`), all in bases.
    minimum_length: int
    step: int
    sampling_step: int
    # The bases of a window, one of which every MEM contains (`KmerPage.window_bases`); 0 for all.
    window: int
    kmers_of_window: int  # The places of a window, its last k-mers, of which one is listed.
    reference: int  # The address of the joined reference, as bit planes.
    tables: Sequence[ResidentTable]
    # The most matches of a query, with a window if there is one, before its seeds are chosen
    # (`seed_rule`).
    max_matches: int | None
    # Whether matches that are not unique in the reference may be left out (`KmerPage`).
    only_unique: bool = False

    @property
    def is_for_mapping(self) -> bool:
        """Whether the matches are a mapper's, in any order (`KmerPage.is_for_mapping`)."""
        return self.window > 0 or self.max_matches is not None

    def arguments(self, table: ResidentTable) -> tuple[Argument, ...]:
        """Return the kernel arguments for a table and the reference."""
        return (
            *(table.offsets, table.positions, table.part_begin, self.reference),
            np.uint32(table.sampling.kmer_length),
            np.uint32(table.longest_ascending),
            np.uint32(table.ordered_bases),
            np.uint32(table.sampling.picked_of),
        )


@frozen
class QueryKmers:
    """The query k-mers of the windows of each query of a block, on the device."""

    count: int
    placed: int  # The address of the query k-mers (``PlacedKmer`` of the kernels).
    # The address of the array that says how many query k-mers all queries before each one have.
    firsts: int


@frozen
class PackedQueries:
    """A block of queries on the device, packed as bit planes."""

    # The number of queries, and the number of their bases together.
    count: int
    base_count: int
    offsets: int  # The address of the array that says where each query begins.
    bit_planes: int  # The address of their bases, as bit planes.
    # The address of the array that names, for each word, the query of its first base.
    queries_of_words: int
    # The k-mers of each query; None if their steps are those of the block, or each table has its
    # own.
    query_kmers: QueryKmers | None
    continues: bool = False  # Whether queries continue after their ends (`QueryBlock`).


QUERY_OF_WARP: Final = 512
"""A warp marks the words of a query if the queries of the block have at least this many bases on
average; otherwise one thread does."""

CHOSEN_COUNTS: Final = ("reads_with_chosen_seeds", "reads_at_spread_places")
"""The counts of reads on a strand whose seeds are chosen (`seed_rule`), and of those that occur
too often as a whole."""

FARTHEST_KEPT: Final = 1 << 12
"""Matches with a window that reach farther to the left of their query k-mer are searched twice."""

MOST_MATCHES: Final = 1 << 28
"""More matches than a query has on a device."""

NO_LIMIT: Final = MAX_TABLE_BASES
"""More occurrences than a k-mer can have."""


class _CountedMems(NamedTuple):
    """How many MEMs the query k-mers of a block find, and what the kernels that write them need."""

    # The number of query k-mers, and of tiles of `TILE_KMERS`.
    query_kmers: int
    tiles: int
    searched: tuple[Argument, ...]  # The arguments that say what is searched.
    kept: tuple[int, int]  # The addresses of the MEMs that tiles keep, and of the tiles.
    # The addresses of the query k-mers with frequent k-mers, and of the counters.
    frequent: tuple[int, int]
    counts: int  # The address of the number of MEMs of each query_kmer.
    offsets: int  # The address of the first row of each tile.


class KmerStreamSearcher(StreamSearcher[KmerSearchContext, PackedQueries]):
    """Searches k-mer tables on one stream (`stream_searcher.StreamSearcher`)."""

    stage = "kmer_kernel"
    stages = MappingProxyType(dict.fromkeys(TEXT_KERNELS, "text_kernel"))

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._counted = Counter[str]()

    def use_matches(
        self,
        context: KmerSearchContext,
        block: QueryBlock,
        max_rows: int,
        consumer: Consumer[Any, Result],
    ) -> Result | None:
        """Return a consumer's result for a block (`StreamSearcher`); count chosen seeds."""
        self._counted.clear()
        result = super().use_matches(context, block, max_rows, consumer)
        # Without a result, the block is searched again in parts.
        if result is not None:
            self.stats.add(**self._counted)
        return result

    def search_strand(self, strand: Strand, max_rows: int) -> MemColumns | None:
        """Return the MEMs of the block in all parts, or None if there are too many."""
        queries = self._queries_on(strand)
        found = []
        for table in self.context.tables:
            mems = self._search_part(table, queries, max_rows)
            if mems is None:
                return None
            max_rows -= mems.count
            columns = self.download(queries.count, mems)
            if mems.seeds:
                seeds = np.empty(queries.count, dtype=np.uint8)
                self.staging.copy_out(seeds, mems.seeds)
                self.stream.synchronize()
                columns = columns._replace(seeds=seeds)
            found.append(columns)
        # Seeds are chosen where there is one table only.
        return merge_pages(found)

    def find_strands(
        self, strands: Sequence[Strand], max_rows: int
    ) -> dict[Strand, DeviceMems] | None:
        """Return the MEMs on each strand in the only table, forward first; None if too many."""
        (table,) = self.context.tables
        found: dict[Strand, DeviceMems] = {}
        for strand in Strand:
            if strand not in strands:
                continue
            mems = self._search_part(table, self._queries_on(strand), max_rows, len(found))
            if mems is None:
                return None
            max_rows -= mems.count
            found[strand] = mems
        return found

    def wait_for_kernels(self) -> None:
        """Wait for work that takes long: other threads that map need this one's processor."""
        if self.context.is_for_mapping:
            self.stream.sleep_until_done()
        else:
            self.stream.synchronize()

    def launch_on(self, kernel: str, items: int, arguments: Sequence[Argument]) -> None:
        """Run a kernel of the search with a thread for each item (`Launcher.launch_on`)."""
        self.launcher.launch_on(self.context.program, kernel, items, arguments)

    def launch(self, kernel: str, arguments: Sequence[Argument]) -> None:
        """Run a kernel whose blocks take their work from a list."""
        program, blocks = self.context.program, self.device.resident_blocks
        self.launcher.launch(program, kernel, blocks, arguments)

    def _prepare(self, block: UploadedBlock) -> PackedQueries:
        """Turn the codes of a block into bit planes, and mark where queries begin."""
        buffer, context = self.buffer, self.context
        words = -(-block.base_count // WORD_BASES)
        packed = PackedQueries(
            block.query_count,
            block.base_count,
            block.offsets,
            buffer("bit planes", bit_planes_bytes(block.base_count)) + PADDING_BYTES,
            buffer("queries of words", 4 * (words + 1)),
            None,
            block.continues,
        )
        if context.window > 0 and context.max_matches is None:
            packed = replace(packed, query_kmers=self._list_query_kmers(packed, 0))
        self.launch_on(
            "pack_codes",
            words + 2 * PADDING_WORDS,
            (block.codes, block.base_count, packed.bit_planes, PADDING_WORDS, PADDING_WORDS),
        )
        is_long = block.base_count >= block.query_count * QUERY_OF_WARP
        threads = WARP_LANES if is_long else 1
        self.launch_on(
            "mark_queries",
            block.query_count * threads,
            (
                *(packed.offsets, packed.count, np.uint32(threads)),
                *(packed.bit_planes, packed.queries_of_words),
            ),
        )
        return packed

    def _list_query_kmers(self, block: PackedQueries, choices: int) -> QueryKmers:
        """Return the k-mers of each query: of the seeds at an address that are taken, or of all.

        Those of all windows are at the same places of the reverse complement. All tables of an
        index have k-mers of one length, and the same steps.
        """
        buffer, context = self.buffer, self.context
        lookup_bases = context.tables[0].sampling.lookup_bases
        sampling = (
            context.window,
            context.kmers_of_window,
            context.step,
            context.sampling_step,
            lookup_bases,
        )
        searched: tuple[Argument, ...] = (
            *(block.offsets, block.count),
            *map(np.uint32, sampling),
            choices,
        )
        counts = buffer("query_kmer counts", COUNT_BYTES * block.count)
        firsts = buffer("first query_kmers", 8 * (block.count + 1))
        self.launch_on("count_query_kmers", block.count, (*searched, counts))
        self.launcher.scan(context.program, counts, block.count, firsts)
        count = self._read_total(firsts, block.count)
        placed = buffer("placed query_kmers", PLACED_KMER_BYTES * count)
        self.launch_on("place_query_kmers", block.count, (*searched, firsts, placed))
        return QueryKmers(count, placed, firsts)

    def _choose_query_kmers(
        self, table: ResidentTable, queries: PackedQueries, known: int
    ) -> QueryKmers:
        """Return the query k-mers of each query's seeds, which are chosen on its strand and table.

        `known` is an address for `MemColumns.seeds`.
        """
        context = self.context
        assert context.max_matches is not None
        most = min(context.max_matches, MOST_MATCHES)
        choices = self.buffer("seed choices", SEED_CHOICE_BYTES * queries.count)
        counters = self.buffer("chosen queries", COUNTER_BYTES)
        self.stream.fill_zero(counters, COUNTER_BYTES)
        self.launch_on(
            "choose_query_seeds",
            WARP_LANES * queries.count,
            (
                *self._searched(table, queries),
                *(queries.offsets, queries.count),
                np.uint32(context.window or context.minimum_length),
                np.uint32(context.kmers_of_window),
                np.uint32(most if context.window else min(ANYWHERE * most, NO_LIMIT)),
                *(np.uint32(most), choices, known, counters),
            ),
        )
        query_kmers = self._list_query_kmers(queries, choices)
        self.stream.copy_out(self._counters, counters)
        self.wait_for_kernels()
        for place, name in enumerate(CHOSEN_COUNTS):
            self._counted[name] += int(self._counters[place])
        return query_kmers

    def _searched(self, table: ResidentTable, queries: PackedQueries) -> tuple[Argument, ...]:
        """Return the arguments of the search: the query k-mers, and the table."""
        context = self.context
        query_kmers = queries.query_kmers or QueryKmers(self._step_count(table, queries), 0, 0)
        is_placed = context.window > 0 or query_kmers.placed != 0
        # A picked k-mer begins at most this much later than its query_kmer.
        later = table.sampling.lookup_bases - table.sampling.kmer_length
        sampling_step = FARTHEST_KEPT - later if is_placed else context.sampling_step
        return (
            *(queries.bit_planes, query_kmers.count, query_kmers.placed),
            *(np.uint32(context.step), np.uint32(sampling_step), np.uint32(context.window)),
            *(np.uint32(context.kmers_of_window), np.uint32(context.minimum_length)),
            # A match inside another one at the end of a piece may not be inside it after the end.
            np.uint32(context.only_unique and not queries.continues),
            *context.arguments(table),
        )

    def _step_count(self, table: ResidentTable, queries: PackedQueries) -> int:
        """Return the number of query k-mers whose steps are those of the block."""
        # A block shorter than a k-mer has no query k-mers: the division rounds down.
        last = queries.base_count - table.sampling.lookup_bases
        return max(0, last // self.context.step + 1)

    def _queries_on(self, strand: Strand) -> PackedQueries:
        """Return the queries of the block, or their reverse complements."""
        queries = self.queries
        if strand is Strand.FORWARD:
            return queries
        reverse = self.reverse_planes()
        self.launch_on(
            "reverse_bit_planes",
            -(-queries.base_count // WORD_BASES) + 2 * PADDING_WORDS,
            (
                *(queries.bit_planes, queries.base_count),
                *(queries.offsets, queries.queries_of_words, reverse),
            ),
        )
        return replace(queries, bit_planes=reverse)

    def reverse_planes(self) -> int:
        """Return the address for the bit planes of the queries' reverse complements."""
        size = bit_planes_bytes(self.queries.base_count)
        return self.buffer("reverse bit planes", size) + PADDING_BYTES

    def _search_part(
        self, table: ResidentTable, queries: PackedQueries, max_rows: int, set_number: int = 0
    ) -> DeviceMems | None:
        """Return the MEMs whose first query k-mer occurs in one part of the reference.

        They stay in the buffers of the set until the next search that is given its number.
        """
        context, buffer = self.context, self.buffer
        known = 0
        if context.max_matches is not None:
            known = buffer(f"known seeds {set_number}", queries.count)
            query_kmers = self._choose_query_kmers(table, replace(queries, query_kmers=None), known)
            queries = replace(queries, query_kmers=query_kmers)
        counted = self._count_mems(table, queries)
        query_offsets = buffer(f"offsets of mems {set_number}", 8 * (queries.count + 1))
        self.launch_on(
            "offset_query_mems",
            queries.count + 1,
            (
                *(counted.offsets, counted.counts, counted.query_kmers, np.uint32(context.step)),
                0 if queries.query_kmers is None else queries.query_kmers.firsts,
                *(queries.offsets, queries.count, query_offsets),
            ),
        )
        found = self._read_total(counted.offsets, counted.tiles)
        if found > max_rows:
            return None
        mems = DeviceMems(query_offsets, self._columns(set_number, found), found, known)
        if found > 0:
            rows = (
                *(counted.counts, counted.offsets, *mems.columns),
                *(queries.offsets, queries.queries_of_words),
            )
            self.launch_on(
                "write_kmer_mems",
                WARP_LANES * counted.tiles,
                (*counted.searched, *counted.kept, *rows),
            )
            self.launch("write_frequent_kmer_mems", (*counted.searched, *counted.frequent, *rows))
            if context.sampling_step > context.step and not context.is_for_mapping:
                self._sort(queries.count, mems)
        return mems

    def _count_mems(self, table: ResidentTable, queries: PackedQueries) -> _CountedMems:
        """Count the MEMs that each query k-mer of a block finds in one part of the reference."""
        buffer = self.buffer
        if queries.query_kmers is not None:
            count = queries.query_kmers.count
        else:
            count = self._step_count(table, queries)
        searched = self._searched(table, queries)
        tiles = -(-count // TILE_KMERS)
        kept = (
            buffer("kept mems", KEPT_MEM_BYTES * KEPT_MEMS_OF_TILE * tiles),
            buffer("tiles", TILE_BYTES * tiles),
        )
        counts = buffer("mem counts", 4 * count)
        tile_counts = buffer("mem counts of tiles", COUNT_BYTES * tiles)
        frequent = (buffer("frequent query_kmers", 4 * count), buffer("counters", COUNTER_BYTES))
        self.stream.fill_zero(frequent[1], COUNTER_BYTES)
        if count > 0:
            self.launch_on(
                "count_kmer_mems",
                WARP_LANES * tiles,
                (*searched, *kept, counts, tile_counts, *frequent),
            )
            self.launch("count_frequent_kmer_mems", (*searched, *frequent, counts, tile_counts))
        offsets = buffer("mem offsets of tiles", 8 * (tiles + 1))
        self.launcher.scan(self.context.program, tile_counts, tiles, offsets)
        return _CountedMems(count, tiles, searched, kept, frequent, counts, offsets)

    def _sort(self, query_count: int, mems: DeviceMems) -> None:
        """Sort the rows of each query."""
        long_queries = self.buffer("long queries", 4 * query_count)
        long_count = self.buffer("counters", COUNTER_BYTES)
        self.stream.fill_zero(long_count, COUNTER_BYTES)
        listed = (long_queries, long_count)
        self.launch_on(
            "sort_query_mems",
            query_count,
            (mems.query_offsets, query_count, *mems.columns, *listed),
        )
        self.launch("sort_long_query_mems", (mems.query_offsets, *listed, *mems.columns))
