// Groups of lanes that have a row together, GROUP_LANES each.
#pragma once

#include "common/pairs.cuh"
#include "hmm/residues.cuh"

constexpr uint32 TABLE_ROWS = PADDING_CODE + 1;  // of emissions, by code
constexpr uint32 GROUPS = WARP_LANES / GROUP_LANES;  // in a warp

// The shared memory of a block, which a launch gives it: the table of a profile.
extern __shared__ uint4 block_memory[];

// Copy a profile's table to the block's memory. All threads of the block call.
__device__ __forceinline__ void load_table(const uint4* table, uint32 quads) {
    for (uint32 at = threadIdx.x; at < quads; at += blockDim.x) {
        block_memory[at] = table[at];
    }
    __syncthreads();
}

// Return a lane's number in its group.
__device__ __forceinline__ uint32 group_lane() {
    return lane_number() % GROUP_LANES;
}

// Where the first node of a lane's halves takes from what precedes it.
struct Neighbour {
    uint32 lane;      // the lane before this one in the group; for the first lane, the last
    uint32 selector;  // of the bytes of that lane's register and of the border

    __device__ __forceinline__ Neighbour()
        : lane((lane_number() & ~(GROUP_LANES - 1)) | ((lane_number() - 1) % GROUP_LANES)),
          // The last lane's lower half precedes the first lane's upper one; the border precedes
          // the first node.
          selector(group_lane() != 0 ? 0x3210u : 0x1054u) {}

    // Return what precedes this lane's first register, from the last register of each lane.
    __device__ __forceinline__ uint32 before(uint32 last, uint32 border) const {
        return __byte_perm(from_lane(last, lane), border, selector);
    }
};

// Return the largest number in both halves of a group's words.
__device__ __forceinline__ uint32 largest_of_group(uint32 pair) {
#pragma unroll
    for (uint32 distance = GROUP_LANES / 2; distance > 0; distance /= 2) {
        pair = larger_of(pair, __shfl_xor_sync(ALL_LANES, pair, distance));
    }
    return static_cast<uint32>(max(low_half(pair), high_half(pair)));
}

// Return whether a pair has a number above that of a limit, in either half.
__device__ __forceinline__ bool exceeds(uint32 pair, uint32 limit) {
    return larger_of(pair, limit) != limit;
}
