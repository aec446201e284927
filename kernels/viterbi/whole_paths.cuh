// Follows the best path back through a whole matrix. The lanes of a warp do so together: they load
// directions before they are needed.
#pragma once

#include "viterbi/strip.cuh"

constexpr uint32 WINDOW_LINES = 16;  // the lines of directions that a warp has at hand
constexpr uint32 WINDOW_WORDS = WINDOW_LINES * WARP_LANES;

// Some lines of directions. A line has the directions of one step of a strip, an element for each
// lane; a path goes through lines backwards.
template <typename Directions>
struct DirectionWindow {
    const Directions* directions;
    Directions* shared;  // WINDOW_WORDS elements
    uint32 group;        // the lanes of a strip
    long long first;     // the first line at hand, -1 for none

    __device__ __forceinline__ DirectionWindow(const Directions* directions, Directions* shared,
                                               uint32 group)
        : directions(directions), shared(shared), group(group), first(-1) {}

    // Return the directions of a lane in a line. All lanes of the warp ask for the same.
    __device__ __forceinline__ Directions at(long long line, uint32 lane) {
        if (first < 0 || line < first || line >= first + WINDOW_LINES) {
            first = line < WINDOW_LINES ? 0 : line - (WINDOW_LINES - 1);
            const uint32 words = static_cast<uint32>(line - first + 1) * group;
            __syncwarp();
#pragma unroll 4
            for (uint32 word = lane_number(); word < words; word += WARP_LANES) {
                shared[word] = directions[first * group + word];
            }
            __syncwarp();
        }
        return shared[static_cast<uint32>(line - first) * group + lane];
    }
};

// Write the operations of a path backwards, the last one before `end`; return how many there are.
//
// `bits(i, j)` returns the directions of a cell, whose row and column are counted from 1. All lanes
// of a warp call this; one of them writes.
template <typename Bits>
__device__ __forceinline__ uint32 write_whole_path(int i, int j, Bits bits, uint32* end,
                                                   uint32 most) {
    constexpr uint32 INSERTION_STATE = 1, DELETION_STATE = 2;
    static_assert((READ_BASES >> INSERTION_STATE & 1) && !(REFERENCE_BASES >> INSERTION_STATE & 1));
    static_assert(!(READ_BASES >> DELETION_STATE & 1) && (REFERENCE_BASES >> DELETION_STATE & 1));
    uint32 count = 0, kind = STATES, length = 0;
    uint32 state = 0;
    const auto write = [&] {
        if (length > 0) {
            ++count;
            if (count <= most && lane_number() == 0) {
                *(end - count) = length << 4 | (OPERATIONS >> 4 * kind & 15);
            }
        }
    };
    for (;;) {
        // The first row and the first column are one gap, of which no directions are kept.
        int bases = 1;
        if (i > 0 && j > 0) {
            const uint32 sources = state == INSERTION_STATE  ? INTO_INSERTION
                                   : state == DELETION_STATE ? INTO_DELETION
                                                             : INTO_MATCH;
            state = sources >> STATE_BITS * bits(i, j) & ((1u << STATE_BITS) - 1);
        } else if (i > 0) {
            state = INSERTION_STATE;
            bases = i;
        } else if (j > 0) {
            state = DELETION_STATE;
            bases = j;
        } else {
            break;
        }
        if (state != kind) {
            write();
            kind = state;
            length = 0;
        }
        length += static_cast<uint32>(bases);
        i -= READ_BASES >> state & 1 ? bases : 0;
        j -= REFERENCE_BASES >> state & 1 ? bases : 0;
    }
    write();
    return count;
}
