// The order of MEMs: those of a candidate match ascend by their starts in the reference.
//
// Queries and positions in them are in order already, because the MEMs of each candidate have
// rows of their own. A search finds occurrences in the order of the suffixes instead.
//
// Reads and writes MEMs as columns.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"
#include "tree/print.cu"

// Sort the rows of each candidate by insertion, and list the candidates that have many rows. Rows
// that `count_mems` has kept are in order.
//
// mem_offsets      uint64[candidate_count + 1], where the rows of each candidate begin
// candidate_count  how many candidates there are
// mems             columns of mem_offsets[candidate_count] rows
// long_candidates  uint64[rows / FEW_ROWS + 1], receives those with more than FEW_ROWS rows
// long_count       uint32[1], zero before the launch, receives how many are listed
//
// Grid: one thread for each candidate, or fewer. Shared memory: none.
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
// long_candidates, long_count  as `sort_candidates` leaves them; the rest as it is given it
//
// Grid: one block for each listed candidate, or fewer. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_long_candidates(const uint64* mem_offsets, const uint64* long_candidates,
                         const uint32* long_count, MemColumns mems) {
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint64 begin = mem_offsets[long_candidates[number]];
        const uint64 count = mem_offsets[long_candidates[number] + 1] - begin;
        sort_by_block<false>(mems, begin, count);
    }
}
