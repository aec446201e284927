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

// Where a lane finds its transitions: in registers, or in the table if there are many.
struct Transitions {
#if KEEPS_STEPS
    Steps steps[ROW_REGISTERS];
#else
    const uint4* quads;
#endif

    __device__ __forceinline__ void load(const Table& table) {
        const uint4* first = reinterpret_cast<const uint4*>(table.row(TABLE_ROWS)) + group_lane();
#if KEEPS_STEPS
#pragma unroll
        for (uint32 at = 0; at < ROW_REGISTERS; ++at) {
            steps[at].into = read_table(first + 2 * GROUP_LANES * at);
            steps[at].from = read_table(first + 2 * GROUP_LANES * at + GROUP_LANES);
        }
#else
        quads = first;
#endif
    }

    __device__ __forceinline__ Steps of(uint32 at) const {
#if KEEPS_STEPS
        return steps[at];
#else
        return {read_table(quads + 2 * GROUP_LANES * at),
                read_table(quads + 2 * GROUP_LANES * at + GROUP_LANES)};
#endif
    }

    __device__ __forceinline__ uint32 deletion(uint32 at) const {
#if KEEPS_STEPS
        return steps[at].from.w;
#else
        const uint4* from = quads + 2 * GROUP_LANES * at + GROUP_LANES;
        return read_table(reinterpret_cast<const uint32*>(from) + 3);
#endif
    }
};

constexpr uint32 MATCHES = 0, INSERTIONS = 1, DELETIONS = 2;
constexpr uint32 OPENED = 3;  // what a deletion of the next node has from the match

// A row: the states of this lane's nodes, and the least value of each.
struct States {
    const Table& table;
    Cells<4> cells;
    uint32 floor;

    __device__ __forceinline__ States(const Table& of, uint64 table_quads, uint32 least)
        : table(of), cells(of, table_quads), floor(least) {}

    __device__ __forceinline__ void clear() {
        EACH_REGISTER
        for (uint32 at = 0; at < table.registers(); ++at) {
            cells.at(MATCHES, at) = cells.at(INSERTIONS, at) = cells.at(DELETIONS, at) = floor;
        }
    }

    // Compute the match and the insertion of a register from the states before its nodes. Return
    // the larger of the match and `best`.
    __device__ __forceinline__ uint32 advance_node(uint32 at, const Steps& steps, uint32 begin,
                                                   uint32 match, uint32 insertion,
                                                   uint32 deletion, uint32 emission, uint32 best) {
        uint32 into = larger_sum(begin, steps.into.x, floor);
        into = larger_sum(match, steps.into.y, into);
        into = larger_sum(insertion, steps.into.z, into);
        into = larger_sum(deletion, steps.into.w, into);
        cells.at(INSERTIONS, at) =
            larger_sum(cells.at(INSERTIONS, at), steps.from.z,
                       larger_sum(cells.at(MATCHES, at), steps.from.y, floor));
        const uint32 now = larger_sum(into, emission, floor);
        cells.at(MATCHES, at) = now;
        cells.at(OPENED, at) = larger_sum(now, steps.from.x, floor);
        return larger_of(best, now);
    }

    // Go on by a residue; `begin` is the begin state. Return the best match.
    __device__ __forceinline__ uint32 advance(uint32 code, uint32 begin,
                                              const Transitions& transitions,
                                              const Neighbour& neighbour) {
        const uint32 last = table.registers() - 1;
        const uint32 match = neighbour.before(cells.at(MATCHES, last), floor);
        const uint32 insertion = neighbour.before(cells.at(INSERTIONS, last), floor);
        const uint32 deletion = neighbour.before(cells.at(DELETIONS, last), floor);
        Emissions emissions(table, code);
        uint32 best = floor;
        EACH_REGISTER
        for (uint32 at = last; at > 0; --at) {
            best = advance_node(at, transitions.of(at), begin, cells.at(MATCHES, at - 1),
                                cells.at(INSERTIONS, at - 1), cells.at(DELETIONS, at - 1),
                                emissions.at(at), best);
        }
        best = advance_node(0, transitions.of(0), begin, match, insertion, deletion,
                            emissions.at(0), best);
        // No node emits a mark, and no sum of 16 bits could say so: the lowest would wrap around.
        if (code >= FIRST_MARK || code == GAP_CODE) {
            best = floor;
            EACH_REGISTER
            for (uint32 at = 0; at <= last; ++at) {
                cells.at(MATCHES, at) = cells.at(OPENED, at) = floor;
            }
        }
        delete_nodes(transitions, neighbour);
        return best;
    }

