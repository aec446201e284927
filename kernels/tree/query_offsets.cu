// Which query a candidate match belongs to, and which MEMs belong to a query.
#pragma once

#include "common/grid.cuh"

// Write which query each candidate match belongs to.
//
// candidate_offsets  uint64[query_count + 1], the candidates before those of each query, then all
// query_count        how many queries there are
// candidate_queries  uint32[candidate_offsets[query_count]], receives the numbers of queries
//
// Grid: one thread for each query, or fewer. Shared memory: none.
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

// Write where the MEMs of each query begin, and last where all end.
//
// candidate_offsets  as for `assign_queries`
// mem_offsets        uint64[candidates + 1], where the MEMs of each candidate begin
// query_count        how many queries there are
// query_offsets      uint64[query_count + 1], receives the offsets
//
// Grid: one thread for each query and one more, or fewer. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    offset_query_mems(const uint64* candidate_offsets, const uint64* mem_offsets,
                      uint64 query_count, uint64* query_offsets) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        query_offsets[query] = mem_offsets[candidate_offsets[query]];
    }
}
