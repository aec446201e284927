"""The k-mer search: it looks up a k-mer at every step of a query and extends its occurrences.

A MEM of at least `l` bases contains a k-mer that begins at a multiple of the query step in its
query and at a listed position of the reference (`kmer_sampling`). The search looks up each such
sample in the table of the reference's k-mers. It extends each occurrence to the left by less than
a period of pairs, and then to the right. If the match reaches a period or more to the left, an
earlier sample has found the same MEM. So every MEM is found exactly once. Long lists are sorted
in such a way that occurrences of the last kind lie side by side (`kmer_order`): all of them are
skipped at once.

Where only matches matter that contain a whole window of their query (`KmerPage.sample_step`), the
samples of a window are its last k-mers, as many as the reference step: one of them is listed,
wherever the window occurs. The other bases of the window must match as well: in a long list, the
occurrences that the bases before the sample precede lie side by side too, and no others are looked
at.

Where the table lists picked k-mers (`sequence.picked_kmers`), the one that is picked at the end of
a window is its only sample. A search for all matches looks up those that are picked of the spans at
every step of a query.

Samples are processed in batches. Each memory access is prefetched for a whole batch before
its use: the table's offsets, then its positions, then the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_sampling import MAX_PERIOD
from mummergpu.index.kmer_table import MAX_TABLE_BASES
from mummergpu.index.pages import damage_error
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.backends.page_by_page import PageByPageBackend
from mummergpu.matching.kmer import seed_choice
from mummergpu.matching.kmer.lookup import (
    KmerLookup,
    ListedPlaces,
    SampleSteps,
    bases_beside,
    end_of_equal,
    is_long_list,
    may_count,
    place_by_bases,
    prefetch_place,
)
from mummergpu.matching.kmer.sample_batch import (
    BATCH,
    BATCH_NUMBERS,
    FOUND_BEFORE,
    LEAD,
    LIST_BEGIN,
    LIST_END,
    PLACE,
    QUERY_OF,
    find_lists,
    next_batch,
    next_place,
)
from mummergpu.matching.kmer.seed_choice import (
    FULL,
    LONG_SCAN,
    PLACES_AHEAD,
    UNBOUNDED_MATCHES,
    choose_seeds,
    has_too_many_near,
    occurs_listed,
    write_matches,
)
from mummergpu.matching.match_counts import visit_counts
from mummergpu.matching.query_codes import QueryCodes
from mummergpu.matching.row_order import (
    LEFT_BITS,
    START_BITS,
    decode_rows,
    sort_rows,
    sort_rows_of_queries,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray, Strand
from mummergpu.sequence.extension import (
    WORD_STEP,
    extend_left,
    extend_right,
    extend_word_left,
)
from mummergpu.sequence.mems import (
    ALL_SEEDS,
    NOTHING_LEFT_OUT,
    MemColumns,
    MemRows,
    longer_rows,
    new_rows,
)
from mummergpu.sequence.seed_rule import ANYWHERE, NEAR, SeedRoom, new_seed_room

if TYPE_CHECKING:
    from mummergpu.index.minimizer_index import MinimizerPage
    from mummergpu.matching.kmer.unique import UniqueSearch

assert MAX_PERIOD <= 1 << LEFT_BITS

SIZES: Final = WorkSizes(
    block_bases=1 << 22,
    piece_bases=1 << 16,
    long_query=1 << 17,
    part_bases=1 << 20,
    max_rows=1 << 21,
    trial_bases=1 << 19,
)
"""A block is so large that many threads seldom wait for the lock of the interpreter. One with many
matches is cut into parts that are about as large as `trial_bases` or larger."""

MIN_ROOM: Final = 1 << 12
"""The least number of rows to allocate."""

QUERY, SAMPLE, FILLED, SKIPPED = 0, 1, 2, 3
LEAD_OF, CHOSEN, SPREAD, CHECKED = 4, 5, 6, 7
STATE_NUMBERS: Final = 8
"""The elements of the state that the kernel keeps when it stops because the rows are full: the
query of the next sample, its position in the block, the filled rows, and the skipped samples; the
lead of the next sample; how many queries have had their seeds chosen, and how many of these occur
too often as a whole; and the number behind that of the last query that was checked for too many
matches."""

LOOKED_UP, VISITED = 0, 1
"""The columns of what a query has cost: samples looked up, and occurrences compared."""

ROWS_FULL, DONE, DAMAGED = 0, 1, 2
"""The reasons why the kernel stops: the next MEMs do not fit the rows, nothing is left to do, or a
list is not inside the table or a position not inside the reference."""

ROWS_FULL_HERE: Final = FULL
DAMAGED_HERE: Final = seed_choice.DAMAGED
"""Returned in place of a row number."""


class PlacesToExtend(NamedTuple):
    """The part of a list that a search looks at, but for the places in between that it skips.

    `sure` of them are in matches that have a whole window and that no earlier sample has found.
    """

    begin: int
    skipped_begin: int
    skipped_end: int
    end: int
    sure: int


class KmerCpuBackend(PageByPageBackend[KmerPage]):
    """Searches k-mer tables on the processor (`page_by_page.PageByPageBackend`)."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)
        self._rows_per_base = 0.0
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
                # Most searches are by tables of k-mers, and start without this module.
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

    def _search_page(
        self, indexed: KmerPage, queries: QueryCodes, max_rows: int, counted: Counter[str]
    ) -> MemColumns | None:
        """Return the MEMs whose first sample occurs in one part of the reference."""
        with self.stats.stage("kmer_kernel"):
            min_length = self.minimum_length
            lookup = _lookup_of(indexed)
            bases = int(queries.offsets[-1])
            counts = np.zeros(queries.offsets.size, dtype=np.int64)
            visits = np.zeros((queries.offsets.size - 1, 2), dtype=np.int64)
            chosen = np.full(queries.offsets.size - 1, ALL_SEEDS, dtype=np.uint8)
            state = np.zeros(STATE_NUMBERS, dtype=np.int64)
            steps = _steps_of(indexed, min_length)
            seed_room = new_seed_room(min(steps.max_occurrences, lookup.positions.size))
            state[SAMPLE] = state[LEAD_OF] = steps.first_lead
            batch = np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64)
            # Somewhat more rows than the last block needed; a wrong guess costs a copy of the rows.
            room = min(MIN_ROOM + int(1.25 * self._rows_per_base * bases), max_rows)
            rows = new_rows(room)
            while (
                ending := kmer_kernel(
                    *(lookup, queries, steps, batch, seed_room, state),
                    *(counts[1:], visits, chosen, rows),
                )
            ) != DONE:
                if ending == DAMAGED:
                    raise damage_error(indexed.page, indexed.index_path)
                if room == max_rows:
                    return None
                room = min(2 * room, max_rows)
                rows = longer_rows(rows, int(state[FILLED]), room)
            if state[SKIPPED]:
                counted["skipped_lookups"] += int(state[SKIPPED])
            if steps.max_matches < UNBOUNDED_MATCHES:
                counted["reads_with_chosen_seeds"] += int(state[CHOSEN])
                counted["reads_at_spread_places"] += int(state[SPREAD])
                counted["seeds_looked_up"] += int(visits[:, LOOKED_UP].sum())
                counted.update(visit_counts(visits[:, VISITED]))
            filled = int(state[FILLED])
            self._rows_per_base = filled / max(1, bases)
            np.cumsum(counts, out=counts)
            rows = MemRows(*(column[:filled] for column in rows))
            if indexed.table.sampling.leads > 1 and steps.sorts_matches:
                sort_rows_of_queries(counts, rows)
            return MemColumns(counts, *rows, chosen if state[CHOSEN] else NOTHING_LEFT_OUT)