    // Compute the deletions that follow from the matches of the row.
    __device__ __forceinline__ void delete_nodes(const Transitions& transitions,
                                                 const Neighbour& neighbour) {
        const uint32 count = table.registers();
        uint32 last = floor;
        EACH_REGISTER
        for (uint32 at = 0; at < count; ++at) {
            cells.at(DELETIONS, at) = last;
            last = larger_sum(last, transitions.deletion(at), cells.at(OPENED, at));
        }
        cells.at(DELETIONS, 0) = neighbour.before(last, floor);
        // Most deletions end in the half-lane in which they begin; else walk on until none improves.
        const uint32 second =
            larger_sum(cells.at(DELETIONS, 0), transitions.deletion(0), cells.at(OPENED, 0));
        bool improves = count == 1 || exceeds(second, cells.at(DELETIONS, 1 % count));
        while (__any_sync(ALL_LANES, improves)) {
            uint32 deleted = cells.at(DELETIONS, 0);
            EACH_REGISTER
            for (uint32 at = 0; at + 1 < count; ++at) {
                deleted = larger_sum(deleted, transitions.deletion(at), cells.at(OPENED, at));
                cells.at(DELETIONS, at + 1) = deleted;
            }
            const uint32 further =
                larger_sum(deleted, transitions.deletion(count - 1), cells.at(OPENED, count - 1));
            improves = exceeds(further, last);
            last = further;
            cells.at(DELETIONS, 0) = neighbour.before(last, floor);
        }
    }
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
// moves         int32[], the word of the steps outside the profile for each length
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
    Table table;
    Transitions transitions;
    for (;;) {
        const uint32 ticket = take_ticket(tickets);
        if (ticket >= item_count) {
            return;
        }
        const Item item = items[ticket];
        if (item.profile != loaded) {
            // After the rows there are eight transitions of each node.
            table.load(tables + item.profile * table_quads, static_cast<uint32>(table_quads),
                       TABLE_ROWS + 8);
            transitions.load(table);
            loaded = item.profile;
        }
        const int overflow = limits[item.profile].overflow;
        States states(table, table_quads, in_both(limits[item.profile].floor));
        for (uint32 first = item.first + threadIdx.x / WARP_LANES * GROUPS; first < item.last;
             first += blockDim.x / WARP_LANES * GROUPS) {
            const uint32 pair = first + lane_number() / GROUP_LANES;
            const bool is_there = GROUPS == 1 || pair < item.last;
            const uint32 sequence = pairs[is_there ? pair : first];
            const uint2* words = sequences.words + sequences.first_words[sequence];
            const uint32 length = sequences.lengths[sequence];
            const uint32 count = word_count(length);
            // The first group's sequence is the longest: the others go on with padding.
            const uint32 most =
                GROUPS == 1 ? count : word_count(sequences.lengths[pairs[first]]);
            const int move = moves[length];
            states.clear();
            uint32 best = states.floor;
            uint32 begin = in_both(static_cast<int>(WORD_BASE) + move);
            // Above it another pass begins higher.
            uint32 limit = in_both(static_cast<int>(WORD_BASE + WORD_LEAVE));
            bool overflows = false;
            for (uint32 word = 0; word < most && !(GROUPS == 1 && overflows); ++word) {
                const uint2 now = GROUPS == 1 || word < count ? words[word]
                                                              : uint2{PADDING_WORD, PADDING_WORD};
#pragma unroll 1
                for (uint32 place = 0; place < WORD_RESIDUES; ++place) {
                    const uint32 code = __byte_perm(now.x, now.y, place) & 255u;
                    const uint32 matches = states.advance(code, begin, transitions, neighbour);
                    best = larger_of(best, matches);
                    if (__any_sync(ALL_LANES, exceeds(matches, limit))) {
                        const int top = static_cast<int>(largest_of_group(matches));
                        if (top > overflow) {
                            overflows = true;
                            if (GROUPS == 1) {
                                break;
                            }
                            // Other groups of the warp go on.
                            states.clear();
                        } else if (GROUPS == 1 || top > low_half(limit)) {
                            limit = in_both(top);
                            begin = in_both(top - static_cast<int>(WORD_LEAVE) + move);
                        }
                    }
                }
            }
            const int top = static_cast<int>(largest_of_group(best));
            if (group_lane() == 0 && is_there) {
                scores[pair] = overflows ? static_cast<int>(WORD_OVERFLOW)
                                         : top - static_cast<int>(WORD_LEAVE);
            }
        }
    }
}
