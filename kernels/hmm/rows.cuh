// A profile's row in registers, and its emissions in the shared memory of a block.
//
// GROUP_LANES lanes have the nodes of a row, two halves of ROW_REGISTERS registers each: half-lane
// h, which is lane h % GROUP_LANES, has the nodes from h * ROW_REGISTERS on. So what precedes a node
// lies in the register before, and only the first register takes its value from another lane.
#pragma once

#include "common/pairs.cuh"
#include "hmm/residues.cuh"

constexpr uint32 ROW_QUADS = ROW_REGISTERS / 4;
constexpr uint32 ROW_REST = ROW_REGISTERS % 4;
// A row has for each four registers 16 bytes a lane, then the rest of the registers.
constexpr uint32 REST_BYTES = ROW_REST == 3 ? 16 : 4 * ROW_REST;
constexpr uint32 TABLE_ROWS = PADDING_CODE + 1;
constexpr uint32 ROW_BYTES = GROUP_LANES * (16 * ROW_QUADS + REST_BYTES);

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

// Load the emissions of a residue at the nodes of this lane.
__device__ __forceinline__ void load_emissions(uint32 (&emissions)[ROW_REGISTERS], uint32 code) {
    const char* row = reinterpret_cast<const char*>(block_memory) + code * ROW_BYTES;
    const uint32 lane = group_lane();
#pragma unroll
    for (uint32 place = 0; place + 4 <= ROW_REGISTERS; place += 4) {
        const uint4 four =
            *reinterpret_cast<const uint4*>(row + place * GROUP_LANES * 4 + lane * 16);
        emissions[place] = four.x;
        emissions[place + 1] = four.y;
        emissions[place + 2] = four.z;
        emissions[place + 3] = four.w;
    }
    const char* rest = row + ROW_QUADS * GROUP_LANES * 16;
    if constexpr (ROW_REST == 3) {
        const uint4 three = *reinterpret_cast<const uint4*>(rest + lane * 16);
        emissions[ROW_REGISTERS - 3] = three.x;
        emissions[ROW_REGISTERS - 2] = three.y;
        emissions[ROW_REGISTERS - 1] = three.z;
    }
    if constexpr (ROW_REST == 2) {
        const uint2 two = *reinterpret_cast<const uint2*>(rest + lane * 8);
        emissions[ROW_REGISTERS - 2] = two.x;
        emissions[ROW_REGISTERS - 1] = two.y;
    }
    if constexpr (ROW_REST == 1) {
        emissions[ROW_REGISTERS - 1] = *reinterpret_cast<const uint32*>(rest + lane * 4);
    }
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
