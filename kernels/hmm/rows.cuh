// A profile's row in registers, and its emissions in the shared memory of a block.
//
// GROUP_LANES lanes have the nodes of a row, two halves of ROW_REGISTERS registers each: half-lane
// h, which is lane h % GROUP_LANES, has the nodes from h * ROW_REGISTERS on. So what precedes a node
// lies in the register before, and only the first register takes its value from another lane.
#pragma once

#include "hmm/groups.cuh"

constexpr uint32 ROW_QUADS = ROW_REGISTERS / 4;
constexpr uint32 ROW_REST = ROW_REGISTERS % 4;
// A row has for each four registers 16 bytes a lane, then the rest of the registers.
constexpr uint32 REST_BYTES = ROW_REST == 3 ? 16 : 4 * ROW_REST;
constexpr uint32 ROW_BYTES = GROUP_LANES * (16 * ROW_QUADS + REST_BYTES);

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
