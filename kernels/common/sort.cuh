// Sorts rows that several threads share, whatever the rows are made of.
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
