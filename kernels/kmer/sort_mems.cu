// Sorts the MEMs of each query by their starts in the query, then by those in the reference.
//
// The sampling step is longer than the step of queries if the table does not list every k-mer of the reference.
// A query k-mer then finds MEMs that begin before those of the query k-mers before it.
//
// The kernels read and write MEMs as columns.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"

// The most rows of a query that one thread sorts.
constexpr uint32 FEW_ROWS_OF_QUERY = 32;

// Sort the rows of each query that has few, and list the other queries whose rows are not in order.
//
// query_offsets  uint64[query_count + 1], the first row of each query, then the row count
// query_count    the number of queries
// mems           three columns of query_offsets[query_count] rows each, sorted in place
// long_queries   uint32[query_count], receives the listed queries
// long_count     uint32[1], zero before the launch, receives the number of listed queries
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_query_mems(const uint64* query_offsets, uint64 query_count, MemColumns mems,
                    uint32* long_queries, uint32* long_count) {
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const uint64 begin = query_offsets[query];
        const uint64 end = query_offsets[query + 1];
        const bool is_long = end - begin > FEW_ROWS_OF_QUERY;
        for (uint64 row = begin + 1; row < end; ++row) {
            if (!is_long) {
                insert_row(mems, begin, row);
            } else if (belongs_after<true>(mems, row - 1, row)) {
                long_queries[atomicAdd(long_count, 1u)] = static_cast<uint32>(query);
                break;
            }
        }
    }
}

// Sort the rows of each listed query.
//
// Every parameter is as for `sort_query_mems`, which lists the queries.
//
// Grid: one block of threads for each listed query, or fewer blocks that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_long_query_mems(const uint64* query_offsets, const uint32* long_queries,
                         const uint32* long_count, MemColumns mems) {
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint64 begin = query_offsets[long_queries[number]];
        const uint64 count = query_offsets[long_queries[number] + 1] - begin;
        sort_by_block<true>(mems, begin, count);
    }
}
