// The MEMs of a block on one strand or two, and the records of the reference that they lie in.
#pragma once

#include "common/mems.cuh"

// The rows of a strand.
struct StrandRows {
    const uint64* query_offsets;  // uint64[queries + 1], the first row of each query, then the end
    MemColumns mems;
};

// The searched strands. If there is only one, the second has null pointers.
struct Strands {
    StrandRows first;
    StrandRows second;  // the reverse strand
};

// Return the rows of the first or of the second strand.
__device__ __forceinline__ StrandRows rows_of_strand(const Strands& strands, bool is_second) {
    const StrandRows& first = strands.first;
    const StrandRows& second = strands.second;
    // Member by member, so that the structures stay out of local memory.
    return {is_second ? second.query_offsets : first.query_offsets,
            {is_second ? second.mems.query_starts : first.mems.query_starts,
             is_second ? second.mems.reference_starts : first.mems.reference_starts,
             is_second ? second.mems.lengths : first.mems.lengths}};
}

// The records of the reference. A bucket is a range of 1 << bucket_shift positions.
struct Records {
    const uint64* starts;   // uint64[records], where each record begins in the reference
    const uint32* buckets;  // the last record that starts at or before each bucket
    uint64 bucket_shift;
};

// Return the last of some records that starts at or before a position; the first of them does.
template <typename Start, typename Number>
__device__ __forceinline__ Number last_record_at(const Start* starts, Number first, Number last,
                                                 Start position) {
    const auto is_later = [&](Number record) { return starts[record] > position; };
    return first_that<Number>(first + 1, last + 1, is_later) - 1;
}

// Return the last record that starts at or before a position.
__device__ __forceinline__ uint64 record_at(const Records& records, uint64 position) {
    const uint64 bucket = position >> records.bucket_shift;
    return last_record_at<uint64, uint64>(records.starts, records.buckets[bucket],
                                          records.buckets[bucket + 1], position);
}
