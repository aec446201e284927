// Merges the MEMs of the same queries on several pages into one set of columns.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"

// The MEMs of all queries on one page, or on several consecutive pages.
struct FoundMems {
    uint64* offsets;  // uint64[queries + 1], the first row of each query, then the row count
    MemColumns mems;  // three columns of offsets[queries] rows each
};

// Merge each query's rows on earlier pages with its rows on a later page, by query start. At equal
// query starts, the rows of the earlier pages come first.
//
// earlier, later  the MEMs to merge: offsets uint64[query_count + 1] and three columns each
// query_count     the number of queries
// merged          receives query_count + 1 offsets, and the rows of both
//
// Grid: one thread for each query and one for the last offset, or fewer threads that take several
// queries in turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    merge_pages(FoundMems earlier, FoundMems later, uint64 query_count, FoundMems merged) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        uint64 row = earlier.offsets[query];
        uint64 later_row = later.offsets[query];
        uint64 filled = row + later_row;
        merged.offsets[query] = filled;
        if (query == query_count) {
            return;
        }
        const uint64 end = earlier.offsets[query + 1];
        const uint64 later_end = later.offsets[query + 1];
        for (; row < end || later_row < later_end; ++filled) {
            const bool from_earlier =
                later_row == later_end ||
                (row < end &&
                 earlier.mems.query_starts[row] <= later.mems.query_starts[later_row]);
            const MemColumns& source = from_earlier ? earlier.mems : later.mems;
            const uint64 source_row = from_earlier ? row++ : later_row++;
            merged.mems.query_starts[filled] = source.query_starts[source_row];
            merged.mems.reference_starts[filled] = source.reference_starts[source_row];
            merged.mems.lengths[filled] = source.lengths[source_row];
        }
    }
}
