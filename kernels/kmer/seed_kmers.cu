// Where the query k-mers of a mapper are: in the windows of each query, or in the seeds that are
// chosen of it.
//
// Only MEMs are wanted that contain a whole window of their query. The query k-mers of a window are
// its last k-mers, as many as the steps of the table, which lists one of them wherever the window
// occurs. A MEM has the bases of the window before its query k-mer as well. Of the sorted list of
// a frequent k-mer, only those occurrences are looked at that these bases precede.
#pragma once

#include "common/grid.cuh"
#include "kmer/seed_choice.cuh"

// Where the query k-mers of a query are if no seeds are chosen of it.
struct QuerySampling {
    uint32 window;         // the bases of a window; 0 if query k-mers are at every step
    uint32 kmers_of_seed;  // the query k-mers of a window, or of a seed that is taken, which lie
                           // side by side
    uint32 step;           // the bases from one query k-mer to the next, without windows
    uint32 sampling_step;  // the bases from one pair of a MEM to the next, without windows
    uint32 kmer_length;    // the bases of a query k-mer, or those of which a k-mer is picked
};

// Return how many query k-mers a query of some bases has if no seeds are chosen of it.
__device__ __forceinline__ uint32 kmer_count(const QuerySampling& sampling, uint32 length) {
    if (sampling.window > 0) {
        return length / sampling.window * sampling.kmers_of_seed;
    }
    return length < sampling.kmer_length ? 0 : (length - sampling.kmer_length) / sampling.step + 1;
}

// Count the query k-mers of each query: in each of its windows, or of the seeds that are taken.
//
// offsets      uint64[query_count + 1], where each query begins in the block, then the end
// query_count  the number of queries
// sampling     where query k-mers are
// choices      SeedChoice[query_count], as `choose_query_seeds` writes it; null if none are chosen
// counts       uint64[query_count], receives the number of query k-mers of each query
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_query_kmers(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                      const SeedChoice* choices, uint64* counts) {
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        const uint32 length = static_cast<uint32>(offsets[query + 1] - offsets[query]);
        counts[query] = takes_all ? kmer_count(sampling, length)
                                  : __popc(choices[query].taken) * sampling.kmers_of_seed;
    }
}

// Write where each query k-mer of each query begins in the block, and what it finds first.
//
// first_kmers  uint64[query_count + 1], the number of query k-mers of all queries before each
// placed       PlacedKmer[first_kmers[query_count]], receives the query k-mers
//
// Every other parameter is as for `count_query_kmers`.
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    place_query_kmers(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                      const SeedChoice* choices, const uint64* first_kmers, PlacedKmer* placed) {
    const uint32 window = sampling.window;
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        if (takes_all && window == 0) {
            uint32 place = static_cast<uint32>(offsets[query]);
            for (uint64 kmer = first_kmers[query]; kmer < first_kmers[query + 1];
                 ++kmer, place += sampling.step) {
                placed[kmer] = {place, 0, 0, sampling.sampling_step, ALL_PLACES};
            }
            continue;
        }
        const SeedChoice choice =
            takes_all ? SeedChoice{window, 0, 0, 0, ALL_PLACES} : choices[query];
        uint32 seed = 0;
        uint32 last = NO_SEED_BEFORE;
        for (uint64 kmer = first_kmers[query]; kmer < first_kmers[query + 1]; ++seed) {
            if (!takes_all && (choice.taken >> seed & 1) == 0) {
                continue;
            }
            // All windows are the same to a match; of chosen seeds, the first one finds it.
            const uint32 before = takes_all                ? window
                                  : last == NO_SEED_BEFORE ? NO_SEED_BEFORE
                                                           : (seed - last) * choice.bases;
            for (uint32 number = 0; number < sampling.kmers_of_seed; ++number) {
                const uint32 kmer_offset =
                    choice.bases - sampling.kmer_length - (sampling.kmers_of_seed - 1) + number;
                const uint64 place = offsets[query] + seed * choice.bases + kmer_offset;
                placed[kmer++] = {static_cast<uint32>(place), static_cast<uint16>(kmer_offset),
                                  static_cast<uint16>(choice.bases),
                                  before == NO_SEED_BEFORE ? NO_SEED_BEFORE : kmer_offset + before,
                                  choice.thinning_bits};
            }
            last = seed;
        }
    }
}
