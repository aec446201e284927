// Chooses seeds of the queries that have too many matches with a window.
//
// The rules are those of the processor's choice of seeds, and so are the names. A warp works
// on a query: its lanes share the occurrences of a seed, and each lane keeps the count of one seed.
#pragma once

#include "common/warp.cuh"
#include "kmer/query_kmers.cuh"

// The seeds of a query that are taken.
struct SeedChoice {
    uint32 bases;          // of each; 0 if all windows are taken
    uint16 number;         // of seeds
    uint16 sure;           // disjoint seeds all of whose matches are among those of the taken ones
    uint32 taken;          // a bit for each seed
    uint32 thinning_bits;  // as in `QueryKmer`
};

static_assert(sizeof(SeedChoice) == SEED_CHOICE_BYTES, "as the host allocates them");

// A query that seeds are chosen for.
struct ChosenQuery {
    uint32 begin;          // where it begins in the block
    uint32 length;         // its bases
    uint32 too_many;       // more matches are too many
    uint32 most;           // seeds that are taken occur so often together at most
    uint32 seed;           // the bases of a window of which seeds are chosen
    uint32 kmers_of_seed;  // the places of a seed, its last k-mers, of which one is listed
};

// Return the bases of a window of which the seeds of a query are chosen, at least `seed`: where
// matches begin anywhere, windows are as long as the query allows.
__device__ __forceinline__ uint32 window_bases(const QueryKmers& kmers, uint32 length,
                                               uint32 seed) {
    return kmers.window > 0 || length < seed ? seed : length / min(length / seed, WARP_LANES);
}

// In place of a number of seeds: no match of a query was left out.
constexpr uint8 ALL_SEEDS = 255;

// Return a k-mer of a window or of a longer seed, with its occurrences.
//
// offset    where in the query the seed begins
// bases     the bases of the seed
// before    the bases from the taken seed before it, which finds what reaches that far to the left
// number    the number of the k-mer among those of the seed
__device__ __forceinline__ QueryKmer kmer_of_seed(const QueryKmers& kmers, const Table& table,
                                                  const ChosenQuery& query, uint32 offset,
                                                  uint32 bases, uint32 before, uint32 thinning_bits,
                                                  uint32 number) {
    PlacedKmer placed;
    const uint32 kmer_offset = bases - kmer_bases(table) - (query.kmers_of_seed - 1) + number;
    placed.place = query.begin + offset + kmer_offset;
    placed.kmer_offset = static_cast<uint16>(kmer_offset);
    placed.window = static_cast<uint16>(bases);
    placed.left_limit = before == NO_SEED_BEFORE ? NO_SEED_BEFORE : kmer_offset + before;
    placed.thinning_bits = thinning_bits;
    return look_up(kmers, table, placed);
}

// Return how many k-mers of a query are looked up where all matches are found.
__device__ __forceinline__ uint32 kmers_of_query(const QueryKmers& kmers, const Table& table,
                                                 const ChosenQuery& query) {
    if (kmers.window > 0) {
        return query.length / kmers.window * query.kmers_of_seed;
    }
    return query.length < kmer_bases(table) ? 0
                                            : (query.length - kmer_bases(table)) / kmers.step + 1;
}

// Return one of these k-mers: of a window, or at a step.
__device__ __forceinline__ QueryKmer kmer_of_query(const QueryKmers& kmers, const Table& table,
                                                   const ChosenQuery& query, uint32 item) {
    if (kmers.window > 0) {
        return kmer_of_seed(kmers, table, query, item / query.kmers_of_seed * kmers.window,
                            kmers.window, kmers.window, ALL_PLACES, item % query.kmers_of_seed);
    }
    return look_up(kmers, table,
                   {query.begin + item * kmers.step, 0, 0, kmers.sampling_step, ALL_PLACES});
}

// Return the number of matches that the k-mers of a query may have together. All lanes of a warp
// must call.
__device__ __forceinline__ uint64 occurrences_of_query(const QueryKmers& kmers, const Table& table,
                                                       const ChosenQuery& query) {
    uint64 own = 0;
    for (uint32 item = lane_number(); item < kmers_of_query(kmers, table, query);
         item += WARP_LANES) {
        own += occurrence_count(kmer_of_query(kmers, table, query, item));
    }
    uint64 total;
    warp_exclusive_sum(own, total);
    return total;
}

// Return how many matches a k-mer has; if they are more than `most`, any larger number. All lanes
// of a warp must call, with the same k-mer.
__device__ __forceinline__ uint32 count_matches(const QueryKmers& kmers, const Table& table,
                                                const QueryKmer& kmer, uint32 most) {
    uint32 count = 0;
    for (uint32 first = kmer.list_begin; first < kmer.list_end; first += WARP_LANES) {
        const uint32 index = first + lane_number();
        const bool is_match = index < kmer.list_end && extend(kmers, table, kmer, index).length > 0;
        count += __popc(__ballot_sync(ALL_LANES, is_match));
        if (count > most) {
            break;
        }
    }
    return count;
}

