// The Viterbi filter: the best paths of profiles in proteins, in 1/500 bit.
//
// A warp compares a sequence, with all states of a row in registers. No cell falls below a floor
// that is lower than any new entry into the profile, so sums of 16 bits never overflow downwards.
#include "hmm/rows.cuh"

// The transitions of a register's nodes, as they lie in the table: two quads for each lane.
struct Steps {
    uint4 into;  // a match: from the begin state, the last match, insertion and deletion
    uint4 from;  // match to deletion, match to insertion, insertion to itself, deletion to deletion
};

// Where a lane finds its transitions: in registers, or in the block's memory if there are many.
struct Transitions {
#if KEEPS_STEPS
    Steps steps[ROW_REGISTERS];
#else
    const uint4* quads;
#endif

    __device__ __forceinline__ static const uint4* place() {
        return reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(block_memory) +
                                              TABLE_ROWS * ROW_BYTES) +
               lane_number();
    }

    __device__ __forceinline__ void load() {
#if KEEPS_STEPS
#pragma unroll
        for (uint32 place_in_row = 0; place_in_row < ROW_REGISTERS; ++place_in_row) {
            steps[place_in_row].into = place()[2 * WARP_LANES * place_in_row];
            steps[place_in_row].from = place()[2 * WARP_LANES * place_in_row + WARP_LANES];
        }
#else
        quads = place();
#endif
    }

    __device__ __forceinline__ Steps of(uint32 at) const {
#if KEEPS_STEPS
        return steps[at];
#else
        return {quads[2 * WARP_LANES * at], quads[2 * WARP_LANES * at + WARP_LANES]};
#endif
    }

    __device__ __forceinline__ uint32 deletion(uint32 at) const {
#if KEEPS_STEPS
        return steps[at].from.w;
#else
        return reinterpret_cast<const uint32*>(quads + 2 * WARP_LANES * at + WARP_LANES)[3];
#endif
    }
};

// A row: the states of this lane's nodes, and the least value of each.
struct States {
    uint32 matches[ROW_REGISTERS];
    uint32 insertions[ROW_REGISTERS];
    uint32 deletions[ROW_REGISTERS];
    uint32 floor;

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (uint32 at = 0; at < ROW_REGISTERS; ++at) {
            matches[at] = insertions[at] = deletions[at] = floor;
        }
    }

    // Compute the match and the insertion of a register from the states before its nodes. Return
    // what a deletion of the next node has from the match.
    __device__ __forceinline__ uint32 advance_node(uint32 at, const Steps& steps, uint32 begin,
                                                   uint32 match, uint32 insertion,
                                                   uint32 deletion, uint32 emission) {
        uint32 best = larger_sum(begin, steps.into.x, floor);
        best = larger_sum(match, steps.into.y, best);
        best = larger_sum(insertion, steps.into.z, best);
        best = larger_sum(deletion, steps.into.w, best);
        insertions[at] = larger_sum(insertions[at], steps.from.z,
                                    larger_sum(matches[at], steps.from.y, floor));
        matches[at] = larger_sum(best, emission, floor);
        return larger_sum(matches[at], steps.from.x, floor);
    }

    // Go on by a residue; `begin` is the begin state. Return the best match.
    __device__ __forceinline__ uint32 advance(uint32 code, uint32 begin,
                                              const Transitions& transitions,
                                              const Neighbour& neighbour) {
        constexpr uint32 LAST = ROW_REGISTERS - 1;
        uint32 emissions[ROW_REGISTERS], opened[ROW_REGISTERS];
        const uint32 match = neighbour.before(matches[LAST], floor);
        const uint32 insertion = neighbour.before(insertions[LAST], floor);
        const uint32 deletion = neighbour.before(deletions[LAST], floor);
        load_emissions(emissions, code);
        uint32 best = floor;
#pragma unroll
        for (uint32 at = LAST; at > 0; --at) {
            opened[at] = advance_node(at, transitions.of(at), begin, matches[at - 1],
                                      insertions[at - 1], deletions[at - 1], emissions[at]);
            best = larger_of(best, matches[at]);
        }
        opened[0] = advance_node(0, transitions.of(0), begin, match, insertion, deletion,
                                 emissions[0]);
        best = larger_of(best, matches[0]);
        // No node emits a mark, and no sum of 16 bits could say so: the lowest would wrap around.
        if (code >= FIRST_MARK || code == GAP_CODE) {
            best = floor;
#pragma unroll
            for (uint32 at = 0; at < ROW_REGISTERS; ++at) {
                matches[at] = opened[at] = floor;
            }
        }
        delete_nodes(opened, transitions, neighbour);
        return best;
    }

    // Compute the deletions that follow from the matches of the row.
    __device__ __forceinline__ void delete_nodes(const uint32 (&opened)[ROW_REGISTERS],
                                                 const Transitions& transitions,
                                                 const Neighbour& neighbour) {
        uint32 last = floor;
#pragma unroll
        for (uint32 at = 0; at < ROW_REGISTERS; ++at) {
            deletions[at] = last;
            last = larger_sum(last, transitions.deletion(at), opened[at]);
        }
        deletions[0] = neighbour.before(last, floor);
        // Most deletions end in the half-lane in which they begin; else walk on until none improves.
        const uint32 second = larger_sum(deletions[0], transitions.deletion(0), opened[0]);
        bool improves = ROW_REGISTERS == 1 || exceeds(second, deletions[1 % ROW_REGISTERS]);
        while (__any_sync(ALL_LANES, improves)) {
#pragma unroll
            for (uint32 at = 0; at + 1 < ROW_REGISTERS; ++at) {
                deletions[at + 1] =
                    larger_sum(deletions[at], transitions.deletion(at), opened[at]);
            }
            const uint32 further =
                larger_sum(deletions[ROW_REGISTERS - 1],
                           transitions.deletion(ROW_REGISTERS - 1), opened[ROW_REGISTERS - 1]);
            improves = exceeds(further, last);
            last = further;
            deletions[0] = neighbour.before(last, floor);
        }
    }
};

