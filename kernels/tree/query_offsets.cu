// Assigns queries to candidate matches, and rows of MEMs to queries.
#pragma once

#include "common/grid.cuh"

// Return the query that an item, such as a base or a MEM, belongs to, from where the items of each
// query begin, and where the last one's end. Queries without items are passed over.
__device__ __forceinline__ uint64 query_at(const uint64* offsets, uint64 query_count,
                                           uint64 number) {
    const auto is_later = [&](uint64 query) { return offsets[query] > number; };
    return first_that<uint64>(1, query_count, is_later) - 1;
}

// Write the number of the query that each candidate match belongs to.
//
// candidate_offsets  uint64[query_count + 1], the number of candidates before each query, then of
//                    all queries
// query_count        the number of queries
// candidate_queries  uint32[candidate_offsets[query_count]], receives the query of each candidate
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    assign_queries(const uint64* candidate_offsets, uint64 query_count,
                   uint32* candidate_queries) {
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const uint64 end = candidate_offsets[query + 1];
        for (uint64 candidate = candidate_offsets[query]; candidate < end; ++candidate) {
            candidate_queries[candidate] = static_cast<uint32>(query);
        }
    }
}

// Write the first row of each query's MEMs, and then the number of all rows.
//
// candidate_offsets  uint64[query_count + 1], the number of candidates before each query, then of
//                    all queries
// mem_offsets        uint64[candidates + 1], the first row of each candidate, then the row count
// query_count        the number of queries
// query_offsets      uint64[query_count + 1], receives the first row of each query, then the row
//                    count
//
// Grid: one thread for each query and one for the last offset, or fewer threads that take several
// queries in turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    offset_query_mems(const uint64* candidate_offsets, const uint64* mem_offsets,
                      uint64 query_count, uint64* query_offsets) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        query_offsets[query] = mem_offsets[candidate_offsets[query]];
    }
}
