// SSV, MSV and Viterbi with a group of lanes for each sequence, by the choices of CUDAMPF (H. Jiang,
// N. Ganesan, Y.-D. Yao, CUDAMPF: a multi-tiered parallel framework, 2016), each by a macro.
//
// FILTER         SSV, MSV or VITERBI
// SCORES         where the cells of a row lie: in REGISTERS, in SHARED memory, or in memory LOCAL to
//                a thread
// ROW_REGISTERS  the registers of a row, if they are compiled; 0 if they are known at run time
// CACHED         whether emissions and transitions are read from global memory through the
//                read-only cache, and not from shared memory
// GROUP_LANES    lanes for a sequence
//
// All numbers are integers of 16 bits. `byte_filters.cu` and `word_filter.cu` are what searches use.
#include "hmm/groups.cuh"

#define SSV 0
#define MSV 1
#define VITERBI 2

#define IN_REGISTERS 0
#define IN_SHARED 1
#define IN_LOCAL 2

constexpr uint32 GROUPS = WARP_LANES / GROUP_LANES;  // in a warp
constexpr uint32 STATES = FILTER == VITERBI ? 3 : 1;
[[maybe_unused]] constexpr uint32 MATCHES = 0, INSERTIONS = 1, DELETIONS = 2;

// What decides besides a profile's table.
struct FilterLimits {
    int entry;     // of MSV: the cost of the step into some node
    int bias;      // of MSV: the highest score of a match
    int floor;     // of Viterbi: below any new entry
    int overflow;  // of Viterbi: a higher match may exceed 16 bits with the next emission
};

static_assert(sizeof(FilterLimits) == FILTER_LIMITS_BYTES, "the host writes so much");

// The cells of this lane's nodes.
struct Cells {
#if SCORES == IN_REGISTERS
    uint32 values[STATES][ROW_REGISTERS];

    __device__ __forceinline__ uint32& at(uint32 state, uint32 number) {
        return values[state][number];
    }
#elif SCORES == IN_LOCAL
    uint32 values[STATES * LOCAL_REGISTERS];

    __device__ __forceinline__ uint32& at(uint32 state, uint32 number) {
        return values[state * LOCAL_REGISTERS + number];
    }
#else
    uint32* values;
    uint32 stride;  // from a state to the next

    __device__ __forceinline__ uint32& at(uint32 state, uint32 number) {
        return values[state * stride + WARP_LANES * number];
    }
#endif
};

// A profile as the lanes read it.
struct Model {
    const uint4* emissions;  // by code, four registers and lane
    const uint4* steps;      // of Viterbi, by register: a quad of each lane into matches, then from
    uint32 count;            // of registers

    __device__ __forceinline__ uint32 registers() const {
#if ROW_REGISTERS > 0
        return ROW_REGISTERS;
#else
        return count;
#endif
    }

    __device__ __forceinline__ static uint4 load(const uint4* place) {
#if CACHED
        return __ldg(place);
#else
        return *place;
#endif
    }

    __device__ __forceinline__ uint4 emission(uint32 code, uint32 quad) const {
        const uint32 quads = (registers() + 3) / 4;
        return load(emissions + (code * quads + quad) * GROUP_LANES + group_lane());
    }

    __device__ __forceinline__ uint4 into(uint32 at) const {
        return load(steps + 2 * GROUP_LANES * at + group_lane());
    }

    __device__ __forceinline__ uint4 from(uint32 at) const {
        return load(steps + (2 * at + 1) * GROUP_LANES + group_lane());
    }
};

#if SCORES == IN_REGISTERS
#define EACH_REGISTER _Pragma("unroll")
#elif ROW_REGISTERS > 0
#define EACH_REGISTER _Pragma("unroll 2")
#else
#define EACH_REGISTER _Pragma("unroll 1")
#endif

__device__ __forceinline__ uint32 part_of(const uint4& four, uint32 number) {
    return number < 2 ? (number == 0 ? four.x : four.y) : (number == 2 ? four.z : four.w);
}

// Set all cells.
__device__ __forceinline__ void fill(Cells& cells, const Model& model, uint32 value) {
    EACH_REGISTER
    for (uint32 at = 0; at < model.registers(); ++at) {
        for (uint32 state = 0; state < STATES; ++state) {
            cells.at(state, at) = value;
        }
    }
}

#if FILTER != VITERBI

// Let no cell be below a value.
__device__ __forceinline__ void raise(Cells& cells, const Model& model, uint32 value) {
    EACH_REGISTER
    for (uint32 at = 0; at < model.registers(); ++at) {
        cells.at(0, at) = larger_of(cells.at(0, at), value);
    }
}

