"""The search for matches that are unique in the reference: it looks up minimizers of queries.

A match of at least `l` bases has all minimizers of the window in which it begins
(`sequence.minimizers`). It is found at the first one with the lowest rank of that window, on either
strand, and only there. The minimizers of a window are also those of its copies in the reference. So
the entries with this minimizer's k-mer have every copy of the match.

Along a query, the first minimizers with the lowest ranks of later windows never lie before those of
earlier windows. So all matches that begin before those of a minimizer have been met before it, and
one of these contains a match if it ends as late. No list of them is needed: the furthest end on
each strand stands for all. Only entries that reach beyond it count; among them, a match is unique
if no other one extends at least as far to both sides. So a read of a repeat is done as soon as the
copy that it comes from is met, however many other copies there are, and nothing is left to filter
(`filter.keep_unique`).

Where matches must reach far beyond a minimizer, they have the minimizers of all windows in between,
too: the entries of the rarest one of these are looked at in place of its own.

A part of a query is searched without what comes before it. Its first minimizer therefore looks for
the furthest end of earlier matches, which have an entry there, too.

Minimizers are the same on both strands, so one look-up answers for both. A unique match does not
lie in another one, so those that begin later also end later. Rows are therefore found in the order
of the queries: on the reverse strand, in the opposite order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from mummergpu.index import minimizer_order
from mummergpu.index.minimizer_index import MinimizerPage
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.kmer.minimizer_entries import (
    MatchEnds,
    MinimizerLookup,
    QueryKmer,
    QueryMinimizers,
    StartsOfMinimizer,
    UniqueWork,
    ends_before,
    extend_at_minimizer,
    has_candidate,
    new_frontier,
    write_frontier,
)
from mummergpu.matching.kmer.ordered_entries import first_start_beyond, meet_ordered_matches
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, prefetch
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.contexts import context_at
from mummergpu.sequence.mems import MemColumns, MemRows, join_rows, longer_rows, new_rows
from mummergpu.sequence.minimizers import find_minimizers, new_workspace
from mummergpu.sequence.strand import Strand

TASK_BASES: Final = 1 << 19
"""The bases of a block that are searched together."""

CANDIDATES: Final = 64
"""The entries of a minimizer that are prefetched and then compared together."""

MIN_ROOM: Final = 1 << 12
"""The rows that a task first has room for, on each strand."""

BUCKETS_AHEAD: Final = 32
ENTRIES_AHEAD: Final = 16
"""How many minimizers before its turn the bucket of one, and then its entries, are prefetched."""

ENTRIES_OF_LINE: Final = 8
"""The entries in 64 bytes."""

RARE_ENTRIES: Final = 4
"""A minimizer with at most this many entries is rare enough: no rarer one is looked for."""

WINDOWS_AHEAD: Final = 8
"""The windows among whose minimizers the rarest is looked for."""

NUMBER, QUERY, FORWARD_ROWS, REVERSE_ROWS, FORWARD_END, REVERSE_END = range(6)
FORWARD_ASKED, REVERSE_ASKED, FORWARD_NEXT, REVERSE_NEXT = range(6, 10)
STATE_NUMBERS: Final = 10
"""The elements of the state of a search: the next minimizer and its query; then, on each strand,
the filled rows, the furthest end of the matches met in that query, the end for which the earliest
start of a match that passes it was last sought, and the first minimizer at which such a match can
be found."""

UNKNOWN: Final = -1
ALL_MET: Final = 1 << 62
"""In place of an end: matches before this part may reach into it, or no more are wanted."""


class UniqueSearch:
    """Searches blocks of queries for unique matches; many threads may call it at once.

    A match has at least the bases of a window.
    """

    def __init__(self, page: MinimizerPage, minimum_length: int, stats: Stats) -> None:
        table = page.table
        self._lookup = MinimizerLookup(
            table.offsets,
            table.entries,
            table.kmer_length,
            table.window,
            minimum_length,
            minimizer_order.MAX_UNSORTED_OCCURRENCES,
            *table.ordered,
            page.padded_reference,
        )
        self._stats = stats
        self._scratch = ThreadArray(np.int64), ThreadArray(np.uint32)

    def find(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the unique matches of a block (`interface.UniqueBackend.find_unique`)."""

        def search(first: int) -> tuple[MemRows, MemRows]:
            end = min(first + TASK_BASES, block.base_count)
            with self._stats.stage("kmer_kernel"):
                found = self._search_part(block, first, end, strands)
            tell(end - first)
            return found

        parts = list(map_function(search, range(0, max(block.base_count, 1), TASK_BASES)))
        if sum(part[strand].lengths.size for part in parts for strand in strands) > max_rows:
            return None
        return {
            strand: rows_of_queries(join_rows([part[strand] for part in parts]), block, strand)
            for strand in strands
        }

    def _search_part(
        self, block: QueryBlock, first: int, end: int, strands: Sequence[Strand]
    ) -> tuple[MemRows, MemRows]:
        """Return the matches whose minimizers lie in a part of a block; none of other strands.

        Their starts count from the first base of the block, on the forward strand.
        """
        lookup, codes = self._lookup, block.padded_codes
        low, high = max(0, first - lookup.window), min(end + lookup.window, block.base_count)
        query = max(0, int(np.searchsorted(block.offsets, low, side="right")) - 1)
        places, ranks = (scratch.of_size(high - low + 1) for scratch in self._scratch)
        # Those of all queries as one sequence, which are more than those of each, and sooner found.
        count = find_minimizers(
            codes,
            MARGIN,
            MARGIN + block.base_count,
            MARGIN + low,
            MARGIN + high,
            lookup.kmer_length,
            lookup.window,
            new_workspace(),
            0,
            places,
            ranks,
        )
        minimizers = QueryMinimizers(places, ranks, count, MARGIN + first, MARGIN + end)
        state = np.zeros(STATE_NUMBERS, dtype=np.int64)
        state[QUERY] = query
        for strand, number in ((Strand.FORWARD, FORWARD_END), (Strand.REVERSE, REVERSE_END)):
            met = UNKNOWN if block.offsets[query] < first else 0
            state[number] = met if strand in strands else ALL_MET
        candidates = np.empty(CANDIDATES, dtype=np.int64)
        work = UniqueWork(lookup, codes, minimizers, candidates, new_frontier(), state)
        room = MIN_ROOM
        forward, reverse = new_rows(room), new_rows(room)
        while not find_unique_rows(work, block.offsets, forward, reverse):
            room *= 2
            forward = longer_rows(forward, int(state[FORWARD_ROWS]), room)
            reverse = longer_rows(reverse, int(state[REVERSE_ROWS]), room)
        return _filled(forward, state[FORWARD_ROWS]), _filled(reverse, state[REVERSE_ROWS])


