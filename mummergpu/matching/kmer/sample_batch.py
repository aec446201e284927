"""Batches of samples: the k-mers of queries that are looked up next, and where their lists are.

Each memory access is prefetched for a whole batch before its use.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.matching.kmer.lookup import (
    KmerLookup,
    QuerySteps,
    end_of_equal,
    is_long_list,
    place_by_bases,
)
from mummergpu.matching.query_codes import QueryCodes
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, prefetch
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import kmer_at
from mummergpu.sequence.picked_kmers import picked_kmer

PLACES_AHEAD: Final = 4
"""The occurrences of a list that are prefetched before the first is compared."""

ROWS_FULL_HERE: Final = -1
DAMAGED_HERE: Final = -2
"""Returned in place of a row number: the rows are full, or a position is outside."""

BATCH: Final = 64
"""The samples whose memory accesses run at the same time."""

# The numbers of a sample in a batch. The k-mer becomes the start of its list (`find_lists`); the
# lead is the bases of its window before it. Where a match reaches so far to the left as the last
# number, an earlier sample finds it.
QUERY_OF: Final = 0
PLACE: Final = 1
KMER: Final = 2
LIST_BEGIN: Final = 2
LIST_END: Final = 3
LEAD: Final = 4
FOUND_BEFORE: Final = 5
BATCH_NUMBERS: Final = 6


@inline
def add_sample(
    lookup: KmerLookup,
    codes: CodeArray,
    batch: Int64Array,
    size: int,
    query: int,
    place: int,
    lead: int,
    found_before: int,
) -> int:
    """Add a sample to a batch unless its k-mer has a break; return how many there are then."""
    kmer = kmer_at(codes, MARGIN + place, lookup.kmer_length)
    # No match holds a k-mer with a break: it takes no place of the batch.
    if kmer < 0:
        return size
    prefetch(lookup.offsets, kmer)
    batch[size, QUERY_OF] = query
    batch[size, PLACE] = place
    batch[size, KMER] = kmer
    batch[size, LEAD] = lead
    batch[size, FOUND_BEFORE] = found_before
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
    """Fill a batch with the k-mers of the next samples, or those picked of the next spans.

    Return how many there are, and the query and the place of the sample, or the span, behind them.
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
            # Spans of which the same k-mer is picked are one sample.
            while at + needed <= end and at <= place:
                picked = picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
                if picked < 0 or at + picked != place:
                    break
                last = at
                at += steps.step
        before = place - first + steps.period
        size = add_sample(lookup, queries.codes, batch, size, query, place, place - last, before)
    return size, query, at


@inline
def find_lists(lookup: KmerLookup, batch: Int64Array, size: int) -> bool:
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
        prefetch(positions, begin)
    for sample in range(size):
        begin = batch[sample, LIST_BEGIN]
        for place in range(begin, min(batch[sample, LIST_END], begin + PLACES_AHEAD)):
            found = lookup.part_begin + as_int64(positions[as_index(place)])
            prefetch(lookup.reference, MARGIN + found)
    return True


class PlacesToExtend(NamedTuple):
    """The part of a list that a search looks at, but for the places in between that it skips."""

    begin: int
    skipped_begin: int
    skipped_end: int
    end: int


@inline
def places_to_extend(
    lookup: KmerLookup, queries: QueryCodes, batch: Int64Array, sample: int
) -> PlacesToExtend:
    """Return the places of a sample's list that may be the first of a MEM, or a few more."""
    begin, end = batch[sample, LIST_BEGIN], batch[sample, LIST_END]
    if not is_long_list(lookup, begin, end):
        return PlacesToExtend(begin, end, end, end)
    codes, lead, at = queries.codes, batch[sample, LEAD], batch[sample, PLACE]
    # In a list that is sorted by the bases before each position, those lie side by side that have
    # the bases of a window before them, or as many of these as the list is sorted by.
    known = min(lead, lookup.ordered_bases)
    if known > 0:
        begin = place_by_bases(lookup, codes, at, known, begin, end, False)
        end = end_of_equal(lookup, codes, at, known, begin, end)
    # So do those that match as far to the left as an earlier sample, which has found them.
    before = batch[sample, FOUND_BEFORE]
    has_earlier = at - queries.offsets[batch[sample, QUERY_OF]] >= before
    if before > lookup.ordered_bases or not has_earlier:
        return PlacesToExtend(begin, end, end, end)
    skipped = place_by_bases(lookup, codes, at, before, begin, end, False)
    behind = end_of_equal(lookup, codes, at, before, skipped, end)
    return PlacesToExtend(begin, skipped, behind, end)
