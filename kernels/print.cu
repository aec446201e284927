// The print kernel: from candidate matches to MEMs (paper, section 2.4).
//
// A thread works on one candidate match at a time. A depth-first search without a stack, by
// parent pointers alone, visits the leaves below P, the highest ancestor of the lowest node L
// whose string depth is at least the minimum length. Each leaf is an occurrence; its match is
// as long as the lowest common ancestor of leaf and L is deep, and it is a MEM if the base
// before it differs. The search runs twice: to count the MEMs, and to write them where the
// counts say. Every turn of the loop visits one node, of whichever candidate.
#pragma once

#include "match.cu"
#include "threads.cuh"

struct Page {
    uint64 begin;         // where the page begins in the joined reference
    uint32 base_count;    // its bases
    uint32 owned_count;   // how many of its suffixes it reports
    uint64 joined_count;  // the bases of the joined reference
    const uint8* joined_reference;  // to follow a match over the end of the page
};

struct Mems {
    long long* query_starts;      // positions within the query
    long long* reference_starts;  // positions in the joined reference
    long long* lengths;           // bases
};

// What the counting search leaves for the writing one, for each candidate.
struct Tops {
    uint32* addresses;  // of P
    uint32* lengths;    // the depth of P, or the length of the match if P is L
};

struct Search {
    uint64 candidate;
    uint64 place;         // of the candidate in its arrays
    uint32 query_begin;   // as positions in the block
    uint32 query_end;
    uint32 start;         // of the match, as a position in the block
    uint32 preceding;     // the code before it, BREAK at the first base of a query
    uint32 lowest;        // the address of L
    uint32 match_length;  // of the longest match
    uint32 top;           // the address of P
    uint32 node;          // the inner node whose children are being visited
    uint32 slot;          // the next of them
    uint32 leaf;          // a leaf to be visited before them, or NO_NODE
    uint32 distance;      // edges from `node` up to the query path
    uint32 length;        // the match at the last node of the query path that was passed
    uint64 found;         // MEMs so far, or where the next is written
};

__device__ __forceinline__ void load_candidate(Search& search, const Queries& queries,
                                               const uint64* offsets,
                                               const Candidates& candidates,
                                               const uint64* candidate_offsets,
                                               const uint32* candidate_queries) {
    const uint32 query = candidate_queries[search.candidate];
    search.query_begin = static_cast<uint32>(offsets[query]);
    search.query_end = static_cast<uint32>(offsets[query + 1]);
    search.place = search.query_begin + (search.candidate - candidate_offsets[query]);
    search.start = search.query_begin + candidates.query_starts[search.place];
    search.preceding =
        search.start > search.query_begin ? queries.code_at(search.start - 1) : BREAK;
    search.lowest = candidates.lowest_nodes[search.place];
    search.match_length = candidates.match_lengths[search.place];
}

// Find P: the first node on the way up from L whose parent is too shallow.
__device__ __forceinline__ void find_top(Search& search, const Tree& tree, uint32 minimum_length) {
    search.top = search.lowest;
    Half node = tree.node(search.top);
    while (parent_depth(node) >= minimum_length) {
        search.top = node.number(PARENT);
        node = tree.node(search.top);
    }
    search.length = search.top == search.lowest ? search.match_length : string_depth(node);
}

__device__ __forceinline__ bool is_mem(const Half& leaf, const Search& search, const Page& page) {
    return leaf.number(LEAF_ID) < page.owned_count &&
           (preceding_base(leaf) != search.preceding || search.preceding == BREAK);
}

__device__ __forceinline__ void write_mem(const Half& leaf, Search& search, uint32 length,
                                          const Queries& queries, const Page& page,
                                          const Mems& mems) {
    const uint64 reference_start = page.begin + leaf.number(LEAF_ID);
    if (reference_start + length == page.begin + page.base_count) {
        uint64 query_position = search.start + length;
        uint64 reference_position = reference_start + length;
        while (query_position < search.query_end && reference_position < page.joined_count) {
            const uint32 code = queries.code_at(query_position);
            if (code == BREAK || code != page.joined_reference[reference_position]) {
                break;
            }
            ++query_position;
            ++reference_position;
        }
        length = static_cast<uint32>(query_position - search.start);
    }
    mems.query_starts[search.found] = search.start - search.query_begin;
    mems.reference_starts[search.found] = static_cast<long long>(reference_start);
    mems.lengths[search.found] = length;
}

// Visit a leaf and go on to the next that ends behind the same bases, if there is one.
template <bool writing>
__device__ __forceinline__ void take_leaf(Search& search, uint32 address, const Half& leaf,
                                          const Queries& queries, const Page& page,
                                          const Mems& mems) {
    if (is_mem(leaf, search, page)) {
        if constexpr (writing) {
            const uint32 length = address == search.lowest ? search.match_length : search.length;
            write_mem(leaf, search, length, queries, page, mems);
        }
        ++search.found;
    }
    search.leaf = leaf.number(NEXT_LEAF);
}

