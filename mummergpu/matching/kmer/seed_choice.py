"""Chooses the seeds of reads that have too many matches, by looking at the table (`seed_rule`).

Devices do the same in ``kernels/kmer/seed_choice.cuh``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import PositionArray
from mummergpu.matching.backends.interface import QueryCodes
from mummergpu.matching.kmer.lookup import (
    BasesBeside,
    KmerLookup,
    ListedPlaces,
    SeedSteps,
    bases_beside,
    listed_places,
    may_count,
    prefetch_place,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import extend_left, extend_right, is_near
from mummergpu.sequence.mems import MemRows
from mummergpu.sequence.picked_kmers import picked_kmer
from mummergpu.sequence.seed_rule import (
    COUNTED_AT,
    COUNTED_COUNT,
    COUNTED_OFFSET,
    COUNTED_TAIL,
    KEPT_AT,
    KEPT_BASES,
    KEPT_BITS,
    KEPT_COUNT,
    NEAR,
    NEAR_EDITS,
    THINNING_BITS,
    SeedRoom,
    Seeds,
    disjoint_seeds,
    parts_of,
    take_rarest,
    taken_occurrences,
    thinning_hash,
    windows_of,
)

PLACES_AHEAD: Final = 8
"""The occurrences whose bases are prefetched before one is compared."""

PLACES_AT_ONCE: Final = 32
"""The listed places that are compared at once with vector instructions, before any is visited."""

LONG_SCAN: Final = 1 << 7
"""A seed's count is kept if counting it compares more listed places than this."""

FULL: Final = -1
DAMAGED: Final = -2
PASSED: Final = -3
"""Returned in place of a row, a count or a place: the rows are full, a position is outside, or an
occurrence does not count."""


class SeedSearch(NamedTuple):
    """A search of a mapper: a table, reads, where their k-mers are, and memory."""

    lookup: KmerLookup
    queries: QueryCodes
    steps: SeedSteps
    room: SeedRoom
    # For `seed_search`: the k-mers looked up next, where to go on, and what queries have cost.
    batch: Int64Array
    state: Int64Array
    costs: Int64Array


class SeedKmer(NamedTuple):
    """A k-mer of a seed, as it is looked up."""

    # Where it begins among the codes, without the margin, and the bases of the seed before it and
    # after it.
    at: int
    kmer_offset: int
    tail: int
    # Where its query begins and ends.
    query_begin: int
    query_end: int
    left_limit: int  # If a match reaches this far to the left, a seed before has found it.


@inline
def beside_kmer(
    lookup: KmerLookup, codes: CodeArray, query_kmer: SeedKmer, places: ListedPlaces
) -> BasesBeside:
    """Return the bases that must lie next to the listed places of a seed."""
    return bases_beside(
        lookup, codes, query_kmer.at, query_kmer.kmer_offset, query_kmer.tail, places.is_sorted
    )


@inline
def occurrence_at(lookup: KmerLookup, wanted: BasesBeside, place: int, end: int) -> int:
    """Return where in the reference a listed k-mer occurs; `PASSED` if it does not count.

    The bases of those that come later are prefetched.
    """
    prefetch_place(lookup, wanted, place + PLACES_AHEAD, end)
    if not may_count(lookup, wanted, place):
        return PASSED
    position = as_int64(lookup.positions[as_index(place)])
    if position > lookup.last_position:
        return DAMAGED
    return lookup.part_begin + position


@inline
def has_seed(lookup: KmerLookup, codes: CodeArray, query_kmer: SeedKmer, found: int) -> bool:
    """Return whether the whole seed of a k-mer lies where the k-mer occurs."""
    at, kmer_length, reference = MARGIN + query_kmer.at, lookup.kmer_length, lookup.reference
    found += MARGIN
    if extend_left(codes, at, reference, found, query_kmer.kmer_offset) < query_kmer.kmer_offset:
        return False
    behind, tail = found + kmer_length, query_kmer.tail
    return bool(extend_right(codes, at + kmer_length, reference, behind, tail) == tail)


