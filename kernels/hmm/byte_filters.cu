// SSV and MSV: the best diagonals of profiles in proteins, in thirds of a bit.
//
// A group of lanes compares one sequence, a row of the profile for each residue. Cells are halves:
// sums are whole numbers, which are exact. SSV adds them from 0; MSV's cells are counted from the
// cost of the begin state, below which none falls, so that its step is SSV's.
#include "common/halves.cuh"
#include "hmm/rows.cuh"

#if IN_BYTES

// The paper's fourth tier: four cells a register, with HMMER's bytes. A cell is what a diagonal has
// above 0; a sum that does not fit a byte stays at 255 less its cost, and SSV's result is the same:
// it cannot tell from cells of 127 - bias.
struct Numbers {
    uint32 bias;  // in each byte

    // After the rows of a table, where MSV's best scores would be, there is the bias.
    __device__ __forceinline__ explicit Numbers(const Table& table)
        : bias(read_table(reinterpret_cast<const uint32*>(table.row(TABLE_ROWS)))) {}

    __device__ __forceinline__ uint32 sum(uint32 cells, uint32 costs) const {
        return __vsubus4(__vaddus4(cells, bias), costs);
    }

    __device__ __forceinline__ uint32 larger(uint32 cells, uint32 others) const {
        return __vmaxu4(cells, others);
    }

    __device__ __forceinline__ uint32 largest(uint32 one, uint32 other, uint32 third) const {
        return __vmaxu4(__vmaxu4(one, other), third);
    }

    __device__ __forceinline__ uint32 best_of_group(uint32 cells) const {
        const uint32 odd = cells >> 8 & 0x00FF00FFu;
        return largest_of_group(larger_of(cells & 0x00FF00FFu, odd));
    }
};

#else

struct Numbers {
    __device__ __forceinline__ explicit Numbers(const Table&) {}

    __device__ __forceinline__ uint32 sum(uint32 cells, uint32 scores) const {
        return sum_from_zero(cells, scores);
    }

    __device__ __forceinline__ uint32 larger(uint32 cells, uint32 others) const {
        return larger_of(cells, others);
    }

    __device__ __forceinline__ uint32 largest(uint32 one, uint32 other, uint32 third) const {
        return largest_of(one, other, third);
    }

    __device__ __forceinline__ uint32 best_of_group(uint32 cells) const {
        return whole_of(largest_of_group(cells));
    }
};

#endif

// The cells of this lane's nodes.
struct Row {
    const Table& table;
    const Numbers numbers;
    Cells<1> cells;

    // Begin with cells of 0.
    __device__ __forceinline__ Row(const Table& of, uint64 table_quads)
        : table(of), numbers(of), cells(of, table_quads) {
        EACH_REGISTER
        for (uint32 place = 0; place < table.registers(); ++place) {
            cells.at(0, place) = 0;
        }
    }

    // Go on by a residue. Return the larger ones of `best` and of the new cells.
    __device__ __forceinline__ uint32 advance(uint32 code, const Neighbour& neighbour,
                                              uint32 best) {
        const uint32 count = table.registers();
        const uint32 first = neighbour.before(cells.at(0, count - 1), 0);
        Emissions emissions(table, code);
        EACH_REGISTER
        for (uint32 place = count - 1; place > 0; --place) {
            cells.at(0, place) = numbers.sum(cells.at(0, place - 1), emissions.at(place));
        }
        cells.at(0, 0) = numbers.sum(first, emissions.at(0));
        EACH_REGISTER
        for (uint32 place = 0; place + 1 < count; place += 2) {
            best = numbers.largest(best, cells.at(0, place), cells.at(0, place + 1));
        }
        if (count % 2 == 1) {
            best = numbers.larger(best, cells.at(0, count - 1));
        }
        return best;
    }

    // Let all cells fall, but none below 0; `less` is a negative half.
    __device__ __forceinline__ void lower(uint32 less) {
        EACH_REGISTER
        for (uint32 place = 0; place < table.registers(); ++place) {
            cells.at(0, place) = sum_from_zero(cells.at(0, place), in_both(less));
        }
    }
};

