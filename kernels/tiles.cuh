// Tiles of 32 samples, each searched by a warp.
#pragma once

#include "samples.cuh"
#include "warps.cuh"

// So many MEMs of a tile are kept by the counting kernel.
constexpr uint32 KEPT_OF_TILE = 128;

// Of a kept MEM, from the lowest bit on: its length, its place, how much less than the
// longest its left extension is, its sample in the tile. So the order of numbers is that of
// MEMs.
constexpr uint32 KEPT_LENGTH_BITS = 15;
constexpr uint32 KEPT_LEFT_SHIFT = 32 + KEPT_LENGTH_BITS;
constexpr uint32 KEPT_SAMPLE_SHIFT = 59;
constexpr uint32 MOST_LEFT = 1u << (KEPT_SAMPLE_SHIFT - KEPT_LEFT_SHIFT);
constexpr uint32 NOT_KEPT = ~0u;

__device__ __forceinline__ bool can_be_kept(const Extension& found, uint32 step) {
    return step <= MOST_LEFT && found.length >> KEPT_LENGTH_BITS == 0;
}

__device__ __forceinline__ uint64 packed(uint32 owner, const Extension& found, uint32 step) {
    return static_cast<uint64>(owner) << KEPT_SAMPLE_SHIFT |
           static_cast<uint64>(step - 1 - found.left) << KEPT_LEFT_SHIFT |
           static_cast<uint64>(found.place) << KEPT_LENGTH_BITS | found.length;
}

__device__ __forceinline__ uint32 owner_of(uint64 kept) {
    return static_cast<uint32>(kept >> KEPT_SAMPLE_SHIFT);
}

__device__ __forceinline__ Extension unpacked(uint64 kept, uint32 step) {
    return {static_cast<uint32>(kept >> KEPT_LENGTH_BITS),
            step - 1 - static_cast<uint32>(kept >> KEPT_LEFT_SHIFT) % MOST_LEFT,
            static_cast<uint32>(kept) % (1u << KEPT_LENGTH_BITS)};
}

// What is known of a tile besides its counts.
struct Tile {
    uint32 long_samples;  // a bit for each that is left to a block of threads
    uint32 kept;          // how many MEMs of the others are kept, or NOT_KEPT
};

__device__ __forceinline__ uint64 tile_count(const Samples& samples) {
    return (samples.count + LANES - 1) / LANES;
}

// Return the sample of this lane; behind the last, and where `skipped`, with an empty list.
__device__ __forceinline__ Sample sample_of_lane(const Samples& samples, const Table& table,
                                                 uint64 tile, bool skipped) {
    Sample sample = {};
    const uint64 number = tile * LANES + lane_number();
    if (number < samples.count && !skipped) {
        sample = load_sample(samples, table, number);
    }
    return sample;
}

__device__ __forceinline__ uint32 from_lane(uint32 value, uint32 lane) {
    return __shfl_sync(ALL_LANES, value, lane);
}

__device__ __forceinline__ Planes from_lane(const Planes& planes, uint32 lane) {
    return {from_lane(planes.low, lane), from_lane(planes.high, lane),
            from_lane(planes.breaks, lane), 0};
}

// Extend the samples of a tile at all places of their lists. Each lane is given one of them at
// a time: the lane of its sample, the number of MEMs before it, and what was found, which is
// of no length where it is no MEM. Return how many MEMs this lane's own sample has.
template <typename Take>
__device__ __forceinline__ uint32 search_lists(const Samples& samples, const Table& table,
                                               uint64 tile, const Sample& sample,
                                               const Take& take) {
    uint32 places;
    const uint32 begin = sum_of_lanes_before(list_length(sample), places);
    const uint32 end = begin + list_length(sample);
    uint32 count = 0;
    uint32 found_before = 0;
    for (uint32 first = 0; first < places; first += LANES) {
        const uint32 place = first + lane_number();
        const uint32 owner = lane_that_holds(begin, place);
        const uint32 number = from_lane(sample.list_begin - begin, owner) + place;
        Sample owned;
        owned.position = (tile * LANES + owner) * samples.step;
        owned.around.before = from_lane(sample.around.before, owner);
        owned.around.ahead = from_lane(sample.around.ahead, owner);
        Extension found = {};
        if (place < places) {
            found = extend(samples, table, owned, number);
        }
        const uint32 lanes = __ballot_sync(ALL_LANES, found.length > 0);
        take(owner, found_before + __popc(lanes & lowest_bits(lane_number())), found);
        // Which of these places are of this lane's own list.
        const uint32 own = lowest_bits(min(max(end, first) - first, LANES)) &
                           ~lowest_bits(min(max(begin, first) - first, LANES));
        count += __popc(lanes & own);
        found_before += __popc(lanes);
    }
    return count;
}