// Go on by a residue; no cell falls below `least`. Return the larger ones of `best` and of the cells.
__device__ __forceinline__ uint32 advance(Cells& cells, const Model& model, uint32 code,
                                          uint32 least, uint32 best, const Neighbour& neighbour) {
    uint32 before = neighbour.before(cells.at(0, model.registers() - 1), least);
    EACH_REGISTER
    for (uint32 quad = 0; quad < (model.registers() + 3) / 4; ++quad) {
        const uint4 emissions = model.emission(code, quad);
#pragma unroll
        for (uint32 part = 0; part < 4; ++part) {
            const uint32 at = 4 * quad + part;
            if (ROW_REGISTERS % 4 == 0 || at < model.registers()) {
                const uint32 old = cells.at(0, at);
                const uint32 cell = larger_sum(before, part_of(emissions, part), least);
                cells.at(0, at) = cell;
                best = larger_of(best, cell);
                before = old;
            }
        }
    }
    return best;
}

#else

// Compute the deletions again, from what the lane before hands over, until none improves.
__device__ __forceinline__ void lengthen_deletions(Cells& cells, const Model& model, uint32 last,
                                                   uint32 floor, const Neighbour& neighbour) {
    const uint32 registers = model.registers();
    cells.at(DELETIONS, 0) = neighbour.before(last, floor);
    const uint4 first = model.from(0);
    const uint32 second = larger_sum(cells.at(DELETIONS, 0), first.w,
                                     larger_sum(cells.at(MATCHES, 0), first.x, floor));
    bool improves = registers == 1 || exceeds(second, cells.at(DELETIONS, registers > 1 ? 1 : 0));
    while (__any_sync(ALL_LANES, improves)) {
        uint32 deleted = cells.at(DELETIONS, 0);
        EACH_REGISTER
        for (uint32 at = 0; at < registers; ++at) {
            const uint4 from = model.from(at);
            cells.at(DELETIONS, at) = deleted;
            deleted = larger_sum(deleted, from.w,
                                 larger_sum(cells.at(MATCHES, at), from.x, floor));
        }
        improves = exceeds(deleted, last);
        last = deleted;
        cells.at(DELETIONS, 0) = neighbour.before(last, floor);
    }
}

// Go on by a residue; `begin` is the begin state. Return the best match.
__device__ __forceinline__ uint32 advance(Cells& cells, const Model& model, uint32 code,
                                          uint32 begin, uint32 floor,
                                          const Neighbour& neighbour) {
    const uint32 registers = model.registers();
    uint32 match = neighbour.before(cells.at(MATCHES, registers - 1), floor);
    uint32 insertion = neighbour.before(cells.at(INSERTIONS, registers - 1), floor);
    uint32 deletion = neighbour.before(cells.at(DELETIONS, registers - 1), floor);
    uint32 deleted = floor;
    uint32 best = floor;
    EACH_REGISTER
    for (uint32 quad = 0; quad < (registers + 3) / 4; ++quad) {
        const uint4 emissions = model.emission(code, quad);
#pragma unroll
        for (uint32 part = 0; part < 4; ++part) {
            const uint32 at = 4 * quad + part;
            if (ROW_REGISTERS % 4 == 0 || at < model.registers()) {
                const uint4 into = model.into(at), from = model.from(at);
                const uint32 old_match = cells.at(MATCHES, at);
                const uint32 old_insertion = cells.at(INSERTIONS, at);
                const uint32 old_deletion = cells.at(DELETIONS, at);
                uint32 sum = larger_sum(begin, into.x, floor);
                sum = larger_sum(match, into.y, sum);
                sum = larger_sum(insertion, into.z, sum);
                sum = larger_sum(deletion, into.w, sum);
                sum = larger_sum(sum, part_of(emissions, part), floor);
                cells.at(MATCHES, at) = sum;
                cells.at(INSERTIONS, at) = larger_sum(old_insertion, from.z,
                                                      larger_sum(old_match, from.y, floor));
                cells.at(DELETIONS, at) = deleted;
                deleted = larger_sum(deleted, from.w, larger_sum(sum, from.x, floor));
                best = larger_of(best, sum);
                match = old_match;
                insertion = old_insertion;
                deletion = old_deletion;
            }
        }
    }
    lengthen_deletions(cells, model, deleted, floor, neighbour);
    return best;
}

#endif

