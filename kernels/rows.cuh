// Where the MEMs of samples are written.
#pragma once

#include "mems.cuh"
#include "samples.cuh"
#include "warps.cuh"

// Return where the MEMs of a sample begin among all; behind the last, where they end.
__device__ __forceinline__ uint64 mems_before(const uint64* tile_offsets, const uint32* counts,
                                              uint64 sample) {
    const uint64 tile = sample / LANES;
    uint64 before = tile_offsets[tile];
    for (uint64 other = tile * LANES; other < sample; ++other) {
        before += counts[other];
    }
    return before;
}

struct Rows {
    Mems mems;
    const uint64* query_offsets;     // where queries begin in the block
    const uint32* queries_of_words;  // which query each word of the block begins in
};

// Return where the query begins that a position of the block belongs to.
__device__ __forceinline__ uint64 query_begin_at(const Rows& rows, uint64 position) {
    uint64 query = rows.queries_of_words[position / WORD_BASES];
    while (rows.query_offsets[query + 1] <= position) {
        ++query;
    }
    return rows.query_offsets[query];
}

__device__ __forceinline__ void write_row(const Rows& rows, uint64 row, const Table& table,
                                          uint64 start_in_query, const Extension& found) {
    rows.mems.query_starts[row] = static_cast<long long>(start_in_query - found.left);
    rows.mems.reference_starts[row] =
        static_cast<long long>(table.part_begin + found.place - found.left);
    rows.mems.lengths[row] = found.length;
}
