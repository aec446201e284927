// Defines MEMs as columns in global memory, and sorts rows that several threads share.
#pragma once

#include "common/types.cuh"

// Sort the rows from 0 to `count` - 1. The sort is a bitonic network in which every exchange moves
// the smaller row forward. Rows that would fill the network up to a power of two would be the
// largest, so they can be left out.
//
// count, thread, threads  the number of rows; the threads that share the work have numbers from 0
//                         on, and all of them call
// belongs_after(a, b)     whether row a belongs after row b
// exchange(a, b)          exchanges two rows
// wait()                  returns when all threads have called it
template <typename Number, typename After, typename Exchange, typename Wait>
__device__ __forceinline__ void sort_rows(Number count, Number thread, Number threads,
                                          After belongs_after, Exchange exchange, Wait wait) {
    for (Number size = 2; size / 2 < count; size *= 2) {
        for (Number distance = size / 2; distance > 0; distance /= 2) {
            for (Number row = thread; row < count; row += threads) {
                // The first step of a merge compares each row with its mirror image in its part.
                const Number other = distance == size / 2 ? row ^ (size - 1) : row ^ distance;
                if (row < other && other < count && belongs_after(row, other)) {
                    exchange(row, other);
                }
            }
            wait();
        }
    }
}

// Three columns, each with one number for each MEM.
struct MemColumns {
    long long* query_starts;      // 0-based positions in the query
    long long* reference_starts;  // 0-based positions in the joined reference
    long long* lengths;           // in bases
};

// Return whether a row belongs after another. If `by_query_start` is set, rows are ordered by
// query start, then by reference start; otherwise by reference start alone.
template <bool by_query_start>
__device__ __forceinline__ bool belongs_after(const MemColumns& mems, uint64 row, uint64 other) {
    if constexpr (by_query_start) {
        if (mems.query_starts[row] != mems.query_starts[other]) {
            return mems.query_starts[row] > mems.query_starts[other];
        }
    }
    return mems.reference_starts[row] > mems.reference_starts[other];
}

// Exchange two numbers of a column.
template <typename Number>
__device__ __forceinline__ void exchange(Number* column, uint64 row, uint64 other) {
    const Number value = column[row];
    column[row] = column[other];
    column[other] = value;
}

// Insert the row `row` into the sorted rows from `begin` to `row - 1`.
__device__ __forceinline__ void insert_row(const MemColumns& mems, uint64 begin, uint64 row) {
    while (row > begin && belongs_after<true>(mems, row - 1, row)) {
        exchange(mems.query_starts, row - 1, row);
        exchange(mems.reference_starts, row - 1, row);
        exchange(mems.lengths, row - 1, row);
        --row;
    }
}

// Sort `count` rows from `begin` on. All threads of the block must call.
template <bool by_query_start>
__device__ __forceinline__ void sort_by_block(const MemColumns& mems, uint64 begin,
                                              uint64 count) {
    sort_rows<uint64>(
        count, threadIdx.x, blockDim.x,
        [&](uint64 row, uint64 other) {
            return belongs_after<by_query_start>(mems, begin + row, begin + other);
        },
        [&](uint64 row, uint64 other) {
            if constexpr (by_query_start) {
                exchange(mems.query_starts, begin + row, begin + other);
            }
            exchange(mems.reference_starts, begin + row, begin + other);
            exchange(mems.lengths, begin + row, begin + other);
        },
        [] { __syncthreads(); });
}
