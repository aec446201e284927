// The sampled search: every few bases of the queries a k-mer is looked up and extended.
//
// A MEM holds a k-mer at a multiple of the step, which is the minimum length less k, plus one.
// Each such sample is looked up in the table of the reference, and extended at each of its
// places to the left and to the right. If it gets a step or more to the left, an earlier
// sample has found the same MEM; so each comes out once.
//
// A warp works on a tile of 32 samples at a time: its lanes look up a sample each, and then
// share the places of all of them evenly. MEMs are counted first, and kept where a tile has
// few; the writing kernel searches the others again. Samples with long lists are left to
// kernels that give a block of threads to each.
#pragma once

#include "rows.cuh"
#include "threads.cuh"
#include "tiles.cuh"

// A warp works on lists of so many places.
constexpr uint32 LONGEST_LIST = 64;

// Count the MEMs of each sample and each tile, and keep them if they are few; list samples of
// long lists.
extern "C" __global__ void __launch_bounds__(256)
    count_sampled(Samples samples, Table table, uint64* kept, Tile* tiles, uint32* counts,
                  uint64* tile_counts, uint32* long_samples, uint32* long_count) {
    for (uint64 tile = first_warp(); tile < tile_count(samples); tile += warp_step()) {
        Sample sample = sample_of_lane(samples, table, tile, false);
        const uint64 number = tile * LANES + lane_number();
        const bool is_long = list_length(sample) > LONGEST_LIST;
        if (is_long) {
            long_samples[atomicAdd(long_count, 1u)] = static_cast<uint32>(number);
            sample.list_end = sample.list_begin;
        }
        bool all_kept = true;
        const uint32 count = search_lists(
            samples, table, tile, sample,
            [&](uint32 owner, uint32 before, const Extension& found) {
                if (found.length == 0) {
                    return;
                }
                if (before < KEPT_OF_TILE && can_be_kept(found, samples.step)) {
                    kept[tile * KEPT_OF_TILE + before] = packed(owner, found, samples.step);
                } else {
                    all_kept = false;
                }
            });
        if (number < samples.count) {
            counts[number] = count;
        }
        uint32 total;
        sum_of_lanes_before(count, total);
        const uint32 long_lanes = __ballot_sync(ALL_LANES, is_long);
        all_kept = __all_sync(ALL_LANES, all_kept);
        if (lane_number() == 0) {
            tile_counts[tile] = total;
            tiles[tile] = {long_lanes, all_kept ? total : NOT_KEPT};
        }
    }
}

// Write where the MEMs of each query begin, and behind them where the last ones end.
extern "C" __global__ void __launch_bounds__(256)
    offsets_of_sampled(const uint64* tile_offsets, const uint32* counts, uint64 sample_count,
                       uint32 step, const uint64* offsets, uint64 query_count,
                       uint64* query_offsets) {
    for (uint64 query = first_item(); query <= query_count; query += item_step()) {
        const uint64 sample = (offsets[query] + step - 1) / step;
        query_offsets[query] = mems_before(tile_offsets, counts, min(sample, sample_count));
    }
}

// Put a row that has just been written behind the others where it belongs.
__device__ __forceinline__ void insert_row(const Mems& mems, uint64 begin, uint64 row) {
    while (row > begin && is_behind<true>(mems, row - 1, row)) {
        exchange(mems.query_starts, row - 1, row);
        exchange(mems.reference_starts, row - 1, row);
        exchange(mems.lengths, row - 1, row);
        --row;
    }
}

// Where the MEMs of a lane's sample go.
struct Destination {
    uint64 begin;   // the row of the first
    uint32 start;   // of the sample, in its query
    uint32 before;  // MEMs of the samples before it in the tile, but for those of long lists
    uint32 count;   // its own, or 0 if its list is long
};

__device__ __forceinline__ Destination from_lane(const Destination& destination, uint32 lane) {
    return {__shfl_sync(ALL_LANES, destination.begin, lane), from_lane(destination.start, lane),
            from_lane(destination.before, lane), from_lane(destination.count, lane)};
}

__device__ __forceinline__ Destination destination_of_lane(const Samples& samples, uint64 tile,
                                                           const Tile& known,
                                                           const uint32* counts,
                                                           const uint64* tile_offsets,
                                                           const Rows& rows) {
    Destination destination = {};
    const uint64 number = tile * LANES + lane_number();
    const uint64 count = number < samples.count ? counts[number] : 0;
    uint64 total;
    destination.begin = tile_offsets[tile] + sum_of_lanes_before(count, total);
    destination.count =
        known.long_samples >> lane_number() & 1 ? 0 : static_cast<uint32>(count);
    uint32 searched;
    destination.before = sum_of_lanes_before(destination.count, searched);
    if (destination.count > 0) {
        const uint64 position = number * samples.step;
        destination.start = static_cast<uint32>(position - query_begin_at(rows, position));
    }
    return destination;
}

// Write the MEMs of a tile that have been kept, each of them where its sample's others leave
// it its place.
__device__ __forceinline__ void write_kept(const Samples& samples, const Table& table,
                                           const uint64* kept, uint32 count, const Rows& rows,
                                           const Destination& destination) {
    for (uint32 first = 0; first < count; first += LANES) {
        const uint32 number = first + lane_number();
        const uint64 mem = number < count ? kept[number] : 0;
        const Destination to = from_lane(destination, owner_of(mem));
        if (number >= count) {
            continue;
        }
        uint32 rank = number - to.before;
        // With a step of one base all begin together, in the order of their places.
        if (samples.step > 1 && to.count > 1) {
            rank = 0;
            for (uint32 other = to.before; other < to.before + to.count; ++other) {
                rank += kept[other] < mem ? 1 : 0;
            }
        }
        write_row(rows, to.begin + rank, table, to.start, unpacked(mem, samples.step));
    }
}

// Write the MEMs of a tile that have not been kept.
__device__ __forceinline__ void write_again(const Samples& samples, const Table& table,
                                            uint64 tile, const Tile& known, const Rows& rows,
                                            const Destination& destination) {
    const bool is_long = known.long_samples >> lane_number() & 1;
    const Sample sample = sample_of_lane(samples, table, tile, is_long);
    search_lists(samples, table, tile, sample,
                 [&](uint32 owner, uint32 before, const Extension& found) {
                     const Destination to = from_lane(destination, owner);
                     if (found.length > 0) {
                         write_row(rows, to.begin + before - to.before, table, to.start, found);
                     }
                 });
    __syncwarp();
    if (samples.step > 1) {
        for (uint32 row = 1; row < destination.count; ++row) {
            insert_row(rows.mems, destination.begin, destination.begin + row);
        }
    }
}

// Write the MEMs of all samples but those of long lists.
extern "C" __global__ void __launch_bounds__(256)
    write_sampled(Samples samples, Table table, const uint64* kept, const Tile* tiles,
                  const uint32* counts, const uint64* tile_offsets, Rows rows) {
    for (uint64 tile = first_warp(); tile < tile_count(samples); tile += warp_step()) {
        if (tile_offsets[tile] == tile_offsets[tile + 1]) {
            continue;
        }
        const Tile known = tiles[tile];
        const Destination destination =
            destination_of_lane(samples, tile, known, counts, tile_offsets, rows);
        if (known.kept == NOT_KEPT) {
            write_again(samples, table, tile, known, rows, destination);
        } else {
            write_kept(samples, table, kept + tile * KEPT_OF_TILE, known.kept, rows,
                       destination);
        }
    }
}
