// MEMs of the same queries on several pages, merged into one set of columns.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"

// The MEMs of all queries on one page, or on several that follow each other.
struct FoundMems {
    uint64* offsets;  // uint64[queries + 1], where the rows of each query begin, then their end
    MemColumns mems;
};

// Merge the rows of each query on earlier pages with its rows on a later one, by query start; at
// the same query start those of the earlier pages come first.
//
// earlier, later  the MEMs to merge
// query_count     how many queries there are
// merged          receives as many rows as both have together
//
// Grid: one thread for each query and one more, or fewer. Shared memory: none.
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
