"""The k-mer search of a mapper: matches with a whole window of their read, in bounded numbers.

Where only matches matter that contain a whole window of their query (`KmerPage.window_bases`), the
k-mers of a window are its last k-mers, as many as the reference step: one of them is listed,
wherever the window occurs. The other bases of the window must match as well: in a long list, the
occurrences that the bases before the k-mer precede lie side by side too, and no others are looked
at. Where the table lists picked k-mers (`sequence.picked_kmers`), the one that is picked at the end
of a window is its only k-mer.

Where the matches of a query are bounded (`KmerPage.max_matches`), seeds of one that has more are
chosen (`seed_choice`). A mapper sorts matches by diagonal, so they are written in any order.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import KmerPage
from mummergpu.index.pages import damage_error
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.matching.kmer.lookup import (
    BATCH,
    BATCH_NUMBERS,
    DAMAGED,
    DAMAGED_HERE,
    DONE,
    KMER,
    KMER_OFFSET,
    LEFT_LIMIT,
    LIST_BEGIN,
    LIST_END,
    PLACE,
    QUERY_OF,
    ROWS_FULL,
    ROWS_FULL_HERE,
    UNBOUNDED_MATCHES,
    KmerLookup,
    ListedPlaces,
    PlacesToExtend,
    QuerySteps,
    SeedSteps,
    add_query_kmer,
    bases_beside,
    extend_at_most,
    is_long_list,
    lookup_of,
    next_batch,
    next_places,
    places_to_extend,
    prefetch_offsets,
)
from mummergpu.matching.kmer.seed_choice import (
    LONG_SCAN,
    PLACES_AHEAD,
    SeedSearch,
    choose_seeds,
    has_too_many_near,
    occurs_listed,
    write_matches,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, flattened, inline, jit, lowest_bit, prefetch
from mummergpu.sequence.codes import MARGIN, STEP
from mummergpu.sequence.extension import extend_right
from mummergpu.sequence.mems import (
    ALL_SEEDS,
    NOTHING_LEFT_OUT,
    MemColumns,
    MemRows,
    longer_rows,
    new_rows,
)
from mummergpu.sequence.picked_kmers import picked_kmer
from mummergpu.sequence.seed_rule import (
    ANYWHERE,
    NEAR,
    SeedRoom,
    forget_queries,
    new_seed_room,
)

QUERY, NEXT_PLACE, FILLED = 0, 1, 2
NEXT_OFFSET, CHOSEN, THINNED, CHECKED = 3, 4, 5, 6
STATE_NUMBERS: Final = 7
"""The elements of the state that the kernel keeps when it stops because the rows are full: the
query of the next k-mer, its position in the block, and the filled rows; the offset of the
next k-mer in its window; how many queries have had their seeds chosen, and how many of these occur
too often as a whole; and the number after that of the last query that was checked for too many
matches."""

LOOKED_UP, COMPARED = 0, 1
"""The columns of the cost of a query: k-mers looked up, and occurrences compared."""


COUNTS_OF_COST: Final = 66
"""The numbers in `seed_kernel`'s `totals`: all k-mers looked up, all occurrences compared, and from
`HISTOGRAM` on the queries by the bits that the number of their compared occurrences has."""

HISTOGRAM: Final = 2


class SearchedPage(NamedTuple):
    """A page as a thread searches it: its table, and memory (`SeedSearch`)."""

    lookup: KmerLookup
    steps: SeedSteps
    room: SeedRoom
    batch: Int64Array
    state: Int64Array


class PageRoom(threading.local):
    """The last page that each thread has searched, with the memory for it."""

    page: KmerPage | None = None
    searched: SearchedPage
    flattened: SearchedPage

    def of(self, page: KmerPage, min_length: int) -> SearchedPage:
        """Return a page with memory in which nothing was searched; `flattened` is the same."""
        if self.page is page:
            forget_queries(self.searched.room)
            self.searched.state[:] = 0
            return self.searched
        lookup, steps = lookup_of(page), _steps_of(page, min_length)
        is_bounded = steps.max_matches < UNBOUNDED_MATCHES
        # A listed k-mer stands for at most `kmers_of_seed` places of a seed.
        occurrences = lookup.positions.size * steps.kmers_of_seed
        self.searched = SearchedPage(
            lookup,
            steps,
            new_seed_room(min(steps.max_occurrences, occurrences) if is_bounded else 0),
            np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64),
            np.zeros(STATE_NUMBERS, dtype=np.int64),
        )
        self.flattened, self.page = flattened(self.searched), page
        return self.searched


def find_seed_matches(
    indexed: KmerPage,
    queries: QueryCodes,
    min_length: int,
    room: int,
    max_rows: int,
    counted: Counter[str],
    rooms: PageRoom,
) -> MemColumns | None:
    """Return the matches of reads in one part of the reference, None if there are too many.

    Memory for `room` of them is taken first, and for up to `max_rows`.
    """
    count = queries.offsets.size - 1
    offsets = np.zeros(count + 1, dtype=np.int64)
    costs = np.zeros((count, 2), dtype=np.int64)
    chosen = np.full(count, ALL_SEEDS, dtype=np.uint8)
    totals = np.zeros(COUNTS_OF_COST, dtype=np.int64)
    page = rooms.of(indexed, min_length)
    state, steps = page.state, page.steps
    state[NEXT_PLACE] = state[NEXT_OFFSET] = steps.first_offset
    found = flattened((queries, costs, offsets, chosen, totals))
    rows = new_rows(room)
    while (ending := seed_kernel(rooms.flattened, found, rows)) != DONE:
        if ending == DAMAGED:
            raise damage_error(indexed.page, indexed.index_path)
        if room == max_rows:
            return None
        room = min(2 * room, max_rows)
        rows = longer_rows(rows, int(state[FILLED]), room)
    if steps.max_matches < UNBOUNDED_MATCHES:
        counted["reads_with_chosen_seeds"] += int(state[CHOSEN])
        counted["reads_at_spread_places"] += int(state[THINNED])
        counted["seeds_looked_up"] += int(totals[LOOKED_UP])
        counted["occurrences_visited"] += int(totals[COMPARED])
        for bits, reads in enumerate(totals[HISTOGRAM:].tolist()):
            if reads:
                counted[f"reads_visiting_{1 << bits >> 1}"] += reads
    filled = int(state[FILLED])
    rows = MemRows(*(column[:filled] for column in rows))
    return MemColumns(offsets, *rows, chosen if state[CHOSEN] else NOTHING_LEFT_OUT)


def _steps_of(page: KmerPage, min_length: int) -> SeedSteps:
    """Return where the k-mers of queries are, as compiled functions take it."""
    step, sampling_step = page.query_step(min_length), page.sampling_step(min_length)
    kmers_of_window, window = page.kmer_offsets, page.window_bases or 0
    most = UNBOUNDED_MATCHES if page.max_matches is None else page.max_matches
    # Without windows, seeds are chosen of those that lie side by side.
    seed = (window, step) if window else (min_length, min_length)
    too_many = most if window else min(most * ANYWHERE, UNBOUNDED_MATCHES)
    return SeedSteps(
        *(min_length, step, sampling_step, window, kmers_of_window[0], kmers_of_window[-1]),
        *(too_many, most, *seed, page.table.sampling.kmers_of_window),
    )


@jit
def seed_kernel(
    page: SearchedPage,
    found: tuple[QueryCodes, Int64Array, Int64Array, ByteArray, Int64Array],
    rows: MemRows,
) -> int:
    """Find the MEMs of queries with one table; return why the kernel stopped.

    After `ROWS_FULL` the caller calls the kernel again with longer rows. `found` has the queries;
    their costs, `MemColumns.offsets` and `MemColumns.seeds`; and the totals of the costs
    (`COUNTS_OF_COST`), which are written at the end.
    """
    queries, costs, ends, chosen, totals = found
    batch, state, steps, counts = page.batch, page.state, page.steps, ends[1:]
    search = SeedSearch(page.lookup, queries, steps, page.room, batch, state, costs)
    # The k-mers of a query whose seeds have been chosen are passed over.
    done = as_int64(-1)
    offsets = search.queries.offsets
    query, at, filled = as_int64(state[QUERY]), as_int64(state[NEXT_PLACE]), state[FILLED]
    kmer_offset = as_int64(state[NEXT_OFFSET])
    while query < offsets.size - 1:
        # A batch takes three turns, for each of which the one before prefetches memory: its k-mers,
        # their lists, and the extension of their occurrences.
        size, query, at, kmer_offset = next_seeds(search, query, at, kmer_offset)
        if not find_seed_lists(search, size):
            return DAMAGED
        for query_kmer in range(size):
            one = batch[query_kmer, QUERY_OF]
            if one == done:
                continue
            most = steps.max_matches - counts[one] + 1
            row = extend_seed(search, query_kmer, filled, most, rows)
            if row < 0:
                if row == DAMAGED_HERE:
                    return DAMAGED
                # The next call begins with this k-mer, and the rows of earlier ones stay.
                state[QUERY] = batch[query_kmer, QUERY_OF]
                state[NEXT_PLACE], state[NEXT_OFFSET] = next_place(search, query_kmer)
                state[FILLED] = filled
                return ROWS_FULL
            counts[one] += row - filled
            filled = row
            costs[one, LOOKED_UP] += 1
            if counts[one] > steps.max_matches or has_too_many(search, one, counts[one]):
                filled -= counts[one]
                counts[one] = 0
                row = find_chosen(search, one, filled, rows, chosen)
                if row < 0:
                    if row == DAMAGED_HERE:
                        return DAMAGED
                    # The next call begins with the first k-mer of the query.
                    costs[one, LOOKED_UP] = costs[one, COMPARED] = 0
                    state[QUERY] = one
                    state[NEXT_PLACE] = offsets[one] + steps.first_offset
                    state[NEXT_OFFSET] = steps.first_offset
                    state[FILLED] = filled
                    state[CHECKED] = 0
                    return ROWS_FULL
                counts[one] = row - filled
                costs[one, COMPARED] += row - filled
                filled = row
                done = one
    state[QUERY], state[NEXT_PLACE], state[FILLED] = query, at, filled
    for query in range(counts.size):
        ends[query + 1] += ends[query]
        bits = 0
        while costs[query, COMPARED] >> bits > 0:
            bits += 1
        totals[LOOKED_UP] += costs[query, LOOKED_UP]
        totals[COMPARED] += costs[query, COMPARED]
        totals[HISTOGRAM + bits] += 1
    return DONE


@inline
def extend_seed(search: SeedSearch, query_kmer: int, filled: int, most: int, rows: MemRows) -> int:
    """Write at most `most` MEMs for which this is the first k-mer; return where their rows end.

    `ROWS_FULL_HERE` is returned if not all of them fit, and `DAMAGED_HERE` if a position is larger
    than the last one.
    """
    lookup, queries, steps, batch = search.lookup, search.queries, search.steps, search.batch
    positions, reference, codes = lookup.positions, lookup.reference, queries.codes
    kmer_length, kmer_offset = lookup.kmer_length, batch[query_kmer, KMER_OFFSET]
    # If a match reaches this far to the left, an earlier k-mer has found it.
    left_limit = batch[query_kmer, LEFT_LIMIT]
    at = batch[query_kmer, PLACE]
    query_begin = queries.offsets[batch[query_kmer, QUERY_OF]]
    query_end = queries.offsets[batch[query_kmer, QUERY_OF] + 1]
    is_sorted_by_bases = is_long_list(
        lookup, batch[query_kmer, LIST_BEGIN], batch[query_kmer, LIST_END]
    )
    tail = max(0, steps.window - kmer_length - kmer_offset)
    wanted = bases_beside(lookup, codes, at, kmer_offset, tail, is_sorted_by_bases)
    places = places_with_window(search, query_kmer)
    listed = (batch[query_kmer, LIST_END] - batch[query_kmer, LIST_BEGIN]) * steps.kmers_of_seed
    if full_window_matches(search, query_kmer, places) >= most or has_too_many(
        search, batch[query_kmer, QUERY_OF], listed
    ):
        # The caller drops them.
        return filled + most
    place, stop = places.begin, places.skipped_begin
    row = filled
    compared = as_int64(0)
    # Of other lists the first places have been prefetched.
    mask = next_places(lookup, wanted, place, stop, is_sorted_by_bases or wanted.bits == 0)
    while place < places.end and row - filled < most:
        ahead = next_places(lookup, wanted, place + STEP, stop, True)
        compared += min(STEP, stop - place)
        while mask != np.uint64(0):
            one = place + lowest_bit(mask)
            mask &= mask - np.uint64(1)
            position = as_int64(positions[as_index(one)])
            if position > lookup.last_position:
                return DAMAGED_HERE
            found = lookup.part_begin + position
            max_left = min(left_limit, at - query_begin)
            left = extend_at_most(
                codes, MARGIN + at, reference, MARGIN + found, max_left, left_limit
            )
            if left < kmer_offset or left == left_limit:
                continue
            behind = at + kmer_length
            right = kmer_length + extend_right(
                codes, MARGIN + behind, reference, MARGIN + found + kmer_length, query_end - behind
            )
            length = left + right
            if length < steps.min_length or kmer_offset + right < steps.window:
                continue
            if row == rows.lengths.size:
                return ROWS_FULL_HERE
            rows.query_starts[row] = at - query_begin - left
            rows.reference_starts[row] = found - left
            rows.lengths[row] = length
            row += 1
            if row - filled == most:
                break
        place, mask = place + STEP, ahead
        if place >= stop:
            place, stop = places.end if stop == places.end else places.skipped_end, places.end
            mask = next_places(lookup, wanted, place, stop, True)
    search.costs[batch[query_kmer, QUERY_OF], COMPARED] += compared
    return row


@inline
def places_with_window(search: SeedSearch, query_kmer: int) -> PlacesToExtend:
    """Return the places of a k-mer that may be the first of a MEM; none if none has its window."""
    lookup, batch = search.lookup, search.batch
    # The order says nothing of the bases after the k-mer, but the count of an earlier query may.
    places = places_to_extend(lookup, search.queries, batch, query_kmer)
    at, kmer_offset = batch[query_kmer, PLACE], batch[query_kmer, KMER_OFFSET]
    tail = search.steps.window - lookup.kmer_length - kmer_offset
    if tail <= 0 or places.end - places.begin <= LONG_SCAN:
        return places
    is_sorted = is_long_list(lookup, batch[query_kmer, LIST_BEGIN], batch[query_kmer, LIST_END])
    listed = ListedPlaces(places.begin, places.end, as_int64(0), is_sorted)
    if occurs_listed(search, at, kmer_offset, tail, listed):
        return places
    end = places.end
    return PlacesToExtend(end, end, end, end)


@inline
def full_window_matches(search: SeedSearch, query_kmer: int, places: PlacesToExtend) -> int:
    """Return how many places their order shows to be new matches with a whole window."""
    lookup, batch = search.lookup, search.batch
    kmer_offset, before = batch[query_kmer, KMER_OFFSET], batch[query_kmer, LEFT_LIMIT]
    if not is_long_list(lookup, batch[query_kmer, LIST_BEGIN], batch[query_kmer, LIST_END]):
        return as_int64(0)
    if (
        kmer_offset > lookup.ordered_bases
        or kmer_offset + lookup.kmer_length != search.steps.window
    ):
        return as_int64(0)
    has_earlier = (
        batch[query_kmer, PLACE] - search.queries.offsets[batch[query_kmer, QUERY_OF]] >= before
    )
    # The list is sorted by too few bases to show what an earlier k-mer finds.
    if has_earlier and before > lookup.ordered_bases:
        return as_int64(0)
    return as_int64(places.end - places.begin - (places.skipped_end - places.skipped_begin))


@inline
def has_too_many(search: SeedSearch, query: int, count: int) -> bool:
    """Return whether too many of a query's `count` matches are near (`seed_rule`).

    Only queries without windows are looked at, each once.
    """
    steps, state = search.steps, search.state
    most = NEAR * steps.max_occurrences
    if steps.window > 0 or count <= most or state[CHECKED] == query + 1:
        return False
    state[CHECKED] = query + 1
    return has_too_many_near(search, query)


@jit
def find_chosen(
    search: SeedSearch, query: int, filled: int, rows: MemRows, chosen: ByteArray
) -> int:
    """Write the matches of a query that has too many (`seed_choice`); return where they end.

    Numbers below 0 are returned as by `extend_seed`.
    """
    seeds, seeds_kept = choose_seeds(search, query)
    if seeds.number < 0:
        return DAMAGED_HERE
    row = write_matches(search, query, seeds, filled, rows)
    if row >= 0:
        search.state[CHOSEN] += 1
        search.state[THINNED] += 1 if seeds.thinning_below > 0 else 0
        chosen[query] = seeds_kept
    return row


@inline
def next_seeds(
    search: SeedSearch, query: int, at: int, kmer_offset: int
) -> tuple[int, int, int, int]:
    """Fill a batch with the next k-mers.

    Return how many there are, and the query, the place and the offset (in its window) of the k-mer
    after them. With picked k-mers, these are those of the span after them.
    """
    lookup, queries, steps, batch = search.lookup, search.queries, search.steps, search.batch
    if steps.window == 0:
        all_kmers = QuerySteps(steps.min_length, steps.step, steps.sampling_step)
        size, query, at = next_batch(lookup, queries, all_kmers, batch, query, at)
        return size, query, at, kmer_offset
    if lookup.picked_of > 0:
        size, query, at = next_picked(search, query, at)
        return size, query, at, kmer_offset
    offsets = queries.offsets
    needed = max(lookup.kmer_length, steps.window)
    size = as_int64(0)
    while size < BATCH and query < offsets.size - 1:
        end = offsets[query + 1]
        if at - kmer_offset + needed > end or end - offsets[query] < steps.min_length:
            query += 1
            kmer_offset = as_int64(steps.first_offset)
            at = end + kmer_offset
            continue
        before = kmer_offset + steps.sampling_step
        size = add_query_kmer(lookup, queries.codes, batch, size, query, at, kmer_offset, before)
        if kmer_offset < steps.last_offset:
            at += 1
            kmer_offset += 1
        else:
            at += steps.step - (kmer_offset - steps.first_offset)
            kmer_offset = as_int64(steps.first_offset)
    return size, query, at, kmer_offset


@inline
def next_picked(search: SeedSearch, query: int, at: int) -> tuple[int, int, int]:
    """Fill a batch with the k-mers that are picked at the ends of the next windows (`next_seeds`).

    Return how many there are, and the query and the place of the span after them.
    """
    lookup, queries, steps, batch = search.lookup, search.queries, search.steps, search.batch
    offsets, kmer_length, kmers = queries.offsets, lookup.kmer_length, lookup.picked_of
    kmer_offset = as_int64(steps.first_offset)
    needed = kmer_length + kmers - 1
    size = as_int64(0)
    while size < BATCH and query < offsets.size - 1:
        end = offsets[query + 1]
        if at + needed > end or end - offsets[query] < steps.min_length:
            query += 1
            at = end + kmer_offset
            continue
        place, picked = at, picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
        at += steps.step
        # Windows of which the same k-mer is picked are k-mers of their own: a match may have one
        # of them and not the next.
        if picked >= 0:
            mine = kmer_offset + picked
            before = mine + steps.sampling_step
            size = add_query_kmer(
                lookup, queries.codes, batch, size, query, place + picked, mine, before
            )
    return size, query, at


@inline
def next_place(search: SeedSearch, query_kmer: int) -> tuple[int, int]:
    """Return the place and the offset for `next_seeds` to begin with a k-mer, or its first span."""
    steps, batch = search.steps, search.batch
    place, kmer_offset = batch[query_kmer, PLACE], batch[query_kmer, KMER_OFFSET]
    if search.lookup.picked_of > 0:
        first = as_int64(steps.first_offset)
        place, kmer_offset = (
            place - (batch[query_kmer, LEFT_LIMIT] - steps.sampling_step) + first,
            first,
        )
    return place, kmer_offset


@inline
def find_seed_lists(search: SeedSearch, size: int) -> bool:
    """Replace each k-mer of a batch by its list, and prefetch the first occurrences.

    Return False if a list is not inside the table's positions: the table is damaged.
    """
    lookup, codes, batch = search.lookup, search.queries.codes, search.batch
    offsets, positions = lookup.offsets, lookup.positions
    prefetch_offsets(lookup, batch, size)
    for query_kmer in range(size):
        kmer = as_index(batch[query_kmer, KMER])
        begin = as_int64(offsets[kmer])
        end = as_int64(offsets[kmer + np.uint64(1)])
        if begin > end or end > positions.size:
            return False
        batch[query_kmer, LIST_BEGIN] = begin
        batch[query_kmer, LIST_END] = end
        if is_long_list(lookup, begin, end):
            prefetch(positions, (begin + end) // 2)
            continue
        prefetch(positions, begin)
        if lookup.beside_of_all != 0:
            prefetch(lookup.bases_beside, begin)
    for query_kmer in range(size):
        begin, at = batch[query_kmer, LIST_BEGIN], batch[query_kmer, PLACE]
        end = batch[query_kmer, LIST_END]
        if is_long_list(lookup, begin, end):
            # A bisection looks there first.
            middle = as_int64(positions[as_index((begin + end) // 2)])
            prefetch(lookup.reference, MARGIN + lookup.part_begin + middle)
            continue
        wanted = bases_beside(lookup, codes, at, batch[query_kmer, KMER_OFFSET], as_int64(0), False)
        if wanted.bits == 0:
            # All places count: those of a whole step, for each k-mer of a batch, fill the cache.
            end = min(end, begin + PLACES_AHEAD)
        next_places(lookup, wanted, begin, end, True)
    return True