def _filled(rows: MemRows, filled: int) -> MemRows:
    """Return the filled rows, without the room after them."""
    return MemRows(*(column[:filled].copy() for column in rows))


def rows_of_queries(rows: MemRows, block: QueryBlock, strand: Strand) -> MemColumns:
    """Return the rows of a block by query, in the order of the strand that was searched.

    Starts in the block ascend, and count on the forward strand.
    """
    offsets = block.offsets
    starts, reference_starts, lengths = rows
    row_offsets = np.searchsorted(starts, offsets)
    queries = np.repeat(np.arange(offsets.size - 1), np.diff(row_offsets))
    if strand is Strand.FORWARD:
        return MemColumns(row_offsets, starts - offsets[queries], reference_starts, lengths)
    order = row_offsets[queries] + row_offsets[queries + 1] - 1 - np.arange(starts.size)
    starts, lengths = starts[order], lengths[order]
    return MemColumns(
        row_offsets, offsets[queries + 1] - starts - lengths, reference_starts[order], lengths
    )


@jit
def find_unique_rows(
    work: UniqueWork, offsets: Int64Array, forward: MemRows, reverse: MemRows
) -> bool:
    """Write the matches that are unique in the reference, and whose minimizers lie in a range.

    Rows of both strands ascend by their starts, which count from the first base of the block on the
    forward strand. False means that the rows are full: the caller then calls again with longer
    ones.
    """
    minimizers, state = work.minimizers, work.state
    places, total = minimizers.places, minimizers.total
    number, query = state[NUMBER], state[QUERY]
    while number < total and places[as_index(number)] >> 1 < minimizers.end:
        at = places[as_index(number)] >> 1
        while MARGIN + offsets[query + 1] <= at:
            query += 1
            # No match before this part reaches into a query that begins in it.
            met = as_int64(UNKNOWN) if MARGIN + offsets[query] < minimizers.begin else as_int64(0)
            for strand_end in range(FORWARD_END, REVERSE_END + 1):
                if state[strand_end] != ALL_MET:
                    state[strand_end] = met
        query_begin, query_end = MARGIN + offsets[query], MARGIN + offsets[query + 1]
        ends = MatchEnds(state[FORWARD_END], state[REVERSE_END])
        number = next_that_matters(work, number, query_begin, query_end, ends)
        if number == total or places[as_index(number)] >> 1 >= min(query_end, minimizers.end):
            continue
        query_kmer = query_kmer_at(work, number, query_begin, query_end)
        if not find_at_minimizer(work, query_kmer, forward, reverse):
            # The next call begins with this minimizer.
            state[NUMBER], state[QUERY] = number, query
            return False
        number += 1
    state[NUMBER], state[QUERY] = number, query
    return True


