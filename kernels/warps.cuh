// What the threads of a warp do together. All of them take part in every call.
#pragma once

#include "layout.cuh"

constexpr uint32 LANES = 32;
constexpr uint32 ALL_LANES = ~0u;

__device__ __forceinline__ uint32 lane_number() {
    return threadIdx.x % LANES;
}

__device__ __forceinline__ uint64 first_warp() {
    return (static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x) / LANES;
}

__device__ __forceinline__ uint64 warp_step() {
    return static_cast<uint64>(gridDim.x) * blockDim.x / LANES;
}

// Return the lowest `count` bits set; `count` may be 32.
__device__ __forceinline__ uint32 lowest_bits(uint32 count) {
    return count < LANES ? (1u << count) - 1 : ALL_LANES;
}

// Return the sum of the values of all lanes of lower number, and the sum of all.
template <typename Number>
__device__ __forceinline__ Number sum_of_lanes_before(Number value, Number& total) {
    Number sum = value;
#pragma unroll
    for (uint32 reach = 1; reach < LANES; reach *= 2) {
        const Number other = __shfl_up_sync(ALL_LANES, sum, reach);
        sum += lane_number() >= reach ? other : 0;
    }
    total = __shfl_sync(ALL_LANES, sum, LANES - 1);
    return sum - value;
}

// Return the last lane whose value is not above a number; the values ascend from 0 on.
__device__ __forceinline__ uint32 lane_that_holds(uint32 value, uint32 number) {
    uint32 found = 0;
#pragma unroll
    for (uint32 reach = LANES / 2; reach > 0; reach /= 2) {
        found += __shfl_sync(ALL_LANES, value, found + reach) <= number ? reach : 0;
    }
    return found;
}