// Compare all sequences with profiles, and list those whose best diagonal has at least what it
// takes for the sequence's length.
//
// sequences        the proteins, the longest first
// sequence_count   how many there are
// tables           uint4[profiles * table_quads], the emissions of each profile as `rows.cuh`
//                  reads them, in halves
// table_quads      of one profile
// least            uint8[profiles * lengths], the least cell that is listed, by profile and length
// lengths          the row length of `least`
// profiles         how many there are
// first_profile    what is added to their numbers in the list
// item_sequences   the sequences of an item
// tickets          uint32, the items that have been taken: 0
// found            uint64[], the list in any order: profile << 40 | sequence << 8 | cell (at most
//                  255)
// found_count      uint32, its length so far
//
// Grid: any number of blocks of ROW_THREADS threads. Shared memory: a table.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
find_cells(Sequences sequences, uint64 sequence_count, const uint4* tables, uint64 table_quads,
           const uint8* least, uint64 lengths, uint64 profiles, uint64 first_profile,
           uint64 item_sequences, uint32* tickets, uint64* found, uint32* found_count) {
    const Neighbour neighbour;
    const uint32 count = static_cast<uint32>(sequence_count);
    const uint32 size = static_cast<uint32>(item_sequences);
    const uint32 items = (count + size - 1) / size;
    const uint32 stride = blockDim.x / WARP_LANES * GROUPS;
    uint32 loaded = ~0u;
    Table table;
    for (;;) {
        const uint32 ticket = take_ticket(tickets);
        const uint32 profile = ticket / items;
        if (profile >= profiles) {
            return;
        }
        if (profile != loaded) {
            table.load(tables + profile * table_quads, static_cast<uint32>(table_quads),
                       TABLE_ROWS);
            loaded = profile;
        }
        const uint32 begin = ticket % items * size;
        const uint32 end = min(begin + size, count);
        for (uint32 first = begin + threadIdx.x / WARP_LANES * GROUPS; first < end;
             first += stride) {
            const uint32 sequence = first + lane_number() / GROUP_LANES;
            Reader reader(sequences, sequence, sequence < end);
            // The first group's sequence is the longest: the others go on with padding.
            const uint32 words = word_count(sequences.lengths[first]);
            Row row(table, table_quads);
            uint32 best = 0;
            for (uint32 word = 0; word < words; ++word) {
                const uint2 now = reader.take(word);
                EACH_RESIDUE
                for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                    best = row.advance(code_at(now, place), neighbour, best);
                }
            }
            const uint32 cell = min(row.numbers.best_of_group(best), 255u);
            if (group_lane() == 0 && sequence < end &&
                cell >= least[profile * lengths + sequences.lengths[sequence]]) {
                found[atomicAdd(found_count, 1u)] =
                    (first_profile + profile) << 40 | static_cast<uint64>(sequence) << 8 | cell;
            }
        }
    }
}

#if !IN_BYTES

// What MSV needs of a profile besides its table.
struct MsvCosts {
    uint32 entry;  // of the step into some node
    uint32 bias;   // the highest score of a match
};

// Return the highest of the scores that a sequence's residues have at their best nodes, or 0. The
// scores are int16 by code after the last row of the table.
__device__ __forceinline__ int best_match(const Reader& reader, const Table& table) {
    const short* highest = reinterpret_cast<const short*>(table.row(TABLE_ROWS));
    int best = -(1 << 15);
    for (uint32 word = group_lane(); word < reader.count; word += GROUP_LANES) {
        const uint2 now = reader.words[word];
        for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
            best = max(best, static_cast<int>(read_table(highest + code_at(now, place))));
        }
    }
    return best;
}

