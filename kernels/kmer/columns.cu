// Turns the MEMs of a block into the columns that users see, which stay on the device.
//
// A search finds columns for each strand, with positions in the joined reference and on the strand
// that was searched. Here each MEM becomes a row: its query, its record, and positions in the record
// and on the forward strand of the query. The rows of a query are those of its forward strand, then
// those of its reverse strand.
//
// The kernels read MEMs as columns, and write columns.
#pragma once

#include "common/grid.cuh"
#include "common/strand_rows.cuh"

// The MEMs of a block, and its queries.
struct BlockMems {
    Strands strands;
    const uint64* offsets;    // uint64[query_count + 1], where each query begins in the block
    uint64 query_count;
    uint32 strand_count;      // 1 or 2
    uint32 first_is_reverse;  // the first strand is the reverse strand
};

// The columns, each with one number for each MEM.
struct MatchColumns {
    uint32* queries;              // the number of the query
    uint32* records;              // the number of the record
    long long* query_starts;      // 0-based, on the forward strand
    long long* reference_starts;  // 0-based, in the record
    long long* lengths;           // in bases
    uint8* is_reverse;            // 1 if the reverse complement of the query matches, else 0
};

// Return the number of rows of all queries before a query, which may be one past the last.
__device__ __forceinline__ uint64 rows_before(const BlockMems& mems, uint64 query) {
    const uint64 first = mems.strands.first.query_offsets[query];
    return mems.strand_count == 2 ? first + mems.strands.second.query_offsets[query] : first;
}

// Return the query of a row: the last query that begins at or before the row.
__device__ __forceinline__ uint64 query_of_row(const BlockMems& mems, uint64 row) {
    const auto is_later = [&](uint64 query) { return rows_before(mems, query) > row; };
    return first_that<uint64>(1, mems.query_count, is_later) - 1;
}

// Write the rows of a block.
//
// mems         the MEMs of the block, and its queries
// records      the records of the reference
// first_query  the number of the first query of the block
// row_count    the number of MEMs on all strands together
// columns      six columns of row_count rows each, which receive the rows
//
// Grid: one thread for each row, or fewer threads that take several rows in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_match_columns(BlockMems mems, Records records, uint64 first_query, uint64 row_count,
                        MatchColumns columns) {
    for (uint64 row = grid_thread(); row < row_count; row += grid_threads()) {
        const uint64 query = query_of_row(mems, row);
        const uint64* const first_offsets = mems.strands.first.query_offsets;
        const uint64 rows_of_first = first_offsets[query + 1] - first_offsets[query];
        const uint64 number = row - rows_before(mems, query);
        const bool is_second = number >= rows_of_first;
        const bool is_reverse = is_second || mems.first_is_reverse != 0;
        const StrandRows strand = rows_of_strand(mems.strands, is_second);
        const uint64 from =
            strand.query_offsets[query] + (is_second ? number - rows_of_first : number);
        const long long length = strand.mems.lengths[from];
        long long query_start = strand.mems.query_starts[from];
        if (is_reverse) {
            const uint64 query_length = mems.offsets[query + 1] - mems.offsets[query];
            query_start = static_cast<long long>(query_length) - query_start - length;
        }
        const uint64 position = static_cast<uint64>(strand.mems.reference_starts[from]);
        const uint64 record = record_at(records, position);
        columns.queries[row] = static_cast<uint32>(first_query + query);
        columns.records[row] = static_cast<uint32>(record);
        columns.query_starts[row] = query_start;
        columns.reference_starts[row] = static_cast<long long>(position - records.starts[record]);
        columns.lengths[row] = length;
        columns.is_reverse[row] = is_reverse ? 1 : 0;
    }
}

// Write where the rows of each query begin, and where those of the last query end.
//
// mems       the MEMs of the block, and its queries
// first_row  the number of the first row of the block
// offsets    uint64[mems.query_count + 1], receives the numbers of the rows
//
// Grid: one thread for each query and one for the end, or fewer threads that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_row_offsets(BlockMems mems, uint64 first_row, uint64* offsets) {
    for (uint64 query = grid_thread(); query <= mems.query_count; query += grid_threads()) {
        offsets[query] = first_row + rows_before(mems, query);
    }
}