@inline
def is_exact(query_kmer: SeedKmer, places: ListedPlaces) -> bool:
    """Return whether, by their order, all listed places of a k-mer have its whole seed."""
    return query_kmer.tail == 0 and places.known == query_kmer.kmer_offset


@inline
def query_range(search: SeedSearch, query: int) -> tuple[int, int]:
    """Return where a query begins and ends."""
    offsets = search.queries.offsets
    return as_int64(offsets[query]), as_int64(offsets[query + 1])


@inline
def query_length(search: SeedSearch, query: int) -> int:
    """Return the bases of a query."""
    begin, end = query_range(search, query)
    return end - begin


@inline
def kmer_of_seed(
    search: SeedSearch, query: int, seeds: Seeds, seed: int, tail: int, before: int
) -> SeedKmer:
    """Return the k-mer of a seed with `tail` bases after it.

    The seed before it that is taken begins `before` bases earlier; 0 if there is none.
    """
    begin, end = query_range(search, query)
    kmer_offset = seeds.bases - search.lookup.kmer_length - tail
    at = begin + seed * seeds.step + kmer_offset
    left_limit = kmer_offset + before if before > 0 else at - begin + 1
    return SeedKmer(at, kmer_offset, tail, begin, end, left_limit)


@inline
def tails_of_seed(search: SeedSearch, query: int, seeds: Seeds, seed: int) -> tuple[int, int]:
    """Return the most and the fewest bases of a seed after a k-mer that is looked up.

    Each occurrence of the seed has one listed k-mer among these. With picked k-mers there is only
    one; if its span has a break there is none, and the most are fewer than the fewest.
    """
    lookup, queries = search.lookup, search.queries
    kmers = lookup.picked_of
    if kmers == 0:
        return as_int64(search.steps.kmers_of_seed - 1), as_int64(0)
    span = as_int64(queries.offsets[query]) + seed * seeds.step + seeds.bases
    span -= lookup.kmer_length + kmers - 1
    picked = picked_kmer(queries.codes, MARGIN + span, lookup.kmer_length, kmers)
    if picked < 0:
        return as_int64(-1), as_int64(0)
    tail = as_int64(kmers - 1 - picked)
    return tail, tail


@jit
def count_seed(search: SeedSearch, query: int, seeds: Seeds, seed: int, most: int) -> int:
    """Return how often a seed occurs; if that is more than `most`, any larger number."""
    count = as_int64(0)
    most_behind, fewest_behind = tails_of_seed(search, query, seeds, seed)
    # Each occurrence is counted by one of these k-mers.
    for tail in range(most_behind, fewest_behind - 1, -1):
        query_kmer = kmer_of_seed(search, query, seeds, seed, tail, 0)
        places = listed_places(search.lookup, search.queries, query_kmer.at, query_kmer.kmer_offset)
        if places.end < 0:
            return DAMAGED
        if is_exact(query_kmer, places):
            count += places.end - places.begin
        else:
            found = count_listed(search, query_kmer, places, most - count)
            if found == DAMAGED:
                return DAMAGED
            count += found
        if count > most:
            break
    return count


@jit
def count_listed(search: SeedSearch, query_kmer: SeedKmer, places: ListedPlaces, most: int) -> int:
    """Return at how many listed places a whole seed lies; if more than `most`, any such number."""
    lookup, codes, room = search.lookup, search.queries.codes, search.room
    counted, slot = room.counted_seeds, as_int64(0)
    is_long = places.end - places.begin > LONG_SCAN
    if is_long:
        # The reads of a repeat share its seeds, including those that an error has made.
        slot = slot_of(room, codes, query_kmer, lookup.kmer_length)
        if is_counted(room, slot, codes, query_kmer, lookup.kmer_length):
            return as_int64(counted[slot, COUNTED_COUNT])
    count = as_int64(0)
    wanted = beside_kmer(lookup, codes, query_kmer, places)
    for place in range(places.begin, places.end):
        found = occurrence_at(lookup, wanted, place, places.end)
        if found == DAMAGED:
            return DAMAGED
        if found != PASSED and has_seed(lookup, codes, query_kmer, found):
            count += 1
            if count > most:
                return count
    if is_long:
        counted[slot, COUNTED_AT] = query_kmer.at
        counted[slot, COUNTED_OFFSET] = query_kmer.kmer_offset
        counted[slot, COUNTED_TAIL] = query_kmer.tail
        counted[slot, COUNTED_COUNT] = count
    return count


