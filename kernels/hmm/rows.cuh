// A profile's row and its table: the row in registers, the table in the shared memory of a block.
// Studies have them elsewhere, too: the choices of CUDAMPF (H. Jiang, N. Ganesan, 2016).
//
// SCORES         where the cells of a row lie: in REGISTERS, in SHARED memory, or in memory LOCAL to
//                a thread
// ROW_REGISTERS  the registers of a row; 0 if they are known at run time
// CACHED         whether a table is read from global memory, through the read-only cache
// IN_BYTES       whether a register has four cells of 8 bits, not two of 16 (SSV only)
//
// GROUP_LANES lanes have the nodes of a row, two halves of ROW_REGISTERS registers each: half-lane
// h, which is lane h % GROUP_LANES, has the nodes from h * ROW_REGISTERS on. So what precedes a node
// lies in the register before, and only the first register takes its value from another lane.
#pragma once

#include "common/pairs.cuh"
#include "hmm/residues.cuh"

#ifndef IN_BYTES
#define IN_BYTES 0
#endif

#define IN_REGISTERS 0
#define IN_SHARED 1
#define IN_LOCAL 2

// How far loops are unrolled: cells in memory gain little from that.
#if SCORES == IN_REGISTERS
#define EACH_REGISTER _Pragma("unroll")
#define EACH_RESIDUE _Pragma("unroll")
#else
#define EACH_REGISTER _Pragma("unroll (ROW_REGISTERS > 0 ? 4 : 1)")
#define EACH_RESIDUE _Pragma("unroll 1")
#endif

constexpr uint32 TABLE_ROWS = PADDING_CODE + 1;  // of emissions, by code
constexpr uint32 GROUPS = WARP_LANES / GROUP_LANES;  // in a warp

// The shared memory of a block, which a launch gives it: the table of a profile.
extern __shared__ uint4 block_memory[];

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
          // The last lane's lower number precedes the first lane's upper one; the border precedes
          // the first node.
          selector(group_lane() != 0 ? 0x3210u : IN_BYTES ? 0x2104u : 0x1054u) {}

    // Return the values before this lane's first register, from the last register of each lane.
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

// Read from a table.
template <typename Value>
__device__ __forceinline__ Value read_table(const Value* place) {
#if CACHED
    return __ldg(place);
#else
    return *place;
#endif
}

// A profile's table: rows of emissions by code, then what else a filter needs.
struct Table {
#if CACHED
    const uint4* begin = nullptr;
#endif
#if ROW_REGISTERS == 0
    uint32 count = 0;
#endif

    // Take a table of `quads` units of 16 bytes, with `rows` rows of 32 bits for each register. All
    // threads of the block call.
    __device__ __forceinline__ void load(const uint4* table, [[maybe_unused]] uint32 quads,
                                         [[maybe_unused]] uint32 rows) {
#if ROW_REGISTERS == 0
        count = 4 * quads / (GROUP_LANES * rows);
#endif
#if CACHED
        begin = table;
#else
        for (uint32 at = threadIdx.x; at < quads; at += blockDim.x) {
            block_memory[at] = table[at];
        }
        __syncthreads();
#endif
    }

    __device__ __forceinline__ uint32 registers() const {
#if ROW_REGISTERS > 0
        return ROW_REGISTERS;
#else
        return count;
#endif
    }

    // Return the bytes of the registers after the last four.
    __device__ __forceinline__ uint32 rest_bytes() const {
        return registers() % 4 == 3 ? 16 : 4 * (registers() % 4);
    }

    // Return the emissions of a code; after the last one comes the rest of the table.
    __device__ __forceinline__ const char* row(uint32 code) const {
#if CACHED
        const uint4* start = begin;
#else
        const uint4* start = block_memory;
#endif
        // A row has for each four registers 16 bytes a lane, then the rest of the registers.
        const uint32 row_bytes = GROUP_LANES * (16 * (registers() / 4) + rest_bytes());
        return reinterpret_cast<const char*>(start) + code * row_bytes;
    }
};

