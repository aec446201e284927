// Turns counts into offsets: an exclusive prefix sum in three launches.
//
// Each block of threads works on one tile of blockDim.x * COUNTS_PER_THREAD counts. `sum_tiles`
// adds up each tile, `scan_tile_sums` turns the sums into the offsets of the tiles, and
// `scan_tiles` scans each tile from its offset on.
//
// A count has SCAN_COUNT_BYTES bytes, which each program chooses; an offset has 64 bits.
// Launch contract: blocks of at most BLOCK_THREADS threads, the same number in all three launches.
#pragma once

#include "common/grid.cuh"

using ScanCount = Conditional<SCAN_COUNT_BYTES == 8, uint64, uint32>::Type;
static_assert(sizeof(ScanCount) == SCAN_COUNT_BYTES, "counts have 4 or 8 bytes");

// Return the sum of the values of all lower-numbered threads of the block, and set `total` to the
// sum over all threads. `shared` holds one number for each thread of the block. All threads of the
// block must call.
__device__ __forceinline__ uint64 block_exclusive_sum(uint64 value, uint64* shared,
                                                      uint64& total) {
    shared[threadIdx.x] = value;
    __syncthreads();
    for (uint32 distance = 1; distance < blockDim.x; distance *= 2) {
        const uint64 other = threadIdx.x >= distance ? shared[threadIdx.x - distance] : 0;
        __syncthreads();
        shared[threadIdx.x] += other;
        __syncthreads();
    }
    total = shared[blockDim.x - 1];
    const uint64 before = shared[threadIdx.x] - value;
    __syncthreads();
    return before;
}

// The counts of a tile lie in shared memory with one unused number after each MEMORY_BANKS counts.
// Threads that read at a stride of COUNTS_PER_THREAD thus read from different banks.
constexpr uint32 MEMORY_BANKS = 32;
constexpr uint32 TILE_COUNTS = BLOCK_THREADS * COUNTS_PER_THREAD;
constexpr uint32 PADDED_TILE_COUNTS = TILE_COUNTS + TILE_COUNTS / MEMORY_BANKS;

// Return the index in shared memory of a count of a tile.
__device__ __forceinline__ uint32 padded_index(uint32 number) {
    return number + number / MEMORY_BANKS;
}

// Return the index of the first count of this block's tile.
__device__ __forceinline__ uint64 tile_begin() {
    return static_cast<uint64>(blockIdx.x) * blockDim.x * COUNTS_PER_THREAD;
}

// Load the counts of a tile into shared memory. Neighbouring threads read neighbouring counts.
__device__ __forceinline__ void load_tile(const ScanCount* counts, uint64 count, uint64* tile) {
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_PER_THREAD;
         number += blockDim.x) {
        const uint64 index = tile_begin() + number;
        tile[padded_index(number)] = index < count ? counts[index] : 0;
    }
    __syncthreads();
}

// Add up the counts of each tile.
//
// counts        ScanCount[count], the counts to add up
// count         the number of counts
// tile_offsets  uint64[number of tiles], receives the sum of each tile
//
// Grid: one block of threads for each tile. Shared memory: 8 * BLOCK_THREADS bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sum_tiles(const ScanCount* counts, uint64 count, uint64* tile_offsets) {
    __shared__ uint64 shared[BLOCK_THREADS];
    uint64 sum = 0;
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_PER_THREAD;
         number += blockDim.x) {
        const uint64 index = tile_begin() + number;
        sum += index < count ? counts[index] : 0;
    }
    uint64 total;
    block_exclusive_sum(sum, shared, total);
    if (threadIdx.x == 0) {
        tile_offsets[blockIdx.x] = total;
    }
}

// Turn the sums of all tiles into their offsets, in place.
//
// tile_offsets  uint64[tile_count], the sums that `sum_tiles` writes; receives the offsets
// tile_count    the number of tiles
//
// Grid: a single block, each thread on one tile at a time. Shared memory: 8 * BLOCK_THREADS bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    scan_tile_sums(uint64* tile_offsets, uint64 tile_count) {
    __shared__ uint64 shared[BLOCK_THREADS];
    uint64 carried = 0;
    for (uint64 first = 0; first < tile_count; first += blockDim.x) {
        const uint64 tile = first + threadIdx.x;
        uint64 total;
        const uint64 before =
            block_exclusive_sum(tile < tile_count ? tile_offsets[tile] : 0, shared, total);
        if (tile < tile_count) {
            tile_offsets[tile] = carried + before;
        }
        carried += total;
    }
}

// Write the sum of the counts before each count, and then the sum of all counts.
//
// counts        ScanCount[count], the same counts as for `sum_tiles`
// count         the number of counts
// tile_offsets  uint64[number of tiles], the offsets that `scan_tile_sums` writes
// offsets       uint64[count + 1], receives the sums
//
// Grid: one block of threads for each tile; a thread sums COUNTS_PER_THREAD consecutive counts.
// Shared memory: 8 * (BLOCK_THREADS + PADDED_TILE_COUNTS) bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    scan_tiles(const ScanCount* counts, uint64 count, const uint64* tile_offsets,
               uint64* offsets) {
    __shared__ uint64 shared[BLOCK_THREADS];
    __shared__ uint64 tile[PADDED_TILE_COUNTS];
    load_tile(counts, count, tile);
    uint64 sum = 0;
    for (uint32 number = 0; number < COUNTS_PER_THREAD; ++number) {
        sum += tile[padded_index(threadIdx.x * COUNTS_PER_THREAD + number)];
    }
    uint64 total;
    uint64 before = block_exclusive_sum(sum, shared, total);
    // Replace each count by the sum of the counts before it.
    for (uint32 number = 0; number < COUNTS_PER_THREAD; ++number) {
        uint64& item = tile[padded_index(threadIdx.x * COUNTS_PER_THREAD + number)];
        const uint64 after = before + item;
        item = before;
        before = after;
    }
    __syncthreads();
    const uint64 base = tile_offsets[blockIdx.x];
    for (uint32 number = threadIdx.x; number < blockDim.x * COUNTS_PER_THREAD;
         number += blockDim.x) {
        const uint64 index = tile_begin() + number;
        // If the tile extends beyond the last count, the number after that count is the total.
        if (index <= count) {
            offsets[index] = base + tile[padded_index(number)];
        }
    }
    if (threadIdx.x == 0 && tile_begin() + blockDim.x * COUNTS_PER_THREAD == count) {
        offsets[count] = base + total;
    }
}