@inline
def slot_of(room: SeedRoom, codes: CodeArray, query_kmer: SeedKmer, kmer_length: int) -> int:
    """Return where the count of a seed may be kept, which depends on its last bases."""
    end = MARGIN + query_kmer.at + kmer_length + query_kmer.tail
    key = as_int64(query_kmer.kmer_offset * 31 + query_kmer.tail)
    for place in range(end - kmer_length - query_kmer.tail, end):
        key = (key * 5 + as_int64(codes[as_index(place)])) & ((1 << THINNING_BITS) - 1)
    return as_int64((thinning_hash(key) * room.counted_seeds.shape[0]) >> THINNING_BITS)


@inline
def is_counted(
    room: SeedRoom, slot: int, codes: CodeArray, query_kmer: SeedKmer, kmer_length: int
) -> bool:
    """Return whether a slot has the count of a seed with the bases of this one."""
    counted = room.counted_seeds
    if (
        counted[slot, COUNTED_OFFSET] != query_kmer.kmer_offset
        or counted[slot, COUNTED_TAIL] != query_kmer.tail
    ):
        return False
    begin, other = (
        MARGIN + query_kmer.at - query_kmer.kmer_offset,
        as_int64(counted[slot, COUNTED_AT]),
    )
    bases = query_kmer.kmer_offset + kmer_length + query_kmer.tail
    other += MARGIN - query_kmer.kmer_offset
    return bool(extend_right(codes, begin, codes, other, bases) == bases)


@inline
def occurs_listed(
    search: SeedSearch, at: int, kmer_offset: int, tail: int, listed: ListedPlaces
) -> bool:
    """Return whether a k-mer lies at a listed place with its seed's bases on both sides."""
    zero = as_int64(0)
    query_kmer = SeedKmer(at, kmer_offset, tail, zero, zero, zero)
    return bool(count_listed(search, query_kmer, listed, zero) != 0)


@jit
def has_too_many_near(search: SeedSearch, query: int) -> bool:
    """Return whether a query has too many matches with a part that are near (`seed_rule`).

    Damage counts as too many matches: choosing seeds meets it again.
    """
    lookup, codes = search.lookup, search.queries.codes
    length = query_length(search, query)
    parts = parts_of(length, search.steps.min_length)
    left = NEAR * as_int64(search.steps.max_occurrences)
    for part in range(parts.number):
        before = parts.step if part > 0 else as_int64(0)
        most_behind, fewest_behind = tails_of_seed(search, query, parts, part)
        for tail in range(most_behind, fewest_behind - 1, -1):
            query_kmer = kmer_of_seed(search, query, parts, part, tail, before)
            places = listed_places(lookup, search.queries, query_kmer.at, query_kmer.kmer_offset)
            if places.end < 0:
                return True
            wanted = beside_kmer(lookup, codes, query_kmer, places)
            for place in range(places.begin, places.end):
                found = occurrence_at(lookup, wanted, place, places.end)
                if found == DAMAGED:
                    return True
                if found != PASSED and is_near_match(lookup, codes, query_kmer, found):
                    left -= 1
                    if left < 0:
                        return True
    return False


@inline
def is_near_match(lookup: KmerLookup, codes: CodeArray, query_kmer: SeedKmer, found: int) -> bool:
    """Return whether a near match of a k-mer contains its seed, and not the seed before."""
    left, right = bases_of_match(lookup, codes, query_kmer, found)
    if left < 0:
        return False
    first, reference = MARGIN + query_kmer.at - left, lookup.reference
    bases = left + lookup.kmer_length + right
    before = query_kmer.at - query_kmer.query_begin - left
    behind = query_kmer.query_end - query_kmer.at - lookup.kmer_length - right
    other = MARGIN + found - left
    return is_near(codes, first, reference, other, bases, before, behind, NEAR_EDITS)


