"""A table of k-mers as compiled functions take it, and batches of k-mers that are looked up in it.

Each memory access is prefetched for a whole batch before its use.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import KmerPage, PositionArray
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, lowest_bit, prefetch
from mummergpu.sequence.codes import MARGIN, STEP, CodeArray
from mummergpu.sequence.extension import (
    FOUR,
    WORD_STEP,
    digest_before,
    digest_bits,
    equal_bytes,
    extend_left,
    extend_word_left,
    first_of_step,
    four_before,
    kmer_at,
)
from mummergpu.sequence.picked_kmers import picked_kmer

ROWS_FULL, DONE, DAMAGED = range(3)
"""The reasons why a kernel stops: the next MEMs do not fit the rows, nothing is left to do, or a
list is not inside the table or a position not inside the reference."""

UNBOUNDED_MATCHES: Final = 1 << 60
"""More matches than a read can have."""


class KmerLookup(NamedTuple):
    """The table of a part of the reference, and the reference (`kmer_table.KmerTable`)."""

    # The table; positions count from `part_begin`.
    offsets: PositionArray
    positions: PositionArray
    bases_beside: ByteArray  # The bases beside each position (`KmerTable`).
    beside_of_all: int  # The bits of these bytes that may be compared: 0 if they are not known.
    # The bases of a k-mer, and where in the reference the part begins, 0-based.
    kmer_length: int
    part_begin: int
    last_position: int  # The last position at which a whole k-mer of the reference can begin.
    # The most positions of a list that ascends, and how many bases before each position longer
    # lists are sorted by.
    longest_ascending: int
    ordered_bases: int
    # The k-mers in a row of which one is picked; 0 without (`KmerSampling.picked_of`).
    picked_of: int
    reference: CodeArray  # The codes of the whole reference with margins; (n_bases + 2 * MARGIN,).


def lookup_of(page: KmerPage) -> KmerLookup:
    """Return a page as compiled functions take it."""
    table, kmer_length = page.table, page.table.sampling.kmer_length
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
        table.sampling.picked_of,
        page.padded_reference,
    )


class QuerySteps(NamedTuple):
    """Where the k-mers of a search for all matches are: all in bases (`kmer_sampling`)."""

    min_length: int  # The fewest bases of a MEM.
    # The distances from one k-mer to the next and from one pair of a MEM to the next.
    step: int
    sampling_step: int


class SeedSteps(NamedTuple):
    """Where the k-mers of a mapper are: all in bases (`kmer_sampling`)."""

    min_length: int  # The fewest bases of a MEM.
    # The distances from one k-mer to the next and from one pair of a MEM to the next.
    step: int
    sampling_step: int
    # The bases of a window, one of which every MEM contains, and the fewest and the most of them
    # before a k-mer that is looked up; all 0 if k-mers need no window. With picked k-mers, those
    # before a span.
    window: int
    first_offset: int
    last_offset: int
    # The most matches of a query, or matches with a window, before seeds are chosen (`seed_rule`).
    max_matches: int
    max_occurrences: int  # The most occurrences of all taken seeds together.
    # The bases of a window that may become a seed, and from one to the next; and the places of a
    # seed of which one is listed: 1 with picked k-mers.
    seed: int
    seed_step: int
    kmers_of_seed: int


@inline
def extend_at_most(
    codes: CodeArray, at: int, reference: CodeArray, reference_at: int, most: int, farthest: int
) -> int:
    """Return how many bases before two places match, up to `most`, which is up to `farthest`."""
    # `farthest` is the same for many places, and mostly a few bases: the branch is predicted.
    if farthest <= WORD_STEP:
        return min(extend_word_left(codes, at, reference, reference_at), most)
    return extend_left(codes, at, reference, reference_at, most)


@inline
def prefetch_bases_at(lookup: KmerLookup, place: int) -> None:
    """Prefetch the bases before a listed position."""
    position = as_int64(lookup.positions[as_index(place)])
    prefetch(lookup.reference, MARGIN + lookup.part_begin + position - STEP)


@inline
def place_by_bases(
    lookup: KmerLookup,
    codes: CodeArray,
    at: int,
    bases: int,
    list_begin: int,
    list_end: int,
    behind_equal: bool,
) -> int:
    """Return the first place of a list sorted by bases whose bases do not come before a k-mer's.

    The `bases` bases before the k-mer are compared, of those by which the list is sorted. With
    `behind_equal` it is the first place after those with the same bases, and else the first of
    these. If a break is among the k-mer's bases, no place has the same bases, and the result does
    not depend on `behind_equal`.
    """
    low, high = list_begin, list_end
    # The place is in [low, high]: all before `low` have smaller bases, and none from `high` on.
    while low < high:
        middle = (low + high) // 2
        # One of these is compared next.
        prefetch_bases_at(lookup, (low + middle) // 2)
        prefetch_bases_at(lookup, min((middle + 1 + high) // 2, high - 1))
        position = min(as_int64(lookup.positions[as_index(middle)]), lookup.last_position)
        found = lookup.part_begin + position
        left = extend_left(codes, MARGIN + at, lookup.reference, MARGIN + found, bases)
        is_before = behind_equal
        if left < bases:
            mine = codes[as_index(MARGIN + at - 1 - left)]
            is_before = lookup.reference[as_index(MARGIN + found - 1 - left)] < mine
        if is_before:
            low = middle + 1
        else:
            high = middle
    return low


@inline
def end_of_equal(
    lookup: KmerLookup, codes: CodeArray, at: int, bases: int, begin: int, list_end: int
) -> int:
    """Return where the places with a k-mer's bases end (`place_by_bases`); they begin at `begin`.

    They are mostly few of a long list, so the steps to the end double from the first place on.
    """
    low, step = begin, as_int64(1)
    # All places from the first to `low` have these bases.
    while low + step <= list_end:
        position = min(as_int64(lookup.positions[as_index(low + step - 1)]), lookup.last_position)
        found = MARGIN + lookup.part_begin + position
        if extend_left(codes, MARGIN + at, lookup.reference, found, bases) < bases:
            break
        low += step
        step *= 2
    return place_by_bases(lookup, codes, at, bases, low, min(low + step - 1, list_end), True)


class BasesBeside(NamedTuple):
    """The byte wanted beside a listed position, and which of its bits count (`KmerTable`)."""

    bases: int
    bits: int


@inline
def bases_beside(
    lookup: KmerLookup, codes: CodeArray, at: int, kmer_offset: int, tail: int, is_sorted: bool
) -> BasesBeside:
    """Return the bases that must lie next to the places of a k-mer.

    They are bases before a position in a list that ascends, and bases after its k-mer in one that
    is sorted by the bases before.
    """
    bits = as_int64(lookup.beside_of_all)
    if bits == 0:
        return BasesBeside(bits, bits)
    if is_sorted:
        bits &= 0xFF >> 2 * (FOUR - min(tail, FOUR))
        found = int(four_before(codes, MARGIN + at + lookup.kmer_length + FOUR))
    else:
        bits &= digest_bits(kmer_offset)
        found = int(digest_before(codes, MARGIN + at))
    return BasesBeside(found & bits, bits)


@inline
def may_count(lookup: KmerLookup, wanted: BasesBeside, place: int) -> bool:
    """Return whether the bases next to a listed position may be the wanted ones."""
    if wanted.bits == 0:
        return True
    return as_int64(lookup.bases_beside[as_index(place)]) & wanted.bits == wanted.bases


@inline
def next_places(
    lookup: KmerLookup, wanted: BasesBeside, begin: int, end: int, prefetches: bool
) -> np.uint64:
    """Return a mask of the places from `begin` on that may count, up to `STEP`; none from `end`.

    Few places of a long list may count, so the bases of a whole step are prefetched.
    """
    if begin >= end:
        return np.uint64(0)
    mask = first_of_step(end - begin)
    # The last places of the table are all compared.
    if wanted.bits != 0 and begin + STEP <= lookup.bases_beside.size:
        mask &= equal_bytes(lookup.bases_beside, begin, wanted.bits, wanted.bases)
    left = mask if prefetches else np.uint64(0)
    while left != np.uint64(0):
        prefetch_place(lookup, wanted, begin + lowest_bit(left), end)
        left &= left - np.uint64(1)
    return mask


@inline
def prefetch_place(lookup: KmerLookup, wanted: BasesBeside, place: int, end: int) -> None:
    """Prefetch the reference on both sides of a listed position, unless other bases lie there."""
    if place < end and may_count(lookup, wanted, place):
        position = as_int64(lookup.positions[as_index(place)])
        found = MARGIN + lookup.part_begin + position
        prefetch(lookup.reference, found)
        # If no such bases are compared, few places match beyond the first bases.
        if wanted.bits != 0:
            prefetch(lookup.reference, found - STEP)


class ListedPlaces(NamedTuple):
    """A part of the list of a k-mer, and how many bases before it all of its places share.

    `is_sorted` says whether the whole list is sorted by the bases before its places.
    """

    begin: int
    end: int
    known: int
    is_sorted: bool


@inline
def is_long_list(lookup: KmerLookup, begin: int, end: int) -> bool:
    """Return whether the whole list of a k-mer is sorted by the bases before its places."""
    return end - begin > lookup.longest_ascending


@inline
def listed_places(
    lookup: KmerLookup, queries: QueryCodes, at: int, kmer_offset: int
) -> ListedPlaces:
    """Return the part of a k-mer's list that the `kmer_offset` bases before the k-mer precede.

    Where the list is sorted by fewer bases, it may be more. An end of -1 shows damage.
    """
    zero = as_int64(0)
    kmer = kmer_at(queries.codes, MARGIN + at, lookup.kmer_length)
    if kmer < 0:
        return ListedPlaces(zero, zero, zero, False)
    begin = as_int64(lookup.offsets[as_index(kmer)])
    end = as_int64(lookup.offsets[as_index(kmer) + np.uint64(1)])
    if begin > end or end > lookup.positions.size:
        return ListedPlaces(zero, as_int64(-1), zero, False)
    is_sorted = is_long_list(lookup, begin, end)
    known = as_int64(min(kmer_offset, lookup.ordered_bases))
    if not is_sorted or known <= 0:
        return ListedPlaces(begin, end, zero, is_sorted)
    codes = queries.codes
    begin = place_by_bases(lookup, codes, at, known, begin, end, False)
    end = end_of_equal(lookup, codes, at, known, begin, end)
    return ListedPlaces(begin, end, known, True)


PLACES_AHEAD: Final = 4
"""The occurrences of a list that are prefetched before the first is compared."""

ROWS_FULL_HERE: Final = -1
DAMAGED_HERE: Final = -2
"""Returned in place of a row number: the rows are full, or a position is outside."""

BATCH: Final = 64
"""The k-mers whose memory accesses run at the same time."""

# The numbers of a k-mer in a batch. The k-mer becomes the start of its list (`find_lists`); the
# offset is the bases of its window before it. If a match reaches as far to the left as the last
# number, an earlier k-mer finds it.
QUERY_OF: Final = 0
PLACE: Final = 1
KMER: Final = 2
LIST_BEGIN: Final = 2
LIST_END: Final = 3
KMER_OFFSET: Final = 4
LEFT_LIMIT: Final = 5
BATCH_NUMBERS: Final = 6


@inline
def add_query_kmer(
    lookup: KmerLookup,
    codes: CodeArray,
    batch: Int64Array,
    size: int,
    query: int,
    place: int,
    kmer_offset: int,
    left_limit: int,
) -> int:
    """Add a k-mer to a batch unless it has a break; return how many there are then."""
    kmer = kmer_at(codes, MARGIN + place, lookup.kmer_length)
    # No match contains a k-mer with a break: it takes no place of the batch.
    if kmer < 0:
        return size
    batch[size, QUERY_OF] = query
    batch[size, PLACE] = place
    batch[size, KMER] = kmer
    batch[size, KMER_OFFSET] = kmer_offset
    batch[size, LEFT_LIMIT] = left_limit
    return size + 1


@inline
def next_batch(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: QuerySteps,
    batch: Int64Array,
    query: int,
    at: int,
) -> tuple[int, int, int]:
    """Fill a batch with the next k-mers, or those picked of the next spans.

    Return how many there are, and the query and the place of the k-mer, or the span, after them.
    """
    offsets, kmer_length, kmers = queries.offsets, lookup.kmer_length, lookup.picked_of
    needed = kmer_length + max(kmers - 1, 0)
    size = as_int64(0)
    while size < BATCH and query < offsets.size - 1:
        end = offsets[query + 1]
        if at + needed > end or end - offsets[query] < steps.min_length:
            query += 1
            at = end
            continue
        place, first, last = at, at, at
        at += steps.step
        if kmers > 0:
            picked = picked_kmer(queries.codes, MARGIN + first, kmer_length, kmers)
            if picked < 0:
                continue
            place += picked
            # Spans of which the same k-mer is picked are one k-mer.
            while at + needed <= end and at <= place:
                picked = picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
                if picked < 0 or at + picked != place:
                    break
                last = at
                at += steps.step
        before = place - first + steps.sampling_step
        size = add_query_kmer(
            lookup, queries.codes, batch, size, query, place, place - last, before
        )
    return size, query, at


@inline
def prefetch_offsets(lookup: KmerLookup, batch: Int64Array, size: int) -> None:
    """Prefetch where the lists of a batch's k-mers begin.

    A prefetch waits for the address of its page, which is mostly not known either. In a loop with
    nothing else, a processor waits for several of them at the same time.
    """
    for query_kmer in range(size):
        prefetch(lookup.offsets, batch[query_kmer, KMER])


@inline
def find_lists(lookup: KmerLookup, batch: Int64Array, size: int) -> bool:
    """Replace each k-mer of a batch by its list, and prefetch the first occurrences.

    Return False if a list is not inside the table's positions: the table is damaged.
    """
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
        prefetch(positions, begin)
    for query_kmer in range(size):
        begin = batch[query_kmer, LIST_BEGIN]
        for place in range(begin, min(batch[query_kmer, LIST_END], begin + PLACES_AHEAD)):
            found = lookup.part_begin + as_int64(positions[as_index(place)])
            prefetch(lookup.reference, MARGIN + found)
    return True


class PlacesToExtend(NamedTuple):
    """The part of a list that a search looks at, except the places in between that it skips."""

    begin: int
    skipped_begin: int
    skipped_end: int
    end: int


@inline
def places_to_extend(
    lookup: KmerLookup, queries: QueryCodes, batch: Int64Array, query_kmer: int
) -> PlacesToExtend:
    """Return the places of a k-mer's list that may be the first of a MEM, or a few more."""
    begin, end = batch[query_kmer, LIST_BEGIN], batch[query_kmer, LIST_END]
    if not is_long_list(lookup, begin, end):
        return PlacesToExtend(begin, end, end, end)
    codes, kmer_offset, at = queries.codes, batch[query_kmer, KMER_OFFSET], batch[query_kmer, PLACE]
    # In a list that is sorted by the bases before each position, those lie side by side that have
    # the bases of a window before them, or as many of these as the list is sorted by.
    known = min(kmer_offset, lookup.ordered_bases)
    if known > 0:
        begin = place_by_bases(lookup, codes, at, known, begin, end, False)
        end = end_of_equal(lookup, codes, at, known, begin, end)
    # So do those that match as far to the left as an earlier k-mer, which has found them.
    before = batch[query_kmer, LEFT_LIMIT]
    has_earlier = at - queries.offsets[batch[query_kmer, QUERY_OF]] >= before
    if before > lookup.ordered_bases or not has_earlier:
        return PlacesToExtend(begin, end, end, end)
    skipped = place_by_bases(lookup, codes, at, before, begin, end, False)
    behind = end_of_equal(lookup, codes, at, before, skipped, end)
    return PlacesToExtend(begin, skipped, behind, end)
