// Finds the query that an item belongs to, such as a base or a MEM.
#pragma once

#include "common/types.cuh"

// Return the query that the item of a number belongs to, by binary search in offsets: where the
// items of each query begin, and where the last one's end. Queries without items are passed over.
__device__ __forceinline__ uint64 query_at(const uint64* offsets, uint64 query_count,
                                           uint64 number) {
    uint64 query = 0;
    uint64 end = query_count;
    while (end - query > 1) {
        const uint64 middle = query + (end - query) / 2;
        if (offsets[middle] <= number) {
            query = middle;
        } else {
            end = middle;
        }
    }
    return query;
}