// What the Viterbi filter needs of a profile besides its table.
struct WordLimits {
    int floor;     // below any new entry
    int overflow;  // a higher match may exceed 16 bits with the next emission
};

// Compare pairs of sequences and profiles by Viterbi: find the word with which the best path leaves
// the profile.
//
// sequences     the proteins
// pairs         uint32[], the sequence of each pair
// items         Item[item_count], pairs with a profile of this launch
// item_count    how many there are
// tables        uint4[], for each profile the emissions as `rows.cuh` reads them, integers, then
//               Steps by register and lane, first all lanes' `into`
// table_quads   of one profile
// limits        WordLimits[], of each profile
// moves         int32[], the word of the steps beside the profile for each length
// tickets       uint32, the items that have been taken: 0
// scores        int32[], receives the word of each pair, or WORD_OVERFLOW
//
// Grid: any number of blocks of ROW_THREADS threads. Shared memory: a table.
extern "C" __global__ void __launch_bounds__(ROW_THREADS, 1)
score_paths(Sequences sequences, const uint32* pairs, const Item* items, uint64 item_count,
            const uint4* tables, uint64 table_quads, const WordLimits* limits, const int* moves,
            uint32* tickets, int* scores) {
    const Neighbour neighbour;
    uint32 loaded = ~0u;
    Transitions transitions;
    for (;;) {
        const uint32 ticket = take_ticket(tickets);
        if (ticket >= item_count) {
            return;
        }
        const Item item = items[ticket];
        if (item.profile != loaded) {
            load_table(tables + item.profile * table_quads, static_cast<uint32>(table_quads));
            transitions.load();
            loaded = item.profile;
        }
        const int overflow = limits[item.profile].overflow;
        States states;
        states.floor = in_both(limits[item.profile].floor);
        for (uint32 pair = item.first + threadIdx.x / WARP_LANES; pair < item.last;
             pair += blockDim.x / WARP_LANES) {
            const uint32 sequence = pairs[pair];
            const uint2* words = sequences.words + sequences.first_words[sequence];
            const uint32 length = sequences.lengths[sequence];
            const uint32 count = word_count(length);
            const int move = moves[length];
            states.clear();
            uint32 best = states.floor;
            uint32 begin = in_both(static_cast<int>(WORD_BASE) + move);
            // Above it another pass begins higher.
            uint32 limit = in_both(static_cast<int>(WORD_BASE + WORD_LEAVE));
            bool overflows = false;
            for (uint32 word = 0; word < count && !overflows; ++word) {
                const uint2 now = words[word];
#pragma unroll 1
                for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                    const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                    const uint32 matches = states.advance(code, begin, transitions, neighbour);
                    best = larger_of(best, matches);
                    if (__any_sync(ALL_LANES, exceeds(matches, limit))) {
                        const int top = static_cast<int>(largest_of_group(matches));
                        if (top > overflow) {
                            overflows = true;
                            break;
                        }
                        const int again = top - static_cast<int>(WORD_LEAVE);
                        limit = in_both(top);
                        begin = in_both(again + move);
                    }
                }
            }
            const int top = static_cast<int>(largest_of_group(best));
            if (lane_number() == 0) {
                scores[pair] = overflows ? static_cast<int>(WORD_OVERFLOW)
                                         : top - static_cast<int>(WORD_LEAVE);
            }
        }
    }
}
