// Writes the MEMs of query k-mers into rows.
#pragma once

#include "common/mems.cuh"
#include "kmer/query_kmers.cuh"

// Return the number of MEMs of all query k-mers before a query k-mer, which may be one past the
// last.
__device__ __forceinline__ uint64 mems_before(const uint64* tile_offsets, const uint32* counts,
                                              uint64 kmer) {
    const uint64 tile = kmer / TILE_KMERS;
    uint64 before = tile_offsets[tile];
    for (uint64 other = tile * TILE_KMERS; other < kmer; ++other) {
        before += counts[other];
    }
    return before;
}

// The columns of MEMs, and the arrays that turn block positions into query positions.
struct Rows {
    MemColumns mems;
    const uint64* query_offsets;     // uint64[queries + 1], where each query begins in the block
    const uint32* queries_of_words;  // uint32[words], the query of the first base of each word
};

// Return where the query at a position of the block begins in the block.
__device__ __forceinline__ uint64 query_begin_at(const Rows& rows, uint64 position) {
    uint64 query = rows.queries_of_words[position / WORD_BASES];
    while (rows.query_offsets[query + 1] <= position) {
        ++query;
    }
    return rows.query_offsets[query];
}

// Write a MEM into a row. `start_in_query` is where the query k-mer begins in its query.
__device__ __forceinline__ void write_row(const Rows& rows, uint64 row, const Table& table,
                                          uint64 start_in_query, const Extension& found) {
    rows.mems.query_starts[row] = static_cast<long long>(start_in_query - found.left);
    rows.mems.reference_starts[row] =
        static_cast<long long>(table.part_begin + found.occurrence - found.left);
    rows.mems.lengths[row] = found.length;
}
