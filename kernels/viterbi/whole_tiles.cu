// Computes the whole matrices of tiles, two at a time, each by a group of lanes.
#pragma once

#include "viterbi/strip.cuh"
#include "viterbi/whole_paths.cuh"

// Two sequences that are aligned from end to end. Tiles 2k and 2k + 1 are a pair: they share their
// directions, which have room for the longer of both in each direction.
struct alignas(16) WholeTile {
    long long query_at;        // the first base of the query
    long long reference_at;    // the first base of the reference
    long long directions_at;   // the first element of directions of the pair
    long long operations_end;  // the end of the room for the operations
    uint32 length;             // the bases of the query; none if the pair has one tile
    uint32 reference_length;
    uint32 max_operations;    // the operations that there is room for
    uint32 unused;
};

static_assert(sizeof(WholeTile) == WHOLE_TILE_BYTES, "as the host writes them");

// Strips of a pair of tiles.
template <uint32 GROUP>
struct PairStrip {
    const uint8* query;
    const uint8* reference;
    WholeTile one, two;
    Borders borders;
    uint2* directions;
    uint2* edges;  // of the row above the strip, by column
    uint32* scores;
    TwoNumbers with;
    int columns, rows, strip;

    __device__ __forceinline__ PairStrip(const uint8* query, const uint8* reference,
                                         const WholeTile* tiles, const Costs& costs)
        : query(query), reference(reference), one(tiles[0]), two(tiles[1]), borders(costs),
          with(costs), columns(max(one.reference_length, two.reference_length)),
          rows(max(one.length, two.length)), strip(0) {}

    __device__ __forceinline__ int strips() const {
        return (rows + static_cast<int>(GROUP * LANE_ROWS) - 1) /
               static_cast<int>(GROUP * LANE_ROWS);
    }
    __device__ __forceinline__ int steps() const {
        return columns + static_cast<int>(GROUP) - 1;
    }

    // Return a base of a tile's query or reference, counted from 0; a break beyond its end.
    static __device__ __forceinline__ uint32 base_of(const uint8* codes, long long first,
                                                     uint32 length, int place) {
        return place >= 0 && place < static_cast<int>(length) ? codes[first + place] : BREAK;
    }

    __device__ __forceinline__ ColumnBases bases(int j) const {
        const uint32 first = base_of(reference, one.reference_at, one.reference_length, j - 1);
        const uint32 second = base_of(reference, two.reference_at, two.reference_length, j - 1);
        return {TwoNumbers::selector(first, second), TwoNumbers::breaks(first, second)};
    }

    __device__ __forceinline__ Edge<uint32> edge(int j) const {
        if (strip == 0) {
            return borders.edge(with, j);
        }
        const uint2 edge = j <= columns ? edges[j] : uint2{0, 0};
        return {edge.x, edge.y};
    }

    // Return the rows of a lane, at the first column.
    __device__ __forceinline__ LaneRows<TwoNumbers> lane_rows(const Costs& costs) const {
        const int above = first_row(lane_number() % GROUP);
        LaneRows<TwoNumbers> found;
        found.above = with.number(borders.first_of_row(above));
#pragma unroll
        for (uint32 row = 0; row < LANE_ROWS; ++row) {
            const int place = above + static_cast<int>(row);
            const uint32 first = base_of(query, one.query_at, one.length, place);
            const uint32 second = base_of(query, two.query_at, two.length, place);
            found.to_match[row] = with.number(borders.first_of_row(place + 1));
            found.to_deletion[row] = with.never();
            found.scores[row] = {
                base_scores(first, costs), base_scores(second, costs),
                (static_cast<uint32>(break_score(first, costs)) & 0xFFFFu) |
                    static_cast<uint32>(break_score(second, costs)) << 16};
        }
        return found;
    }

    // Return the rows above those of a lane.
    __device__ __forceinline__ int first_row(uint32 lane) const {
        return (strip * static_cast<int>(GROUP) + static_cast<int>(lane)) *
               static_cast<int>(LANE_ROWS);
    }

    __device__ __forceinline__ void take(int step, int j, const uint2& found,
                                         const Edge<uint32>& below,
                                         const LaneRows<TwoNumbers>& lane_rows) {
        const uint32 lane = lane_number() % GROUP;
        const long long line = static_cast<long long>(strip) * steps() + step;
        directions[line * GROUP + lane] = found;
        if (lane == GROUP - 1) {
            edges[j] = {below.match, below.insertion};
        }
        keep_score(one, 0, j, lane_rows);
        keep_score(two, 1, j, lane_rows);
    }

    __device__ __forceinline__ void keep_score(const WholeTile& tile, uint32 number, int j,
                                               const LaneRows<TwoNumbers>& lane_rows) {
        if (j == static_cast<int>(tile.reference_length)) {
            const int row =
                static_cast<int>(tile.length) - 1 - first_row(lane_number() % GROUP);
            if (row >= 0 && row < static_cast<int>(LANE_ROWS)) {
                const uint32 both = lane_rows.match_of(static_cast<uint32>(row));
                scores[number] = number ? both >> 16 : both & 0xFFFFu;
            }
        }
    }
};