@inline
def next_that_matters(
    work: UniqueWork, number: int, query_begin: int, query_end: int, ends: MatchEnds
) -> int:
    """Return the first minimizer, from one on, that a match beyond the ends may be found at.

    It is the first one after the query, or the number of all, if there is none.
    """
    lookup, minimizers = work.lookup, work.minimizers
    places, ranks, total = minimizers.places, minimizers.ranks, minimizers.total
    mask = lookup.offsets.size - 2
    # A k-mer that reaches into the next query is one of the block, but of no query.
    last = query_end - lookup.kmer_length
    while number < total:
        at = places[as_index(number)] >> 1
        if at >= min(query_end, minimizers.end):
            break
        if number + BUCKETS_AHEAD < total:
            coming = as_int64(ranks[as_index(number + BUCKETS_AHEAD)]) & mask
            prefetch(lookup.offsets, coming)
            coming = as_int64(ranks[as_index(number + ENTRIES_AHEAD)]) & mask
            begin_of_entries = as_int64(lookup.offsets[as_index(coming)])
            prefetch(lookup.entries, begin_of_entries)
            # Of entries that begin in a line of the caches, some lie in the next one.
            prefetch(lookup.entries, begin_of_entries + ENTRIES_OF_LINE - 1)
        if minimizers.begin <= at <= last:
            query_kmer = query_kmer_at(work, number, query_begin, query_end)
            # Most minimizers have few entries, and their contexts show that none of them matters.
            if query_kmer.listed_end - query_kmer.listed_begin > RARE_ENTRIES:
                break
            if has_candidate(lookup, query_kmer, ends):
                break
        number += 1
    return number


@inline
def find_at_minimizer(
    work: UniqueWork, query_kmer: QueryKmer, forward: MemRows, reverse: MemRows
) -> bool:
    """Write the unique matches that are found at a minimizer; return False if the rows are full."""
    frontier, state = work.frontier, work.state
    query_end = query_kmer.query_end
    starts = owned_starts(work.minimizers, query_kmer, work.lookup.window)
    if starts.first > starts.last:
        return True
    if state[FORWARD_END] == UNKNOWN or state[REVERSE_END] == UNKNOWN:
        met = ends_before(work.lookup, work.codes, query_kmer, starts)
        state[FORWARD_END] = max(state[FORWARD_END], met.forward)
        state[REVERSE_END] = max(state[REVERSE_END], met.reverse)
    ends = ends_from(work, query_kmer)
    # Without this, a read whose whole rest has been met would still look up all minimizers.
    if ends.forward >= query_end and ends.reverse >= query_end:
        return True
    frontier.counts[0] = 0
    frontier.counts[1] = 0
    meet_rarest(work, query_kmer, starts, ends)
    row, reverse_row = state[FORWARD_ROWS], state[REVERSE_ROWS]
    if row + frontier.counts[0] > forward.lengths.size:
        return False
    if reverse_row + frontier.counts[1] > reverse.lengths.size:
        return False
    state[FORWARD_ROWS] = write_frontier(frontier, 0, forward, row)
    state[REVERSE_ROWS] = write_frontier(frontier, 1, reverse, reverse_row)
    for strand in range(2):
        count = frontier.counts[strand]
        if count > 0:
            furthest = frontier.ends[strand, count - 1]
            state[FORWARD_END + strand] = max(state[FORWARD_END + strand], furthest)
    return True


