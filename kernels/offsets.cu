// From counts to offsets: an exclusive scan in three launches.
//
// The counts are divided into tiles, one for each block of threads. First the sum of each
// tile is taken, then one block turns the sums into the offsets of the tiles, then each tile
// is scanned from its offset on.
#pragma once

#include "threads.cuh"

constexpr uint32 SCAN_THREADS = 256;
constexpr uint32 COUNTS_OF_THREAD = 8;

// The sampled search counts the MEMs of many samples together.
using Count = Either<SAMPLED, uint64, uint32>::Type;

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

// The counts of a tile lie in shared memory with a gap behind each row of banks, so that
// threads that read far apart read from different banks.
constexpr uint32 TILE_COUNTS = SCAN_THREADS * COUNTS_OF_THREAD;
constexpr uint32 BANKS = 32;

__device__ __forceinline__ uint32 place_in_tile(uint32 number) {
    return number + number / BANKS;
}

constexpr uint32 TILE_PLACES = TILE_COUNTS + TILE_COUNTS / BANKS;

__device__ __forceinline__ uint64 first_of_tile() {
    return static_cast<uint64>(blockIdx.x) * blockDim.x * COUNTS_OF_THREAD;
}

// Read the counts of a tile, neighbouring threads neighbouring counts.
__device__ __forceinline__ void load_tile(const Count* counts, uint64 count, uint64* tile) {
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_OF_THREAD;
         number += blockDim.x) {
        const uint64 place = first_of_tile() + number;
        tile[place_in_tile(number)] = place < count ? counts[place] : 0;
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(SCAN_THREADS)
    sum_tiles(const Count* counts, uint64 count, uint64* tile_offsets) {
    __shared__ uint64 shared[SCAN_THREADS];
    uint64 sum = 0;
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_OF_THREAD;
         number += blockDim.x) {
        const uint64 place = first_of_tile() + number;
        sum += place < count ? counts[place] : 0;
    }
    uint64 total;
    sum_before(sum, shared, total);
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
    scan_tiles(const Count* counts, uint64 count, const uint64* tile_offsets, uint64* offsets) {
    __shared__ uint64 shared[SCAN_THREADS];
    __shared__ uint64 tile[TILE_PLACES];
    load_tile(counts, count, tile);
    uint64 sum = 0;
    for (uint32 number = 0; number < COUNTS_OF_THREAD; ++number) {
        sum += tile[place_in_tile(threadIdx.x * COUNTS_OF_THREAD + number)];
    }
    uint64 total;
    uint64 before = sum_before(sum, shared, total);
    // From counts to the sums before them.
    for (uint32 number = 0; number < COUNTS_OF_THREAD; ++number) {
        uint64& item = tile[place_in_tile(threadIdx.x * COUNTS_OF_THREAD + number)];
        const uint64 after = before + item;
        item = before;
        before = after;
    }
    __syncthreads();
    const uint64 base = tile_offsets[blockIdx.x];
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_OF_THREAD;
         number += blockDim.x) {
        const uint64 place = first_of_tile() + number;
        // Behind the last count, if the tile goes on there, lies the sum of all.
        if (place <= count) {
            offsets[place] = base + tile[place_in_tile(number)];
        }
    }
    if (threadIdx.x == 0 && first_of_tile() + blockDim.x * COUNTS_OF_THREAD == count) {
        offsets[count] = base + total;
    }
}
