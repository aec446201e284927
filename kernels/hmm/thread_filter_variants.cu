// The Viterbi filter with a thread for each sequence: what S. Ferraz and N. Moreano tried on a GPU
// (Evaluating Optimization Strategies for HMMer Acceleration on GPU, 2013), each by a macro, and
// their register tiles of today.
//
// SCORES       where the states of a row lie: GLOBAL memory, one sequence's after another's; the
//              same COALESCED, one node's after another's; PADDED to whole warps; PRIVATE memory of
//              a thread; or TILES of eight nodes in registers, with two sequences a thread
// STEPS        transitions of nodes: in GLOBAL, CONSTANT or SHARED memory, or in REGISTERS of tiles
// SPECIAL      those beside the nodes, likewise
// EMISSIONS    by node in GLOBAL memory, TRANSPOSED to lie by code, or in SHARED memory
// UNROLL       how often the inner loop is repeated: over nodes, or over the residues of a tile
// BY_HAND      whether the source has the operations in an order without waits
// WORD_STRIDE  from one word of a sequence to the next: 1, or WARP_LANES if they are interleaved
//
// Numbers are Viterbi's words, as in `word_filter.cu`. Rows have 32 bits, so that nothing overflows;
// tiles have 16, and leave to that filter what a second pass through the profile might change.
#include "common/pairs.cuh"
#include "hmm/residues.cuh"

#define IN_GLOBAL 0
#define IN_CONSTANT 1
#define IN_SHARED 2
#define IN_REGISTERS 3

#define SCORES_COALESCED 1
#define SCORES_PADDED 2
#define SCORES_PRIVATE 3
#define SCORES_IN_TILES 4

#define EMISSIONS_TRANSPOSED 1
#define EMISSIONS_IN_SHARED 2

constexpr uint32 STEPS_OF_NODE = 8;    // the rows of `WordTables.transitions`
constexpr uint32 CODES_OF_NODE = 32;   // the codes, filled up
[[maybe_unused]] constexpr uint32 SPECIAL_STEPS = 8;    // loops of N, J and C, E to J, E to C, unused
[[maybe_unused]] constexpr int NEVER = -(1 << 15);

#if STEPS == IN_CONSTANT || SPECIAL == IN_CONSTANT
// The transitions of the only profile, as `steps` has them; then the special ones. The host writes.
extern "C" {
__constant__ uint32 constant_steps[CONSTANT_WORDS];
}
#endif

extern __shared__ uint4 block_memory[];

// Load a word that lies in global or shared memory, each time that the source says so.
__device__ __forceinline__ uint32 load_global(const uint32* address) {
#ifdef __CUDACC_RTC__
    uint32 word;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(word) : "l"(address));
    return word;
#else
    return *address;
#endif
}

__device__ __forceinline__ uint32 load_shared(const uint32* address) {
#ifdef __CUDACC_RTC__
    uint32 word;
    const uint32 place = static_cast<uint32>(__cvta_generic_to_shared(address));
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(place));
    return word;
#else
    return *address;
#endif
}

// Copy units of 16 bytes to the block's memory; return them in their own type.
template <typename Number>
__device__ __forceinline__ const Number* copy_quads(uint4* shared, const Number* source,
                                                    uint32 count) {
    for (uint32 at = threadIdx.x; at < count; at += blockDim.x) {
        shared[at] = reinterpret_cast<const uint4*>(source)[at];
    }
    return reinterpret_cast<const Number*>(shared);
}

#if SCORES != SCORES_IN_TILES

// Two rows of a sequence, the last and the one that is computed; node 0 is none.
struct Rows {
#if SCORES == SCORES_PRIVATE
    int values[6 * ROW_NODES];

    __device__ __forceinline__ int& at(uint32 row, uint32 state, uint32 node) {
        return values[(3 * row + state) * ROW_NODES + node];
    }
#else
    int* values;
    uint64 stride;  // from a node's state to the next one's
    uint32 nodes;   // with node 0

    __device__ __forceinline__ int& at(uint32 row, uint32 state, uint32 node) {
        return values[((3 * row + state) * nodes + node) * (SCORES == 0 ? 1 : stride)];
    }
#endif
};

