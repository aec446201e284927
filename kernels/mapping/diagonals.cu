// Lists the matches of each read by diagonal.
//
// A diagonal is where in the joined reference the read's first base would lie. A key has the
// diagonal in its lower bits and the strand above them; a value has the match's start in the read in
// its upper half and the match's bases in the lower one.
//
// The kernels read MEMs as columns, and write keys and values.
#pragma once

#include "common/warp.cuh"
#include "mapping/candidates.cuh"

constexpr uint32 STRAND_SHIFT = 61;
constexpr long long DIAGONAL_OFFSET = 1ll << 40;

// The most matches of a read that a warp sorts; a block of threads sorts more.
constexpr uint32 MOST_OF_WARP = 512;

// Sort `count` keys with their values. The threads that share the work have numbers from 0 on, and
// all of them call; `wait` returns when all of them have called it.
template <typename Wait>
__device__ __forceinline__ void sort_keys(uint64* keys, uint64* values, uint32 count,
                                          uint32 thread, uint32 threads, Wait wait) {
    sort_rows<uint32>(
        count, thread, threads, [=](uint32 row, uint32 other) { return keys[row] > keys[other]; },
        [=](uint32 row, uint32 other) {
            exchange(keys, row, other);
            exchange(values, row, other);
        },
        wait);
}

// Return whether a match contains a whole window of its read; windows of no bases are in each.
__device__ __forceinline__ bool has_window(uint32 start, uint32 length, uint32 window) {
    if (window == 0) {
        return true;
    }
    return (start + window - 1) / window * window + window <= start + length;
}

// List the matches of a read on one strand; return how many rows of the read are filled then. All
// lanes of a warp must call.
__device__ __forceinline__ uint32 list_strand(const StrandRows& rows, uint64 read, uint32 strand,
                                              uint32 window, uint64* keys, uint64* values,
                                              uint32 filled) {
    const uint64 end = rows.query_offsets[read + 1];
    for (uint64 first = rows.query_offsets[read]; first < end; first += WARP_LANES) {
        const uint64 row = first + lane_number();
        uint32 start = 0;
        uint32 length = 0;
        if (row < end) {
            start = static_cast<uint32>(rows.mems.query_starts[row]);
            length = static_cast<uint32>(rows.mems.lengths[row]);
        }
        const bool is_listed = row < end && has_window(start, length, window);
        const uint32 listed = __ballot_sync(ALL_LANES, is_listed);
        if (is_listed) {
            const uint32 to = filled + __popc(listed & lowest_bits(lane_number()));
            const long long diagonal = rows.mems.reference_starts[row] - start;
            keys[to] = static_cast<uint64>(diagonal + DIAGONAL_OFFSET) +
                       (static_cast<uint64>(strand) << STRAND_SHIFT);
            values[to] = static_cast<uint64>(start) << 32 | length;
        }
        filled += __popc(listed);
    }
    return filled;
}

// List the matches of each read that contain a whole window, sorted by key; list the reads that
// have too many of them for a warp.
//
// strands     the matches of the reads on both strands
// read_count  the number of reads
// window      the bases of a window; 0 to list all matches
// keys        uint64[matches], receives the keys; those of a read from `first_row` on
// values      uint64[matches], receives the values
// counts      uint32[read_count], receives how many each read has
// long_reads  uint32[read_count], receives the reads whose keys are not sorted yet
// long_count  uint32[1], zero before the launch, receives their number
//
// Grid: one warp for each read, or fewer warps that take several reads in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    list_diagonals(Strands strands, uint64 read_count, uint32 window, uint64* keys,
                   uint64* values, uint32* counts, uint32* long_reads, uint32* long_count) {
    for (uint64 read = grid_warp(); read < read_count; read += grid_warps()) {
        const uint64 place = first_row(strands, read);
        uint64* const own = keys + place;
        uint64* const own_values = values + place;
        uint32 filled = list_strand(strands.first, read, 0, window, own, own_values, 0);
        filled = list_strand(strands.second, read, 1, window, own, own_values, filled);
        __syncwarp();
        if (filled <= MOST_OF_WARP) {
            sort_keys(own, own_values, filled, lane_number(), WARP_LANES, [] { __syncwarp(); });
        }
        if (lane_number() == 0) {
            counts[read] = filled;
            if (filled > MOST_OF_WARP) {
                long_reads[atomicAdd(long_count, 1u)] = static_cast<uint32>(read);
            }
        }
    }
}

// Sort the keys of each listed read.
//
// Every parameter is as for `list_diagonals`, which lists the reads.
//
// Grid: one block of threads for each listed read, or fewer blocks that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    sort_long_reads(Strands strands, const uint32* counts, const uint32* long_reads,
                    const uint32* long_count, uint64* keys, uint64* values) {
    for (uint32 number = blockIdx.x; number < *long_count; number += gridDim.x) {
        const uint32 read = long_reads[number];
        const uint64 place = first_row(strands, read);
        sort_keys(keys + place, values + place, counts[read], threadIdx.x, blockDim.x,
                  [] { __syncthreads(); });
    }
}
