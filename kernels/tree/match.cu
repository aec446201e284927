// The match kernel: the longest match of every suffix of every query (paper, section 2.3).
//
// A thread works on one query, and takes the next one when it is done. A match is described by its
// length and by the lowest node that it reaches: the match stops in the edge of that node, or at
// the node itself. Every turn of the loop visits one node. The threads of a warp thus visit
// different nodes, but execute the same instructions.
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

static_assert(sizeof(Candidate) == CANDIDATE_BYTES, "as the host allocates them");

// The most nodes that a thread visits while it climbs from the target of a suffix link. After that
// it goes down from the target of the parent's suffix link instead.
constexpr uint32 MOST_CLIMBS = 4;

// The state of a thread that matches a query.
struct Walk {
    uint32 query;        // the number of the query
    uint32 begin;        // where the query begins in the block
    uint32 end;          // where the query ends in the block
    uint32 start;        // where the matched suffix begins in the block
    uint32 matched;      // the number of bases of the suffix known to match
    uint32 address;      // the node to visit
    uint32 link_parent;  // the parent of the node whose suffix link was followed
    uint32 climbs;       // nodes visited since then, with this one; 0 once the walk went down
    uint32 candidates;   // the number of candidates of this query so far
};

// Begin with a query, or with this thread's next query that is long enough; shorter queries have
// no candidates. Return whether there is such a query.
__device__ __forceinline__ bool begin_query(Walk& walk, uint64 query, const uint64* offsets,
                                            uint32 query_count, uint32 minimum_length,
                                            uint32* counts) {
    for (; query < query_count; query += grid_threads()) {
        walk.query = static_cast<uint32>(query);
        walk.begin = static_cast<uint32>(offsets[query]);
        walk.end = static_cast<uint32>(offsets[query + 1]);
        walk.start = walk.begin;
        walk.matched = 0;
        walk.address = ROOT;
        walk.climbs = 0;
        walk.candidates = 0;
        if (walk.end - walk.begin >= minimum_length) {
            return true;
        }
        counts[query] = 0;
    }
    return false;
}

// Return the query's code that selects the next child of a node of string depth `depth`. `codes`
// is the word of the query that begins where the known match ends.
__device__ __forceinline__ uint32 next_code(const Walk& walk, uint32 depth, uint32 known,
                                            uint64 codes, const Queries& queries) {
    const uint32 ahead = depth - known;
    return ahead < CODES_IN_WORD ? static_cast<uint32>(codes >> 8 * ahead) & 0xFF
                                 : queries.code_at(walk.start + depth);
}

// Visit the current node of the walk and choose the next one. Return whether the match has ended.
//
// A suffix link leads to the node whose path is the last node's path without its first base. If
// the known match ends in the edge of that node or above it, it ends there as the last match did,
// because the bases are the same. Only a match that ends exactly at a node can be extended. Above
// the end of the known match the walk compares only the first base of each edge (skip and count);
// below it, every base.
//
// A thread waits for memory nearly all the time. It therefore loads early what it will probably
// need: the next bases of the query, and both halves of the node if they share a memory sector or
// if the walk came down to the node.
__device__ __forceinline__ bool visit(Walk& walk, const NodeHalf& node, const NodeHalf& children,
                                      uint64 codes, bool has_children, const Tree& tree,
                                      const Reference& reference, const Queries& queries) {
    const uint32 depth = string_depth(node);
    const uint32 known = walk.matched;
    if (walk.climbs > 0) {
        if (parent_depth(node) >= known) {
            if (walk.climbs++ < MOST_CLIMBS) {
                walk.address = node.number(PARENT);
            } else {
                walk.address = tree.node(walk.link_parent).number(SUFFIX_LINK);
                walk.climbs = 0;
            }
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
    const uint32 code = depth < known ? queries.code_at(walk.start + depth)
                                      : next_code(walk, depth, known, codes, queries);
    const uint32 child = code >= BREAK ? NO_NODE
                         : has_children ? children.number(code)
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
// node_visits      uint64[1], if PROFILE is set, the number of visited nodes is added to it
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    match_kernel(Tree tree, Reference reference, Queries queries, const uint64* offsets,
                 uint32 query_count, uint32 minimum_length, Candidate* candidates, uint32* counts,
                 uint64* node_visits) {
    Walk walk;
    uint64 visits = 0;
    bool active =
        begin_query(walk, grid_thread(), offsets, query_count, minimum_length, counts);
    while (active) {
        const bool has_children = MERGED_TREE || walk.climbs == 0;
        const NodeHalf node = tree.node(walk.address);
        NodeHalf children = NodeHalf();
        if (has_children) {
            children = tree.second_half(walk.address);
        }
        const uint64 codes = queries.word_at(walk.start + walk.matched);
        if constexpr (PROFILE) {
            ++visits;
        }
        if (!visit(walk, node, children, codes, has_children, tree, reference, queries)) {
            continue;
        }
        if (is_candidate(walk, node, tree, queries, minimum_length)) {
            const uint64 index = static_cast<uint64>(walk.begin) + walk.candidates++;
            candidates[index] =
                Candidate{walk.start - walk.begin, walk.address, walk.matched, 0};
        }
        if (walk.start + minimum_length < walk.end) {
            follow_suffix_link(walk, node);
        } else {
            counts[walk.query] = walk.candidates;
            active = begin_query(walk, walk.query + grid_threads(), offsets, query_count,
                                 minimum_length, counts);
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
