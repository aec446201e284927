// Computes the reverse complements of queries whose codes are on the device already.
//
// The kernel reads the codes of a block, one byte for each base, and writes as many.
#pragma once

#include "common/grid.cuh"
#include "tree/codes.cuh"
#include "tree/query_offsets.cu"

// Write the reverse complement of each query at the query's own offsets; breaks stay breaks.
//
// codes        uint8[bases of the block], the codes of the queries
// offsets      uint64[query_count + 1], where each query begins in the block, then the end
// query_count  the number of queries
// reversed     uint64[ceil(bases / CODES_IN_WORD)], receives the codes; zeros fill the last word
//
// Grid: one thread for each word of `reversed`, or fewer threads that take several words in turn.
// Shared memory: none.
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
