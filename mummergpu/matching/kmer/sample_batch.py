"""Batches of samples: the k-mers of queries that are looked up next, and where their lists are.

Each memory access is prefetched for a whole batch before its use.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.matching.kmer.lookup import (
    KmerLookup,
    SampleSteps,
    bases_beside,
    is_long_list,
    prefetch_place,
)
from mummergpu.matching.kmer.seed_choice import PLACES_AHEAD
from mummergpu.matching.query_codes import QueryCodes
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, prefetch
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import kmer_at
from mummergpu.sequence.picked_kmers import picked_kmer

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


@inline_without_refcounts
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


@inline_without_refcounts
def next_batch(
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


@inline_without_refcounts
def next_picked(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    batch: Int64Array,
    query: int,
    at: int,
) -> tuple[int, int, int]:
    """Fill a batch with the k-mers that are picked of the next spans (`next_batch`).

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
        first = at
        picked = picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
        at += steps.step
        if picked < 0:
            continue
        place, last = first + picked, first
        # Spans of which the same k-mer is picked are one sample. Windows are not: a match may have
        # one of them and not the next.
        while steps.window == 0 and at + needed <= end and at <= place:
            picked = picked_kmer(queries.codes, MARGIN + at, kmer_length, kmers)
            if picked < 0 or at + picked != place:
                break
            last = at
            at += steps.step
        before = lead + place - first + steps.period
        mine = lead + place - last
        size = add_sample(lookup, queries.codes, batch, size, query, place, mine, before)
    return size, query, at


@inline_without_refcounts
def next_place(
    lookup: KmerLookup, steps: SampleSteps, batch: Int64Array, sample: int
) -> tuple[int, int]:
    """Return the place and the lead for `next_batch` to begin with a sample, or its first span."""
    place, lead = batch[sample, PLACE], batch[sample, LEAD]
    if lookup.picked_of > 0:
        first = as_int64(steps.first_lead)
        place, lead = place - (batch[sample, FOUND_BEFORE] - steps.period) + first, first
    return place, lead


@inline_without_refcounts
def find_lists(lookup: KmerLookup, codes: CodeArray, batch: Int64Array, size: int) -> bool:
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