def _lookup_of(page: KmerPage) -> KmerLookup:
    """Return a page as compiled functions take it."""
    table, kmer_length = page.table, page.table.sampling.kmer_length
    max_occurrences = page.max_occurrences
    return KmerLookup(
        table.offsets,
        table.positions,
        table.bases_beside,
        0xFF if table.bases_beside.size else 0,
        kmer_length,
        page.page.begin,
        page.joined_reference.size - kmer_length - page.page.begin,
        table.longest_ascending,
        table.ordered_bases,
        MAX_TABLE_BASES if max_occurrences is None else max_occurrences,
        table.sampling.picked_of,
        page.padded_reference,
    )


def _steps_of(page: KmerPage, min_length: int) -> SampleSteps:
    """Return where the samples of queries are, as compiled functions take it."""
    step, period = page.query_step(min_length), page.period(min_length)
    leads, window = page.sample_leads, page.sample_step or 0
    most = UNBOUNDED_MATCHES if page.max_matches is None else page.max_matches
    # Without windows, seeds are chosen of those that lie side by side.
    seed = (window, step) if window else (min_length, min_length)
    too_many = most if window else min(most * ANYWHERE, UNBOUNDED_MATCHES)
    return SampleSteps(
        *(min_length, step, period, window, leads[0], leads[-1]),
        *(too_many, most, *seed, page.table.sampling.leads),
        # Whoever wants whole windows, or chosen seeds, sorts matches by their diagonals.
        window == 0 and most == UNBOUNDED_MATCHES,
    )


