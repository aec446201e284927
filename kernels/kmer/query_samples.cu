// Where the samples of a mapper are: in the windows of each query, or in the seeds that are chosen of it.
//
// Only MEMs are wanted that contain a whole window of their query. The samples of a window are its
// last k-mers, as many as the steps of the table, which lists one of them wherever the window occurs.
// A MEM has the bases of the window before its sample as well: the lead. Of the sorted list of a
// frequent k-mer, only those occurrences are looked at that the lead precedes.
#pragma once

#include "common/grid.cuh"
#include "kmer/seed_choice.cuh"

// Where the samples of a query are if no seeds are chosen of it.
struct QuerySampling {
    uint32 window;       // the bases of a window; 0 if samples are at every step
    uint32 leads;        // the samples of a window, or of a seed that is taken, which lie side by side
    uint32 step;         // the bases from one sample to the next, without windows
    uint32 period;       // the bases from one pair of a MEM to the next, without windows
    uint32 kmer_length;  // the bases of a sample, or those of which a k-mer is picked
};

// Return how many samples a query of some bases has if no seeds are chosen of it.
__device__ __forceinline__ uint32 sample_count(const QuerySampling& sampling, uint32 length) {
    if (sampling.window > 0) {
        return length / sampling.window * sampling.leads;
    }
    return length < sampling.kmer_length ? 0
                                         : (length - sampling.kmer_length) / sampling.step + 1;
}

// Count the samples of each query: in each of its windows, or of the seeds that are taken.
//
// offsets            uint64[query_count + 1], where each query begins in the block, then the end
// query_count        the number of queries
// sampling           where samples are
// choices            SeedChoice[query_count], as `choose_query_seeds` writes it; null if none are
//                    chosen
// counts             uint64[query_count], receives the number of samples of each query
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_query_samples(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                        const SeedChoice* choices, uint64* counts) {
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        const uint32 length = static_cast<uint32>(offsets[query + 1] - offsets[query]);
        counts[query] = takes_all ? sample_count(sampling, length)
                                  : __popc(choices[query].taken) * sampling.leads;
    }
}

// Write where each sample of each query begins in the block, and what it finds first.
//
// first_samples      uint64[query_count + 1], the number of samples of all queries before each
// placed             PlacedSample[first_samples[query_count]], receives the samples
//
// Every other parameter is as for `count_query_samples`.
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    place_query_samples(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                        const SeedChoice* choices, const uint64* first_samples,
                        PlacedSample* placed) {
    const uint32 window = sampling.window;
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        if (takes_all && window == 0) {
            uint32 place = static_cast<uint32>(offsets[query]);
            for (uint64 sample = first_samples[query]; sample < first_samples[query + 1];
                 ++sample, place += sampling.step) {
                placed[sample] = {place, 0, 0, sampling.period, ALL_PLACES};
            }
            continue;
        }
        const SeedChoice choice =
            takes_all ? SeedChoice{window, 0, 0, 0, ALL_PLACES} : choices[query];
        uint32 seed = 0;
        uint32 last = NO_SEED_BEFORE;
        for (uint64 sample = first_samples[query]; sample < first_samples[query + 1]; ++seed) {
            if (!takes_all && (choice.taken >> seed & 1) == 0) {
                continue;
            }
            // All windows are the same to a match; of chosen seeds, the first one finds it.
            const uint32 before = takes_all ? window
                                  : last == NO_SEED_BEFORE ? NO_SEED_BEFORE
                                                           : (seed - last) * choice.bases;
            for (uint32 number = 0; number < sampling.leads; ++number) {
                const uint32 lead =
                    choice.bases - sampling.kmer_length - (sampling.leads - 1) + number;
                const uint64 place = offsets[query] + seed * choice.bases + lead;
                placed[sample++] = {
                    static_cast<uint32>(place), static_cast<uint16>(lead),
                    static_cast<uint16>(choice.bases),
                    before == NO_SEED_BEFORE ? NO_SEED_BEFORE : lead + before,
                    choice.thinning_bits};
            }
            last = seed;
        }
    }
}