constexpr uint32 MATCH = 0, INSERTION = 1, DELETION = 2;

// What a profile adds up, where the policies have it.
struct Model {
    const int* steps;        // by node, STEPS_OF_NODE each
    const short* emissions;  // by node, CODES_OF_NODE each; transposed: by code, `nodes` each
    const uint32* special;
    uint32 nodes;
    uint32 kept[5];

    __device__ __forceinline__ int step(uint32 node, uint32 number) const {
#if STEPS == IN_CONSTANT
        return static_cast<int>(constant_steps[STEPS_OF_NODE * node + number]);
#else
        return steps[STEPS_OF_NODE * node + number];
#endif
    }

    __device__ __forceinline__ int emission(uint32 node, uint32 code) const {
        return emissions[EMISSIONS == EMISSIONS_TRANSPOSED ? code * nodes + node
                                                           : CODES_OF_NODE * node + code];
    }

    // Return a step outside the nodes.
    __device__ __forceinline__ int beside(uint32 number) const {
#if SPECIAL == IN_REGISTERS
        return static_cast<int>(kept[number]);
#elif SPECIAL == IN_CONSTANT
        return static_cast<int>(constant_steps[CONSTANT_WORDS - SPECIAL_STEPS + number]);
#elif SPECIAL == IN_SHARED
        return static_cast<int>(load_shared(special + number));
#else
        return static_cast<int>(load_global(special + number));
#endif
    }
};

// Keep the larger one.
__device__ __forceinline__ void raise(int& best, int other) {
    if (other > best) {
        best = other;
    }
}

// Compute the states of a node; return its match.
__device__ __forceinline__ int advance(Rows& rows, uint32 last, uint32 now, uint32 node, int begin,
                                       int emission, const Model& model) {
    // In the tables a node is one less.
    const uint32 place = node - 1;
    const uint32 before = node == 1 ? 0 : place - 1;
#if BY_HAND
    // No operation needs what the one before it has computed.
    int match = rows.at(last, MATCH, node - 1) + model.step(place, 1);
    int insertion = rows.at(last, MATCH, node) + model.step(place, 5);
    int deletion = rows.at(now, MATCH, node - 1) + model.step(before, 4);
    const int inserted = rows.at(last, INSERTION, node - 1) + model.step(place, 2);
    const int longer_insertion = rows.at(last, INSERTION, node) + model.step(place, 6);
    const int longer_deletion = rows.at(now, DELETION, node - 1) + model.step(before, 7);
    const int deleted = rows.at(last, DELETION, node - 1) + model.step(place, 3);
    const int entered = begin + model.step(place, 0);
    match = max(match, inserted);
    insertion = max(insertion, longer_insertion);
    deletion = max(deletion, longer_deletion);
    match = max(match, max(deleted, entered)) + emission;
    rows.at(now, INSERTION, node) = insertion;
    rows.at(now, DELETION, node) = deletion;
    rows.at(now, MATCH, node) = match;
#else
    int match = rows.at(last, MATCH, node - 1) + model.step(place, 1);
    raise(match, rows.at(last, INSERTION, node - 1) + model.step(place, 2));
    raise(match, rows.at(last, DELETION, node - 1) + model.step(place, 3));
    raise(match, begin + model.step(place, 0));
    match += emission;
    rows.at(now, MATCH, node) = match;
    int insertion = rows.at(last, MATCH, node) + model.step(place, 5);
    raise(insertion, rows.at(last, INSERTION, node) + model.step(place, 6));
    rows.at(now, INSERTION, node) = insertion;
    int deletion = rows.at(now, MATCH, node - 1) + model.step(before, 4);
    raise(deletion, rows.at(now, DELETION, node - 1) + model.step(before, 7));
    rows.at(now, DELETION, node) = deletion;
#endif
    return match;
}