@jit_without_refcounts
def kmer_kernel(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    seed_room: SeedRoom,
    state: Int64Array,
    counts: Int64Array,
    visits: Int64Array,
    chosen: ByteArray,
    rows: MemRows,
) -> int:
    """Find the MEMs of queries with one table; return why the kernel stopped.

    After `ROWS_FULL` the caller calls the kernel again with longer rows. The number of matches of
    each query is added to its count, and what it costs to its visits if matches are bounded;
    `chosen` is `MemColumns.seeds`.
    """
    # The samples of a query whose seeds have been chosen are passed over.
    done = as_int64(-1)
    is_bounded = steps.max_matches < UNBOUNDED_MATCHES
    offsets = queries.offsets
    query, at, filled = as_int64(state[QUERY]), as_int64(state[SAMPLE]), state[FILLED]
    lead = as_int64(state[LEAD_OF])
    while query < offsets.size - 1:
        # A batch takes three turns, for each of which the one before prefetches memory: its k-mers,
        # their lists, and the extension of their occurrences.
        size, query, at, lead = next_batch(lookup, queries, steps, batch, query, at, lead)
        if not find_lists(lookup, queries.codes, batch, size):
            return DAMAGED
        for sample in range(size):
            if batch[sample, LIST_END] - batch[sample, LIST_BEGIN] > lookup.max_occurrences:
                state[SKIPPED] += 1
                continue
            one = batch[sample, QUERY_OF]
            if one == done:
                continue
            most = steps.max_matches - counts[one] + 1
            row = extend_sample(
                *(lookup, queries, steps, batch, sample, filled, most, seed_room, state),
                *(visits, rows),
            )
            if row < 0:
                if row == DAMAGED_HERE:
                    return DAMAGED
                # The next call begins with this sample, and the rows of earlier ones stay.
                state[QUERY] = batch[sample, QUERY_OF]
                state[SAMPLE], state[LEAD_OF] = next_place(lookup, steps, batch, sample)
                state[FILLED] = filled
                return ROWS_FULL
            counts[one] += row - filled
            filled = row
            if is_bounded:
                visits[one, LOOKED_UP] += 1
            if counts[one] > steps.max_matches or has_too_many(
                lookup, queries, steps, one, counts[one], state
            ):
                filled -= counts[one]
                counts[one] = 0
                row = find_chosen(
                    lookup, queries, steps, one, seed_room, filled, rows, state, chosen
                )
                if row < 0:
                    if row == DAMAGED_HERE:
                        return DAMAGED
                    # The next call begins with the first sample of the query.
                    visits[one, LOOKED_UP] = visits[one, VISITED] = 0
                    state[QUERY] = one
                    state[SAMPLE] = offsets[one] + steps.first_lead
                    state[LEAD_OF] = steps.first_lead
                    state[FILLED] = filled
                    state[CHECKED] = 0
                    return ROWS_FULL
                counts[one] = row - filled
                visits[one, VISITED] += row - filled
                filled = row
                done = one
    state[QUERY], state[SAMPLE], state[FILLED] = query, at, filled
    return DONE


