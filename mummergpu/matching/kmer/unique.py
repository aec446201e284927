"""The search for matches that are unique in the reference: it looks up minimizers of queries.

A match of at least `l` bases has all minimizers of the window in which it begins
(`sequence.minimizers`). It is found at the first one with the lowest rank of that window, on either
strand, and only there. The minimizers of a window are also those of its copies in the reference. So
the entries with this minimizer's k-mer have every copy of the match, and tell whether it is unique:
if its bases occur a second time, another entry extends at least as far to both sides. No match has
to be known besides, so nothing is left to filter (`filter.keep_unique`), and parts of a query are
searched independently of each other.

Minimizers are the same on both strands, so one look-up answers for both. Along a query, the first
minimizers with the lowest ranks of later windows never lie before those of earlier windows. A
unique match does not lie in another one, so those that begin later also end later. Rows are
therefore found in the order of the queries: on the reverse strand, in the opposite order.

Most entries need no access to the reference: the bases beside their k-mers (`sequence.contexts`)
show that they occur by chance, or that a match begins before the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import EntryArray, PositionArray
from mummergpu.index.minimizer_index import MinimizerPage
from mummergpu.index.minimizer_table import POSITION_SHIFT
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.matching.query_codes import QueryCodes
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    prefetch,
)
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.thread_array import ThreadArray
from mummergpu.sequence.codes import MARGIN, STEP, CodeArray, Strand
from mummergpu.sequence.contexts import (
    BROKEN,
    CONTEXT_BASES,
    context_at,
    equal_sides,
    sides_mask,
)
from mummergpu.sequence.extension import extend_left, extend_right
from mummergpu.sequence.mems import MemColumns, MemRows, join_rows, longer_rows, new_rows
from mummergpu.sequence.minimizers import PlaceArray, RankArray, find_minimizers, new_workspace
from mummergpu.sequence.reverse_extension import extend_left_reversed, extend_right_reversed

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

NUMBER, QUERY, FORWARD_ROWS, REVERSE_ROWS = 0, 1, 2, 3
"""The elements of the state of a search: the next minimizer, its query, and the filled rows."""

_PLACE_SHIFT: Final = np.uint64(POSITION_SHIFT - 1)


class MinimizerLookup(NamedTuple):
    """The table of a reference, and the reference (`minimizer_table.MinimizerTable`).

    Attributes
    ----------
    offsets, entries : ndarray, dtype=uint32 and uint64
        The table.
    kmer_length, window, min_length : int
        The bases of a k-mer, the k-mers of a window, and the fewest bases of a match.
    reference : ndarray, dtype=uint8
        The codes with margins.
    """

    offsets: PositionArray
    entries: EntryArray
    kmer_length: int
    window: int
    min_length: int
    reference: CodeArray


class QueryMinimizers(NamedTuple):
    """The minimizers in a part of a block, and a window of bases to its left and right.

    They may be those of all queries as one sequence: the lowest ranks of all windows inside a query
    are among them.

    Attributes
    ----------
    places, ranks : ndarray
        The minimizers (`sequence.minimizers`).
    total : int
        Their number; the arrays may be longer.
    begin, end : int
        The part, as indices of the codes with margins.
    """

    places: PlaceArray
    ranks: RankArray
    total: int
    begin: int
    end: int


class Sample(NamedTuple):
    """A minimizer of a query.

    Attributes
    ----------
    number, place : int
        Its number and its place (`sequence.minimizers`).
    context : uint64
        The bases beside it (`sequence.contexts`).
    listed_begin, listed_end : int
        The entries of the table that may have its k-mer.
    query_begin, query_end : int
        Its query, as indices of the codes with margins.
    """

    number: int
    place: int
    context: np.uint64
    listed_begin: int
    listed_end: int
    query_begin: int
    query_end: int


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
                found = self._search_part(block, first, end)
            tell(end - first)
            return found

        parts = list(map_function(search, range(0, max(block.base_count, 1), TASK_BASES)))
        if sum(part[strand].lengths.size for part in parts for strand in strands) > max_rows:
            return None
        return {
            strand: rows_of_queries(join_rows([part[strand] for part in parts]), block, strand)
            for strand in strands
        }

    def _search_part(self, block: QueryBlock, first: int, end: int) -> tuple[MemRows, MemRows]:
        """Return the matches whose minimizers lie in a part of a block, on both strands.

        Their starts count from the first base of the block, on the forward strand.
        """
        lookup, queries = self._lookup, QueryCodes(block.padded_codes, block.offsets)
        low, high = max(0, first - lookup.window), min(end + lookup.window, block.base_count)
        query = max(0, int(np.searchsorted(queries.offsets, low, side="right")) - 1)
        places, ranks = (scratch.of_size(high - low + 1) for scratch in self._scratch)
        # Those of all queries as one sequence, which are more than those of each, and sooner found.
        count = find_minimizers(
            queries.codes,
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
        state = np.array([0, query, 0, 0], dtype=np.int64)
        candidates = np.empty(CANDIDATES, dtype=np.int64)
        room = MIN_ROOM
        forward, reverse = new_rows(room), new_rows(room)
        while not find_unique_rows(
            lookup, queries, minimizers, candidates, state, forward, reverse
        ):
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


@jit_without_refcounts
def find_unique_rows(
    lookup: MinimizerLookup,
    queries: QueryCodes,
    minimizers: QueryMinimizers,
    candidates: Int64Array,
    state: Int64Array,
    forward: MemRows,
    reverse: MemRows,
) -> bool:
    """Write the matches that are unique in the reference, and whose minimizers lie in a range.

    Rows of both strands ascend by their starts, which count from the first base of the block on the
    forward strand. False means that the rows are full: the caller then calls again with longer
    ones.
    """
    places, ranks, total = minimizers.places, minimizers.ranks, minimizers.total
    offsets = queries.offsets
    mask = lookup.offsets.size - 2
    number, query = state[NUMBER], state[QUERY]
    while number < total and places[as_index(number)] >> 1 < minimizers.end:
        if number + BUCKETS_AHEAD < total:
            coming = as_int64(ranks[as_index(number + BUCKETS_AHEAD)]) & mask
            prefetch(lookup.offsets, coming)
            coming = as_int64(ranks[as_index(number + ENTRIES_AHEAD)]) & mask
            begin_of_entries = as_int64(lookup.offsets[as_index(coming)])
            prefetch(lookup.entries, begin_of_entries)
            # Of entries that begin in a line of the caches, some lie in the next one.
            prefetch(lookup.entries, begin_of_entries + ENTRIES_OF_LINE - 1)
        place = places[as_index(number)]
        at = place >> 1
        while MARGIN + offsets[query + 1] <= at:
            query += 1
        bucket = as_int64(ranks[as_index(number)]) & mask
        listed = as_int64(lookup.offsets[as_index(bucket)])
        listed_end = as_int64(lookup.offsets[as_index(bucket + 1)])
        # A k-mer that reaches into the next query is one of the block, but of no query.
        is_whole = at + lookup.kmer_length <= MARGIN + offsets[query + 1]
        if at < minimizers.begin or listed == listed_end or not is_whole:
            number += 1
            continue
        filled, filled_reverse = state[FORWARD_ROWS], state[REVERSE_ROWS]
        sample = Sample(
            number,
            place,
            context_at(queries.codes, at, lookup.kmer_length, place & 1 == 1),
            listed,
            listed_end,
            MARGIN + offsets[query],
            MARGIN + offsets[query + 1],
        )
        if not write_matches(
            lookup, queries.codes, minimizers, candidates, sample, state, forward, reverse
        ):
            # The next call begins with this minimizer, and the rows of earlier ones stay.
            state[NUMBER], state[QUERY] = number, query
            state[FORWARD_ROWS], state[REVERSE_ROWS] = filled, filled_reverse
            return False
        number += 1
    state[NUMBER], state[QUERY] = number, query
    return True


@inline_without_refcounts
def write_matches(
    lookup: MinimizerLookup,
    codes: CodeArray,
    minimizers: QueryMinimizers,
    candidates: Int64Array,
    sample: Sample,
    state: Int64Array,
    forward: MemRows,
    reverse: MemRows,
) -> bool:
    """Write the unique matches that are found at a minimizer; return False if the rows are full."""
    kmer_length, window = lookup.kmer_length, lookup.window
    place, context = sample.place, sample.context
    at = place >> 1
    is_broken = (
        context & BROKEN != 0
        or at - sample.query_begin < CONTEXT_BASES
        or sample.query_end - at - kmer_length < CONTEXT_BASES
    )
    first_row, first_reverse = state[FORWARD_ROWS], state[REVERSE_ROWS]
    # The bases of a context in which a match agrees that begins before the window; none where it
    # cannot tell.
    earlier = np.uint64(0)
    if not is_broken and window <= CONTEXT_BASES:
        earlier = sides_mask(0, window) if place & 1 == 1 else sides_mask(window, 0)
    coming = sample.listed_begin
    while coming < sample.listed_end:
        coming, candidate_count = find_candidates(lookup, sample, coming, earlier, candidates)
        for candidate in range(candidate_count):
            one = candidates[as_index(candidate)]
            entry = lookup.entries[as_index(one)]
            before, after = equal_sides(entry ^ context)
            other = as_int64(entry >> _PLACE_SHIFT)
            is_reverse = (other ^ place) & 1 == 1
            found = MARGIN + (other >> 1)
            left = after if place & 1 == 1 else before
            if is_broken or entry & BROKEN or (left == CONTEXT_BASES and left < window):
                most = min(window, at - sample.query_begin)
                left = bases_left(lookup, codes, at, found, is_reverse, most)
            # A match belongs to the first minimizer of the window in which it begins, and only
            # there it is written.
            if left >= window or not is_first(minimizers, sample.number, at - left, window):
                continue
            right = bases_right(lookup, codes, at, found, is_reverse, sample.query_end - at)
            if right < kmer_length or left + right < lookup.min_length:
                continue
            if is_elsewhere(lookup, codes, sample, one, left, right):
                continue
            start, length = at - left - MARGIN, left + right
            if is_reverse:
                row, found = state[REVERSE_ROWS], found + kmer_length - right - MARGIN
                if row == reverse.lengths.size:
                    return False
                write_row(reverse, first_reverse, row, start, found, length)
                state[REVERSE_ROWS] = row + 1
            else:
                row, found = state[FORWARD_ROWS], found - left - MARGIN
                if row == forward.lengths.size:
                    return False
                write_row(forward, first_row, row, start, found, length)
                state[FORWARD_ROWS] = row + 1
    return True


@inline_without_refcounts
def find_candidates(
    lookup: MinimizerLookup,
    sample: Sample,
    coming: int,
    earlier: np.uint64,
    candidates: Int64Array,
) -> tuple[int, int]:
    """Write the next entries that may be in a match, and prefetch the reference there.

    Return the next entry to look at, and the number of candidates. `earlier` are the bits in which
    the context of an entry without a break agrees if its match begins before all windows of the
    k-mer; 0 if that is not known.
    """
    # Where so many bases beside a k-mer match, half of them do on one of its sides.
    near = (min(lookup.window - 1, CONTEXT_BASES) + 1) // 2
    near_before, near_after = sides_mask(near, 0), sides_mask(0, near)
    count = 0
    while coming < sample.listed_end and count < candidates.size:
        entry = lookup.entries[as_index(coming)]
        differing = entry ^ sample.context
        is_near = differing & near_before == 0 or differing & near_after == 0
        if is_near and (earlier == 0 or differing & (earlier | BROKEN) != 0):
            before, after = equal_sides(differing)
            if before + after >= lookup.window - 1 or max(before, after) == CONTEXT_BASES:
                candidates[as_index(count)] = coming
                count += 1
                position = as_int64(entry >> np.uint64(POSITION_SHIFT))
                prefetch(lookup.reference, MARGIN + position)
        coming += 1
    return coming, count


@inline_without_refcounts
def write_row(
    rows: MemRows, first_row: int, row: int, start: int, reference_start: int, length: int
) -> None:
    """Write a match to its place among those of its minimizer, which ascend by start."""
    starts, reference_starts, lengths = rows.query_starts, rows.reference_starts, rows.lengths
    while row > first_row and starts[as_index(row - 1)] > start:
        starts[as_index(row)] = starts[as_index(row - 1)]
        reference_starts[as_index(row)] = reference_starts[as_index(row - 1)]
        lengths[as_index(row)] = lengths[as_index(row - 1)]
        row -= 1
    starts[as_index(row)] = start
    reference_starts[as_index(row)] = reference_start
    lengths[as_index(row)] = length


@inline_without_refcounts
def bases_left(
    lookup: MinimizerLookup, codes: CodeArray, at: int, found: int, is_reverse: bool, most: int
) -> int:
    """Return how many bases before a k-mer of a query match beside one of the reference.

    `at` and `found` are where the k-mer begins on both forward strands; `is_reverse` says that it
    is the reverse complement in the reference.
    """
    if is_reverse:
        behind = found + lookup.kmer_length
        return extend_left_reversed(codes, at, lookup.reference, behind, most)
    return extend_left(codes, at, lookup.reference, found, most)


@inline_without_refcounts
def bases_right(
    lookup: MinimizerLookup, codes: CodeArray, at: int, found: int, is_reverse: bool, most: int
) -> int:
    """Return how many bases from a k-mer on match, its own among them, as `bases_left` does."""
    if is_reverse:
        behind = found + lookup.kmer_length
        return extend_right_reversed(codes, at, lookup.reference, behind, most)
    return extend_right(codes, at, lookup.reference, found, most)


@inline_without_refcounts
def is_first(minimizers: QueryMinimizers, number: int, start: int, window: int) -> bool:
    """Return whether a minimizer is the first one with the lowest rank of a window."""
    places, ranks = minimizers.places, minimizers.ranks
    rank = ranks[as_index(number)]
    # An equal rank before it is first, and one after it is not.
    other = number - 1
    while other >= 0 and places[as_index(other)] >> 1 >= start:
        if ranks[as_index(other)] <= rank:
            return False
        other -= 1
    other = number + 1
    while other < minimizers.total and places[as_index(other)] >> 1 < start + window:
        if ranks[as_index(other)] < rank:
            return False
        other += 1
    return True


@inline_without_refcounts
def is_elsewhere(
    lookup: MinimizerLookup, codes: CodeArray, sample: Sample, own: int, left: int, right: int
) -> bool:
    """Return whether all bases of a match occur a second time, on the same strand.

    `own` is the match's entry; it has `left` bases before the k-mer, and `right` from the k-mer on.
    """
    entries, reference = lookup.entries, lookup.reference
    kmer_length, place = lookup.kmer_length, sample.place
    at = place >> 1
    strand = entries[as_index(own)] >> _PLACE_SHIFT & np.uint64(1)
    is_reverse = strand != np.uint64(place & 1)
    behind = right - kmer_length
    # Seen along the strand on which the k-mer is the lower number.
    min_before = min(behind if place & 1 == 1 else left, CONTEXT_BASES)
    min_after = min(left if place & 1 == 1 else behind, CONTEXT_BASES)
    least = sides_mask(min_before, min_after)
    for other in range(sample.listed_begin, sample.listed_end):
        entry = entries[as_index(other)]
        if (entry ^ sample.context) & least != 0 or other == own:
            continue
        if entry >> _PLACE_SHIFT & np.uint64(1) != strand:
            continue
        found = MARGIN + as_int64(entry >> np.uint64(POSITION_SHIFT))
        if bases_left(lookup, codes, at, found, is_reverse, left) < left:
            continue
        # Copies of a tandem repeat, which agree for long, end at different distances.
        last = min(right, STEP)
        if is_reverse:
            end = found + kmer_length - right
            if end < MARGIN:
                continue
            if extend_left_reversed(codes, at + right, reference, end, last) < last:
                continue
        else:
            end = found + right
            if end > reference.size - MARGIN:
                continue
            if extend_left(codes, at + right, reference, end, last) < last:
                continue
        if bases_right(lookup, codes, at, found, is_reverse, right) == right:
            return True
    return False
