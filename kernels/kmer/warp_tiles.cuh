// Tiles of TILE_SAMPLES samples: a warp searches one tile at a time.
#pragma once

#include "common/warp.cuh"
#include "kmer/samples.cuh"

static_assert(TILE_SAMPLES == WARP_LANES, "a lane looks up one sample of a tile");

// `count_kmer_mems` keeps the MEMs of a tile if there are at most KEPT_MEMS_OF_TILE of them. A kept
// MEM is a 64-bit number. From the lowest bit on, it holds the length, the occurrence, the longest
// left extension minus this one, and the number of the sample in the tile. The numbers therefore
// sort as MEMs do.
using KeptMem = uint64;
constexpr uint32 KEPT_LENGTH_BITS = 15;
constexpr uint32 KEPT_LEFT_SHIFT = 32 + KEPT_LENGTH_BITS;
constexpr uint32 KEPT_SAMPLE_SHIFT = 59;
constexpr uint32 MOST_KEPT_LEFT = 1u << (KEPT_SAMPLE_SHIFT - KEPT_LEFT_SHIFT);
constexpr uint32 NOT_KEPT = ~0u;

static_assert(sizeof(KeptMem) == KEPT_MEM_BYTES, "as the host allocates them");
static_assert(TILE_SAMPLES <= 1u << (64 - KEPT_SAMPLE_SHIFT), "samples have bits enough");

// Return whether a MEM fits into the bits of a kept MEM. `too_far` is `beyond_left` of all samples.
__device__ __forceinline__ bool can_be_kept(const Extension& found, uint32 too_far) {
    return too_far <= MOST_KEPT_LEFT && found.left < too_far && found.length >> KEPT_LENGTH_BITS == 0;
}

// Return a MEM as a kept MEM.
__device__ __forceinline__ KeptMem pack_mem(uint32 sample, const Extension& found, uint32 too_far) {
    return static_cast<uint64>(sample) << KEPT_SAMPLE_SHIFT |
           static_cast<uint64>(too_far - 1 - found.left) << KEPT_LEFT_SHIFT |
           static_cast<uint64>(found.occurrence) << KEPT_LENGTH_BITS | found.length;
}

// Return the number of a kept MEM's sample in its tile.
__device__ __forceinline__ uint32 sample_of_mem(KeptMem mem) {
    return static_cast<uint32>(mem >> KEPT_SAMPLE_SHIFT);
}

// Return a kept MEM as an extension.
__device__ __forceinline__ Extension unpack_mem(KeptMem mem, uint32 too_far) {
    return {static_cast<uint32>(mem >> KEPT_LENGTH_BITS),
            too_far - 1 - static_cast<uint32>(mem >> KEPT_LEFT_SHIFT) % MOST_KEPT_LEFT,
            static_cast<uint32>(mem) % (1u << KEPT_LENGTH_BITS)};
}

// The listed samples of a tile, and the number of its kept MEMs.
struct Tile {
    uint32 frequent;    // a bit for each listed sample, which a block of threads searches
    uint32 kept_count;  // the number of kept MEMs of the other samples, or NOT_KEPT
};

static_assert(sizeof(Tile) == TILE_BYTES, "as the host allocates them");

// Return the number of tiles.
__device__ __forceinline__ uint64 tile_count(const Samples& samples) {
    return (samples.count + TILE_SAMPLES - 1) / TILE_SAMPLES;
}

// Return this lane's sample. Beyond the last sample, or if `skipped`, it has no occurrences.
__device__ __forceinline__ Sample sample_of_lane(const Samples& samples, const Table& table,
                                                 uint64 tile, bool skipped) {
    Sample sample = {};
    const uint64 number = tile * TILE_SAMPLES + lane_number();
    if (number < samples.count && !skipped) {
        sample = load_sample(samples, table, number);
    }
    return sample;
}

// Return another lane's bases, without the starts of queries.
__device__ __forceinline__ BitPlanes from_lane(const BitPlanes& bases, uint32 lane) {
    return {from_lane(bases.low, lane), from_lane(bases.high, lane),
            from_lane(bases.breaks, lane), 0};
}

// Extend the samples of a tile at all their occurrences, which the lanes of a warp share evenly.
// Each lane calls `take` for one occurrence at a time, with the number of its sample in the tile,
// the number of the tile's MEMs before it, and the extension, which has length 0 if it is no MEM.
// Return the number of MEMs of this lane's own sample.
template <typename Take>
__device__ __forceinline__ uint32 search_occurrences(const Samples& samples, const Table& table,
                                                     const Sample& sample,
                                                     const Take& take) {
    uint32 occurrences;
    const uint32 begin = warp_exclusive_sum(occurrence_count(sample), occurrences);
    const uint32 end = begin + occurrence_count(sample);
    uint32 count = 0;
    uint32 found_before = 0;
    for (uint32 first = 0; first < occurrences; first += WARP_LANES) {
        const uint32 number = first + lane_number();
        const uint32 owner = last_lane_at_most(begin, number);
        const uint32 index = from_lane(sample.list_begin - begin, owner) + number;
        Sample owned;
        owned.position = from_lane(sample.position, owner);
        owned.window = from_lane(sample.window, owner);
        if constexpr (FOR_MAPPING) {
            owned.found_before = from_lane(sample.found_before, owner);
            owned.thinning_bits = from_lane(sample.thinning_bits, owner);
        }
        owned.flanks.left = from_lane(sample.flanks.left, owner);
        owned.flanks.right = from_lane(sample.flanks.right, owner);
        Extension found = {};
        if (number < occurrences) {
            found = extend(samples, table, owned, index);
        }
        const uint32 lanes = __ballot_sync(ALL_LANES, found.length > 0);
        take(owner, found_before + __popc(lanes & lowest_bits(lane_number())), found);
        // The lanes that have extended this lane's own sample.
        const uint32 own = lowest_bits(min(max(end, first) - first, WARP_LANES)) &
                           ~lowest_bits(min(max(begin, first) - first, WARP_LANES));
        count += __popc(lanes & own);
        found_before += __popc(lanes);
    }
    return count;
}