// Return how often a seed occurs; if that is more than `most`, any larger number. All lanes of a
// warp must call.
__device__ __forceinline__ uint32 count_seed(const QueryKmers& kmers, const Table& table,
                                             const ChosenQuery& query, uint32 bases, uint32 seed,
                                             uint32 thinning_bits, uint32 most) {
    uint32 count = 0;
    for (uint32 number = 0; number < query.kmers_of_seed && count <= most; ++number) {
        const QueryKmer kmer = kmer_of_seed(kmers, table, query, seed * bases, bases,
                                            NO_SEED_BEFORE, thinning_bits, number);
        count += count_matches(kmers, table, kmer, most - count);
    }
    return count;
}

// Return whether a query has too many matches. All lanes of a warp must call.
__device__ __forceinline__ bool has_too_many(const QueryKmers& kmers, const Table& table,
                                             const ChosenQuery& query) {
    uint32 left = query.too_many;
    for (uint32 item = 0; item < kmers_of_query(kmers, table, query); ++item) {
        const uint32 found =
            count_matches(kmers, table, kmer_of_query(kmers, table, query, item), left);
        if (found > left) {
            return true;
        }
        left -= found;
    }
    return false;
}

// Return whether a query differs in at most NEAR_EDITS bases from the reference on the diagonal of
// a match. What lies outside the reference differs, so no more than a word of that is read.
__device__ __forceinline__ bool is_near(const QueryKmers& kmers, const Table& table,
                                        const ChosenQuery& query, const QueryKmer& kmer,
                                        const Extension& match) {
    const long long begin = static_cast<long long>(query.begin);
    const long long diagonal = static_cast<long long>(table.part_begin + match.occurrence) -
                               static_cast<long long>(kmer.position);
    uint32 before = kmer.position - match.left - query.begin;
    uint32 after = before + match.length;
    uint32 edits = 0;
    while (before > 0 && edits <= NEAR_EDITS) {
        const uint32 bases = min(before, WORD_BASES);
        const long long at = begin + before;
        const uint32 different = mismatches(bases_before(kmers.queries, at),
                                            bases_before(table.reference, at + diagonal));
        edits += __popc(different >> (WORD_BASES - bases));
        before -= bases;
    }
    while (after < query.length && edits <= NEAR_EDITS) {
        const uint32 bases = min(query.length - after, WORD_BASES);
        const long long at = begin + after;
        const uint32 different =
            mismatches(bases_from(kmers.queries, at), bases_from(table.reference, at + diagonal));
        edits += __popc(different << (WORD_BASES - bases));
        after += bases;
    }
    return edits <= NEAR_EDITS;
}

// Return whether too many matches of a query are near. They have one of its parts of `bases`
// bases, which begin at every half of that. All lanes of a warp must call.
__device__ __forceinline__ bool has_too_many_near(const QueryKmers& kmers, const Table& table,
                                                  const ChosenQuery& query, uint32 bases) {
    const uint32 step = max(bases / 2, 1u);
    const uint32 number = (query.length - bases) / step + 1;
    uint32 count = 0;
    for (uint32 item = 0; item < number * query.kmers_of_seed; ++item) {
        const uint32 part = item / query.kmers_of_seed;
        const QueryKmer kmer =
            kmer_of_seed(kmers, table, query, part * step, bases, part == 0 ? NO_SEED_BEFORE : step,
                         ALL_PLACES, item % query.kmers_of_seed);
        for (uint32 first = kmer.list_begin; first < kmer.list_end; first += WARP_LANES) {
            const uint32 index = first + lane_number();
            bool counts = false;
            if (index < kmer.list_end) {
                const Extension match = extend(kmers, table, kmer, index);
                counts = match.length > 0 && is_near(kmers, table, query, kmer, match);
            }
            count += __popc(__ballot_sync(ALL_LANES, counts));
            if (count > NEAR * query.most) {
                return true;
            }
        }
    }
    return false;
}

// Return the rarest windows that occur, but at most so often together. All lanes of a warp must
// call.
__device__ __forceinline__ SeedChoice take_rarest(const QueryKmers& kmers, const Table& table,
                                                  const ChosenQuery& query) {
    const uint32 number = min(query.length / query.seed, WARP_LANES);
    uint32 own = 0;
    for (uint32 seed = 0; seed < number; ++seed) {
        const uint32 found =
            count_seed(kmers, table, query, query.seed, seed, ALL_PLACES, query.most);
        own = lane_number() == seed ? found : own;
    }
    uint64 total = 0;
    for (uint32 seed = 0; seed < number; ++seed) {
        const uint32 other = from_lane(own, seed);
        if (other < own || (other == own && seed <= lane_number())) {
            total += other;
        }
    }
    const bool is_taken = lane_number() < number && total <= query.most;
    const uint32 taken = __ballot_sync(ALL_LANES, is_taken);
    const uint16 sure = static_cast<uint16>(__popc(taken));
    const bool occur = __any_sync(ALL_LANES, is_taken && own > 0);
    return {query.seed, static_cast<uint16>(number), sure, occur ? taken : 0, ALL_PLACES};
}