@inline
def bases_of_match(
    lookup: KmerLookup, codes: CodeArray, query_kmer: SeedKmer, found: int
) -> tuple[int, int]:
    """Return how many bases a match with a seed has before and after its k-mer.

    The first is -1 if the seed is not whole there, or if the match reaches the seed before: it is
    met there.
    """
    at, kmer_length, reference = MARGIN + query_kmer.at, lookup.kmer_length, lookup.reference
    none = as_int64(-1)
    max_left = min(query_kmer.left_limit, query_kmer.at - query_kmer.query_begin)
    left = as_int64(extend_left(codes, at, reference, MARGIN + found, max_left))
    if left < query_kmer.kmer_offset or left == query_kmer.left_limit:
        return none, none
    max_right = query_kmer.query_end - query_kmer.at - kmer_length
    behind = MARGIN + found + kmer_length
    right = as_int64(extend_right(codes, at + kmer_length, reference, behind, max_right))
    if right < query_kmer.tail:
        return none, none
    return left, right


@jit
def choose_seeds(search: SeedSearch, query: int) -> tuple[Seeds, int]:
    """Take seeds of a query that has too many matches; a number of `DAMAGED` shows damage.

    Return also how many disjoint seeds have all of their matches among those that are kept.
    """
    steps, room = search.steps, search.room
    most = steps.max_occurrences
    length = query_length(search, query)
    windows = windows_of(length, steps.seed, steps.seed_step, steps.window == 0)
    number = windows.number
    for seed in range(number):
        found = count_seed(search, query, windows, seed, most)
        if found < 0:
            return Seeds(DAMAGED, 0, 0, 0), as_int64(0)
        room.occurrences[seed] = found
    known = take_rarest(room, number, most)
    seeds_kept = disjoint_seeds(windows, room)
    # Windows that overlap are not cut anew: an earlier pass has done so.
    if steps.seed_step != steps.seed:
        return windows, seeds_kept
    known = known if taken_occurrences(room, number) > 0 else as_int64(0)
    longer = longer_seeds(search, query, number - 1, known)
    if longer.number == 0 and known > 0:
        return windows, seeds_kept
    if longer.number == 0:
        return thinned_places(search, query, windows), seeds_kept
    for seed in range(longer.number):
        room.taken[seed] = 1
    return longer, longer.number


@jit
def longer_seeds(search: SeedSearch, query: int, max_number: int, known: int) -> Seeds:
    """Cut a query into as many seeds as possible, more than `known`, that occur rarely enough."""
    length, most = query_length(search, query), search.steps.max_occurrences
    for number in range(max_number, known, -1):
        bases = length // number
        seeds = Seeds(number, bases, bases, as_int64(0))
        left = as_int64(most)
        for seed in range(number):
            found = count_seed(search, query, seeds, seed, left)
            if found < 0:
                return Seeds(DAMAGED, 0, 0, 0)
            left -= found
            if left < 0:
                break
        if 0 <= left < most:
            return seeds
    return Seeds(0, 0, 0, 0)