// Compare all sequences with a profile: find the highest cell of SSV (at most 255), the byte with
// which MSV leaves the profile, or the word with which Viterbi does.
//
// sequences        the proteins, the longest first
// sequence_count   how many there are
// table            uint4[table_quads], the profile: see `Model`
// table_quads      its size
// registers        of a row
// limits           FilterLimits, of the profile
// moves            uint32[], the cost of the steps beside the profile for each length; for Viterbi
//                  their words
// tickets          uint32, the sequences that have been taken: 0
// scores           int32[], receives what was found for each
//
// Grid: any number of blocks of ROW_THREADS threads. Shared memory: the table, unless it is cached,
// then the cells of each warp, if they lie there.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
filter_rows(Sequences sequences, uint64 sequence_count, const uint4* table,
            [[maybe_unused]] uint64 table_quads,
            uint64 registers, const FilterLimits* limits, const int* moves, uint32* tickets,
            int* scores) {
    const Neighbour neighbour;
    Model model;
    model.count = static_cast<uint32>(registers);
    [[maybe_unused]] uint4* free_memory = block_memory;
#if CACHED
    model.emissions = table;
    __syncthreads();
#else
    load_table(table, static_cast<uint32>(table_quads));
    model.emissions = block_memory;
    free_memory += table_quads;
#endif
    model.steps = model.emissions + TABLE_ROWS * ((model.registers() + 3) / 4) * GROUP_LANES;
    Cells cells;
#if SCORES == IN_SHARED
    cells.stride = WARP_LANES * model.registers();
    cells.values = reinterpret_cast<uint32*>(free_memory) +
                   threadIdx.x / WARP_LANES * STATES * cells.stride + lane_number();
#endif
    [[maybe_unused]] const FilterLimits limit = *limits;
    const uint32 count = static_cast<uint32>(sequence_count);
    for (;;) {
        uint32 first = lane_number() == 0 ? atomicAdd(tickets, GROUPS) : 0;
        first = from_lane(first, 0);
        if (first >= count) {
            return;
        }
        const uint32 sequence = first + lane_number() / GROUP_LANES;
        const bool is_there = sequence < count;
        Reader reader(sequences, is_there ? sequence : first, is_there);
        const uint32 words = word_count(sequences.lengths[first]);
        [[maybe_unused]] const int move = moves[sequences.lengths[is_there ? sequence : first]];
#if FILTER == SSV
        fill(cells, model, 0);
        uint32 best = 0;
        for (uint32 word = 0; word < words; ++word) {
            const uint2 now = reader.take(word);
#pragma unroll 1
            for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                best = advance(cells, model, code, 0, best, neighbour);
            }
            // Long before a sum of 16 bits overflows it is known that SSV cannot tell.
            if (__any_sync(ALL_LANES, exceeds(best, in_both(SSV_ENOUGH)))) {
                if (exceeds(best, in_both(SSV_ENOUGH))) {
                    fill(cells, model, 0);
                    best = in_both(255);
                }
            }
        }
        const int found = min(static_cast<int>(largest_of_group(best)), 255);
#elif FILTER == MSV
        const int steps = move + limit.entry;
        int left = static_cast<int>(BYTE_BASE);
        uint32 begin = in_both(left - steps);
        fill(cells, model, begin);
        uint32 best = begin;
        bool overflows = false;
        uint32 top = in_both(left + static_cast<int>(BYTE_LEAVE));
        for (uint32 word = 0; word < words; ++word) {
            const uint2 now = reader.take(word);
#pragma unroll 1
            for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                const uint32 row = advance(cells, model, code, begin, begin, neighbour);
                best = larger_of(best, row);
                if (__any_sync(ALL_LANES, exceeds(row, top))) {
                    const int highest = static_cast<int>(largest_of_group(row));
                    overflows = overflows || highest + limit.bias >= 255;
                    left = max(left, highest - static_cast<int>(BYTE_LEAVE));
                    if (overflows) {
                        left = static_cast<int>(BYTE_BASE);
                        fill(cells, model, in_both(left - steps));
                    }
                    top = in_both(left + static_cast<int>(BYTE_LEAVE));
                    begin = in_both(left - steps);
                    raise(cells, model, begin);
                }
            }
        }
        const int highest = static_cast<int>(largest_of_group(best));
        const int found = overflows ? static_cast<int>(MSV_OVERFLOW)
                                    : highest - static_cast<int>(BYTE_LEAVE);
#else
        const uint32 floor = in_both(limit.floor);
        fill(cells, model, floor);
        uint32 best = floor;
        uint32 begin = in_both(static_cast<int>(WORD_BASE) + move);
        uint32 top = in_both(static_cast<int>(WORD_BASE + WORD_LEAVE));
        bool overflows = false;
        for (uint32 word = 0; word < words; ++word) {
            const uint2 now = reader.take(word);
#pragma unroll 1
            for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                const uint32 row = advance(cells, model, code, begin, floor, neighbour);
                best = larger_of(best, row);
                if (__any_sync(ALL_LANES, exceeds(row, top))) {
                    const int highest = static_cast<int>(largest_of_group(row));
                    if (highest > limit.overflow) {
                        overflows = true;
                        fill(cells, model, floor);
                    } else if (highest > static_cast<int>(low_half(top))) {
                        top = in_both(highest);
                        begin = in_both(highest - static_cast<int>(WORD_LEAVE) + move);
                    }
                }
            }
        }
        const int highest = static_cast<int>(largest_of_group(best));
        const int found = overflows ? static_cast<int>(WORD_OVERFLOW)
                                    : highest - static_cast<int>(WORD_LEAVE);
#endif
        if (group_lane() == 0 && is_there) {
            scores[sequence] = found;
        }
    }
}