// Compare sequences with a profile, a thread each: find the word with which the best path leaves.
//
// sequences        the proteins, in any order; their words are WORD_STRIDE apart
// sequence_count   how many there are
// nodes            of the profile
// steps            int[nodes * STEPS_OF_NODE], unless they are constant
// emissions        int16[nodes * CODES_OF_NODE], or transposed
// special          int[SPECIAL_STEPS]
// moves            int32[], the word of the steps outside the profile for each length
// row_memory       int[6 * (nodes + 1) * row_stride], for the states; unless they are private
// row_stride       the sequences that have states there
// scores           int32[], receives the word of each sequence
//
// Grid: any number of blocks of FILTER_THREADS threads; no more threads than `row_stride` have work.
// Shared memory: the steps, then the emissions, then the special steps of each warp, if they lie
// there.
extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
score_in_rows(Sequences sequences, uint64 sequence_count, uint64 nodes, const int* steps,
              const short* emissions, const uint32* special, const int* moves, int* row_memory,
              uint64 row_stride, int* scores) {
    Model model{steps, emissions, special, static_cast<uint32>(nodes), {}};
    [[maybe_unused]] uint4* shared = block_memory;
#if STEPS == IN_SHARED
    const uint32 step_quads = STEPS_OF_NODE / 4 * model.nodes;
    model.steps = copy_quads(shared, steps, step_quads);
    shared += step_quads;
#endif
#if EMISSIONS == EMISSIONS_IN_SHARED
    const uint32 emission_quads = CODES_OF_NODE / 8 * model.nodes;
    model.emissions = copy_quads(shared, emissions, emission_quads);
    shared += emission_quads;
#endif
#if SPECIAL == IN_SHARED
    // Each warp has its own.
    shared += threadIdx.x / WARP_LANES * (SPECIAL_STEPS / 4);
    if (threadIdx.x % WARP_LANES < SPECIAL_STEPS / 4) {
        const uint32 at = threadIdx.x % WARP_LANES;
        shared[at] = reinterpret_cast<const uint4*>(special)[at];
    }
    model.special = reinterpret_cast<const uint32*>(shared);
#elif SPECIAL == IN_REGISTERS
    for (uint32 number = 0; number < 5; ++number) {
        model.kept[number] = special[number];
    }
#endif
    __syncthreads();
    Rows rows;
    const uint64 thread = grid_thread();
#if SCORES != SCORES_PRIVATE
    rows.nodes = model.nodes + 1;
    rows.stride = row_stride;
    rows.values = row_memory + (SCORES == 0 ? 6 * (nodes + 1) * thread : thread);
    if (thread >= row_stride) {
        return;
    }
#else
    (void)row_memory;
    (void)row_stride;
#endif
    for (uint64 number = thread; number < sequence_count; number += grid_threads()) {
        const uint32 length = sequences.lengths[number];
        const uint2* words = sequences.words + sequences.first_words[number];
        const int move = moves[length];
        for (uint32 row = 0; row < 2; ++row) {
            for (uint32 node = 0; node <= model.nodes; ++node) {
                for (uint32 state = 0; state < 3; ++state) {
                    rows.at(row, state, node) = NEVER;
                }
            }
        }
        int before = static_cast<int>(WORD_BASE);
        int again = NEVER;
        int left = NEVER;
        uint32 now = 0;
        for (uint32 place = 0; place < length; ++place) {
            const uint2 word = words[static_cast<uint64>(place / WORD_RESIDUES) * WORD_STRIDE];
            const uint32 code = __byte_perm(word.x, word.y, place % WORD_RESIDUES) & 255u;
            const uint32 last = now;
            now ^= 1;
            const int begin = max(before, again) + move;
            int best = NEVER;
#pragma unroll UNROLL
            for (uint32 node = 1; node <= model.nodes; ++node) {
                const int emission = model.emission(node - 1, code);
                best = max(best, advance(rows, last, now, node, begin, emission, model));
            }
            before += model.beside(0);
            again = max(again + model.beside(1), best + model.beside(3));
            left = max(left + model.beside(2), best + model.beside(4));
        }
        scores[number] = left;
    }
}

#else

constexpr uint32 TILE_NODES = 8;
constexpr uint32 TILE_STEP_QUADS = STEPS_OF_NODE * (TILE_NODES + 1) / 4;

// The transitions of a tile's nodes and of the node after them, each in both halves.
struct TileSteps {
#if STEPS == IN_REGISTERS
    uint32 values[STEPS_OF_NODE * (TILE_NODES + 1)];
#else
    const uint32* words;
    uint32 first;
#endif

