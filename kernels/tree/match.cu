// The match kernel: the longest match of every suffix of every query (paper, section 2.3).
//
// A thread works on one query, and on its next one when it is done. A match is described by the
// lowest node reached, in whose edge or at whose end it stops, and by the bases matched. Every
// turn of the loop visits one node: the threads of a warp differ in which node they visit, not in
// what they do.
//
// Reads a tree, the codes of its page, and a block of queries; writes candidate matches.
#pragma once

#include "common/grid.cuh"
#include "tree/codes.cuh"
#include "tree/tree.cuh"

// A candidate match, written and read in one piece. The candidates of a query begin at the index
// of the query's first base in the block, so there is room for one at each position.
struct alignas(16) Candidate {
    uint32 query_start;   // position in the query
    uint32 lowest_node;   // address
    uint32 match_length;  // in bases: the depth of the node's parent and the part of its edge
    uint32 unused;
};

static_assert(sizeof(Candidate) == CANDIDATE_BYTES, "the host allocates so much for each");

// The most nodes visited on the way up from where a suffix link has led; then the way down from
// the parent's suffix link is taken instead.
constexpr uint32 MOST_CLIMBS = 4;

struct Walk {
    uint32 query;
    uint32 begin;        // of the query, as a position in the block
    uint32 end;          // of the query
    uint32 start;        // of the suffix that is matched
    uint32 matched;      // how many of its bases are known to match
    uint32 address;      // the node to visit
    uint32 link_parent;  // the parent of the node that the suffix link started from
    uint32 climbs;       // nodes visited since, this one included; 0 after a way down
    uint32 candidates;   // how many this query has so far
};

// Begin with a query, or with the next of this thread that is long enough; shorter ones have no
// candidates. Return whether there is one.
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

// Return the code of the query by which the walk goes on from a node of some depth. `codes` is
// the word of the query that begins where the known match ends.
__device__ __forceinline__ uint32 next_code(const Walk& walk, uint32 depth, uint32 known,
                                            uint64 codes, const Queries& queries) {
    const uint32 ahead = depth - known;
    return ahead < CODES_IN_WORD ? static_cast<uint32>(codes >> 8 * ahead) & 0xFF
                                 : queries.code_at(walk.start + depth);
}

// Go on from the node that the walk has come to; return whether its match has ended.
//
// A suffix link leads to the node whose path is that of the last node without its first base. In
// its edge, or above, the match ends as the last one did, because the bases are the same; only
// exactly at a node can it go on another way. Above the end of the known match, only the first
// base of each edge is looked at (skip and count); below it every base.
//
// A thread waits for memory nearly all the time. So it asks at once for whatever it will probably
// need: both halves of the node, where they share a sector or a way down has led here, and the
// next bases of the query.
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
// If the node P that the print kernel would start from is a leaf, the match is one MEM or none:
// none if the base before it matches too, as it does where a suffix link led from leaf to leaf.
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
// offsets          uint64[query_count + 1], where in the block each query begins, then its end
// query_count      how many queries there are
// minimum_length   the fewest bases of a match
// candidates       Candidate[bases of the block], receives those of a query from its first base on
// counts           uint32[query_count], receives how many candidates each query has
// node_visits      uint64[1], the visited nodes are added to it if PROFILE is set
//
// Grid: one thread for each query, or fewer. Shared memory: none.
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
