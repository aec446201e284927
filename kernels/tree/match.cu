// The match kernel: the longest match of every suffix of every query (paper, section 2.3).
//
// A walk works on one query, and takes the next one when it is done. A match is described by its
// length and by the lowest node that it reaches: the match stops in the edge of that node, or at
// the node itself. Every turn of the loop visits one node. The threads of a warp thus visit
// different nodes, but execute the same instructions. That is what the kernel's time goes into: in
// nearly every turn some thread of a warp compares bases, another one climbs and a third one has
// ended, so the warp executes the instructions of all of them.
//
// The host chooses how the work is shared out; the matches are the same always:
//   QUERIES_BY_COUNTER  1: a walk takes the next query that nobody has, 0: the queries are dealt
//                       out in advance, and threads with short queries wait for their warp
//   WALKS_PER_THREAD    the queries that a thread matches at once; their loads overlap
//   SHORT_TURNS         the most nodes that a walk passes in a few instructions before each turn
//   EARLY_QUERY_WORDS   1: the query's next bases are loaded in every turn, 0: only on the way down
//   EARLY_CHILDREN      1: so are both halves of nodes in merged trees, 0: only on the way down
//   STREAM_CANDIDATES   1: candidates are stored as data that nobody will need from the cache soon
//   MATCH_BLOCKS        the fewest blocks that a multiprocessor must hold, which limits registers
//
// The kernel reads a tree, the codes of its page and a block of queries; it writes candidate
// matches.
#pragma once

#include "common/grid.cuh"
#include "tree/codes.cuh"
#include "tree/tree.cuh"

// A candidate match, written and read as one 16-byte word. The candidates of a query begin at the
// index of the query's first base in the block, so the buffer holds one for each position.
struct alignas(16) Candidate {
    uint32 query_start;   // where the match begins in the query
    uint32 lowest_node;   // the address of the lowest node
    uint32 match_length;  // string depth of the node's parent plus matched bases of the edge
    uint32 unused;
};

static_assert(sizeof(Candidate) == CANDIDATE_BYTES, "the host allocates so much for each");

// The most nodes that a thread visits while it climbs from the target of a suffix link. After that
// it goes down from the target of the parent's suffix link instead.
constexpr uint32 MOST_CLIMBS = 4;

// The state of a walk, which matches a query.
struct Walk {
    uint32 query;        // the number of the query, or NO_QUERY if there are no more
    uint32 begin;        // where the query begins in the block
    uint32 end;          // where the query ends in the block
    uint32 start;        // where the matched suffix begins in the block
    uint32 matched;      // the number of bases of the suffix known to match
    uint32 address;      // the node to visit
    uint32 link_parent;  // the parent of the node whose suffix link was followed
    uint32 climbs;       // nodes visited since then, with this one; 0 once the walk went down
    uint32 candidates;   // the number of candidates of this query so far
};

constexpr uint32 NO_QUERY = ~0u;

// The queries of a block, and who takes which.
struct QueryList {
    const uint64* offsets;  // uint64[count + 1], where each query begins in the block, then the end
    uint32 count;
    uint32 minimum_length;
    uint32* next_query;  // uint32[1], the first query that nobody has taken
    uint32* candidate_counts;

    // Return the query that a walk takes after another one, or after NO_QUERY for its first query.
    __device__ __forceinline__ uint64 after(uint32 query, uint32 number) const {
        if constexpr (QUERIES_BY_COUNTER) {
            return atomicAdd(next_query, 1u);
        } else if (query == NO_QUERY) {
            return grid_thread() + number * grid_threads();
        } else {
            return query + WALKS_PER_THREAD * grid_threads();
        }
    }

    // Begin with the next query that is long enough; shorter queries have no candidates. `number`
    // is that of the walk in its thread.
    __device__ __forceinline__ void begin_next(Walk& walk, uint32 number) const {
        uint64 query = after(walk.query, number);
        for (; query < count; query = after(static_cast<uint32>(query), number)) {
            walk.query = static_cast<uint32>(query);
            walk.begin = static_cast<uint32>(offsets[query]);
            walk.end = static_cast<uint32>(offsets[query + 1]);
            walk.start = walk.begin;
            walk.matched = 0;
            walk.address = ROOT;
            walk.climbs = 0;
            walk.candidates = 0;
            if (walk.end - walk.begin >= minimum_length) {
                return;
            }
            candidate_counts[query] = 0;
        }
        walk.query = NO_QUERY;
    }
};