    __device__ __forceinline__ void place(const uint32* shared, const uint32* global, uint32 tile) {
#if STEPS == IN_REGISTERS
        (void)global;
        (void)tile;
#pragma unroll
        for (uint32 at = 0; at < STEPS_OF_NODE * (TILE_NODES + 1); ++at) {
            values[at] = shared[at];
        }
#else
        words = STEPS == IN_SHARED ? shared : global;
        first = STEPS_OF_NODE * TILE_NODES * tile;
#endif
    }

    __device__ __forceinline__ uint32 of(uint32 node, uint32 number) const {
        const uint32 at = STEPS_OF_NODE * node + number;
#if STEPS == IN_REGISTERS
        return values[at];
#elif STEPS == IN_CONSTANT
        return constant_steps[first + at];
#elif STEPS == IN_SHARED
        return load_shared(words + at);
#else
        return load_global(words + at);
#endif
    }
};

// The states of a tile's nodes for two sequences, and what precedes them.
struct Tile {
    uint32 matches[TILE_NODES];
    uint32 insertions[TILE_NODES];
    uint32 deletions[TILE_NODES];
    uint32 entries[TILE_NODES];  // from the begin state, which no path raises
    uint32 floor;

    __device__ __forceinline__ void clear(const TileSteps& steps, uint32 begin) {
#pragma unroll
        for (uint32 node = 0; node < TILE_NODES; ++node) {
            entries[node] = larger_sum(begin, steps.of(node, 0), floor);
            matches[node] = insertions[node] = deletions[node] = floor;
        }
    }

    // Return the best step into a node from the states of the node before it.
    __device__ __forceinline__ uint32 into(uint32 node, uint32 match, uint32 insertion,
                                           uint32 deletion, uint32 least,
                                           const TileSteps& steps) const {
        const uint32 best = larger_sum(match, steps.of(node, 1), least);
        return larger_sum(deletion, steps.of(node, 3),
                          larger_sum(insertion, steps.of(node, 2), best));
    }

    // Compute the match and the insertion of a node from the best step into it.
    __device__ __forceinline__ void fill(uint32 node, uint32 best, uint32 emission,
                                         const TileSteps& steps) {
        insertions[node] = larger_sum(insertions[node], steps.of(node, 6),
                                      larger_sum(matches[node], steps.of(node, 5), floor));
        matches[node] = larger_sum(best, emission, floor);
    }

    // Go on by a residue of each sequence. `before` is the best step into the first node, `deleted`
    // its deletion. Return the deletion of the node after the last.
    __device__ __forceinline__ uint32 advance(const uint32 (&emissions)[TILE_NODES], uint32 before,
                                              uint32 deleted, const TileSteps& steps) {
#if BY_HAND
        // From the last node on, so that each one finds what precedes it as it was.
#pragma unroll
        for (uint32 node = TILE_NODES - 1; node > 0; --node) {
            fill(node,
                 into(node, matches[node - 1], insertions[node - 1], deletions[node - 1],
                      entries[node], steps),
                 emissions[node], steps);
        }
        fill(0, larger_of(before, entries[0]), emissions[0], steps);
#pragma unroll
        for (uint32 node = 0; node < TILE_NODES; ++node) {
            deletions[node] = deleted;
            deleted = larger_sum(deleted, steps.of(node, 7),
                                 larger_sum(matches[node], steps.of(node, 4), floor));
        }
#else
        uint32 best = larger_of(before, entries[0]);
#pragma unroll
        for (uint32 node = 0; node < TILE_NODES; ++node) {
            const uint32 following = node + 1 < TILE_NODES ? node + 1 : node;
            const uint32 next = into(following, matches[node], insertions[node], deletions[node],
                                     entries[following], steps);
            fill(node, best, emissions[node], steps);
            deletions[node] = deleted;
            deleted = larger_sum(deleted, steps.of(node, 7),
                                 larger_sum(matches[node], steps.of(node, 4), floor));
            best = next;
        }
#endif
        return deleted;
    }
};

// Return where the emissions of a code at a tile's nodes lie in global memory.
__device__ __forceinline__ uint32 emission_place(uint32 code, uint32 tile, uint32 tiles) {
    return EMISSIONS == EMISSIONS_TRANSPOSED ? code * tiles + tile : tile * CODES_OF_NODE + code;
}

