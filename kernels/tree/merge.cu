// Merges the MEMs of the same queries on several pages into one set of columns.
//
// A few queries may have nearly all MEMs, so a thread works on a row, not on a query. The rows of
// a query are ordered by query start on either side. The place of a row among the merged rows is
// its own place on its side, plus the number of rows on the other side that come before it, which
// a binary search finds. Neighbouring threads read and write neighbouring rows.
#pragma once

#include "common/grid.cuh"
#include "common/mems.cuh"
#include "tree/query_offsets.cu"

// The MEMs of all queries on one page, or on several consecutive pages.
struct FoundMems {
    uint64* offsets;  // uint64[queries + 1], the first row of each query, then the row count
    MemColumns mems;  // three columns of offsets[queries] rows each
};

// Return the first row from `row` on, before `end`, whose query start is above `query_start`, or
// equal to it if `or_equal` is set; `end` if there is none.
template <bool or_equal>
__device__ __forceinline__ uint64 first_row_above(const long long* query_starts, uint64 row,
                                                  uint64 end, long long query_start) {
    return first_that(row, end, [&](uint64 other) {
        return or_equal ? query_starts[other] >= query_start : query_starts[other] > query_start;
    });
}

// Copy all rows of one side to their places. At equal query starts the rows of the earlier pages
// come first.
template <bool are_earlier>
__device__ __forceinline__ void place_rows(const FoundMems& side, const FoundMems& other_side,
                                           uint64 query_count, const MemColumns& merged) {
    const uint64 row_count = side.offsets[query_count];
    for (uint64 row = grid_thread(); row < row_count; row += grid_threads()) {
        const uint64 query = query_at(side.offsets, query_count, row);
        const long long query_start = side.mems.query_starts[row];
        // Rows of earlier queries are before this one on both sides.
        const uint64 place = row + first_row_above<are_earlier>(
                                       other_side.mems.query_starts, other_side.offsets[query],
                                       other_side.offsets[query + 1], query_start);
        merged.query_starts[place] = query_start;
        merged.reference_starts[place] = side.mems.reference_starts[row];
        merged.lengths[place] = side.mems.lengths[row];
    }
}

// Merge each query's rows on earlier pages with its rows on a later page, by query start. At equal
// query starts, the rows of the earlier pages come first.
//
// earlier, later  the MEMs to merge: offsets uint64[query_count + 1] and three columns each
// query_count     the number of queries
// merged          receives query_count + 1 offsets, and the rows of both
//
// Grid: one thread for each offset, and for each row of the side that has more of them, or fewer
// threads that take several in turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    merge_pages(FoundMems earlier, FoundMems later, uint64 query_count, FoundMems merged) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        merged.offsets[query] = earlier.offsets[query] + later.offsets[query];
    }
    place_rows<true>(earlier, later, query_count, merged.mems);
    place_rows<false>(later, earlier, query_count, merged.mems);
}