// Return the query's code that selects the next child of a node of string depth `depth`. `codes`
// is the word of the query that begins where the known match ends.
__device__ __forceinline__ uint32 next_code(const Walk& walk, uint32 depth, uint32 known,
                                            uint64 codes, const Queries& queries) {
    const uint32 ahead = depth - known;
    return ahead < CODES_IN_WORD ? static_cast<uint32>(codes >> 8 * ahead) & 0xFF
                                 : queries.code_at(walk.start + depth);
}

// What a walk loads at the beginning of a turn.
struct Loaded {
    bool has_children;
    bool has_codes;
    NodeHalf node;
    NodeHalf children;
    uint64 codes;
};

__device__ __forceinline__ Loaded load(const Walk& walk, const Tree& tree,
                                       const Queries& queries) {
    const bool came_down = walk.climbs == 0;
    Loaded loaded{(MERGED_TREE && EARLY_CHILDREN) || came_down, EARLY_QUERY_WORDS || came_down,
                  tree.node(walk.address), NodeHalf(), 0};
    if (loaded.has_children) {
        loaded.children = tree.second_half(walk.address);
    }
    if (loaded.has_codes) {
        loaded.codes = queries.word_at(walk.start + walk.matched);
    }
    return loaded;
}

// Climb from a node that lies below the end of the known match.
__device__ __forceinline__ void climb(Walk& walk, const NodeHalf& node, const Tree& tree) {
    if (walk.climbs++ < MOST_CLIMBS) {
        walk.address = node.number(PARENT);
    } else {
        walk.address = tree.node(walk.link_parent).number(SUFFIX_LINK);
        walk.climbs = 0;
    }
}

// Visit the current node of the walk and choose the next one. Return whether the match has ended.
//
// A suffix link leads to the node whose path is the last node's path without its first base. If
// the known match ends in the edge of that node or above it, it ends there as the last match did,
// because the bases are the same. Only a match that ends exactly at a node can be extended. Above
// the end of the known match the walk compares only the first base of each edge (skip and count);
// below it, every base.
//
// A walk loads early what it will probably need: the next bases of the query, and both halves of the node if they share a memory sector or if the walk
// came down to the node.
__device__ __forceinline__ bool visit(Walk& walk, const Loaded& loaded, const Tree& tree,
                                      const Reference& reference, const Queries& queries) {
    const NodeHalf& node = loaded.node;
    const uint64 codes = loaded.codes;
    const uint32 depth = string_depth(node);
    const uint32 known = walk.matched;
    if (walk.climbs > 0) {
        if (parent_depth(node) >= known) {
            climb(walk, node, tree);
            return false;
        }
        if (known < depth) {
            return true;
        }
    } else if (depth > known) {
        const uint32 rest = min(depth - known, walk.end - walk.start - known);
        walk.matched += count_equal(queries, walk.start + known, codes, reference,
                                    path_start(node) + known, rest);
        if (walk.matched < depth) {
            return true;
        }
    }
    if (is_leaf(node) || walk.start + depth >= walk.end) {
        return true;
    }
    const uint32 code = depth < known || !loaded.has_codes
                            ? queries.code_at(walk.start + depth)
                            : next_code(walk, depth, known, codes, queries);
    const uint32 child = code >= BREAK ? NO_NODE
                         : loaded.has_children ? loaded.children.number(code)
                                        : tree.child(walk.address, code);
    if (child == NO_NODE) {
        return true;
    }
    walk.address = child;
    walk.climbs = 0;
    walk.matched = max(walk.matched, depth + 1);
    return false;
}

// Return whether a match that has ended is long enough, and may be maximal to the left.
//
// If the node P, from which the print kernel would start, is a leaf, the match is one MEM or none.
// It is none if the base before it matches too, as it does after a suffix link from leaf to leaf.
__device__ __forceinline__ bool is_candidate(const Walk& walk, const NodeHalf& node,
                                             const Tree& tree, const Queries& queries,
                                             uint32 minimum_length) {
    if (walk.matched < minimum_length) {
        return false;
    }
    if (walk.start == walk.begin || !is_leaf(node) || parent_depth(node) >= minimum_length) {
        return true;
    }
    if (walk.climbs == 1) {
        return false;
    }
    const uint32 before = queries.code_at(walk.start - 1);
    return before == BREAK || before != preceding_base(tree.second_half(walk.address));
}

// Move on to the next suffix of the query, one base shorter.
__device__ __forceinline__ void follow_suffix_link(Walk& walk, const NodeHalf& node) {
    ++walk.start;
    walk.link_parent = node.number(PARENT);
    walk.address = node.number(SUFFIX_LINK);
    if (walk.matched <= 1) {
        walk.matched = 0;
        walk.address = ROOT;
    } else {
        --walk.matched;
    }
    walk.climbs = walk.address == ROOT ? 0 : 1;
}

