// From counts to offsets: an exclusive scan in three launches.
//
// The counts are divided into tiles, one for each block of threads. First the sum of each
// tile is taken, then one block turns the sums into the offsets of the tiles, then each tile
// is scanned from its offset on.
#pragma once

#include "threads.cuh"

constexpr uint32 SCAN_THREADS = 256;
constexpr uint32 COUNTS_OF_THREAD = 8;

// Return the sum of the values of all threads of lower number, and the sum of all.
__device__ __forceinline__ uint64 sum_before(uint64 value, uint64* shared, uint64& total) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (uint32 reach = 1; reach < blockDim.x; reach *= 2) {
        const uint64 other = threadIdx.x >= reach ? shared[threadIdx.x - reach] : 0;
        __syncthreads();
        shared[threadIdx.x] += other;
        __syncthreads();
    }
    total = shared[blockDim.x - 1];
    const uint64 before = shared[threadIdx.x] - value;
    __syncthreads();
    return before;
}

__device__ __forceinline__ uint64 first_of_thread() {
    return first_item() * COUNTS_OF_THREAD;
}

__device__ __forceinline__ uint64 sum_of_thread(const uint32* counts, uint64 count) {
    uint64 sum = 0;
    for (uint32 number = 0; number < COUNTS_OF_THREAD; ++number) {
        const uint64 place = first_of_thread() + number;
        sum += place < count ? counts[place] : 0;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    sum_tiles(const uint32* counts, uint64 count, uint64* tile_offsets) {
    __shared__ uint64 shared[SCAN_THREADS];
    uint64 total;
    sum_before(sum_of_thread(counts, count), shared, total);
    if (threadIdx.x == 0) {
        tile_offsets[blockIdx.x] = total;
    }
}

// Scan the sums of all tiles in place; one block of threads.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    scan_tile_sums(uint64* tile_offsets, uint64 tile_count) {
    __shared__ uint64 shared[SCAN_THREADS];
    uint64 carried = 0;
    for (uint64 first = 0; first < tile_count; first += blockDim.x) {
        const uint64 tile = first + threadIdx.x;
        uint64 total;
        const uint64 before =
            sum_before(tile < tile_count ? tile_offsets[tile] : 0, shared, total);
        if (tile < tile_count) {
            tile_offsets[tile] = carried + before;
        }
        carried += total;
    }
}

// Write where the items of each count begin, and behind them where the last ones end.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    scan_tiles(const uint32* counts, uint64 count, const uint64* tile_offsets, uint64* offsets) {
    __shared__ uint64 shared[SCAN_THREADS];
    uint64 total;
    uint64 offset = sum_before(sum_of_thread(counts, count), shared, total);
    offset += tile_offsets[blockIdx.x];
    for (uint32 number = 0; number < COUNTS_OF_THREAD; ++number) {
        const uint64 place = first_of_thread() + number;
        if (place < count) {
            offsets[place] = offset;
            offset += counts[place];
            if (place + 1 == count) {
                offsets[count] = offset;
            }
        }
    }
}
