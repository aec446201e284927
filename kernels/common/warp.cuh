// Functions that the threads of a warp execute together.
//
// Launch contract: the number of threads in a block is a multiple of WARP_LANES. All lanes of a
// warp take part in every call of a function that shuffles or votes.
#pragma once

#include "common/grid.cuh"

constexpr uint32 ALL_LANES = ~0u;

// Return the number of this thread in its warp, from 0 to WARP_LANES - 1.
__device__ __forceinline__ uint32 lane_number() {
    return threadIdx.x % WARP_LANES;
}

// Return the number of this warp in the grid: its first item in a grid-stride loop.
__device__ __forceinline__ uint64 grid_warp() {
    return grid_thread() / WARP_LANES;
}

// Return the number of warps in the grid.
__device__ __forceinline__ uint64 grid_warps() {
    return grid_threads() / WARP_LANES;
}

// Return a mask of the `count` lowest bits; `count` may be 32.
__device__ __forceinline__ uint32 lowest_bits(uint32 count) {
    return count < WARP_LANES ? (1u << count) - 1 : ALL_LANES;
}

// Return another lane's value.
__device__ __forceinline__ uint32 from_lane(uint32 value, uint32 lane) {
    return __shfl_sync(ALL_LANES, value, lane);
}

// Return the sum of the values of all lower-numbered lanes, and set `total` to the warp's sum.
template <typename Number>
__device__ __forceinline__ Number warp_exclusive_sum(Number value, Number& total) {
    Number sum = value;
#pragma unroll
    for (uint32 distance = 1; distance < WARP_LANES; distance *= 2) {
        const Number other = __shfl_up_sync(ALL_LANES, sum, distance);
        sum += lane_number() >= distance ? other : 0;
    }
    total = __shfl_sync(ALL_LANES, sum, WARP_LANES - 1);
    return sum - value;
}

// Return the last lane whose value is at most `number`. The values must ascend with the lanes,
// and lane 0 must have 0.
__device__ __forceinline__ uint32 last_lane_at_most(uint32 value, uint32 number) {
    uint32 found = 0;
#pragma unroll
    for (uint32 distance = WARP_LANES / 2; distance > 0; distance /= 2) {
        found += __shfl_sync(ALL_LANES, value, found + distance) <= number ? distance : 0;
    }
    return found;
}
