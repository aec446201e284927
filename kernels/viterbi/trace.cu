// Aligns tiles in a band that grows until no longer gap could be better, and writes the paths.
#pragma once

#include "common/grid.cuh"
#include "viterbi/numbers.cuh"
#include "viterbi/tiles.cuh"

constexpr int CELLS_OF_WORD = 32 / DIRECTION_BITS;

// An end of an alignment; of ends with one score, the preferred one is kept.
struct End {
    int score;
    int i, j;  // the bases of the read, and of the reference

    // Take another end if it has a higher score, lies nearer to the diagonal of the corner, on the
    // side of deletions, or is shorter: the first of these in which they differ.
    __device__ __forceinline__ void offer(int other_score, int other_i, int other_j) {
        const int shift = j - i, other_shift = other_j - other_i;
        const int distance = shift < 0 ? -shift : shift;
        const int other_distance = other_shift < 0 ? -other_shift : other_shift;
        bool is_better = other_i < i;
        if (other_score != score) {
            is_better = other_score > score;
        } else if (other_distance != distance) {
            is_better = other_distance < distance;
        } else if (other_shift != shift) {
            is_better = other_shift > shift;
        }
        if (is_better) {
            *this = {other_score, other_i, other_j};
        }
    }
};

// The memory of a thread. Numbers of the same place of all threads lie beside each other.
struct ThreadMemory {
    int* scores;         // 2 of each diagonal
    uint32* directions;  // DIRECTION_BITS of each cell, row by row; null if they are not wanted
    uint64 threads;      // the numbers from one place to the next

    __device__ __forceinline__ int& score(int place) const {
        return scores[place * threads];
    }
    __device__ __forceinline__ uint32& direction(int place) const {
        return directions[place * threads];
    }
};

// Return the words of directions of a row.
__device__ __forceinline__ int words_of_row(int band) {
    return (2 * band + CELLS_OF_WORD) / CELLS_OF_WORD;
}

// Compute the cells of a tile up to `band` diagonals from that of the corner, row by row.
__device__ inline End best_end(const TileView& view, const Costs& costs, int band,
                               const ThreadMemory& memory) {
    const SingleNumbers with(costs);
    const int length = static_cast<int>(view.tile.length);
    const int reference_length = static_cast<int>(view.tile.reference_length);
    const int width = 2 * band + 1;
    End best = {0, 0, 0};
    End end = {length == 0 ? costs.end_bonus : NEVER, length, 0};
    Window bases = {};
    for (int i = 0; i <= length; ++i) {
        if (i > 0 && (i - 1) % 32 == 0) {
            bases = view.read_window(i - 1);
        }
        const uint32 place = static_cast<uint32>(i - 1) % 32;
        const uint32 low = bases.low >> place & 1, high = bases.high >> place & 1;
        const bool is_break = bases.breaks >> place & 1;
        Window others = {};
        int to_deletion = NEVER;
        uint32 word = 0;
        for (int k = 0; k < width; ++k) {
            const int j = i + k - band;
            Cell<int> cell = {NEVER, NEVER, NEVER};
            if (j >= 0 && j <= reference_length) {
                if (i == 0) {
                    cell.match = j == 0 ? 0 : NEVER;
                } else {
                    if (j == 1 || (j > 0 && (k == 0 || (j - 1) % 32 == 0))) {
                        others = view.reference_window((j - 1) & ~31);
                    }
                    if (j > 0) {
                        const uint32 other = static_cast<uint32>(j - 1) % 32;
                        const bool equal = (others.low >> other & 1) == low &&
                                           (others.high >> other & 1) == high &&
                                           !(others.breaks >> other & 1);
                        const int penalty = is_break ? costs.unknown : costs.mismatch;
                        cell.match = memory.score(2 * k) +
                                     (equal && !is_break ? costs.match : -penalty);
                    }
                    cell.insertion = k + 1 < width ? memory.score(2 * k + 3) : NEVER;
                }
                cell.deletion = to_deletion;
            }
            uint32 bits = 0;
            const Cell<int> left = recurrence(with, cell, bits);
            memory.score(2 * k) = max(left.match, NEVER);
            memory.score(2 * k + 1) = max(left.insertion, NEVER);
            to_deletion = max(left.deletion, NEVER);
            word |= bits << DIRECTION_BITS * (k % CELLS_OF_WORD);
            if (memory.directions && (k % CELLS_OF_WORD == CELLS_OF_WORD - 1 || k + 1 == width)) {
                memory.direction(i * words_of_row(band) + k / CELLS_OF_WORD) = word;
                word = 0;
            }
            if (cell.match >= best.score) {
                best.offer(cell.match, i, j);
            }
            if (i == length && i > 0 && cell.match + costs.end_bonus >= end.score) {
                end.offer(cell.match + costs.end_bonus, i, j);
            }
        }
    }
    return end.score >= best.score ? end : best;
}

