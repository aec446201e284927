// Scores tiles in a narrow band, two of them in each thread, in 16 bits each.
#pragma once

#include "common/grid.cuh"
#include "viterbi/numbers.cuh"
#include "viterbi/tiles.cuh"

constexpr int HALF_BAND = NARROW_DIAGONALS / 2;
static_assert(NARROW_DIAGONALS == 16, "the diagonals of two tiles have a bit each in a word");

// The bases of a tile for the next 32 rows.
struct RowBases {
    Window read;
    Window near, far;  // of the reference: from the lowest diagonal of the first row on

    // Return which diagonals of a row match, from the lowest on.
    __device__ __forceinline__ uint32 equal(uint32 row) const {
        const uint32 low = __funnelshift_r(near.low, far.low, row) ^ spread(read.low, row);
        const uint32 high = __funnelshift_r(near.high, far.high, row) ^ spread(read.high, row);
        const uint32 breaks = __funnelshift_r(near.breaks, far.breaks, row);
        return ~(low | high | breaks | spread(read.breaks, row));
    }

    // Return what bases score that do not match.
    __device__ __forceinline__ int penalty(uint32 row, const Costs& costs) const {
        return read.breaks >> row & 1 ? -costs.unknown : -costs.mismatch;
    }

    // Return a bit in every place.
    static __device__ __forceinline__ uint32 spread(uint32 bits, uint32 row) {
        return 0u - (bits >> row & 1);
    }
};

// Load the bases of 32 rows. Rows after the last of a tile match nothing.
__device__ __forceinline__ RowBases load_rows(const TileView& view, int row) {
    const int length = static_cast<int>(view.tile.length);
    if (row >= length) {
        return {{0, 0, 0}, {0, 0, ~0u}, {0, 0, ~0u}};
    }
    RowBases bases = {view.read_window(row), view.reference_window(row - HALF_BAND),
                      view.reference_window(row - HALF_BAND + 32)};
    if (length - row < 32) {
        bases.read.breaks |= ~0u << (length - row);
    }
    return bases;
}

// Return whether a tile can be scored in the narrow band: an alignment may go to each of its
// diagonals, and the read may end there.
__device__ __forceinline__ bool is_narrow(const Tile& tile, const Costs& costs) {
    return tile.length > 0 && tile.reference_length >= tile.length + HALF_BAND &&
           costs.max_gap >= HALF_BAND;
}

// Write the result of a tile, unless a longer gap could be better.
__device__ __forceinline__ void write_score(const Tile& tile, const Costs& costs, int score,
                                            int* result, uint8* is_open) {
    const int length = static_cast<int>(tile.length);
    const int needed = max(score, tile.min_score);
    *is_open = !is_narrow(tile, costs) || longest_deletion(costs, length, needed) >= HALF_BAND ||
               longest_insertion(costs, length, needed) > HALF_BAND;
    *result = score < tile.min_score ? CANNOT_REACH : score;
}

// Score tiles in a narrow band.
//
// reads           uint4[], the bit planes of the reads
// reversed_reads  uint4[], those of their reverse complements
// reference       uint4[], those of the reference
// tiles           Tile[count]
// count           the number of tiles
// costs           Costs[1]; the longest tile scores less than 2^14
// scores          int[count], receives the best score of each tile in the band, with the bonus, or
//                 CANNOT_REACH
// open            uint8[count], receives 1 if an alignment outside of the band may be better
//
// Grid: one thread for each two tiles, or fewer threads that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    score_tiles(const uint4* reads, const uint4* reversed_reads, const uint4* reference,
                const Tile* tiles, uint64 count, const Costs* costs, int* scores, uint8* open) {
    const Costs numbers = *costs;
    const PairNumbers with(numbers);
    const uint32 never = in_both(NEVER_OF_PAIR);
    const uint32 match = in_both(numbers.match);
    for (uint64 item = grid_thread(); item < (count + 1) / 2; item += grid_threads()) {
        const uint64 first = 2 * item;
        const uint64 second = first + 1 < count ? first + 1 : first;
        const TileView one = view_of(tiles[first], reads, reversed_reads, reference);
        const TileView two = view_of(tiles[second], reads, reversed_reads, reference);
        const int one_rows = is_narrow(one.tile, numbers) ? one.tile.length : 0;
        const int two_rows = is_narrow(two.tile, numbers) ? two.tile.length : 0;
        // What leaves the cells of the row before for a match and for an insertion.
        uint32 to_match[NARROW_DIAGONALS], to_insertion[NARROW_DIAGONALS];
        uint32 no_bits = 0;
        uint32 to_deletion = never;
#pragma unroll
        for (int k = 0; k < static_cast<int>(NARROW_DIAGONALS); ++k) {
            const Cell<uint32> cell = {k == HALF_BAND ? 0 : never, never, to_deletion};
            const Cell<uint32> left = recurrence(with, cell, no_bits);
            to_match[k] = left.match;
            to_insertion[k] = left.insertion;
            to_deletion = left.deletion;
        }
        uint32 best = 0, end = never;
        RowBases one_bases = {}, two_bases = {};
        for (int row = 0; row < max(one_rows, two_rows); ++row) {
            const uint32 place = row % 32;
            if (place == 0) {
                one_bases = load_rows(one, one_rows ? row : static_cast<int>(one.tile.length));
                two_bases = load_rows(two, two_rows ? row : static_cast<int>(two.tile.length));
            }
            const uint32 equal =
                (one_bases.equal(place) & 0xFFFFu) | two_bases.equal(place) << 16;
            const uint32 penalty =
                (static_cast<uint32>(one_bases.penalty(place, numbers)) & 0xFFFFu) |
                static_cast<uint32>(two_bases.penalty(place, numbers)) << 16;
            uint32 best_of_row = never;
            to_deletion = never;
#pragma unroll
            for (int k = 0; k < static_cast<int>(NARROW_DIAGONALS); ++k) {
                const uint32 matches = (equal >> k & 0x00010001u) * 0xFFFFu;
                const uint32 emission = (matches & match) | (~matches & penalty);
                const bool is_last = k + 1 == static_cast<int>(NARROW_DIAGONALS);
                const Cell<uint32> cell = {larger_sum(to_match[k], emission, never),
                                           is_last ? never : to_insertion[is_last ? k : k + 1],
                                           to_deletion};
                const Cell<uint32> left = recurrence(with, cell, no_bits);
                to_match[k] = left.match;
                to_insertion[k] = left.insertion;
                to_deletion = left.deletion;
                best_of_row = larger_of(best_of_row, cell.match);
            }
            best = larger_of(best, best_of_row);
            const uint32 ends = (row + 1 == one_rows ? 0xFFFFu : 0u) |
                                (row + 1 == two_rows ? 0xFFFF0000u : 0u);
            end = (best_of_row & ends) | (end & ~ends);
        }
        const int bonus = numbers.end_bonus;
        write_score(one.tile, numbers, max(low_half(best), low_half(end) + bonus),
                    scores + first, open + first);
        write_score(two.tile, numbers, max(high_half(best), high_half(end) + bonus),
                    scores + second, open + second);
    }
}
