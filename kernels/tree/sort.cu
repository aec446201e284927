// Sorts the MEMs of each candidate match by their starts in the reference.
//
// Queries and query starts are in order already, because each candidate has its own rows. Within a
// candidate, the search finds occurrences in the order of the tree, not of the reference.
//
// The kernels read and write MEMs as columns.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"
#include "tree/print.cu"

// Sort the rows of each candidate by insertion, and list the candidates with more than FEW_ROWS
// rows. The rows of candidates with at most KEPT_MEMS MEMs are in order already.
//
// mem_offsets      uint64[candidate_count + 1], the first row of each candidate, then the row count
// candidate_count  the number of candidates
// mems             three columns of mem_offsets[candidate_count] rows each, sorted in place
// long_candidates  uint64[rows / FEW_ROWS + 1], receives those with more than FEW_ROWS rows
// long_count       uint32[1], zero before the launch, receives the number of listed candidates
//
// Grid: one thread for each candidate, or fewer threads that take several candidates in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_candidates(const uint64* mem_offsets, uint64 candidate_count, MemColumns mems,
                    uint64* long_candidates, uint32* long_count) {
    for (uint64 candidate = grid_thread(); candidate < candidate_count;
         candidate += grid_threads()) {
        const uint64 begin = mem_offsets[candidate];
        const uint64 end = mem_offsets[candidate + 1];
        if (end - begin <= KEPT_MEMS) {
            continue;
        }
        if (end - begin > FEW_ROWS) {
            long_candidates[atomicAdd(long_count, 1u)] = candidate;
            continue;
        }
        for (uint64 row = begin + 1; row < end; ++row) {
            const long long reference_start = mems.reference_starts[row];
            const long long length = mems.lengths[row];
            uint64 to = row;
            while (to > begin && mems.reference_starts[to - 1] > reference_start) {
                mems.reference_starts[to] = mems.reference_starts[to - 1];
                mems.lengths[to] = mems.lengths[to - 1];
                --to;
            }
            if (to < row) {
                mems.reference_starts[to] = reference_start;
                mems.lengths[to] = length;
            }
        }
    }
}

// Sort the rows of each listed candidate.
//
// Every parameter is as for `sort_candidates`, which lists the candidates.
//
// Grid: one block of threads for each listed candidate, or fewer blocks that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_long_candidates(const uint64* mem_offsets, const uint64* long_candidates,
                         const uint32* long_count, MemColumns mems) {
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint64 begin = mem_offsets[long_candidates[number]];
        const uint64 count = mem_offsets[long_candidates[number] + 1] - begin;
        sort_by_block<false>(mems, begin, count);
    }
}