// Write the operations from the corner to the end; return how many there are. Those beyond `most`
// are left out.
__device__ inline uint32 write_path(const End& end, int band, const ThreadMemory& memory,
                                    uint32* operations, uint32 most) {
    constexpr uint32 SOURCES[STATES] = {INTO_MATCH, INTO_INSERTION, INTO_DELETION};
    uint32 count = 0;
    // The first turn counts the operations, the second writes them in order.
    for (uint32 turn = 0; turn < 2; ++turn) {
        int i = end.i, j = end.j;
        uint32 state = 0, before = STATES, number = 0, length = 0;
        while (i > 0 || j > 0) {
            if (state != before) {
                ++number;
                length = 0;
            }
            ++length;
            if (turn && count - number < most) {
                operations[count - number] = length << 4 | (OPERATIONS >> 4 * state & 15);
            }
            i -= READ_BASES >> state & 1;
            j -= REFERENCE_BASES >> state & 1;
            const int k = j - i + band;
            const uint32 word = memory.direction(i * words_of_row(band) + k / CELLS_OF_WORD);
            const uint32 bits =
                word >> DIRECTION_BITS * (k % CELLS_OF_WORD) & ((1u << DIRECTION_BITS) - 1);
            before = state;
            state = SOURCES[state] >> STATE_BITS * bits & ((1u << STATE_BITS) - 1);
        }
        count = number;
    }
    return count;
}

// Align tiles in as wide a band as their scores need.
//
// reads            uint4[], the bit planes of the reads
// reversed_reads   uint4[], those of their reverse complements
// reference        uint4[], those of the reference
// tiles            Tile[]
// chosen           uint32[count], the numbers of the tiles to align
// count            how many they are
// costs            Costs[1]
// first_band       the diagonals on each side of the corner's that are computed at first; it
//                  changes the time only
// scratch          int[2 * (2 * max_gap + 1) * threads], memory for scores
// directions       uint32[(max_bases + 1) * ceil((2 * max_gap + 1) * DIRECTION_BITS / 32) *
//                  threads], memory for the longest tile; null if only scores are wanted
// ends             int4[count], receives the score or CANNOT_REACH, the bases of the read and of
//                  the reference, and the number of operations
// operations       uint32[count * max_operations], receives the operations of each tile from its
//                  corner outwards, as BAM packs them; not used without directions
// max_operations  how many are kept of each tile
//
// Grid: one thread for each tile, or fewer threads that take several in turn; `threads` is the
// number of all. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    align_tiles(const uint4* reads, const uint4* reversed_reads, const uint4* reference,
                const Tile* tiles, const uint32* chosen, uint64 count, const Costs* costs,
                uint32 first_band, int* scratch, uint32* directions, uint4* ends,
                uint32* operations, uint32 max_operations) {
    const Costs numbers = *costs;
    const uint64 thread = grid_thread();
    const ThreadMemory memory = {scratch + thread, directions ? directions + thread : nullptr,
                                 grid_threads()};
    for (uint64 item = thread; item < count; item += grid_threads()) {
        const TileView view = view_of(tiles[chosen[item]], reads, reversed_reads, reference);
        const int length = static_cast<int>(view.tile.length);
        int band = min(static_cast<int>(first_band), numbers.max_gap);
        End end = {};
        for (;;) {
            end = best_end(view, numbers, band, memory);
            const int needed = max(end.score, view.tile.min_score);
            const int wider = max(longest_insertion(numbers, length, needed),
                                  longest_deletion(numbers, length, needed));
            if (wider <= band) {
                break;
            }
            band = wider;
        }
        uint32 written = 0;
        if (end.score < view.tile.min_score) {
            end = {CANNOT_REACH, 0, 0};
        } else if (directions) {
            written = write_path(end, band, memory, operations + item * max_operations,
                                 max_operations);
        }
        ends[item] = {static_cast<uint32>(end.score), static_cast<uint32>(end.i),
                      static_cast<uint32>(end.j), written};
    }
}
