// Grid-stride loops: any number of threads can work on any number of items.
//
// Launch contract: one-dimensional grids of one-dimensional blocks.
#pragma once

#include "common/types.cuh"

// Return the number of this thread in the grid: its first item.
__device__ __forceinline__ uint64 grid_thread() {
    return static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// Return the number of threads in the grid: the stride from a thread's item to its next one.
__device__ __forceinline__ uint64 grid_threads() {
    return static_cast<uint64>(gridDim.x) * blockDim.x;
}

// Return the first number from `first` on, before `end`, for which `holds` is true, by binary
// search: it stays true from there on. Return `end` if it is true for none.
template <typename Number, typename Holds>
__device__ __forceinline__ Number first_that(Number first, Number end, Holds holds) {
    while (first < end) {
        const Number middle = first + (end - first) / 2;
        if (holds(middle)) {
            end = middle;
        } else {
            first = middle + 1;
        }
    }
    return first;
}
