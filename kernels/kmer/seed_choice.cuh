// Chooses seeds of the queries that have too many matches with a window.
//
// The rules are those of the processor's choice of seeds, and so are the names. A warp works
// on a query: its lanes share the occurrences of a seed, and each lane keeps the count of one seed.
#pragma once

#include "common/warp.cuh"
#include "kmer/samples.cuh"

// The seeds of a query that are taken.
struct SeedChoice {
    uint32 bases;        // of each; 0 if all windows are taken
    uint32 number;       // of seeds
    uint32 taken;        // a bit for each seed
    uint32 spread_bits;  // as in `Sample`
};

static_assert(sizeof(SeedChoice) == SEED_CHOICE_BYTES, "the host allocates so much for each");

// A query that seeds are chosen for, and how many matches are too many.
struct ChosenQuery {
    uint32 begin;   // where it begins in the block
    uint32 length;  // its bases
    uint32 most;
};

// Return a k-mer of a window or of a longer seed, with its occurrences.
//
// begin     where the query begins in the block
// offset    where in the query the seed begins
// bases     the bases of the seed
// before    the bases from the seed before it that is taken; what is found from there is found before
// number    the number of the k-mer among those of the seed
__device__ __forceinline__ Sample sample_of_seed(const Samples& samples, const Table& table,
                                                 uint32 begin, uint32 offset, uint32 bases,
                                                 uint32 before, uint32 spread_bits,
                                                 uint32 number) {
    PlacedSample placed;
    const uint32 lead = bases - table.kmer_length - (samples.samples_of_window - 1) + number;
    placed.place = begin + offset + lead;
    placed.lead = static_cast<uint16>(lead);
    placed.window = static_cast<uint16>(bases);
    placed.found_before = before == NO_SEED_BEFORE ? NO_SEED_BEFORE : lead + before;
    placed.spread_bits = spread_bits;
    return look_up(samples, table, placed);
}

// Return the number of matches that the samples of a warp's lanes may have together. All lanes of a
// warp must call.
__device__ __forceinline__ uint64 occurrences_of_windows(const Samples& samples, const Table& table,
                                                         const ChosenQuery& query) {
    const uint32 windows = query.length / samples.window;
    uint64 own = 0;
    for (uint32 item = lane_number(); item < windows * samples.samples_of_window;
         item += WARP_LANES) {
        const uint32 window = item / samples.samples_of_window;
        own += occurrence_count(sample_of_seed(samples, table, query.begin, window * samples.window,
                                               samples.window, samples.window, ALL_PLACES,
                                               item % samples.samples_of_window));
    }
    uint64 total;
    warp_exclusive_sum(own, total);
    return total;
}

// Return how many matches some k-mers of a seed have; if they are more than `most`, any larger
// number. The arguments are those of `sample_of_seed`. All lanes of a warp must call.
__device__ __forceinline__ uint32 count_matches(const Samples& samples, const Table& table,
                                                const ChosenQuery& query, uint32 offset,
                                                uint32 bases, uint32 before, uint32 spread_bits,
                                                uint32 most) {
    uint32 count = 0;
    for (uint32 number = 0; number < samples.samples_of_window; ++number) {
        const Sample sample = sample_of_seed(samples, table, query.begin, offset, bases, before,
                                             spread_bits, number);
        for (uint32 first = sample.list_begin; first < sample.list_end; first += WARP_LANES) {
            const uint32 index = first + lane_number();
            const bool is_match = index < sample.list_end &&
                                  extend(samples, table, sample, index).length > 0;
            count += __popc(__ballot_sync(ALL_LANES, is_match));
            if (count > most) {
                return count;
            }
        }
    }
    return count;
}

// Return how often a seed occurs; if that is more than `most`, any larger number. All lanes of a
// warp must call.
__device__ __forceinline__ uint32 count_seed(const Samples& samples, const Table& table,
                                             const ChosenQuery& query, uint32 bases, uint32 seed,
                                             uint32 spread_bits, uint32 most) {
    return count_matches(samples, table, query, seed * bases, bases, NO_SEED_BEFORE, spread_bits,
                         most);
}

// Return whether a query has too many matches with a window. All lanes of a warp must call.
__device__ __forceinline__ bool has_too_many(const Samples& samples, const Table& table,
                                             const ChosenQuery& query) {
    const uint32 windows = query.length / samples.window;
    uint32 left = query.most;
    for (uint32 window = 0; window < windows; ++window) {
        const uint32 found = count_matches(samples, table, query, window * samples.window,
                                           samples.window, samples.window, ALL_PLACES, left);
        if (found > left) {
            return true;
        }
        left -= found;
    }
    return false;
}

