// Tiles: what is aligned, and how its bases are read.
//
// Sequences are bit planes, as `pack_codes` writes them: 32 bases take 16 bytes, and two words of
// breaks lie before the first word and after the last.
#pragma once

#include "common/types.cuh"

// A part of a read that is aligned from a corner on. The first base of the read and the first base
// of the reference are those next to the corner.
struct alignas(16) Tile {
    long long read_at;       // the first base of the read, counted in its bit planes
    long long reference_at;  // the first base of the reference
    uint32 length;           // the bases of the read, to its end
    uint32 reference_length;
    int min_score;  // of interest
    uint32 flags;     // LEFTWARD if it lies to the left of its corner, ON_REVERSE_STRAND if
                      // the read is among the reverse complements
};

static_assert(sizeof(Tile) == TILE_BYTES, "the host writes so much for each");

// What a tile without an alignment of its least score has.
constexpr int CANNOT_REACH = -1;

// 32 bases in the order in which a tile is walked; the first has the lowest bits.
struct Window {
    uint32 low;     // the lower bit of each code
    uint32 high;    // the higher bit of each code
    uint32 breaks;  // set where the base is a break
};

// Return the 32 bases from a position on, in ascending order, or from it backwards.
__device__ __forceinline__ Window load_window(const uint4* words, long long position,
                                              bool leftward) {
    const long long first = leftward ? position - 31 : position;
    const uint32 shift = static_cast<uint32>(first) % 32;
    const uint4 one = __ldg(words + (first >> 5));
    const uint4 two = __ldg(words + (first >> 5) + 1);
    const Window window = {__funnelshift_r(one.x, two.x, shift),
                           __funnelshift_r(one.y, two.y, shift),
                           __funnelshift_r(one.z, two.z, shift)};
    if (!leftward) {
        return window;
    }
    return {__brev(window.low), __brev(window.high), __brev(window.breaks)};
}

// A tile and where its bases are.
struct TileView {
    const uint4* read;
    const uint4* reference;
    Tile tile;

    __device__ __forceinline__ bool leftward() const {
        return tile.flags & LEFTWARD;
    }

    // Return 32 bases of the read, from one on that is counted from the corner.
    __device__ __forceinline__ Window read_window(int base) const {
        return load_window(read, tile.read_at + (leftward() ? -base : base), leftward());
    }

    // Return 32 bases of the reference, from one on that is counted from the corner.
    __device__ __forceinline__ Window reference_window(int base) const {
        return load_window(reference, tile.reference_at + (leftward() ? -base : base),
                           leftward());
    }
};

__device__ __forceinline__ TileView view_of(const Tile& tile, const uint4* reads,
                                            const uint4* reversed_reads,
                                            const uint4* reference) {
    return {tile.flags & ON_REVERSE_STRAND ? reversed_reads : reads, reference, tile};
}

// Return the longest gap with which an alignment may still have a score: all other bases match.
__device__ __forceinline__ int longest_insertion(const Costs& costs, int length, int score) {
    const int spare = length * costs.match + costs.end_bonus - score - costs.insertion_open;
    return min(max(spare, 0) / (costs.insertion_extend + costs.match), costs.max_gap);
}

__device__ __forceinline__ int longest_deletion(const Costs& costs, int length, int score) {
    const int spare = length * costs.match + costs.end_bonus - score - costs.deletion_open;
    return min(max(spare, 0) / costs.deletion_extend, costs.max_gap);
}