__device__ __forceinline__ uint4 load_tile_emissions(const uint4* shared, const uint4* global,
                                                     uint32 code, uint32 tile, uint32 tiles) {
    return EMISSIONS == EMISSIONS_IN_SHARED ? shared[code]
                                            : global[emission_place(code, tile, tiles)];
}

// What the tile before hands on for UNROLL residues: the best step into the first node, and its
// deletion.
struct Coming {
    uint2 pairs[UNROLL];

    __device__ __forceinline__ void clear(uint32 floor) {
#pragma unroll
        for (uint32 step = 0; step < UNROLL; ++step) {
            pairs[step] = {floor, floor};
        }
    }

    __device__ __forceinline__ void load(const uint2* border, uint64 stride) {
#pragma unroll
        for (uint32 step = 0; step < UNROLL; ++step) {
            pairs[step] = border[step * stride];
        }
    }
};

// Return a word of a sequence, or padding after it.
__device__ __forceinline__ uint2 load_word(const uint2* words, uint32 word, uint32 count) {
    return word < count ? words[static_cast<uint64>(word) * WORD_STRIDE]
                        : uint2{PADDING_WORD, PADDING_WORD};
}

// Return a code of a word; `place` is known when this is compiled.
__device__ __forceinline__ uint32 tile_code(const uint2& word, uint32 place) {
    return __byte_perm(place < 4 ? word.x : word.y, 0, 0x4440u + place % 4);
}

// Return the word with which a path leaves that has the best match, if no other pass does.
__device__ __forceinline__ int word_left(int best) {
    // Above it another pass begins higher, as in `score_paths`.
    return best > static_cast<int>(WORD_BASE + WORD_LEAVE) ? static_cast<int>(WORD_AGAIN)
                                                           : best - static_cast<int>(WORD_LEAVE);
}

