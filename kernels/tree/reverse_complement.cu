// The reverse complements of queries, whose codes are on the device already.
//
// Reads the codes of a block, one byte a base; writes as many.
#pragma once

#include "common/grid.cuh"
#include "tree/codes.cuh"

// Return the query that a position of the block belongs to. `offsets` is as for the kernel below.
__device__ __forceinline__ uint64 query_at(const uint64* offsets, uint64 query_count,
                                           uint64 position) {
    uint64 query = 0;
    uint64 end = query_count;
    while (end - query > 1) {
        const uint64 middle = query + (end - query) / 2;
        if (offsets[middle] <= position) {
            query = middle;
        } else {
            end = middle;
        }
    }
    return query;
}

// Write the reverse complement of each query at the query's own offsets; breaks stay breaks.
//
// codes        uint8[bases of the block]
// offsets      uint64[query_count + 1], where in the block each query begins, then its end
// query_count  how many queries there are
// reversed     uint64[ceil(bases / CODES_IN_WORD)], receives the codes; the last word is filled up
//              with zeros
//
// Grid: one thread for each word, or fewer. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    reverse_complement(const uint8* codes, const uint64* offsets, uint64 query_count,
                       uint64* reversed) {
    const uint64 count = offsets[query_count];
    const uint64 words = (count + CODES_IN_WORD - 1) / CODES_IN_WORD;
    for (uint64 word = grid_thread(); word < words; word += grid_threads()) {
        const uint64 begin = word * CODES_IN_WORD;
        const uint64 end = min(begin + CODES_IN_WORD, count);
        uint64 query = query_at(offsets, query_count, begin);
        uint64 packed = 0;
        for (uint64 position = begin; position < end; ++position) {
            while (offsets[query + 1] <= position) {
                ++query;
            }
            const uint64 code =
                codes[offsets[query] + offsets[query + 1] - 1 - position];
            packed |= (code >= BREAK ? code : 3 - code) << 8 * (position - begin);
        }
        reversed[word] = packed;
    }
}