// Fill the matrices of the pairs that the groups of a warp take.
template <uint32 GROUP>
__device__ __forceinline__ void fill_pairs(const uint8* queries, const uint8* reference,
                                           const WholeTile* tiles, uint64 count,
                                           const Costs* costs, uint2* directions, uint2* edges,
                                           uint32 max_columns, uint32* scores) {
    constexpr uint32 GROUPS = WARP_LANES / GROUP;
    const Costs numbers = *costs;
    const TwoNumbers with(numbers);
    const uint32 group = lane_number() / GROUP;
    for (uint64 first = grid_warp() * GROUPS; first < count; first += grid_warps() * GROUPS) {
        // A group without a pair of its own computes the last one once more, in no place.
        const uint64 pair = first + group < count ? first + group : count - 1;
        const bool is_own = first + group < count;
        PairStrip<GROUP> strip(queries, reference, tiles + 2 * pair, numbers);
        strip.directions = directions + strip.one.directions_at;
        strip.edges = edges + (grid_warp() * GROUPS + group) * max_columns;
        strip.scores = scores + 2 * pair;
        int strips = strip.strips(), steps = strip.steps();
        if (!is_own) {
            strip.columns = 0;
        }
#pragma unroll
        for (uint32 distance = GROUP; distance < WARP_LANES; distance *= 2) {
            const uint32 other = lane_number() ^ distance;
            strips = max(strips, __shfl_sync(ALL_LANES, strips, other));
            steps = max(steps, __shfl_sync(ALL_LANES, steps, other));
        }
        for (int number = 0; number < strips; ++number) {
            strip.strip = number;
            if (number >= strip.strips()) {
                strip.columns = 0;
            }
            LaneRows<TwoNumbers> rows = strip.lane_rows(numbers);
            fill_strip<TwoNumbers, GROUP>(with, rows, strip, steps);
            __syncwarp();
        }
    }
}

// Compute the whole matrices of pairs of tiles.
//
// queries       uint8[], the codes of the queries
// reference     uint8[], those of the reference
// tiles         WholeTile[2 * count]
// count         the number of pairs
// costs         Costs[1]; no score of a path that matters is below -CORNER_OF_TWO
// directions    uint2[], room for the directions of all pairs
// edges         uint2[groups of the grid * max_columns], memory for a row of each group
// max_columns  one more than the columns of the widest tile
// scores        uint32[2 * count], receives the scores and CORNER_OF_TWO
//
// Grid: enough lanes for each pair, or fewer warps that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    fill_tile_pairs(const uint8* queries, const uint8* reference, const WholeTile* tiles,
                    uint64 count, const Costs* costs, uint2* directions, uint2* edges,
                    uint32 max_columns, uint32* scores) {
    fill_pairs<WARP_LANES>(queries, reference, tiles, count, costs, directions, edges,
                           max_columns, scores);
}

// Compute the whole matrices of pairs of small tiles, with SMALL_GROUP lanes for each. All else, also
// the launch, is as for `fill_tile_pairs`.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    fill_small_tile_pairs(const uint8* queries, const uint8* reference, const WholeTile* tiles,
                          uint64 count, const Costs* costs, uint2* directions, uint2* edges,
                          uint32 max_columns, uint32* scores) {
    fill_pairs<SMALL_GROUP>(queries, reference, tiles, count, costs, directions, edges,
                            max_columns, scores);
}

// Compute the whole matrices of pairs of tiles of middle size, with MIDDLE_GROUP lanes for each. All
// else, also the launch, is as for `fill_tile_pairs`.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    fill_middle_tile_pairs(const uint8* queries, const uint8* reference, const WholeTile* tiles,
                           uint64 count, const Costs* costs, uint2* directions, uint2* edges,
                           uint32 max_columns, uint32* scores) {
    fill_pairs<MIDDLE_GROUP>(queries, reference, tiles, count, costs, directions, edges,
                             max_columns, scores);
}

// Write the operations of the best path through each tile, from the end of its room backwards.
//
// tiles        WholeTile[count]
// count        the number of tiles, two for each pair
// group        the lanes that have filled a pair
// directions   uint2[], the directions of all pairs
// operations   uint32[], receives the operations, as BAM packs them
// counts       uint32[count], receives the number of operations of each tile; if there is no room
//              for all, only the last ones are written
//
// Grid: a warp for each tile, or fewer that take several in turn.
// Shared memory: a window of directions for each warp.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    trace_tile_pairs(const WholeTile* tiles, uint64 count, uint32 group, const uint2* directions,
                     uint32* operations, uint32* counts) {
    __shared__ uint2 windows[BLOCK_THREADS / WARP_LANES][WINDOW_WORDS];
    uint2* window = windows[threadIdx.x / WARP_LANES];
    for (uint64 item = grid_warp(); item < count; item += grid_warps()) {
        const WholeTile tile = tiles[item], mate = tiles[item ^ 1];
        const int columns = static_cast<int>(max(tile.reference_length, mate.reference_length));
        const int steps = columns + static_cast<int>(group) - 1;
        DirectionWindow<uint2> cached(directions + tile.directions_at, window, group);
        const auto bits = [&](int i, int j) {
            const uint32 row = static_cast<uint32>(i - 1);
            const uint32 lane = row / LANE_ROWS % group;
            const long long line =
                static_cast<long long>(row / (LANE_ROWS * group)) * steps + (j - 1) + lane;
            return TwoNumbers::bits_of(cached.at(line, lane), row % LANE_ROWS,
                                       static_cast<uint32>(item & 1));
        };
        const uint32 written =
            write_whole_path(static_cast<int>(tile.length),
                             static_cast<int>(tile.reference_length), bits,
                             operations + tile.operations_end, tile.max_operations);
        if (lane_number() == 0) {
            counts[item] = written;
        }
        __syncwarp();
    }
}