@inline_without_refcounts
def extend_at_most(
    codes: CodeArray, at: int, reference: CodeArray, reference_at: int, most: int
) -> int:
    """Return how many bases before two places match, up to `most`, which is often a few."""
    if most <= WORD_STEP:
        return min(extend_word_left(codes, at, reference, reference_at), most)
    return extend_left(codes, at, reference, reference_at, most)


@inline_without_refcounts
def extend_sample(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    sample: int,
    filled: int,
    most: int,
    seed_room: SeedRoom,
    state: Int64Array,
    visits: Int64Array,
    rows: MemRows,
) -> int:
    """Write the MEMs for which this is the first sample, `most`; return where their rows end.

    `ROWS_FULL_HERE` is returned if not all of them fit, and `DAMAGED_HERE` if a position is larger
    than the last one.
    """
    positions, reference, codes = lookup.positions, lookup.reference, queries.codes
    kmer_length, lead = lookup.kmer_length, batch[sample, LEAD]
    # Where a match reaches so far to the left, an earlier sample has found it.
    found_before = batch[sample, FOUND_BEFORE]
    at = batch[sample, PLACE]
    query_begin = queries.offsets[batch[sample, QUERY_OF]]
    query_end = queries.offsets[batch[sample, QUERY_OF] + 1]
    is_sorted_by_bases = is_long_list(lookup, batch[sample, LIST_BEGIN], batch[sample, LIST_END])
    tail = max(0, steps.window - kmer_length - lead)
    wanted = bases_beside(lookup, codes, at, lead, tail, is_sorted_by_bases)
    places = places_with_window(lookup, queries, steps, batch, sample, seed_room)
    listed = (batch[sample, LIST_END] - batch[sample, LIST_BEGIN]) * steps.seed_leads
    if places.sure >= most or has_too_many(
        lookup, queries, steps, batch[sample, QUERY_OF], listed, state
    ):
        # The caller drops them.
        return filled + most
    place, stop = places.begin, places.skipped_begin
    row = filled
    visited = as_int64(0)
    while place < places.end:
        for one in range(place, stop):
            prefetch_place(lookup, wanted, one + PLACES_AHEAD, places.end)
            if not may_count(lookup, wanted, one):
                continue
            position = as_int64(positions[as_index(one)])
            if position > lookup.last_position:
                return DAMAGED_HERE
            found = lookup.part_begin + position
            max_left = min(found_before, at - query_begin)
            left = extend_at_most(codes, MARGIN + at, reference, MARGIN + found, max_left)
            if left < lead or left == found_before:
                continue
            behind = at + kmer_length
            right = kmer_length + extend_right(
                codes, MARGIN + behind, reference, MARGIN + found + kmer_length, query_end - behind
            )
            length = left + right
            if length < steps.min_length or lead + right < steps.window:
                continue
            if row == rows.lengths.size:
                return ROWS_FULL_HERE
            # The key sorts by query start, then by reference start (`decode_rows`).
            rows.query_starts[row] = at - query_begin
            rows.reference_starts[row] = (found_before - 1 - left) << START_BITS | (found - left)
            rows.lengths[row] = length
            row += 1
            if row - filled == most:
                stop = one + 1
                break
        visited += stop - place
        if row - filled == most:
            break
        place, stop = places.end if stop == places.end else places.skipped_end, places.end
    # Where matches of an ascending list begin at one place only, they ascend too.
    is_sorted = found_before - lead == 1 and not is_sorted_by_bases
    if steps.sorts_matches and row - filled > 1 and not is_sorted:
        sort_rows(rows.reference_starts, rows.lengths, filled, row)
    decode_rows(rows, filled, row, found_before)
    add_visits(visits, steps, batch[sample, QUERY_OF], visited)
    return row


