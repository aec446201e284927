// The order of MEMs: those of a candidate match by their starts in the reference.
//
// Queries and positions in them are in order already, because the MEMs of each candidate have
// their own place. A search finds the occurrences in the order of the suffixes instead.
#pragma once

#include "mems.cuh"
#include "print.cu"
#include "threads.cuh"

constexpr uint64 FEW_ROWS = 32;

// Order the rows of candidates that have some, by insertion; list those that have many. What
// the first search has kept is in order.
extern "C" __global__ void __launch_bounds__(256)
    order_rows(const uint64* mem_offsets, uint64 candidate_count, Mems mems,
               uint64* long_candidates, uint32* long_count) {
    for (uint64 candidate = first_item(); candidate < candidate_count; candidate += item_step()) {
        const uint64 begin = mem_offsets[candidate];
        const uint64 end = mem_offsets[candidate + 1];
        if (end - begin <= KEPT_MEMS) {
            continue;
        }
        if (end - begin > FEW_ROWS) {
            long_candidates[atomicAdd(long_count, 1u)] = candidate;
            continue;
        }
        for (uint64 row = begin + 1; row < end; ++row) {
            const long long reference_start = mems.reference_starts[row];
            const long long length = mems.lengths[row];
            uint64 place = row;
            while (place > begin && mems.reference_starts[place - 1] > reference_start) {
                mems.reference_starts[place] = mems.reference_starts[place - 1];
                mems.lengths[place] = mems.lengths[place - 1];
                --place;
            }
            if (place < row) {
                mems.reference_starts[place] = reference_start;
                mems.lengths[place] = length;
            }
        }
    }
}

// Order the rows of each listed candidate.
extern "C" __global__ void __launch_bounds__(256)
    order_long_rows(const uint64* mem_offsets, const uint64* long_candidates,
                    const uint32* long_count, Mems mems) {
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint64 begin = mem_offsets[long_candidates[number]];
        const uint64 count = mem_offsets[long_candidates[number] + 1] - begin;
        order_by_block<false>(mems, begin, count);
    }
}

// The MEMs of all queries on one page, or on several that follow each other.
struct FoundMems {
    uint64* offsets;  // of the rows of each query, one more than there are queries
    Mems mems;
};

// Merge the rows of each query on earlier pages with those on a later one.
extern "C" __global__ void __launch_bounds__(256)
    merge_pages(FoundMems earlier, FoundMems later, uint64 query_count, FoundMems merged) {
    for (uint64 query = first_item(); query <= query_count; query += item_step()) {
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
            const Mems& source = from_earlier ? earlier.mems : later.mems;
            const uint64 source_row = from_earlier ? row++ : later_row++;
            merged.mems.query_starts[filled] = source.query_starts[source_row];
            merged.mems.reference_starts[filled] = source.reference_starts[source_row];
            merged.mems.lengths[filled] = source.lengths[source_row];
        }
    }
}
