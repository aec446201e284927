// The match kernel: the longest match of every suffix of every query (paper, section 2.3).
//
// A thread works on one query, and on the next of its own when it is done. Where a match
// stands is told by the lowest node reached, in whose edge or at whose end it stops,
// and by the bases matched. Every turn of the loop visits one node: what differs between
// the threads of a warp is which node, not what is done.
#pragma once

#include "sequence_access.cuh"
#include "threads.cuh"
#include "tree_access.cuh"

// A candidate match as the match kernel writes it, at once. Those of a query begin at the place
// of its first base, which is room for one at each position.
struct alignas(16) Candidate {
    uint32 query_start;   // position within the query
    uint32 lowest_node;   // address
    uint32 match_length;  // bases: the depth of the node's parent and the part of its edge
    uint32 unused;        // so that it is written and read in one piece
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

// Begin with a query that is long enough, or with the next that is; the others have no
// candidates. Return whether there is one.
__device__ __forceinline__ bool begin_query(Walk& walk, uint64 query, const uint64* offsets,
                                            uint32 query_count, uint32 minimum_length,
                                            uint32* counts) {
    for (; query < query_count; query += item_step()) {
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

// Return the code of the query by which the walk goes on from a node of some depth; `codes`
// are those from the end of what is known to match on.
__device__ __forceinline__ uint32 next_code(const Walk& walk, uint32 depth, uint32 known,
                                            uint64 codes, const Queries& queries) {
    const uint32 ahead = depth - known;
    return ahead < CODES_IN_WORD ? static_cast<uint32>(codes >> 8 * ahead) & 0xFF
                                 : queries.code_at(walk.start + depth);
}

// Go on from the node that the walk has come to; return whether its match has ended.
//
// A suffix link leads to the node whose path is that of the last one less its first base. In
// its edge, or above, the match ends as the last one did, because the bases are the same; only
// exactly at a node it can go on another way. Above the end of what is known to match, only
// the first base of each edge is looked at (skip and count); from there on every base.
//
// A thread waits for memory nearly all the time. So what will probably be needed is asked for
// at once: both halves of the node, where they share a sector or a way down has led here, and
// the next bases of the query.
__device__ __forceinline__ bool visit(Walk& walk, const Half& node, const Half& children,
                                      uint64 codes, bool has_children, const Tree& tree,
                                      const Reference& reference, const Queries& queries) {
    const uint32 depth = string_depth(node);
    const uint32 known = walk.matched;
    if (walk.climbs > 0) {
        if (parent_depth(node) >= known) {
            if (walk.climbs++ < MOST_CLIMBS) {
                walk.address = node.number(PARENT);
            } else {
                walk.address = tree.node(walk.way_back).number(SUFFIX_LINK);
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
                 uint32 query_count, uint32 minimum_length, Candidate* candidates, uint32* counts,
                 uint64* node_visits) {
    Walk walk;
    uint64 visits = 0;
    bool active =
        begin_query(walk, first_item(), offsets, query_count, minimum_length, counts);
    while (active) {
        const bool has_children = MERGED_TREE || walk.climbs == 0;
        const Half node = tree.node(walk.address);
        Half children = Half();
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
            const uint64 place = static_cast<uint64>(walk.begin) + walk.candidates++;
            candidates[place] =
                Candidate{walk.start - walk.begin, walk.address, walk.matched, 0};
        }
        if (walk.start + minimum_length < walk.end) {
            follow_suffix_link(walk, node);
        } else {
            counts[walk.query] = walk.candidates;
            active = begin_query(walk, walk.query + item_step(), offsets, query_count,
                                 minimum_length, counts);
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