@jit
def thinned_places(search: SeedSearch, query: int, windows: Seeds) -> Seeds:
    """Take the first of the fewest seeds that occurs, at as many places as possible."""
    length, room = query_length(search, query), search.room
    for number in range(1, windows.number + 1):
        bases = as_int64(windows.bases if number == windows.number else length // number)
        seeds = Seeds(number, bases, bases, as_int64(0))
        for seed in range(number):
            room.taken[seed] = 0
        for seed in range(number):
            found = count_seed(search, query, seeds, seed, 0)
            if found > 0:
                room.taken[seed] = 1
                found = most_thinning_bits(search, query, seeds, seed, found)
                if found >= 0:
                    return Seeds(number, bases, bases, as_int64(1) << found)
            if found < 0:
                return Seeds(DAMAGED, 0, 0, 0)
    return Seeds(0, 0, 0, 0)


@inline
def most_thinning_bits(search: SeedSearch, query: int, seeds: Seeds, seed: int, count: int) -> int:
    """Return `thinning_bits` for as many bits as possible; `count` places are known."""
    room, codes = search.room, search.queries.codes
    at, kept = MARGIN + query_range(search, query)[0] + seed * seeds.step, room.kept_seeds
    # Seeds of other reads that are alike mostly have the same length and begin with the same base.
    slot = (seeds.bases * 5 + as_int64(codes[as_index(at)])) % max(1, kept.shape[0])
    if is_kept(room, slot, codes, at, seeds.bases):
        room.occurrences[seed] = kept[slot, KEPT_COUNT]
        for place in range(room.places.size):
            room.places[place] = room.kept_places[slot, place]
        return as_int64(kept[slot, KEPT_BITS])
    bits = first_bits(count, search.steps.max_occurrences)
    found = thinning_bits(search, query, seeds, seed, bits)
    if found == bits:
        bits = as_int64(THINNING_BITS)
        found = thinning_bits(search, query, seeds, seed, bits)
    if found >= 0 and slot < kept.shape[0]:
        kept[slot, KEPT_AT] = at
        kept[slot, KEPT_BASES] = seeds.bases
        kept[slot, KEPT_BITS] = found
        kept[slot, KEPT_COUNT] = room.occurrences[seed]
        for place in range(room.places.size):
            room.kept_places[slot, place] = room.places[place]
    return found


@inline
def is_kept(room: SeedRoom, slot: int, codes: CodeArray, at: int, bases: int) -> bool:
    """Return whether a slot has the places of a seed with the bases of this one."""
    if slot >= room.kept_seeds.shape[0] or room.kept_seeds[slot, KEPT_BASES] != bases:
        return False
    other = room.kept_seeds[slot, KEPT_AT]
    return bool(extend_right(codes, at, codes, other, bases) == bases)


@inline
def first_bits(count: int, most: int) -> int:
    """Return the fewest bits that likely leave over `2 * most` of `count` occurrences, or all."""
    bits = as_int64(THINNING_BITS)
    while bits > 0 and count >> (THINNING_BITS + 1 - bits) > 2 * most:
        bits -= 1
    return bits


@jit
def thinning_bits(search: SeedSearch, query: int, seeds: Seeds, seed: int, bits: int) -> int:
    """Return how many bits, up to `bits`, a `thinning_hash` may have so that a seed occurs rarely.

    The places with that many are written to the room, and how often the seed occurs. A seed is
    found by the listed k-mers in it: with a table of each n-th position, one of n k-mers is listed
    for each place, so all n tails are looked up. In pseudo-code:

        for each k-mer of the seed that may be listed:
            for each of its places whose key has no more than `bits` bits:
                keep the place if the whole seed lies there
                while too many are kept: one bit less, and drop those with longer keys

    Which places are kept depends on their positions alone, so reads that share a seed agree.
    """
    lookup, room, most = search.lookup, search.room, search.steps.max_occurrences
    codes = search.queries.codes
    kept = as_int64(0)
    most_behind, fewest_behind = tails_of_seed(search, query, seeds, seed)
    for tail in range(most_behind, fewest_behind - 1, -1):
        query_kmer = kmer_of_seed(search, query, seeds, seed, tail, 0)
        places = listed_places(lookup, search.queries, query_kmer.at, query_kmer.kmer_offset)
        if places.end < 0:
            return DAMAGED
        all_have_it = is_exact(query_kmer, places)
        wanted = beside_kmer(lookup, codes, query_kmer, places)
        first_begin = lookup.part_begin - query_kmer.kmer_offset
        for first in range(places.begin, places.end, PLACES_AT_ONCE):
            # Most places of a long list do not count, which their positions alone show.
            stop = min(first + PLACES_AT_ONCE, places.end)
            if min_key(lookup.positions, first, stop, first_begin) >> bits != 0:
                continue
            for place in range(first, stop):
                key = thinning_hash(first_begin + as_int64(lookup.positions[as_index(place)]))
                if key >> bits != 0:
                    continue
                found = occurrence_at(lookup, wanted, place, places.end)
                if found == DAMAGED:
                    return DAMAGED
                if found == PASSED:
                    continue
                if not all_have_it and not has_seed(lookup, codes, query_kmer, found):
                    continue
                room.places[kept] = found - query_kmer.kmer_offset
                kept += 1
                # With one bit less, about half of the places are left.
                while kept > most and bits > 0:
                    bits -= 1
                    kept = keep_below(room.places, kept, bits)
    room.occurrences[seed] = kept
    return bits


@inline
def keep_below(places: Int64Array, count: int, bits: int) -> int:
    """Keep the places whose `thinning_hash` has at most `bits` bits; return how many there are."""
    kept = as_int64(0)
    for place in range(count):
        if thinning_hash(places[place]) >> bits == 0:
            places[kept] = places[place]
            kept += 1
    return kept


@inline
def min_key(positions: PositionArray, begin: int, end: int, first_begin: int) -> int:
    """Return the least `thinning_hash` of some listed places."""
    # With numbers of 32 bits, eight or more are compared at once.
    least = np.uint32((1 << THINNING_BITS) - 1)
    for place in range(begin, end):
        key = np.uint32(thinning_hash(first_begin + as_int64(positions[as_index(place)])))
        least = min(least, key)
    return as_int64(least)  # type: ignore[arg-type]


@inline
def write_listed(
    lookup: KmerLookup,
    codes: CodeArray,
    query_kmer: SeedKmer,
    places: ListedPlaces,
    filled: int,
    rows: MemRows,
) -> int:
    """Write the matches at the listed places of a k-mer (`write_matches`)."""
    row = filled
    wanted = beside_kmer(lookup, codes, query_kmer, places)
    for place in range(places.begin, places.end):
        found = occurrence_at(lookup, wanted, place, places.end)
        if found < 0:
            if found == DAMAGED:
                return DAMAGED
            continue
        left, right = bases_of_match(lookup, codes, query_kmer, found)
        if left < 0:
            continue
        if row == rows.lengths.size:
            return FULL
        rows.query_starts[row] = query_kmer.at - query_kmer.query_begin - left
        rows.reference_starts[row] = found - left
        rows.lengths[row] = left + lookup.kmer_length + right
        row += 1
    return row


@inline
def write_thinned(search: SeedSearch, query: int, seeds: Seeds, filled: int, rows: MemRows) -> int:
    """Write the matches at the places of the one seed that is taken (`thinning_bits`)."""
    queries, room = search.queries, search.room
    seed = as_int64(0)
    while room.taken[seed] == 0:
        seed += 1
    codes, reference, count = (
        queries.codes,
        search.lookup.reference,
        as_int64(room.occurrences[seed]),
    )
    if filled + count > rows.lengths.size:
        return FULL
    start = seed * seeds.step
    at = MARGIN + as_int64(queries.offsets[query]) + start
    behind = at + seeds.bases
    max_right = MARGIN + as_int64(queries.offsets[query + 1]) - behind
    for place in range(count):
        found = MARGIN + room.places[place]
        left = extend_left(codes, at, reference, found, start)
        right = extend_right(codes, behind, reference, found + seeds.bases, max_right)
        rows.query_starts[filled + place] = start - left
        rows.reference_starts[filled + place] = room.places[place] - left
        rows.lengths[filled + place] = left + seeds.bases + right
    return filled + count


@jit
def write_matches(search: SeedSearch, query: int, seeds: Seeds, filled: int, rows: MemRows) -> int:
    """Write the matches with a seed that is taken, each once; return where they end, or why not."""
    lookup, queries = search.lookup, search.queries
    if seeds.thinning_below > 0:
        return write_thinned(search, query, seeds, filled, rows)
    row, last = filled, as_int64(-1)
    for seed in range(seeds.number):
        if search.room.taken[seed] == 0:
            continue
        before = (seed - last) * seeds.step if last >= 0 else as_int64(0)
        most_behind, fewest_behind = tails_of_seed(search, query, seeds, seed)
        for tail in range(most_behind, fewest_behind - 1, -1):
            query_kmer = kmer_of_seed(search, query, seeds, seed, tail, before)
            places = listed_places(lookup, queries, query_kmer.at, query_kmer.kmer_offset)
            if places.end < 0:
                return DAMAGED
            row = write_listed(lookup, queries.codes, query_kmer, places, row, rows)
            if row < 0:
                return row
        last = as_int64(seed)
    return row
