"""The k-mer search of a mapper: matches with a whole window of their read, in bounded numbers.

Where only matches matter that contain a whole window of their query (`KmerPage.sample_step`), the
samples of a window are its last k-mers, as many as the reference step: one of them is listed,
wherever the window occurs. The other bases of the window must match as well: in a long list, the
occurrences that the bases before the sample precede lie side by side too, and no others are looked
at. Where the table lists picked k-mers (`sequence.picked_kmers`), the one that is picked at the end
of a window is its only sample.

Where the matches of a query are bounded (`KmerPage.max_matches`), seeds of one that has more are
chosen (`seed_choice`). A mapper sorts matches by diagonal, so they are written in any order.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

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
    FOUND_BEFORE,
    KMER,
    LEAD,
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
    SampleSteps,
    add_sample,
    bases_beside,
    extend_at_most,
    is_long_list,
    lookup_of,
    may_count,
    next_batch,
    places_to_extend,
    prefetch_place,
)
from mummergpu.matching.kmer.seed_choice import (
    LONG_SCAN,
    PLACES_AHEAD,
    choose_seeds,
    has_too_many_near,
    occurs_listed,
    write_matches,
)
from mummergpu.matching.summary import visit_counts
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
    prefetch,
)
from mummergpu.sequence.codes import MARGIN, CodeArray
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
from mummergpu.sequence.seed_rule import ANYWHERE, NEAR, SeedRoom, new_seed_room

QUERY, SAMPLE, FILLED = 0, 1, 2
LEAD_OF, CHOSEN, SPREAD, CHECKED = 3, 4, 5, 6
STATE_NUMBERS: Final = 7
"""The elements of the state that the kernel keeps when it stops because the rows are full: the
query of the next sample, its position in the block, and the filled rows; the lead of the next
sample; how many queries have had their seeds chosen, and how many of these occur
too often as a whole; and the number behind that of the last query that was checked for too many
matches."""

LOOKED_UP, VISITED = 0, 1
"""The columns of what a query has cost: samples looked up, and occurrences compared."""


def find_seed_matches(
    indexed: KmerPage,
    queries: QueryCodes,
    min_length: int,
    room: int,
    max_rows: int,
    counted: Counter[str],
) -> MemColumns | None:
    """Return the matches of reads in one part of the reference, None if there are too many.

    Memory for `room` of them is taken first, and for up to `max_rows`.
    """
    lookup = lookup_of(indexed)
    counts = np.zeros(queries.offsets.size, dtype=np.int64)
    visits = np.zeros((queries.offsets.size - 1, 2), dtype=np.int64)
    chosen = np.full(queries.offsets.size - 1, ALL_SEEDS, dtype=np.uint8)
    state = np.zeros(STATE_NUMBERS, dtype=np.int64)
    steps = _steps_of(indexed, min_length)
    is_bounded = steps.max_matches < UNBOUNDED_MATCHES
    # A listed k-mer stands for so many places of a seed at most.
    occurrences = lookup.positions.size * steps.seed_leads
    seed_room = new_seed_room(min(steps.max_occurrences, occurrences) if is_bounded else 0)
    state[SAMPLE] = state[LEAD_OF] = steps.first_lead
    batch = np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64)
    rows = new_rows(room)
    while (
        ending := seed_kernel(
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
    if is_bounded:
        counted["reads_with_chosen_seeds"] += int(state[CHOSEN])
        counted["reads_at_spread_places"] += int(state[SPREAD])
        counted["seeds_looked_up"] += int(visits[:, LOOKED_UP].sum())
        counted.update(visit_counts(visits[:, VISITED]))
    filled = int(state[FILLED])
    np.cumsum(counts, out=counts)
    rows = MemRows(*(column[:filled] for column in rows))
    return MemColumns(counts, *rows, chosen if state[CHOSEN] else NOTHING_LEFT_OUT)


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
    )


@jit
def seed_kernel(
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
    offsets = queries.offsets
    query, at, filled = as_int64(state[QUERY]), as_int64(state[SAMPLE]), state[FILLED]
    lead = as_int64(state[LEAD_OF])
    while query < offsets.size - 1:
        # A batch takes three turns, for each of which the one before prefetches memory: its k-mers,
        # their lists, and the extension of their occurrences.
        size, query, at, lead = next_seeds(lookup, queries, steps, batch, query, at, lead)
        if not find_seed_lists(lookup, queries.codes, batch, size):
            return DAMAGED
        for sample in range(size):
            one = batch[sample, QUERY_OF]
            if one == done:
                continue
            most = steps.max_matches - counts[one] + 1
            row = extend_seed(
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


@inline
def extend_seed(
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
    if sure_matches(lookup, queries, steps, batch, sample, places) >= most or has_too_many(
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
            left = extend_at_most(
                codes, MARGIN + at, reference, MARGIN + found, max_left, found_before
            )
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
            rows.query_starts[row] = at - query_begin - left
            rows.reference_starts[row] = found - left
            rows.lengths[row] = length
            row += 1
            if row - filled == most:
                stop = one + 1
                break
        visited += stop - place
        if row - filled == most:
            break
        place, stop = places.end if stop == places.end else places.skipped_end, places.end
    visits[batch[sample, QUERY_OF], VISITED] += visited
    return row


@inline
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
    places = places_to_extend(lookup, queries, batch, sample)
    at, lead = batch[sample, PLACE], batch[sample, LEAD]
    tail = steps.window - lookup.kmer_length - lead
    if tail <= 0 or places.end - places.begin <= LONG_SCAN:
        return places
    is_sorted = is_long_list(lookup, batch[sample, LIST_BEGIN], batch[sample, LIST_END])
    listed = ListedPlaces(places.begin, places.end, as_int64(0), is_sorted)
    if occurs_listed(lookup, queries.codes, at, lead, tail, listed, seed_room):
        return places
    end = places.end
    return PlacesToExtend(end, end, end, end)


@inline
def sure_matches(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    sample: int,
    places: PlacesToExtend,
) -> int:
    """Return how many places are known to be new matches with a whole window: their order tells."""
    lead, before = batch[sample, LEAD], batch[sample, FOUND_BEFORE]
    if not is_long_list(lookup, batch[sample, LIST_BEGIN], batch[sample, LIST_END]):
        return as_int64(0)
    if lead > lookup.ordered_bases or lead + lookup.kmer_length != steps.window:
        return as_int64(0)
    has_earlier = batch[sample, PLACE] - queries.offsets[batch[sample, QUERY_OF]] >= before
    # The list is not sorted by as many bases as tell what an earlier sample finds.
    if has_earlier and before > lookup.ordered_bases:
        return as_int64(0)
    return as_int64(places.end - places.begin - (places.skipped_end - places.skipped_begin))


@inline
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


@jit
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

    Numbers below 0 are returned as by `extend_seed`.
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


@inline
def next_seeds(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    query: int,
    at: int,
    lead: int,
) -> tuple[int, int, int, int]:
    """Fill a batch with the k-mers of the next samples.

    Return how many there are, and the query, the place and the lead of the sample behind them. With
    picked k-mers, these are those of the span behind them.
    """
    if steps.window == 0:
        all_samples = QuerySteps(steps.min_length, steps.step, steps.period)
        size, query, at = next_batch(lookup, queries, all_samples, batch, query, at)
        return size, query, at, lead
    if lookup.picked_of > 0:
        size, query, at = next_picked(lookup, queries, steps, batch, query, at)
        return size, query, at, lead
    offsets = queries.offsets
    needed = max(lookup.kmer_length, steps.window)
    size = as_int64(0)
    while size < BATCH and query < offsets.size - 1:
        end = offsets[query + 1]
        if at - lead + needed > end or end - offsets[query] < steps.min_length:
            query += 1
            lead = as_int64(steps.first_lead)
            at = end + lead
            continue
        before = lead + steps.period
        size = add_sample(lookup, queries.codes, batch, size, query, at, lead, before)
        if lead < steps.last_lead:
            at += 1
            lead += 1
        else:
            at += steps.step - (lead - steps.first_lead)
            lead = as_int64(steps.first_lead)
    return size, query, at, lead


@inline
def next_picked(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    query: int,
    at: int,
) -> tuple[int, int, int]:
    """Fill a batch with the k-mers that are picked at the ends of the next windows (`next_seeds`).

    Return how many there are, and the query and the place of the span behind them.
    """
    offsets, kmer_length, kmers = queries.offsets, lookup.kmer_length, lookup.picked_of
    lead = as_int64(steps.first_lead)
    needed = kmer_length + kmers - 1
    size = as_int64(0)
    while size < BATCH and query < offsets.size - 1:
        end = offsets[query + 1]
        if at + needed > end or end - offsets[query] < steps.min_length:
            query += 1
            at = end + lead
            continue
        place, picked = at, picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
        at += steps.step
        # Windows of which the same k-mer is picked are samples of their own: a match may have one
        # of them and not the next.
        if picked >= 0:
            mine = lead + picked
            before = mine + steps.period
            size = add_sample(
                lookup, queries.codes, batch, size, query, place + picked, mine, before
            )
    return size, query, at


@inline
def next_place(
    lookup: KmerLookup, steps: SampleSteps, batch: Int64Array, sample: int
) -> tuple[int, int]:
    """Return the place and the lead for `next_seeds` to begin with a sample, or its first span."""
    place, lead = batch[sample, PLACE], batch[sample, LEAD]
    if lookup.picked_of > 0:
        first = as_int64(steps.first_lead)
        place, lead = place - (batch[sample, FOUND_BEFORE] - steps.period) + first, first
    return place, lead


@inline
def find_seed_lists(lookup: KmerLookup, codes: CodeArray, batch: Int64Array, size: int) -> bool:
    """Replace the k-mer of each sample by its list, and prefetch the first occurrences.

    Return False if a list is not inside the table's positions: the table is damaged.
    """
    offsets, positions = lookup.offsets, lookup.positions
    for sample in range(size):
        kmer = as_index(batch[sample, KMER])
        begin = as_int64(offsets[kmer])
        end = as_int64(offsets[kmer + np.uint64(1)])
        if begin > end or end > positions.size:
            return False
        batch[sample, LIST_BEGIN] = begin
        batch[sample, LIST_END] = end
        if is_long_list(lookup, begin, end):
            prefetch(positions, (begin + end) // 2)
            continue
        prefetch(positions, begin)
        if lookup.beside_of_all != 0:
            prefetch(lookup.bases_beside, begin)
    for sample in range(size):
        begin, at = batch[sample, LIST_BEGIN], batch[sample, PLACE]
        end = batch[sample, LIST_END]
        if is_long_list(lookup, begin, end):
            # A bisection looks there first.
            middle = as_int64(positions[as_index((begin + end) // 2)])
            prefetch(lookup.reference, MARGIN + lookup.part_begin + middle)
            continue
        wanted = bases_beside(lookup, codes, at, batch[sample, LEAD], as_int64(0), False)
        for place in range(begin, min(end, begin + PLACES_AHEAD)):
            prefetch_place(lookup, wanted, place, end)
    return True
