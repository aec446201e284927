// MEMs as columns, and their order within a candidate match or a sample.
#pragma once

#include "layout.cuh"

struct Mems {
    long long* query_starts;      // positions within the query
    long long* reference_starts;  // positions in the joined reference
    long long* lengths;           // bases
};

// Whether a row belongs behind another; by the query starts first, where they differ at all.
template <bool by_query_start>
__device__ __forceinline__ bool is_behind(const Mems& mems, uint64 row, uint64 other) {
    if constexpr (by_query_start) {
        if (mems.query_starts[row] != mems.query_starts[other]) {
            return mems.query_starts[row] > mems.query_starts[other];
        }
    }
    return mems.reference_starts[row] > mems.reference_starts[other];
}

__device__ __forceinline__ void exchange(long long* column, uint64 row, uint64 other) {
    const long long value = column[row];
    column[row] = column[other];
    column[other] = value;
}

// Order rows by a block of threads, with a bitonic network whose every exchange moves the
// smaller row forward: rows behind the last would be the largest, and are left out.
template <bool by_query_start>
__device__ __forceinline__ void order_by_block(const Mems& mems, uint64 begin, uint64 count) {
    for (uint64 size = 2; size / 2 < count; size *= 2) {
        for (uint64 reach = size / 2; reach > 0; reach /= 2) {
            for (uint64 row = threadIdx.x; row < count; row += blockDim.x) {
                // The first step of a merge mirrors the second half of each part.
                const uint64 other = reach == size / 2 ? row ^ (size - 1) : row ^ reach;
                if (row < other && other < count &&
                    is_behind<by_query_start>(mems, begin + row, begin + other)) {
                    if constexpr (by_query_start) {
                        exchange(mems.query_starts, begin + row, begin + other);
                    }
                    exchange(mems.reference_starts, begin + row, begin + other);
                    exchange(mems.lengths, begin + row, begin + other);
                }
            }
            __syncthreads();
        }
    }
}