// Return as many seeds of equal lengths as possible, more than `known`, that occur, but at most so
// often together; none if there are none. All lanes of a warp must call.
__device__ __forceinline__ SeedChoice longer_seeds(const QueryKmers& kmers, const Table& table,
                                                   const ChosenQuery& query, uint32 max_number,
                                                   uint32 known) {
    for (uint32 number = max_number; number > known; --number) {
        const uint32 bases = query.length / number;
        uint32 left = query.most;
        bool fits = true;
        for (uint32 seed = 0; seed < number && fits; ++seed) {
            const uint32 found = count_seed(kmers, table, query, bases, seed, ALL_PLACES, left);
            fits = found <= left;
            left -= found;
        }
        if (fits && left < query.most) {
            const uint16 seeds = static_cast<uint16>(number);
            return {bases, seeds, seeds, lowest_bits(number), ALL_PLACES};
        }
    }
    return {0, 0, 0, 0, ALL_PLACES};
}

// Return the first of the fewest seeds that occurs, at as many places as possible; no seed of some
// bases if none up to the windows does. All lanes of a warp must call.
__device__ __forceinline__ SeedChoice thinned_places(const QueryKmers& kmers, const Table& table,
                                                     const ChosenQuery& query,
                                                     const SeedChoice& windows) {
    for (uint32 number = 1; number <= windows.number; ++number) {
        const uint32 bases = number == windows.number ? query.seed : query.length / number;
        for (uint32 seed = 0; seed < number; ++seed) {
            if (count_seed(kmers, table, query, bases, seed, ALL_PLACES, 0) == 0) {
                continue;
            }
            uint32 bits = THINNING_BITS;
            while (bits > 0 &&
                   count_seed(kmers, table, query, bases, seed, bits, query.most) > query.most) {
                --bits;
            }
            return {bases, static_cast<uint16>(number), windows.sure, 1u << seed, bits};
        }
    }
    return {query.seed, 0, windows.sure, 0, ALL_PLACES};
}

// Return the seeds of a query that has too many matches. All lanes of a warp must call.
__device__ __forceinline__ SeedChoice choose_seeds(const QueryKmers& kmers, const Table& table,
                                                   const ChosenQuery& query) {
    const SeedChoice windows = take_rarest(kmers, table, query);
    const uint32 known = __popc(windows.taken);
    const SeedChoice longer = longer_seeds(kmers, table, query, windows.number - 1, known);
    if (longer.number > 0) {
        return longer;
    }
    return known > 0 ? windows : thinned_places(kmers, table, query, windows);
}

// Choose the seeds of each query.
//
// kmers          where query k-mers are; it places none yet. Matches count that have a whole
//                window, or without windows all of them
// table          the table of the reference
// offsets        uint64[query_count + 1], where each query begins in the block, then the end
// query_count    the number of queries
// seed           the fewest bases of a window of which seeds are chosen; those of the query k-mers'
//                if they have one
// kmers_of_seed  the places of a seed of which one is listed
// too_many       where a query has more matches, its seeds are chosen; without windows also where
//                more than NEAR times `most` of them are near
// most           seeds that are taken occur so often together at most
// choices        SeedChoice[query_count], receives the seeds
// known          uint8[query_count], receives of how many seeds all matches are found; ALL_SEEDS if
//                no match is left out
// counters       uint64[2], receives how many queries have had their seeds chosen, and how many of
//                these are frequent throughout, besides what is there
//
// Grid: one warp for each query, or fewer warps that take several queries in turn.
// Shared memory: none.
// Four blocks on a multiprocessor leave 64 registers to a thread: the compiler would keep 48, and
// spill.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 4)
    choose_query_seeds(QueryKmers kmers, Table table, const uint64* offsets, uint64 query_count,
                       uint32 seed, uint32 kmers_of_seed, uint32 too_many, uint32 most,
                       SeedChoice* choices, uint8* known, uint64* counters) {
    for (uint64 number = grid_warp(); number < query_count; number += grid_warps()) {
        const uint32 begin = static_cast<uint32>(offsets[number]);
        const uint32 length = static_cast<uint32>(offsets[number + 1]) - begin;
        const ChosenQuery query = {
            begin, length, too_many, most, window_bases(kmers, length, seed), kmers_of_seed};
        SeedChoice choice = {0, 0, ALL_SEEDS, 0, ALL_PLACES};
        const bool anywhere = kmers.window == 0;
        const uint32 few = anywhere ? NEAR * most : too_many;
        if (query.length >= seed && occurrences_of_query(kmers, table, query) > few &&
            ((anywhere && has_too_many_near(kmers, table, query, seed)) ||
             has_too_many(kmers, table, query))) {
            choice = choose_seeds(kmers, table, query);
            if (lane_number() == 0) {
                atomicAdd(counters, uint64{1});
                atomicAdd(counters + 1, uint64{choice.thinning_bits != ALL_PLACES});
            }
        }
        if (lane_number() == 0) {
            choices[number] = choice;
            known[number] = static_cast<uint8>(choice.sure);
        }
    }
}