// The cells of this lane's nodes, in each of some states.
template <uint32 STATES>
struct Cells {
#if SCORES == IN_REGISTERS
    uint32 values[STATES][ROW_REGISTERS];

    __device__ __forceinline__ Cells(const Table&, uint64) {}

    __device__ __forceinline__ uint32& at(uint32 state, uint32 place) {
        return values[state][place];
    }
#elif SCORES == IN_LOCAL
    uint32 values[STATES * LOCAL_REGISTERS];

    __device__ __forceinline__ Cells(const Table&, uint64) {}

    __device__ __forceinline__ uint32& at(uint32 state, uint32 place) {
        return values[state * LOCAL_REGISTERS + place];
    }
#else
    uint32* values;
    uint32 stride;  // from a state to the next

    // Each warp has its own after the table, unless that is cached.
    __device__ __forceinline__ Cells(const Table& table, uint64 table_quads)
        : values(reinterpret_cast<uint32*>(block_memory + (CACHED ? 0 : table_quads))),
          stride(WARP_LANES * table.registers()) {
        values += threadIdx.x / WARP_LANES * STATES * stride + lane_number();
    }

    __device__ __forceinline__ uint32& at(uint32 state, uint32 place) {
        return values[state * stride + WARP_LANES * place];
    }
#endif
};

// The emissions of a residue at the nodes of this lane.
struct Emissions {
#if SCORES == IN_REGISTERS
    uint32 values[ROW_REGISTERS];

    __device__ __forceinline__ Emissions(const Table& table, uint32 code) {
        const char* row = table.row(code);
        const uint32 lane = group_lane();
#pragma unroll
        for (uint32 place = 0; place + 4 <= ROW_REGISTERS; place += 4) {
            const uint4 four = read_table(
                reinterpret_cast<const uint4*>(row + place * GROUP_LANES * 4 + lane * 16));
            values[place] = four.x;
            values[place + 1] = four.y;
            values[place + 2] = four.z;
            values[place + 3] = four.w;
        }
        constexpr uint32 REST = ROW_REGISTERS % 4;
        const char* rest = row + ROW_REGISTERS / 4 * GROUP_LANES * 16;
        if constexpr (REST == 3) {
            const uint4 three = read_table(reinterpret_cast<const uint4*>(rest + lane * 16));
            values[ROW_REGISTERS - 3] = three.x;
            values[ROW_REGISTERS - 2] = three.y;
            values[ROW_REGISTERS - 1] = three.z;
        }
        if constexpr (REST == 2) {
            const uint2 two = read_table(reinterpret_cast<const uint2*>(rest + lane * 8));
            values[ROW_REGISTERS - 2] = two.x;
            values[ROW_REGISTERS - 1] = two.y;
        }
        if constexpr (REST == 1) {
            values[ROW_REGISTERS - 1] =
                read_table(reinterpret_cast<const uint32*>(rest + lane * 4));
        }
    }

    __device__ __forceinline__ uint32 at(uint32 place) const {
        return values[place];
    }
#else
    const char* row;
    uint32 quads;
    uint32 rest_bytes;
    uint4 four{};

    __device__ __forceinline__ Emissions(const Table& table, uint32 code)
        : row(table.row(code)), quads(table.registers() / 4), rest_bytes(table.rest_bytes()) {}

    // The caller begins with the last register and leaves out none.
    __device__ __forceinline__ uint32 at(uint32 place) {
        const char* lane = row + place / 4 * GROUP_LANES * 16;
        if (place / 4 == quads) {
            lane += group_lane() * rest_bytes;
            return read_table(reinterpret_cast<const uint32*>(lane) + place % 4);
        }
        if (place % 4 == 3) {
            four = read_table(reinterpret_cast<const uint4*>(lane) + group_lane());
        }
        return place % 4 < 2 ? (place % 4 == 0 ? four.x : four.y)
                             : (place % 4 == 2 ? four.z : four.w);
    }
#endif
};
