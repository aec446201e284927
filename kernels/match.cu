// The match kernel: the longest match of every suffix of every query (paper, section 2.3).
//
// A thread works on one query, and takes the next that nobody has when it is done. Where a
// match stands is told by the lowest node reached, in whose edge or at whose end it stops,
// and by the bases matched. Every turn of the loop visits one node: what differs between
// the threads of a warp is which node, not what is done.
#pragma once

#include "sequence_access.cuh"
#include "tree_access.cuh"

// Candidate matches, as the match kernel writes them: those of a query begin at the place of
// its first base, which is room for one at each position.
struct Candidates {
    uint32* query_starts;   // positions within the query
    uint32* lowest_nodes;   // addresses
    uint32* match_lengths;  // bases: the depth of the node's parent and the part of its edge
};

// Going up from where a suffix link has led, this many nodes are visited before the way
// down from the parent's suffix link is taken instead.
constexpr uint32 MOST_CLIMBS = 4;

struct Walk {
    uint32 query;
    uint32 begin;        // of the query, as a position in the block
    uint32 end;
    uint32 start;        // of the suffix that is matched
    uint32 matched;      // its bases that are known to match
    uint32 address;      // the node to visit
    uint32 way_back;     // the parent of the node that the suffix link started from
    uint32 climbs;       // nodes visited since, this one included; 0 after a way down
    uint32 candidates;   // of this query, so far
};

// Take the next query that is long enough; the others have no candidates.
__device__ __forceinline__ bool begin_query(Walk& walk, const uint64* offsets, uint32 query_count,
                                            uint32 minimum_length, uint32* counts,
                                            uint32* next_query) {
    for (;;) {
        walk.query = atomicAdd(next_query, 1u);
        if (walk.query >= query_count) {
            return false;
        }
        walk.begin = static_cast<uint32>(offsets[walk.query]);
        walk.end = static_cast<uint32>(offsets[walk.query + 1]);
        walk.start = walk.begin;
        walk.matched = 0;
        walk.address = ROOT;
        walk.climbs = 0;
        walk.candidates = 0;
        if (walk.end - walk.begin >= minimum_length) {
            return true;
        }
        counts[walk.query] = 0;
    }
}

// Go on from the node that the walk has come to; return whether its match has ended.
//
// A suffix link leads to the node whose path is that of the last one less its first base. In
// its edge, or above, the match ends as the last one did, because the bases are the same; only
// exactly at a node it can go on another way. Above the end of what is known to match, only
// the first base of each edge is looked at (skip and count); from there on every base.
__device__ __forceinline__ bool visit(Walk& walk, const Half& node, const Tree& tree,
                                      const Reference& reference, const Queries& queries) {
    const uint32 depth = string_depth(node);
    if (walk.climbs > 0) {
        if (parent_depth(node) >= walk.matched) {
            if (walk.climbs++ < MOST_CLIMBS) {
                walk.address = node.number(PARENT);
            } else {
                walk.address = tree.node(walk.way_back).number(SUFFIX_LINK);
                walk.climbs = 0;
            }
            return false;
        }
        if (walk.matched < depth) {
            return true;
        }
    } else if (depth > walk.matched) {
        const uint32 rest = min(depth - walk.matched, walk.end - walk.start - walk.matched);
        walk.matched += count_equal(queries, walk.start + walk.matched, reference,
                                    path_start(node) + walk.matched, rest);
        if (walk.matched < depth) {
            return true;
        }
    }
    if (is_leaf(node) || walk.start + depth >= walk.end) {
        return true;
    }
    const uint32 code = queries.code_at(walk.start + depth);
    const uint32 child = code < BREAK ? tree.child(walk.address, code) : NO_NODE;
    if (child == NO_NODE) {
        return true;
    }
    walk.address = child;
    walk.climbs = 0;
    walk.matched = max(walk.matched, depth + 1);
    return false;
}

// Return whether a match that has ended is long enough, and may be left maximal.
//
// A match whose node P of the print kernel is a leaf is one MEM or none: none if the base
// before it matches too, as it does where a suffix link led from leaf to leaf.
__device__ __forceinline__ bool is_candidate(const Walk& walk, const Half& node, const Tree& tree,
                                             const Queries& queries, uint32 minimum_length) {
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
__device__ __forceinline__ void follow_suffix_link(Walk& walk, const Half& node) {
    ++walk.start;
    walk.way_back = node.number(PARENT);
    walk.address = node.number(SUFFIX_LINK);
    if (walk.matched <= 1) {
        walk.matched = 0;
        walk.address = ROOT;
    } else {
        --walk.matched;
    }
    walk.climbs = walk.address == ROOT ? 0 : 1;
}

extern "C" __global__ void __launch_bounds__(256)
    match_kernel(Tree tree, Reference reference, Queries queries, const uint64* offsets,
                 uint32 query_count, uint32 minimum_length, Candidates candidates, uint32* counts,
                 uint32* next_query, uint64* node_visits) {
    Walk walk;
    uint64 visits = 0;
    bool active = begin_query(walk, offsets, query_count, minimum_length, counts, next_query);
    while (active) {
        const Half node = tree.node(walk.address);
        if constexpr (PROFILE) {
            ++visits;
        }
        if (!visit(walk, node, tree, reference, queries)) {
            continue;
        }
        if (is_candidate(walk, node, tree, queries, minimum_length)) {
            const uint64 place = static_cast<uint64>(walk.begin) + walk.candidates++;
            candidates.query_starts[place] = walk.start - walk.begin;
            candidates.lowest_nodes[place] = walk.address;
            candidates.match_lengths[place] = walk.matched;
        }
        if (walk.start + minimum_length < walk.end) {
            follow_suffix_link(walk, node);
        } else {
            counts[walk.query] = walk.candidates;
            active = begin_query(walk, offsets, query_count, minimum_length, counts, next_query);
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
