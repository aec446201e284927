// Candidates: the diagonals on which a read may lie, scored without gaps.
#pragma once

#include "common/bit_planes.cuh"
#include "common/strand_rows.cuh"

// A candidate, as the host reads it.
struct alignas(16) Candidate {
    long long diagonal;  // where in the joined reference the read's first base would lie
    uint32 strand;       // 1 for the reverse strand
    uint32 record;       // the record that the seed lies in
    int seed_begin;      // where in the read the longest match of the diagonal begins
    int seed_bases;      // its bases
    int left_score;      // the best score of a part of the flank before the seed
    int left_query_bases; // the bases of that part
    int right_score;     // the same for the flank after the seed
    int right_query_bases;
    int bound;           // the most that the read may score here with gaps
    int credit;          // what the bases that differ say less than their costs, in units
};

static_assert(sizeof(Candidate) == CANDIDATE_BYTES, "as the host reads them");

// The scores, and what a base that differs says at each quality.
struct Scoring {
    const int* costs;    // int32[COSTS]
    const int* credits;  // int32[256]

    // Return one of the scores; `element` is a constant such as MATCH.
    __device__ __forceinline__ int cost(uint32 element) const {
        return costs[element];
    }
};

// The reads of a block, of which one or two are a template.
struct Reads {
    const uint64* offsets;     // uint64[count + 1], where each read begins in the block, then the end
    uint64 count;
    const BitPlanes* forward;  // the bases as they are
    const BitPlanes* reverse;  // the reverse complement of each read, at the read's own place
    const uint8* qualities;    // uint8[bases], the Phred quality of each base; null if none has one
};

// Return the number of bases of a read.
__device__ __forceinline__ int read_length(const Reads& reads, uint64 read) {
    return static_cast<int>(reads.offsets[read + 1] - reads.offsets[read]);
}

// The reference, and its records.
struct Target {
    const BitPlanes* words;
    const long long* starts;  // int64[records], where each record begins
    const long long* ends;    // int64[records], where each record ends
    uint32 records;
};

// Return the number of matches of all reads before a read, on both strands: the first row that the
// candidates of the read may take.
__device__ __forceinline__ uint64 first_row(const Strands& strands, uint64 read) {
    return strands.first.query_offsets[read] + strands.second.query_offsets[read];
}

// Return the score of a candidate without gaps.
__device__ __forceinline__ int score_of(const Candidate& candidate, const Scoring& scoring) {
    return candidate.left_score + candidate.seed_bases * scoring.cost(MATCH) +
           candidate.right_score;
}