@inline
def meet_rarest(
    work: UniqueWork, query_kmer: QueryKmer, starts: StartsOfMinimizer, ends: MatchEnds
) -> None:
    """Add the matches with some starts to a frontier, found at their rarest minimizers."""
    lookup = work.lookup
    query_begin, query_end = query_kmer.query_begin, query_kmer.query_end
    number = query_kmer.number
    if ends.forward >= query_end:
        forward_number = reverse_number = rarest_between(work, query_kmer, ends.reverse)
    else:
        forward_number = rarest_between(work, query_kmer, ends.forward)
        reverse_number = forward_number
        if ends.reverse < query_end:
            reverse_number = rarest_between(work, query_kmer, ends.reverse)
    rarest, wanted = forward_number, ends
    if forward_number != reverse_number:
        wanted = MatchEnds(ends.forward, as_int64(ALL_MET))
    while True:
        if rarest != number:
            query_kmer = query_kmer_at(work, rarest, query_begin, query_end)
        if query_kmer.listed_end - query_kmer.listed_begin > lookup.longest_ascending:
            meet_ordered_matches(lookup, work.codes, query_kmer, starts, wanted, work.frontier)
        else:
            extend_at_minimizer(work, query_kmer, starts, wanted)
        if rarest == reverse_number:
            break
        # The matches of the other strand have a rarer minimizer.
        rarest, number = reverse_number, rarest
        wanted = MatchEnds(as_int64(ALL_MET), ends.reverse)


@inline
def ends_from(work: UniqueWork, query_kmer: QueryKmer) -> MatchEnds:
    """Return the furthest ends; or `ALL_MET` where only matches found later pass them.

    A match that passes an end has the minimizer of the last window before that, or begins later
    than this window. Where it is frequent, and few of its entries pass the end, these show how
    early a match can begin.
    """
    lookup, minimizers, state = work.lookup, work.minimizers, work.state
    if query_kmer.listed_end - query_kmer.listed_begin > lookup.longest_ascending:
        for strand in range(2):
            end = state[FORWARD_END + strand]
            # The last window of a match that passes it by a base, if that begins so early.
            window_begin = end + 2 - lookup.window - lookup.kmer_length
            if state[FORWARD_ASKED + strand] == end or end == query_kmer.query_end:
                continue
            # Minimizers are known up to a window after this part.
            if not query_kmer.place >> 1 <= window_begin <= minimizers.end:
                continue
            state[FORWARD_ASKED + strand] = end
            start = window_begin + 1
            lowest = lowest_of(minimizers, query_kmer.number, window_begin, lookup.window)
            if lowest < 0:
                # No match has a window with a break.
                state[FORWARD_NEXT + strand] = first_from(minimizers, query_kmer.number, start)
                continue
            other = query_kmer_at(work, lowest, query_kmer.query_begin, query_kmer.query_end)
            if other.listed_end - other.listed_begin > lookup.longest_ascending:
                start = min(start, first_start_beyond(lookup, work.codes, other, end, strand == 1))
                # A match that begins there is found at a minimizer that does not lie before it.
                state[FORWARD_NEXT + strand] = first_from(minimizers, query_kmer.number, start)
    forward, reverse = state[FORWARD_END], state[REVERSE_END]
    if query_kmer.number < state[FORWARD_NEXT]:
        forward = as_int64(ALL_MET)
    if query_kmer.number < state[REVERSE_NEXT]:
        reverse = as_int64(ALL_MET)
    return MatchEnds(forward, reverse)