// Return the rarest windows that occur at most so often together. All lanes of a warp must call.
__device__ __forceinline__ SeedChoice take_rarest(const Samples& samples, const Table& table,
                                                  const ChosenQuery& query) {
    const uint32 number = min(query.length / samples.window, WARP_LANES);
    uint32 own = 0;
    for (uint32 seed = 0; seed < number; ++seed) {
        const uint32 found =
            count_seed(samples, table, query, samples.window, seed, ALL_PLACES, query.most);
        own = lane_number() == seed ? found : own;
    }
    uint64 total = 0;
    for (uint32 seed = 0; seed < number; ++seed) {
        const uint32 other = from_lane(own, seed);
        if (other < own || (other == own && seed <= lane_number())) {
            total += other;
        }
    }
    const uint32 taken =
        __ballot_sync(ALL_LANES, lane_number() < number && total <= query.most);
    return {samples.window, number, taken, ALL_PLACES};
}

// Return as many seeds of equal lengths as possible, more than `known`, that occur at most so often
// together; none if there are none. All lanes of a warp must call.
__device__ __forceinline__ SeedChoice longer_seeds(const Samples& samples, const Table& table,
                                                   const ChosenQuery& query, uint32 most_number,
                                                   uint32 known) {
    for (uint32 number = most_number; number > known; --number) {
        const uint32 bases = query.length / number;
        uint32 left = query.most;
        bool fits = true;
        for (uint32 seed = 0; seed < number && fits; ++seed) {
            const uint32 found =
                count_seed(samples, table, query, bases, seed, ALL_PLACES, left);
            fits = found <= left;
            left -= found;
        }
        if (fits) {
            return {bases, number, lowest_bits(number), ALL_PLACES};
        }
    }
    return {0, 0, 0, ALL_PLACES};
}

// Return a query as a whole, at as many places as possible that are spread evenly. All lanes of a
// warp must call.
__device__ __forceinline__ SeedChoice spread_whole(const Samples& samples, const Table& table,
                                                   const ChosenQuery& query) {
    uint32 bits = SPREAD_BITS;
    while (bits > 0 && count_seed(samples, table, query, query.length, 0, bits, query.most) >
                           query.most) {
        --bits;
    }
    return {query.length, 1, 1, bits};
}

// Choose the seeds of each query.
//
// samples      where samples are; it places none yet
// table        the table of the reference
// offsets      uint64[query_count + 1], where each query begins in the block, then the end
// query_count  the number of queries
// most         where a query has more matches with a window, its seeds are chosen
// choices      SeedChoice[query_count], receives the seeds
// counters     uint64[2], receives how many queries have had their seeds chosen, and how many of
//              these occur too often as a whole, besides what is there
//
// Grid: one warp for each query, or fewer warps that take several queries in turn.
// Shared memory: none.
// Four blocks on a multiprocessor leave 64 registers to a thread: the compiler would keep 48, and spill.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 4)
    choose_query_seeds(Samples samples, Table table, const uint64* offsets, uint64 query_count,
                       uint32 most, SeedChoice* choices, uint64* counters) {
    for (uint64 number = grid_warp(); number < query_count; number += grid_warps()) {
        const uint32 begin = static_cast<uint32>(offsets[number]);
        const ChosenQuery query = {begin, static_cast<uint32>(offsets[number + 1]) - begin, most};
        SeedChoice choice = {0, 0, 0, ALL_PLACES};
        if (occurrences_of_windows(samples, table, query) > most &&
            has_too_many(samples, table, query)) {
            choice = take_rarest(samples, table, query);
            const uint32 known = __popc(choice.taken);
            const SeedChoice longer =
                longer_seeds(samples, table, query, choice.number - 1, known);
            if (longer.number > 0) {
                choice = longer;
            } else if (known == 0) {
                choice = spread_whole(samples, table, query);
            }
            if (lane_number() == 0) {
                atomicAdd(counters, uint64{1});
                atomicAdd(counters + 1, uint64{choice.spread_bits != ALL_PLACES});
            }
        }
        if (lane_number() == 0) {
            choices[number] = choice;
        }
    }
}
