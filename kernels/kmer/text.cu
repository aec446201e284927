// Makes MUMmer's text of the MEMs on the device, so that only the text is copied to the host.
//
// A warp works on a tile of TILE_LINES lines at a time, a lane on one line. The first kernel counts
// the bytes of each tile, and a scan turns them into offsets. The second kernel makes the lines of a
// tile in shared memory, from where the lanes write 16 bytes each to global memory. It works on a
// range of tiles, so that the text of a block can be made piece by piece.
//
// The kernels read MEMs as columns and the names of queries and records; they write text.
#pragma once

#include "kmer/text_lines.cuh"

constexpr uint32 WARPS_OF_BLOCK = BLOCK_THREADS / WARP_LANES;

// The unit in which text is copied from shared to global memory.
using TextUnit = uint4;
constexpr uint32 UNIT_BYTES = sizeof(TextUnit);

// The shared memory of a warp. Text may begin anywhere in the first unit.
constexpr uint32 STAGE_UNITS = 256;
constexpr uint32 MOST_STAGED = (STAGE_UNITS - 1) * UNIT_BYTES;

// Return the number of tiles of a text.
__device__ __forceinline__ uint64 tile_count(const Text& text) {
    return (text.line_count + TILE_LINES - 1) / TILE_LINES;
}

// Count the bytes of each tile.
//
// text        the matches, the names, and the style of the text
// tile_bytes  uint64[tiles], receives the bytes of the lines of each tile
//
// Grid: one warp for each tile, or fewer warps that take several tiles in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_text(Text text, uint64* tile_bytes) {
    for (uint64 tile = grid_warp(); tile < tile_count(text); tile += grid_warps()) {
        uint64 total;
        warp_exclusive_sum(line_of_lane(text, tile).bytes, total);
        if (lane_number() == 0) {
            tile_bytes[tile] = total;
        }
    }
}

// Copy `count` bytes from shared to global memory, from the first unit of `stage` on. The text
// begins in that unit at the byte at which `to` is in a unit of global memory. All lanes of the warp
// must call.
__device__ __forceinline__ void copy_from_stage(const TextUnit* stage, uint8* to, uint32 count) {
    const uint32 begin = reinterpret_cast<uint64>(to) % UNIT_BYTES;
    const uint32 end = begin + count;
    uint8* const unit_begin = to - begin;
    for (uint32 unit = lane_number(); unit * UNIT_BYTES < end; unit += WARP_LANES) {
        const uint32 first = unit * UNIT_BYTES;
        if (first >= begin && first + UNIT_BYTES <= end) {
            *reinterpret_cast<TextUnit*>(unit_begin + first) = stage[unit];
            continue;
        }
        // Another warp writes the other bytes of this unit.
        const uint8* const bytes = reinterpret_cast<const uint8*>(stage);
        for (uint32 place = max(first, begin); place < min(first + UNIT_BYTES, end); ++place) {
            unit_begin[place] = bytes[place];
        }
    }
}

// Write the lines of a range of tiles.
//
// text          the matches, the names, and the style of the text
// tile_offsets  uint64[tiles + 1], the prefix sums of `tile_bytes`: where each tile begins
// first_tile    the first tile of the range
// end_tile      the tile after the last one of the range
// written       uint8[tile_offsets[end_tile] - tile_offsets[first_tile]], receives the lines
//
// Grid: one warp for each tile of the range, or fewer warps that take several tiles in turn.
// Shared memory: 16 * STAGE_UNITS bytes for each warp.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_text(Text text, const uint64* tile_offsets, uint64 first_tile, uint64 end_tile,
               uint8* written) {
    __shared__ TextUnit stages[WARPS_OF_BLOCK][STAGE_UNITS];
    TextUnit* const stage = stages[threadIdx.x / WARP_LANES];
    uint8* const staged = reinterpret_cast<uint8*>(stage);
    for (uint64 tile = first_tile + grid_warp(); tile < end_tile; tile += grid_warps()) {
        const Line line = line_of_lane(text, tile);
        uint64 total;
        const uint64 before = warp_exclusive_sum(line.bytes, total);
        uint8* const tile_text = written + (tile_offsets[tile] - tile_offsets[first_tile]);
        for (uint32 first = 0; first < TILE_LINES;) {
            // The lines from `first` on that fit into shared memory together.
            const uint64 begin = __shfl_sync(ALL_LANES, before, first);
            const uint64 end = before + line.bytes - begin;
            const bool is_staged = lane_number() >= first && end <= MOST_STAGED;
            const uint32 lines = __popc(__ballot_sync(ALL_LANES, is_staged));
            uint8* const to = tile_text + begin;
            if (lines == 0) {
                if (lane_number() == first) {
                    write_line(text, line, to);
                }
                ++first;
                continue;
            }
            if (is_staged && line.bytes > 0) {
                write_line(text, line,
                           staged + reinterpret_cast<uint64>(to) % UNIT_BYTES + (before - begin));
            }
            __syncwarp();
            const uint64 last_end = __shfl_sync(ALL_LANES, end, first + lines - 1);
            copy_from_stage(stage, to, static_cast<uint32>(last_end));
            // The lanes overwrite the stage next.
            __syncwarp();
            first += lines;
        }
    }
}
