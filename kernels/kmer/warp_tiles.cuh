// Tiles of TILE_KMERS query k-mers: a warp searches one tile at a time.
#pragma once

#include "common/warp.cuh"
#include "kmer/query_kmers.cuh"

static_assert(TILE_KMERS == WARP_LANES, "a lane looks up one k-mer of a tile");

// `count_kmer_mems` keeps the MEMs of a tile if there are at most KEPT_MEMS_OF_TILE of them. A kept
// MEM is a 64-bit number. From the lowest bit on, it holds the length, the occurrence, the longest
// left extension minus this one, and the number of the query k-mer in the tile. The numbers
// therefore sort as MEMs do.
using KeptMem = uint64;
constexpr uint32 KEPT_LENGTH_BITS = 15;
constexpr uint32 KEPT_LEFT_SHIFT = 32 + KEPT_LENGTH_BITS;
constexpr uint32 KEPT_KMER_SHIFT = 59;
constexpr uint32 MOST_KEPT_LEFT = 1u << (KEPT_KMER_SHIFT - KEPT_LEFT_SHIFT);
constexpr uint32 NOT_KEPT = ~0u;

static_assert(sizeof(KeptMem) == KEPT_MEM_BYTES, "as the host allocates them");
static_assert(TILE_KMERS <= 1u << (64 - KEPT_KMER_SHIFT), "query k-mers have enough bits");

// Return whether a MEM fits into the bits of a kept MEM. `too_far` is `beyond_left` of all query
// k-mers.
__device__ __forceinline__ bool can_be_kept(const Extension& found, uint32 too_far) {
    return too_far <= MOST_KEPT_LEFT && found.left < too_far &&
           found.length >> KEPT_LENGTH_BITS == 0;
}

// Return a MEM as a kept MEM.
__device__ __forceinline__ KeptMem pack_mem(uint32 kmer, const Extension& found, uint32 too_far) {
    return static_cast<uint64>(kmer) << KEPT_KMER_SHIFT |
           static_cast<uint64>(too_far - 1 - found.left) << KEPT_LEFT_SHIFT |
           static_cast<uint64>(found.occurrence) << KEPT_LENGTH_BITS | found.length;
}

// Return the number of a kept MEM's query k-mer in its tile.
__device__ __forceinline__ uint32 kmer_of_mem(KeptMem mem) {
    return static_cast<uint32>(mem >> KEPT_KMER_SHIFT);
}

// Return a kept MEM as an extension.
__device__ __forceinline__ Extension unpack_mem(KeptMem mem, uint32 too_far) {
    return {static_cast<uint32>(mem >> KEPT_LENGTH_BITS),
            too_far - 1 - static_cast<uint32>(mem >> KEPT_LEFT_SHIFT) % MOST_KEPT_LEFT,
            static_cast<uint32>(mem) % (1u << KEPT_LENGTH_BITS)};
}

// The listed query k-mers of a tile, and the number of its kept MEMs.
struct Tile {
    uint32 frequent;    // a bit for each listed query k-mer, which a block of threads searches
    uint32 kept_count;  // the number of kept MEMs of the other query k-mers, or NOT_KEPT
};

static_assert(sizeof(Tile) == TILE_BYTES, "as the host allocates them");

// Return the number of tiles.
__device__ __forceinline__ uint64 tile_count(const QueryKmers& kmers) {
    return (kmers.count + TILE_KMERS - 1) / TILE_KMERS;
}

// Return this lane's query k-mer. Beyond the last query k-mer, or if `skipped`, it has no
// occurrences.
__device__ __forceinline__ QueryKmer kmer_of_lane(const QueryKmers& kmers, const Table& table,
                                                  uint64 tile, bool skipped) {
    QueryKmer kmer = {};
    const uint64 number = tile * TILE_KMERS + lane_number();
    if (number < kmers.count && !skipped) {
        kmer = load_kmer(kmers, table, number);
    }
    return kmer;
}

// Return another lane's bases, without the starts of queries.
__device__ __forceinline__ BitPlanes from_lane(const BitPlanes& bases, uint32 lane) {
    return {from_lane(bases.low, lane), from_lane(bases.high, lane), from_lane(bases.breaks, lane),
            0};
}

// Extend the query k-mers of a tile at all their occurrences, which the lanes of a warp share
// evenly. Each lane calls `take` for one occurrence at a time, with the number of its query k-mer
// in the tile, the number of the tile's MEMs before it, and the extension, which has length 0 if it
// is no MEM. Return the number of MEMs of this lane's own query k-mer.
template <typename Take>
__device__ __forceinline__ uint32 search_occurrences(const QueryKmers& kmers, const Table& table,
                                                     const QueryKmer& kmer, const Take& take) {
    uint32 occurrences;
    const uint32 begin = warp_exclusive_sum(occurrence_count(kmer), occurrences);
    const uint32 end = begin + occurrence_count(kmer);
    uint32 count = 0;
    uint32 row_offset = 0;
    for (uint32 first = 0; first < occurrences; first += WARP_LANES) {
        const uint32 number = first + lane_number();
        const uint32 owner = last_lane_at_most(begin, number);
        const uint32 index = from_lane(kmer.list_begin - begin, owner) + number;
        QueryKmer owned;
        owned.position = from_lane(kmer.position, owner);
        owned.window = from_lane(kmer.window, owner);
        if constexpr (FOR_MAPPING) {
            owned.left_limit = from_lane(kmer.left_limit, owner);
            owned.thinning_bits = from_lane(kmer.thinning_bits, owner);
        }
        owned.flanks.left = from_lane(kmer.flanks.left, owner);
        owned.flanks.right = from_lane(kmer.flanks.right, owner);
        Extension found = {};
        if (number < occurrences) {
            found = extend(kmers, table, owned, index);
        }
        const uint32 lanes = __ballot_sync(ALL_LANES, found.length > 0);
        take(owner, row_offset + __popc(lanes & lowest_bits(lane_number())), found);
        // The lanes that have extended this lane's own query k-mer.
        const uint32 own = lowest_bits(min(max(end, first) - first, WARP_LANES)) &
                           ~lowest_bits(min(max(begin, first) - first, WARP_LANES));
        count += __popc(lanes & own);
        row_offset += __popc(lanes);
    }
    return count;
}