// Leave a node whose children have all been visited; which child of the node above it was
// is known by comparing addresses. Return whether the search goes on.
template <bool writing>
__device__ __forceinline__ bool go_up(Search& search, const Tree& tree, Half& children) {
    if (search.node == search.top) {
        return false;
    }
    const uint32 came_from = search.node;
    search.node = tree.node(came_from).number(PARENT);
    children = tree.second_half(search.node);
    search.slot = 0;
    while (search.slot < BREAK && children.number(search.slot) != came_from) {
        ++search.slot;
    }
    ++search.slot;
    if constexpr (writing) {
        if (search.distance > 0) {
            --search.distance;
        } else {
            search.length = string_depth(tree.node(search.node));
        }
    }
    return true;
}

// Go down to an inner child; the query's next base tells whether it lies on the query path.
template <bool writing>
__device__ __forceinline__ void go_down(Search& search, uint32 child, const Tree& tree,
                                        const Queries& queries) {
    if constexpr (writing) {
        const bool on_path = search.distance == 0 && search.node != search.lowest &&
                             search.slot == queries.code_at(search.start + search.length);
        if (!on_path) {
            ++search.distance;
        } else if (child == search.lowest) {
            search.length = search.match_length;
        } else {
            search.length = string_depth(tree.node(child));
        }
    }
    search.node = child;
    search.slot = 0;
}

// Visit one more node; return whether there are others.
template <bool writing>
__device__ __forceinline__ bool step(Search& search, Half& children, const Tree& tree,
                                     const Queries& queries, const Page& page, const Mems& mems) {
    uint32 address = search.leaf;
    if (address == NO_NODE) {
        while (search.slot <= BREAK && address == NO_NODE) {
            address = children.number(search.slot++);
        }
        if (address == NO_NODE) {
            return go_up<writing>(search, tree, children);
        }
    }
    const Half second_half = tree.second_half(address);
    if (belongs_to_leaf(second_half)) {
        take_leaf<writing>(search, address, second_half, queries, page, mems);
        // A search whose P is a leaf has no node to return to.
        return search.leaf != NO_NODE || address != search.top;
    }
    --search.slot;
    go_down<writing>(search, address, tree, queries);
    children = second_half;
    return true;
}

// Begin with a candidate at P, whose children are the first to be visited.
__device__ __forceinline__ void begin_search(Search& search, Half& children, const Tree& tree) {
    search.node = search.top;
    search.slot = 0;
    search.distance = 0;
    children = tree.second_half(search.top);
    search.leaf = belongs_to_leaf(children) ? search.top : NO_NODE;
}

// Count the MEMs of each candidate, and keep what is known of P.
extern "C" __global__ void __launch_bounds__(256)
    count_mems(Tree tree, Queries queries, const uint64* offsets, uint32 minimum_length,
               Candidates candidates, const uint64* candidate_offsets,
               const uint32* candidate_queries, uint64 candidate_count, Page page, Tops tops,
               uint32* counts, uint64* node_visits) {
    Search search;
    Half children;
    uint64 visits = 0;
    search.candidate = first_item();
    bool begun = false;
    while (search.candidate < candidate_count) {
        if (!begun) {
            load_candidate(search, queries, offsets, candidates, candidate_offsets,
                           candidate_queries);
            find_top(search, tree, minimum_length);
            tops.addresses[search.candidate] = search.top;
            tops.lengths[search.candidate] = search.length;
            begin_search(search, children, tree);
            search.found = 0;
            begun = true;
        }
        if constexpr (PROFILE) {
            ++visits;
        }
        if (!step<false>(search, children, tree, queries, page, Mems())) {
            counts[search.candidate] = static_cast<uint32>(search.found);
            search.candidate += item_step();
            begun = false;
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}

// Write the MEMs of each candidate where they have been counted.
extern "C" __global__ void __launch_bounds__(256)
    write_mems(Tree tree, Queries queries, const uint64* offsets, Candidates candidates,
               const uint64* candidate_offsets, const uint32* candidate_queries,
               uint64 candidate_count, Page page, Tops tops, const uint64* mem_offsets, Mems mems,
               uint64* node_visits) {
    Search search;
    Half children;
    uint64 visits = 0;
    search.candidate = first_item();
    bool begun = false;
    while (search.candidate < candidate_count) {
        if (!begun) {
            load_candidate(search, queries, offsets, candidates, candidate_offsets,
                           candidate_queries);
            search.top = tops.addresses[search.candidate];
            search.length = tops.lengths[search.candidate];
            begin_search(search, children, tree);
            search.found = mem_offsets[search.candidate];
            begun = true;
        }
        if constexpr (PROFILE) {
            ++visits;
        }
        if (!step<true>(search, children, tree, queries, page, mems)) {
            search.candidate += item_step();
            begun = false;
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