@inline
def first_from(minimizers: QueryMinimizers, number: int, at: int) -> int:
    """Return the number of the first minimizer, from one on, that begins at a base or after it."""
    while number < minimizers.total and minimizers.places[as_index(number)] >> 1 < at:
        number += 1
    return number


@inline
def lowest_of(minimizers: QueryMinimizers, number: int, begin: int, window: int) -> int:
    """Return the number of the last minimizer with the lowest rank of a window; -1 without one.

    All k-mers are minimizers that have this rank. `number` lies in the window or before it.
    """
    places, ranks = minimizers.places, minimizers.ranks
    other = first_from(minimizers, number, begin)
    lowest = as_int64(-1)
    while other < minimizers.total and places[as_index(other)] >> 1 < begin + window:
        if lowest < 0 or ranks[as_index(other)] <= ranks[as_index(lowest)]:
            lowest = other
        other += 1
    return lowest


@inline
def query_kmer_at(work: UniqueWork, number: int, query_begin: int, query_end: int) -> QueryKmer:
    """Return a minimizer of a query with its entries."""
    lookup, minimizers = work.lookup, work.minimizers
    place = minimizers.places[as_index(number)]
    bucket = as_int64(minimizers.ranks[as_index(number)]) & (lookup.offsets.size - 2)
    return QueryKmer(
        number,
        place,
        context_at(work.codes, place >> 1, lookup.kmer_length, place & 1 == 1),
        as_int64(lookup.offsets[as_index(bucket)]),
        as_int64(lookup.offsets[as_index(bucket + 1)]),
        query_begin,
        query_end,
    )


@inline
def owned_starts(
    minimizers: QueryMinimizers, query_kmer: QueryKmer, window: int
) -> StartsOfMinimizer:
    """Return the starts of the windows of which a minimizer is the first one with the lowest rank.

    The first one comes after the last one if there are none.
    """
    places, ranks, number = minimizers.places, minimizers.ranks, query_kmer.number
    at, rank = query_kmer.place >> 1, ranks[as_index(query_kmer.number)]
    first, last = max(at - window + 1, query_kmer.query_begin), at
    # An equal rank before it is first, and one after it is not.
    other = number - 1
    while other >= 0 and places[as_index(other)] >> 1 >= first:
        if ranks[as_index(other)] <= rank:
            first = (places[as_index(other)] >> 1) + 1
        other -= 1
    other = number + 1
    while other < minimizers.total and places[as_index(other)] >> 1 < last + window:
        if ranks[as_index(other)] < rank:
            last = (places[as_index(other)] >> 1) - window
        other += 1
    return StartsOfMinimizer(first, last)


@inline
def rarest_between(work: UniqueWork, query_kmer: QueryKmer, end: int) -> int:
    """Return the number of the rarest minimizer of all matches that begin before one, or with it.

    They reach beyond `end`. Of all their windows, the next few ones are looked at.
    """
    lookup, minimizers = work.lookup, work.minimizers
    places, ranks = minimizers.places, minimizers.ranks
    mask = lookup.offsets.size - 2
    rarest, fewest = query_kmer.number, query_kmer.listed_end - query_kmer.listed_begin
    first, other = (query_kmer.place >> 1) + 1, query_kmer.number + 1
    for _ in range(WINDOWS_AHEAD):
        behind = first + lookup.window
        if fewest <= RARE_ENTRIES or behind + lookup.kmer_length - 2 > end:
            break
        # Each match has this whole window, and so its minimizer.
        lowest = lowest_of(minimizers, other, first, lookup.window)
        if lowest < 0:
            break
        bucket = as_int64(ranks[as_index(lowest)]) & mask
        count = as_int64(lookup.offsets[as_index(bucket + 1)])
        count -= as_int64(lookup.offsets[as_index(bucket)])
        if count < fewest:
            rarest, fewest = lowest, count
        first, other = (places[as_index(lowest)] >> 1) + 1, lowest + 1
    return rarest