// Compare pairs of sequences and profiles by Viterbi, two a thread: find the word with which the
// best path leaves the profile.
//
// sequences, pairs, items, item_count   as in `score_paths`; words are WORD_STRIDE apart
// tables         uint4[], for each profile the steps of all tiles, then the emissions by tile and
//                code, or by code and tile
// table_quads    of one profile
// tiles          of a profile
// limits, moves, tickets, scores        as in `score_paths`; WORD_AGAIN stands for a path that
//                                       might go through the profile once more
// borders        uint2[], what a tile hands on for each residue and thread
//
// Grid: any number of blocks of FILTER_THREADS threads. Shared memory: none but its own.
extern "C" __global__ void __launch_bounds__(FILTER_THREADS, TILE_BLOCKS)
score_in_tiles(Sequences sequences, const uint32* pairs, const Item* items, uint64 item_count,
               const uint4* tables, uint64 table_quads, uint64 tiles, const WordLimits* limits,
               const int* moves, uint32* tickets, int* scores, uint2* borders) {
    __shared__ uint4 tile_emissions[CODES_OF_NODE];
    __shared__ uint4 tile_steps[TILE_STEP_QUADS];
    const uint64 stride = grid_threads();
    const uint32 tile_count = static_cast<uint32>(tiles);
    for (;;) {
        const uint32 ticket = take_ticket(tickets);
        if (ticket >= item_count) {
            return;
        }
        const Item item = items[ticket];
        const uint4* steps_of_tiles = tables + item.profile * table_quads;
        const uint4* emissions_of_tiles = steps_of_tiles + tile_count * TILE_STEP_QUADS;
        for (uint32 first = item.first; first < item.last; first += 2 * blockDim.x) {
            // A warp's sequences follow each other, those of the lower halves before the others.
            const uint32 low = first + threadIdx.x / WARP_LANES * 2 * WARP_LANES +
                               threadIdx.x % WARP_LANES;
            const uint32 high = low + WARP_LANES;
            const bool has_low = low < item.last, has_high = high < item.last;
            const uint32 low_sequence = pairs[has_low ? low : item.first];
            const uint32 high_sequence = pairs[has_high ? high : item.first];
            const uint32 low_length = has_low ? sequences.lengths[low_sequence] : 0;
            const uint32 high_length = has_high ? sequences.lengths[high_sequence] : 0;
            const uint32 low_words = word_count(low_length), high_words = word_count(high_length);
            const uint2* low_begin = sequences.words + sequences.first_words[low_sequence];
            const uint2* high_begin = sequences.words + sequences.first_words[high_sequence];
            const uint32 words = max(low_words, high_words);
            Tile tile;
            tile.floor = in_both(limits[item.profile].floor);
            const uint32 low_move = static_cast<uint32>(moves[low_length]) + WORD_BASE;
            const uint32 high_move = static_cast<uint32>(moves[high_length]) + WORD_BASE;
            const uint32 begin = (low_move & 0xFFFFu) | high_move << 16;
            uint32 best = tile.floor;
            for (uint32 number = 0; number < tile_count; ++number) {
                const uint4* own_steps = steps_of_tiles + number * TILE_STEP_QUADS;
                __syncthreads();
                copy_quads(tile_steps, own_steps, TILE_STEP_QUADS);
                for (uint32 code = threadIdx.x; code < CODES_OF_NODE; code += blockDim.x) {
                    tile_emissions[code] =
                        emissions_of_tiles[emission_place(code, number, tile_count)];
                }
                __syncthreads();
                TileSteps steps;
                steps.place(reinterpret_cast<const uint32*>(tile_steps),
                            reinterpret_cast<const uint32*>(own_steps), number);
                tile.clear(steps, begin);
                // What the tile before handed on; this one writes over it. It is asked for UNROLL
                // residues ahead, together, since the memory takes longer than a residue does.
                uint2* border = borders + grid_thread();
                Coming coming;
                coming.clear(tile.floor);
                if (number > 0) {
                    coming.load(border, stride);
                }
                // The step into the first node is one of the last residue.
                uint32 before = tile.floor;
                const bool is_last = number + 1 == tile_count;
                uint2 low_next = load_word(low_begin, 0, low_words);
                uint2 high_next = load_word(high_begin, 0, high_words);
                for (uint32 word = 0; word < words; ++word) {
                    const uint2 low_word = low_next, high_word = high_next;
                    low_next = load_word(low_begin, word + 1, low_words);
                    high_next = load_word(high_begin, word + 1, high_words);
#pragma unroll
                    for (uint32 group = 0; group < WORD_RESIDUES; group += UNROLL) {
                        const Coming now = coming;
                        if (number > 0) {
                            coming.load(border + UNROLL * stride, stride);
                        }
#pragma unroll
                        for (uint32 step = 0; step < UNROLL; ++step) {
                            const uint4 lows = load_tile_emissions(
                                tile_emissions, emissions_of_tiles,
                                tile_code(low_word, group + step), number, tile_count);
                            const uint4 highs = load_tile_emissions(
                                tile_emissions, emissions_of_tiles,
                                tile_code(high_word, group + step), number, tile_count);
                            const uint32 emissions[TILE_NODES] = {
                                __byte_perm(lows.x, highs.x, 0x5410), __byte_perm(lows.x, highs.x, 0x7632),
                                __byte_perm(lows.y, highs.y, 0x5410), __byte_perm(lows.y, highs.y, 0x7632),
                                __byte_perm(lows.z, highs.z, 0x5410), __byte_perm(lows.z, highs.z, 0x7632),
                                __byte_perm(lows.w, highs.w, 0x5410), __byte_perm(lows.w, highs.w, 0x7632)};
                            const uint32 deleted =
                                tile.advance(emissions, before, now.pairs[step].y, steps);
                            before = now.pairs[step].x;
#pragma unroll
                            for (uint32 node = 0; node < TILE_NODES; node += 2) {
                                best = largest_of(best, tile.matches[node], tile.matches[node + 1]);
                            }
                            if (!is_last) {
                                constexpr uint32 LAST = TILE_NODES - 1;
                                *border = {tile.into(TILE_NODES, tile.matches[LAST],
                                                     tile.insertions[LAST], tile.deletions[LAST],
                                                     tile.floor, steps),
                                           deleted};
                            }
                            border += stride;
                        }
                    }
                }
            }
            if (has_low) {
                scores[low] = word_left(low_half(best));
            }
            if (has_high) {
                scores[high] = word_left(high_half(best));
            }
        }
    }
}

#endif