@inline_without_refcounts
def add_visits(visits: Int64Array, steps: SampleSteps, query: int, visited: int) -> None:
    """Count what a query visits, where its matches are bounded: only then is it told."""
    if steps.max_matches < UNBOUNDED_MATCHES:
        visits[query, VISITED] += visited


@inline_without_refcounts
def places_with_window(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    sample: int,
    seed_room: SeedRoom,
) -> PlacesToExtend:
    """Return the places of a sample that may be the first of a MEM; none if none has its window."""
    # The order of a list does not tell what comes behind its k-mer, but an earlier query may have.
    places = places_to_extend(lookup, queries, steps, batch, sample)
    at, lead = batch[sample, PLACE], batch[sample, LEAD]
    tail = steps.window - lookup.kmer_length - lead
    if tail <= 0 or places.end - places.begin <= LONG_SCAN:
        return places
    is_sorted = is_long_list(lookup, batch[sample, LIST_BEGIN], batch[sample, LIST_END])
    listed = ListedPlaces(places.begin, places.end, as_int64(0), is_sorted)
    if occurs_listed(lookup, queries.codes, at, lead, tail, listed, seed_room):
        return places
    end = places.end
    return PlacesToExtend(end, end, end, end, as_int64(0))


@inline_without_refcounts
def has_too_many(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    query: int,
    count: int,
    state: Int64Array,
) -> bool:
    """Return whether too many matches of a query, which has so many, are near (`seed_rule`).

    Only queries without windows are looked at, each once.
    """
    most = NEAR * steps.max_occurrences
    if steps.window > 0 or count <= most or state[CHECKED] == query + 1:
        return False
    state[CHECKED] = query + 1
    return has_too_many_near(lookup, queries, steps, query)


@jit_without_refcounts
def find_chosen(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    query: int,
    room: SeedRoom,
    filled: int,
    rows: MemRows,
    state: Int64Array,
    chosen: ByteArray,
) -> int:
    """Write the matches of a query that has too many (`seed_choice`); return where they end.

    Numbers below 0 are returned as by `extend_sample`.
    """
    seeds, sure = choose_seeds(lookup, queries, steps, query, room)
    if seeds.number < 0:
        return DAMAGED_HERE
    row = write_matches(lookup, queries, steps, query, seeds, room, filled, rows)
    if row >= 0:
        state[CHOSEN] += 1
        state[SPREAD] += 1 if seeds.spread_below > 0 else 0
        chosen[query] = sure
    return row


@inline_without_refcounts
def places_to_extend(
    lookup: KmerLookup, queries: QueryCodes, steps: SampleSteps, batch: Int64Array, sample: int
) -> PlacesToExtend:
    """Return the places of a sample's list that may be the first of a MEM, or a few more."""
    codes, lead, at = queries.codes, batch[sample, LEAD], batch[sample, PLACE]
    begin, end = batch[sample, LIST_BEGIN], batch[sample, LIST_END]
    if not is_long_list(lookup, begin, end):
        return PlacesToExtend(begin, end, end, end, as_int64(0))
    # In a list that is sorted by the bases before each position, those lie side by side that have
    # the bases of a window before them, or as many of these as the list is sorted by.
    known = min(lead, lookup.ordered_bases)
    if known > 0:
        begin = place_by_bases(lookup, codes, at, known, begin, end, False)
        end = end_of_equal(lookup, codes, at, known, begin, end)
    # So do those that match as far to the left as an earlier sample, which has found them.
    before = batch[sample, FOUND_BEFORE]
    has_earlier = at - queries.offsets[batch[sample, QUERY_OF]] >= before
    has_window = known == lead and lead + lookup.kmer_length == steps.window
    if before > lookup.ordered_bases or not has_earlier:
        sure = end - begin if has_window and not has_earlier else as_int64(0)
        return PlacesToExtend(begin, end, end, end, sure)
    skipped = place_by_bases(lookup, codes, at, before, begin, end, False)
    behind = end_of_equal(lookup, codes, at, before, skipped, end)
    sure = skipped - begin + end - behind if has_window else as_int64(0)
    return PlacesToExtend(begin, skipped, behind, end, sure)
