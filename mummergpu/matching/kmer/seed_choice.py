"""Chooses the seeds of reads that have too many matches, by looking at the table (`seed_rule`).

Devices do the same in ``kernels/kmer/seed_choice.cuh``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.matching.kmer.lookup import KmerLookup, SampleSteps, listed_places
from mummergpu.matching.query_codes import QueryCodes
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    prefetch,
)
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import extend_left, extend_right
from mummergpu.sequence.mems import MemRows
from mummergpu.sequence.seed_rule import (
    SPREAD_BITS,
    SeedRoom,
    Seeds,
    seed_count,
    spread_key,
    take_rarest,
)

UNBOUNDED_MATCHES: Final = 1 << 60
"""More matches than a read can have."""

PLACES_AHEAD: Final = 8
"""The occurrences whose bases are prefetched before one is compared."""

FULL: Final = -1
DAMAGED: Final = -2
PASSED: Final = -3
"""Returned in place of a row, a count or a place: the rows are full, a position is outside, or an
occurrence does not count."""


class SeedSample(NamedTuple):
    """A k-mer of a seed, as it is looked up.

    Attributes
    ----------
    at, lead, tail : int
        Where it begins among the codes, without the margin, and the bases of the seed before it
        and behind it.
    query_begin, query_end : int
        Where its query begins and ends.
    found_before : int
        Where a match reaches so far to the left, a seed before has found it.
    spread_below : int
        Only occurrences count whose `spread_key` is less; 0 for all.
    """

    at: int
    lead: int
    tail: int
    query_begin: int
    query_end: int
    found_before: int
    spread_below: int


@inline_without_refcounts
def occurrence_at(lookup: KmerLookup, sample: SeedSample, place: int, end: int) -> int:
    """Return where in the reference a listed k-mer occurs; `PASSED` if it does not count.

    The bases of those that come later are prefetched.
    """
    positions, part_begin = lookup.positions, lookup.part_begin
    if place + PLACES_AHEAD < end:
        coming = as_int64(positions[as_index(place + PLACES_AHEAD)])
        prefetch(lookup.reference, MARGIN + part_begin + coming)
    position = as_int64(positions[as_index(place)])
    if position > lookup.last_position:
        return DAMAGED
    found = part_begin + position
    if sample.spread_below > 0:
        if spread_key(found - (sample.at - sample.query_begin)) >= sample.spread_below:
            return PASSED
    return found


@inline_without_refcounts
def count_listed(
    lookup: KmerLookup, codes: CodeArray, sample: SeedSample, begin: int, end: int, most: int
) -> int:
    """Return at how many listed places of a k-mer its whole seed occurs (`count_seed`)."""
    at, kmer_length, reference = MARGIN + sample.at, lookup.kmer_length, lookup.reference
    count = as_int64(0)
    for place in range(begin, end):
        found = occurrence_at(lookup, sample, place, end)
        if found < 0:
            if found == DAMAGED:
                return DAMAGED
            continue
        found += MARGIN
        if extend_left(codes, at, reference, found, sample.lead) < sample.lead:
            continue
        behind, tail = found + kmer_length, sample.tail
        if extend_right(codes, at + kmer_length, reference, behind, tail) == tail:
            count += 1
            if count > most:
                break
    return count


@jit_without_refcounts
def count_seed(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    query: int,
    seeds: Seeds,
    seed: int,
    most: int,
) -> int:
    """Return how often a seed occurs; if that is more than `most`, any larger number."""
    begin, end = as_int64(queries.offsets[query]), as_int64(queries.offsets[query + 1])
    last_lead = seeds.bases - lookup.kmer_length
    count = as_int64(0)
    for lead in range(last_lead - (steps.last_lead - steps.first_lead), last_lead + 1):
        at, tail = begin + seed * seeds.step + lead, last_lead - lead
        first, stop = listed_places(lookup, queries, at, lead)
        if stop < 0:
            return DAMAGED
        is_sorted = stop - first > lookup.longest_ascending and lead <= lookup.ordered_bases
        if is_sorted and tail == 0 and seeds.spread_below == 0:
            count += stop - first
        else:
            sample = SeedSample(at, lead, tail, begin, end, 0, seeds.spread_below)
            found = count_listed(lookup, queries.codes, sample, first, stop, most - count)
            if found < 0:
                return DAMAGED
            count += found
        if count > most:
            break
    return count


@jit_without_refcounts
def choose_seeds(
    lookup: KmerLookup, queries: QueryCodes, steps: SampleSteps, query: int, room: SeedRoom
) -> Seeds:
    """Take seeds of a query that has too many matches; a number of `DAMAGED` tells of damage."""
    most = steps.max_matches
    length = as_int64(queries.offsets[query + 1] - queries.offsets[query])
    number = seed_count(length, steps.window, steps.step)
    windows = Seeds(number, steps.window, steps.step, as_int64(0))
    for seed in range(number):
        found = count_seed(lookup, queries, steps, query, windows, seed, most)
        if found < 0:
            return Seeds(DAMAGED, 0, 0, 0)
        room.occurrences[seed] = found
    known = take_rarest(room, number, most)
    # Windows that overlap are not cut anew: an earlier pass has done so.
    if steps.step != steps.window:
        return windows
    longer = longer_seeds(lookup, queries, steps, query, number - 1, known)
    if longer.number == 0 and known > 0:
        return windows
    if longer.number == 0:
        longer = spread_whole(lookup, queries, steps, query)
    for seed in range(longer.number):
        room.taken[seed] = 1
    return longer


@jit_without_refcounts
def longer_seeds(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    query: int,
    max_number: int,
    known: int,
) -> Seeds:
    """Cut a query into as many seeds as possible, more than `known`, that occur rarely enough."""
    length = as_int64(queries.offsets[query + 1] - queries.offsets[query])
    for number in range(max_number, known, -1):
        bases = length // number
        seeds = Seeds(number, bases, bases, as_int64(0))
        left = as_int64(steps.max_matches)
        for seed in range(number):
            found = count_seed(lookup, queries, steps, query, seeds, seed, left)
            if found < 0:
                return Seeds(DAMAGED, 0, 0, 0)
            left -= found
            if left < 0:
                break
        if left >= 0:
            return seeds
    return Seeds(0, 0, 0, 0)


@jit_without_refcounts
def spread_whole(lookup: KmerLookup, queries: QueryCodes, steps: SampleSteps, query: int) -> Seeds:
    """Take a query as a whole, at as many places as possible that are spread evenly."""
    length = as_int64(queries.offsets[query + 1] - queries.offsets[query])
    below = as_int64(1 << SPREAD_BITS)
    while below > 1:
        seeds = Seeds(1, length, length, below)
        found = count_seed(lookup, queries, steps, query, seeds, 0, steps.max_matches)
        if found < 0:
            return Seeds(DAMAGED, 0, 0, 0)
        if found <= steps.max_matches:
            break
        below >>= 1
    return Seeds(1, length, length, below)


@inline_without_refcounts
def write_listed(
    lookup: KmerLookup,
    codes: CodeArray,
    sample: SeedSample,
    begin: int,
    end: int,
    filled: int,
    rows: MemRows,
) -> int:
    """Write the matches at the listed places of a k-mer (`write_matches`)."""
    at, kmer_length, reference = MARGIN + sample.at, lookup.kmer_length, lookup.reference
    row = filled
    max_left = min(sample.found_before, sample.at - sample.query_begin)
    for place in range(begin, end):
        found = occurrence_at(lookup, sample, place, end)
        if found < 0:
            if found == DAMAGED:
                return DAMAGED
            continue
        left = extend_left(codes, at, reference, MARGIN + found, max_left)
        if left < sample.lead or left == sample.found_before:
            continue
        behind = MARGIN + found + kmer_length
        max_right = sample.query_end - sample.at - kmer_length
        right = extend_right(codes, at + kmer_length, reference, behind, max_right)
        if right < sample.tail:
            continue
        if row == rows.lengths.size:
            return FULL
        rows.query_starts[row] = sample.at - sample.query_begin - left
        rows.reference_starts[row] = found - left
        rows.lengths[row] = left + kmer_length + right
        row += 1
    return row


@jit_without_refcounts
def write_matches(
    lookup: KmerLookup,
    queries: QueryCodes,
    steps: SampleSteps,
    query: int,
    seeds: Seeds,
    room: SeedRoom,
    filled: int,
    rows: MemRows,
) -> int:
    """Write the matches with a seed that is taken, each once; return where they end, or why not."""
    begin, end = as_int64(queries.offsets[query]), as_int64(queries.offsets[query + 1])
    last_lead = seeds.bases - lookup.kmer_length
    row, last = filled, as_int64(-1)
    for seed in range(seeds.number):
        if room.taken[seed] == 0:
            continue
        for lead in range(last_lead - (steps.last_lead - steps.first_lead), last_lead + 1):
            at = begin + seed * seeds.step + lead
            first, stop = listed_places(lookup, queries, at, lead)
            if stop < 0:
                return DAMAGED
            found_before = lead + (seed - last) * seeds.step if last >= 0 else at - begin + 1
            sample = SeedSample(
                at, lead, last_lead - lead, begin, end, found_before, seeds.spread_below
            )
            row = write_listed(lookup, queries.codes, sample, first, stop, row, rows)
            if row < 0:
                return row
        last = seed
    return row
