// Sorts the MEMs of each candidate match by their starts in the reference, and writes the query
// start that they share: here the rows of neighbours are written side by side.
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
// rows.
//
// offsets          uint64[queries + 1], where each query begins in the block, then the end
// candidates       the candidate matches of the block
// mem_offsets      uint64[candidates.count + 1], the first row of each candidate, then the row count
// mems             three columns of mem_offsets[candidates.count] rows each, sorted in place
// long_candidates  uint64[rows / FEW_ROWS + 1], receives those with more than FEW_ROWS rows
// long_count       uint32[1], zero before the launch, receives the number of listed candidates
//
// Grid: one thread for each candidate, or fewer threads that take several candidates in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_candidates(const uint64* offsets, Candidates candidates, const uint64* mem_offsets,
                    MemColumns mems, uint64* long_candidates, uint32* long_count) {
    for (uint64 candidate = grid_thread(); candidate < candidates.count;
         candidate += grid_threads()) {
        const uint64 begin = mem_offsets[candidate];
        const uint64 end = mem_offsets[candidate + 1];
        if (end - begin > FEW_ROWS) {
            long_candidates[atomicAdd(long_count, 1u)] = candidate;
            continue;
        }
        if (begin < end) {
            const uint32 query_start = candidates.query_start(candidate, offsets);
            for (uint64 row = begin; row < end; ++row) {
                mems.query_starts[row] = query_start;
            }
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

// Sort the rows of each listed candidate. Up to SHARED_ROWS are sorted in shared memory, as numbers
// with the start in the page in the high 32 bits and the length in the low 32 bits.
//
// page_begin  the page's first base, as a position in the joined reference
//
// Every other parameter is as for `sort_candidates`, which lists the candidates.
//
// Grid: one block of threads for each listed candidate, or fewer blocks that take several in turn.
// Shared memory: static, SHARED_ROWS numbers of 8 bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_long_candidates(const uint64* offsets, Candidates candidates, const uint64* mem_offsets,
                         const uint64* long_candidates, const uint32* long_count,
                         uint64 page_begin, MemColumns mems) {
    __shared__ uint64 rows[SHARED_ROWS];
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint64 candidate = long_candidates[number];
        const uint64 begin = mem_offsets[candidate];
        const uint64 end = mem_offsets[candidate + 1];
        const uint32 query_start = candidates.query_start(candidate, offsets);
        for (uint64 row = begin + threadIdx.x; row < end; row += blockDim.x) {
            mems.query_starts[row] = query_start;
        }
        __syncthreads();
        if (end - begin > SHARED_ROWS) {
            sort_by_block<false>(mems, begin, end - begin);
            continue;
        }
        const uint32 count = static_cast<uint32>(end - begin);
        for (uint32 row = threadIdx.x; row < count; row += blockDim.x) {
            const uint64 start = mems.reference_starts[begin + row] - page_begin;
            rows[row] = start << 32 | static_cast<uint64>(mems.lengths[begin + row]);
        }
        __syncthreads();
        sort_rows<uint32>(
            count, threadIdx.x, blockDim.x,
            [&](uint32 row, uint32 other) { return rows[row] > rows[other]; },
            [&](uint32 row, uint32 other) { exchange(rows, row, other); },
            [] { __syncthreads(); });
        for (uint32 row = threadIdx.x; row < count; row += blockDim.x) {
            mems.reference_starts[begin + row] = static_cast<long long>(page_begin + (rows[row] >> 32));
            mems.lengths[begin + row] = static_cast<long long>(rows[row] & 0xFFFFFFFF);
        }
        // The rows of the next candidate take their places.
        __syncthreads();
    }
}