// Pass the current node of a walk that follows a suffix link, if that takes the node alone: climb
// on, or follow the next suffix link from a match that is no candidate. Return whether it did.
__device__ __forceinline__ bool pass(Walk& walk, const Tree& tree, uint32 minimum_length) {
    const NodeHalf node = tree.node(walk.address);
    const uint32 above = parent_depth(node);
    if (above >= walk.matched) {
        climb(walk, node, tree);
        return true;
    }
    // As `is_candidate` has it; the walk is past the first base of its query.
    const bool is_short = walk.matched < minimum_length;
    const bool is_repeated = is_leaf(node) && above < minimum_length && walk.climbs == 1;
    if (walk.matched >= string_depth(node) || !(is_short || is_repeated) ||
        walk.start + minimum_length >= walk.end) {
        return false;
    }
    follow_suffix_link(walk, node);
    return true;
}

// Write a candidate at its index.
__device__ __forceinline__ void store(Candidate* candidates, uint64 index, const Walk& walk) {
    const uint4 words = {walk.start - walk.begin, walk.address, walk.matched, 0};
    if constexpr (STREAM_CANDIDATES) {
        __stcs(reinterpret_cast<uint4*>(candidates + index), words);
    } else {
        candidates[index] = Candidate{words.x, words.y, words.z, words.w};
    }
}

// Find the candidate matches of all queries.
//
// tree, reference  the tree of a page and the page's codes
// queries          the codes of the block
// offsets          uint64[query_count + 1], where each query begins in the block, then the end
// query_count      the number of queries
// minimum_length   the fewest bases of a match
// candidates       Candidate[bases of the block], receives the candidates of each query, from the
//                  index of the query's first base on
// counts           uint32[query_count], receives the number of candidates of each query
// next_query       uint32[1], zero before the launch, if QUERIES_BY_COUNTER is set; receives the
//                  number of queries that were taken, or asked for
// node_visits      uint64[1], if PROFILE is set, the number of visited nodes is added to it
//
// Grid: any number of threads, which take the queries in turn: as many as the device holds at once
// if QUERIES_BY_COUNTER is set, otherwise one for each query or fewer. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, MATCH_BLOCKS)
    match_kernel(Tree tree, Reference reference, Queries queries, const uint64* offsets,
                 uint32 query_count, uint32 minimum_length, Candidate* candidates, uint32* counts,
                 uint32* next_query, uint64* node_visits) {
    const QueryList list{offsets, query_count, minimum_length, next_query, counts};
    Walk walks[WALKS_PER_THREAD] = {};
    uint64 visits = 0;
    bool active = false;
#pragma unroll
    for (uint32 number = 0; number < WALKS_PER_THREAD; ++number) {
        walks[number].query = NO_QUERY;
        list.begin_next(walks[number], number);
        active |= walks[number].query != NO_QUERY;
    }
    while (active) {
        for (uint32 turn = 0; turn != SHORT_TURNS; ++turn) {
            bool passed = false;
#pragma unroll
            for (Walk& walk : walks) {
                if (walk.query != NO_QUERY && walk.climbs > 0 &&
                    pass(walk, tree, minimum_length)) {
                    passed = true;
                    visits += PROFILE;
                }
            }
            if (!passed) {
                break;
            }
        }
        Loaded loaded[WALKS_PER_THREAD];
#pragma unroll
        for (uint32 number = 0; number < WALKS_PER_THREAD; ++number) {
            if (walks[number].query != NO_QUERY) {
                loaded[number] = load(walks[number], tree, queries);
            }
        }
        active = false;
#pragma unroll
        for (uint32 number = 0; number < WALKS_PER_THREAD; ++number) {
            Walk& walk = walks[number];
            if (walk.query == NO_QUERY) {
                continue;
            }
            visits += PROFILE;
            if (visit(walk, loaded[number], tree, reference, queries)) {
                if (is_candidate(walk, loaded[number].node, tree, queries, minimum_length)) {
                    store(candidates, static_cast<uint64>(walk.begin) + walk.candidates++, walk);
                }
                if (walk.start + minimum_length < walk.end) {
                    follow_suffix_link(walk, loaded[number].node);
                } else {
                    counts[walk.query] = walk.candidates;
                    list.begin_next(walk, number);
                }
            }
            active |= walk.query != NO_QUERY;
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