// Compare pairs of sequences and profiles by MSV: find the byte with which the best pass leaves the
// profile.
//
// sequences     the proteins
// pairs         uint32[], the sequence of each pair, those of an item from the longest on
// items         Item[item_count], pairs with a profile of this launch
// item_count    how many there are
// tables        as in `find_cells`; after the rows of each profile the highest score of each code
// table_quads   of one profile
// costs         MsvCosts[], of each profile
// moves         uint32[], the cost of the steps outside the profile for each length
// tickets       uint32, the items that have been taken: 0
// scores        uint32[], receives the byte of each pair, or MSV_OVERFLOW
//
// Grid: any number of blocks of ROW_THREADS threads. Shared memory: a table.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, 1)
score_passes(Sequences sequences, const uint32* pairs, const Item* items, uint64 item_count,
             const uint4* tables, uint64 table_quads, const MsvCosts* costs, const uint32* moves,
             uint32* tickets, uint32* scores) {
    const Neighbour neighbour;
    const uint32 stride = blockDim.x / WARP_LANES * GROUPS;
    uint32 loaded = ~0u;
    Table table;
    for (;;) {
        const uint32 ticket = take_ticket(tickets);
        if (ticket >= item_count) {
            return;
        }
        const Item item = items[ticket];
        if (item.profile != loaded) {
            table.load(tables + item.profile * table_quads, static_cast<uint32>(table_quads),
                       TABLE_ROWS);
            loaded = item.profile;
        }
        const int bias = static_cast<int>(costs[item.profile].bias);
        for (uint32 first = item.first + threadIdx.x / WARP_LANES * GROUPS; first < item.last;
             first += stride) {
            const uint32 pair = first + lane_number() / GROUP_LANES;
            const bool is_there = pair < item.last;
            const uint32 sequence = pairs[is_there ? pair : first];
            Reader reader(sequences, sequence, is_there);
            const uint32 length = sequences.lengths[sequence];
            const int steps = static_cast<int>(moves[length] + costs[item.profile].entry);
            const uint32 words = word_count(sequences.lengths[pairs[first]]);
            Row row(table, table_quads);
            uint32 best = 0;
            // The byte of a cell of 0, and the best byte that has left.
            int begin = static_cast<int>(BYTE_BASE) - steps;
            int left = 0;
            // Above it another pass begins higher. It follows from no cell, as the begin state
            // follows from the best byte that has left.
            const uint32 limit = in_both(static_cast<int>(half_of(steps + BYTE_LEAVE)));
            for (uint32 word = 0; word < words; ++word) {
                const uint2 now = reader.take(word);
#pragma unroll 1
                for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                    const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                    best = row.advance(code, neighbour, best);
                    if (__any_sync(ALL_LANES, exceeds(best, limit))) {
                        const int top = static_cast<int>(whole_of(largest_of_group(best)));
                        const int higher = top - steps - static_cast<int>(BYTE_LEAVE);
                        // Other groups of the warp are here as well.
                        if (higher > 0) {
                            left = max(left, begin + top + bias >= 255
                                                 ? static_cast<int>(MSV_OVERFLOW)
                                                 : begin + top - static_cast<int>(BYTE_LEAVE));
                            begin += higher;
                            best = 0;
                        }
                        // A byte does not rise that far; an overflowed byte stays so.
                        row.lower(half_of(min(max(higher, 0), 2047)) | 0x8000u);
                    }
                }
            }
            const int top = static_cast<int>(whole_of(largest_of_group(best)));
            if (left == 0) {
                left = begin + top - static_cast<int>(BYTE_LEAVE);
            }
            // No cell above 0: the best one is a single match, below the begin state.
            const bool is_below = top == 0 && begin == static_cast<int>(BYTE_BASE) - steps;
            if (__any_sync(ALL_LANES, is_below)) {
                int match = best_match(reader, table);
#pragma unroll
                for (uint32 distance = GROUP_LANES / 2; distance > 0; distance /= 2) {
                    match = max(match, __shfl_xor_sync(ALL_LANES, match, distance));
                }
                if (is_below) {
                    left = begin + match - static_cast<int>(BYTE_LEAVE);
                }
            }
            if (group_lane() == 0 && is_there) {
                scores[pair] = static_cast<uint32>(max(left, 0));
            }
        }
    }
}

#endif
