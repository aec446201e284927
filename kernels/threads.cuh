// How work is dealt out: any number of threads does any number of items.
#pragma once

#include "layout.cuh"

__device__ __forceinline__ uint64 first_item() {
    return static_cast<uint64>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ uint64 item_step() {
    return static_cast<uint64>(gridDim.x) * blockDim.x;
}
