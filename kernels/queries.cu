// Which query a candidate match belongs to, and which MEMs belong to a query.
#pragma once

#include "threads.cuh"

// Write for each candidate match which query it belongs to.
extern "C" __global__ void __launch_bounds__(256)
    name_queries(const uint64* candidate_offsets, uint64 query_count, uint32* candidate_queries) {
    for (uint64 query = first_item(); query < query_count; query += item_step()) {
        const uint64 end = candidate_offsets[query + 1];
        for (uint64 candidate = candidate_offsets[query]; candidate < end; ++candidate) {
            candidate_queries[candidate] = static_cast<uint32>(query);
        }
    }
}

// Write where the MEMs of each query begin, and behind them where the last ones end.
extern "C" __global__ void __launch_bounds__(256)
    offsets_of_queries(const uint64* candidate_offsets, const uint64* mem_offsets,
                       uint64 query_count, uint64* query_offsets) {
    for (uint64 query = first_item(); query <= query_count; query += item_step()) {
        query_offsets[query] = mem_offsets[candidate_offsets[query]];
    }
}
