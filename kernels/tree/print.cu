// The print kernel: from candidate matches to MEMs (paper, section 2.4).
//
// A thread works on one candidate match at a time. L is the lowest node of the match, and P is the
// highest ancestor of L whose string depth is at least the minimum length. A depth-first search
// visits all leaves below P; it needs no stack, because it follows parent pointers. Each leaf is
// an occurrence. Its match is as long as the string depth of the lowest common ancestor of the
// leaf and L. The match is a MEM if the bases before it differ in the query and the reference.
//
// `count_mems` counts the MEMs of each candidate, and keeps them if they are few. `write_mems`
// writes the kept MEMs at the offsets that follow from the counts, and repeats the search only
// for candidates with more MEMs.
//
// The kernels read a tree, a block of queries and its candidate matches; they write MEMs as
// columns.
#pragma once

#include "common/mems.cuh"
#include "tree/match.cu"

// A node has one child slot for each base, and one for the $ child.
constexpr uint32 SLOTS = BREAK + 1;

// A page's part of the reference.
struct Page {
    uint64 begin;         // the page's first base, as a position in the joined reference
    uint32 base_count;    // the number of bases in the page
    uint32 owned_count;   // the page reports suffixes that begin in its first owned_count bases
    uint64 joined_count;  // the number of bases in the joined reference
    const uint8* joined_reference;  // uint8[joined_count], to follow a match beyond the page
};

// A MEM as `count_mems` keeps it: the suffix of the page in the high 32 bits, the length in the
// low 32 bits. The numbers therefore sort by suffix.
using KeptMem = uint64;
constexpr KeptMem NO_MEM = ~0ull;

// The sorted MEMs of one candidate that has at most KEPT_MEMS of them.
struct KeptMems {
    KeptMem mems[KEPT_MEMS];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (uint32 index = 0; index < KEPT_MEMS; ++index) {
            mems[index] = NO_MEM;
        }
    }

    __device__ __forceinline__ void insert(KeptMem mem) {
#pragma unroll
        for (uint32 index = 0; index < KEPT_MEMS; ++index) {
            const KeptMem other = mems[index];
            mems[index] = min(other, mem);
            mem = max(other, mem);
        }
    }
};

static_assert(sizeof(KeptMems) == KEPT_MEMS_BYTES, "as the host allocates them");

// The state of a thread that searches below one candidate's node.
struct Search {
    uint32 query_begin;   // where the query begins in the block
    uint32 query_end;     // where the query ends in the block
    uint32 start;         // where the match begins in the block
    uint32 preceding;     // the code before the match, or BREAK at the first base of a query
    uint32 lowest;        // the address of L
    uint32 match_length;  // the length of the longest match
    uint32 top;           // the address of P
    uint32 node;          // the inner node whose children are visited
    uint32 distance;      // edges from `node` up to the query's path
    uint32 length;        // the match length at the last node passed on the query's path
};

// Read a candidate match. The arguments are those of the kernels.
__device__ __forceinline__ void load_candidate(Search& search, uint64 candidate,
                                               const Queries& queries, const uint64* offsets,
                                               const Candidate* candidates,
                                               const uint64* candidate_offsets,
                                               const uint32* candidate_queries) {
    const uint32 query = candidate_queries[candidate];
    search.query_begin = static_cast<uint32>(offsets[query]);
    search.query_end = static_cast<uint32>(offsets[query + 1]);
    const uint64 index = search.query_begin + (candidate - candidate_offsets[query]);
    const Candidate found = candidates[index];
    search.start = search.query_begin + found.query_start;
    search.preceding =
        search.start > search.query_begin ? queries.code_at(search.start - 1) : BREAK;
    search.lowest = found.lowest_node;
    search.match_length = found.match_length;
}

// Find P: climb from L to the first node whose parent's string depth is below the minimum length.
__device__ __forceinline__ void find_top(Search& search, const Tree& tree, uint32 minimum_length) {
    search.top = search.lowest;
    NodeHalf node = tree.node(search.top);
    while (parent_depth(node) >= minimum_length) {
        search.top = node.number(PARENT);
        node = tree.node(search.top);
    }
    search.length = search.top == search.lowest ? search.match_length : string_depth(node);
    search.node = search.top;
    search.distance = 0;
}

// Visit the leaf at an address and the leaves that end at the same bases. Call `take` with the
// suffix and the match length of each that is a MEM and that the page owns.
template <typename Take>
__device__ __forceinline__ void visit_leaves(const Search& search, uint32 address, NodeHalf leaf,
                                             const Tree& tree, const Page& page, Take& take) {
    const uint32 length = address == search.lowest ? search.match_length : search.length;
    for (;;) {
        const uint32 suffix = leaf.number(LEAF_ID);
        if (suffix < page.owned_count &&
            (preceding_base(leaf) != search.preceding || search.preceding == BREAK)) {
            take(suffix, length);
        }
        const uint32 next = leaf.number(NEXT_LEAF);
        if (next == NO_NODE) {
            return;
        }
        leaf = tree.second_half(next);
    }
}

// Go down to an inner child. The query's next base shows whether the child is on the query's path.
__device__ __forceinline__ void go_down(Search& search, uint32 slot, uint32 child,
                                        const Tree& tree, const Queries& queries) {
    const bool on_path = search.distance == 0 && search.node != search.lowest &&
                         slot == queries.code_at(search.start + search.length);
    if (!on_path) {
        ++search.distance;
    } else if (child == search.lowest) {
        search.length = search.match_length;
    } else {
        search.length = string_depth(tree.node(child));
    }
    search.node = child;
}

// Go up from a node whose children have all been visited. Return the node's slot in its parent,
// found by comparing addresses.
__device__ __forceinline__ uint32 go_up(Search& search, const Tree& tree, NodeHalf& children) {
    const uint32 came_from = search.node;
    search.node = tree.node(came_from).number(PARENT);
    children = tree.second_half(search.node);
    if (search.distance > 0) {
        --search.distance;
    } else {
        search.length = string_depth(tree.node(search.node));
    }
    uint32 slot = 0;
    while (slot < BREAK && children.number(slot) != came_from) {
        ++slot;
    }
    return slot;
}

// Read all children of a node at once. Visit its leaves if `leaves_too` is set, as it is on the
// first visit to the node. Return the slot of the first inner child from slot `first` on, and
// replace `children` by that child's second half; return SLOTS if there is no such child.
template <typename Take>
__device__ __forceinline__ uint32 visit_children(const Search& search, NodeHalf& children,
                                                 uint32 first, bool leaves_too, const Tree& tree,
                                                 const Page& page, Take& take) {
    NodeHalf halves[SLOTS];
    uint32 addresses[SLOTS];
#pragma unroll
    for (uint32 slot = 0; slot < SLOTS; ++slot) {
        addresses[slot] = slot >= first ? children.number(slot) : NO_NODE;
        halves[slot] = NodeHalf();
        if (addresses[slot] != NO_NODE) {
            halves[slot] = tree.second_half(addresses[slot]);
        }
    }
    uint32 inner = SLOTS;
#pragma unroll
    for (uint32 down = SLOTS; down > 0; --down) {
        const uint32 slot = down - 1;
        if (addresses[slot] == NO_NODE) {
            continue;
        }
        if (!belongs_to_leaf(halves[slot])) {
            inner = slot;
            children = halves[slot];
        } else if (leaves_too) {
            visit_leaves(search, addresses[slot], halves[slot], tree, page, take);
        }
    }
    return inner;
}

// Visit all leaves below P; return the number of nodes visited.
template <typename Take>
__device__ __forceinline__ uint32 search_below(Search& search, const Tree& tree,
                                               const Queries& queries, const Page& page,
                                               Take& take) {
    uint32 visits = 1;
    NodeHalf children = tree.second_half(search.top);
    if (belongs_to_leaf(children)) {
        visit_leaves(search, search.top, children, tree, page, take);
        return visits;
    }
    uint32 first = 0;
    for (;;) {
        const NodeHalf here = children;
        const uint32 slot =
            visit_children(search, children, first, first == 0, tree, page, take);
        ++visits;
        if (slot < SLOTS) {
            go_down(search, slot, here.number(slot), tree, queries);
            first = 0;
            continue;
        }
        // The parent may have more children after the slot just left; earlier slots are done.
        do {
            if (search.node == search.top) {
                return visits;
            }
            first = go_up(search, tree, children) + 1;
            ++visits;
        } while (first >= SLOTS);
    }
}

// Counts the MEMs of a candidate, and keeps the KEPT_MEMS smallest.
struct Keeper {
    KeptMems kept;
    uint32 count;

    __device__ __forceinline__ void operator()(uint32 suffix, uint32 length) {
        kept.insert(static_cast<uint64>(suffix) << 32 | length);
        ++count;
    }
};

// Count the MEMs of each candidate, and keep them if they are few.
//
// tree               the tree of a page
// queries            the codes of the block
// offsets            uint64[queries + 1], where each query begins in the block, then the end
// minimum_length     the fewest bases of a MEM
// candidates         Candidate[bases of the block], as `match_kernel` writes them
// candidate_offsets  uint64[queries + 1], the number of candidates before each query, then of all
// candidate_queries  uint32[candidate_count], the query of each candidate
// candidate_count    the number of candidates
// page               the page's part of the reference
// kept_mems          KeptMems[candidate_count], receives the MEMs of candidates with 1 to KEPT_MEMS
// counts             uint32[candidate_count], receives the number of MEMs of each candidate
// node_visits        uint64[1], if PROFILE is set, the number of visited nodes is added to it
//
// Grid: one thread for each candidate, or fewer threads that take several candidates in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_mems(Tree tree, Queries queries, const uint64* offsets, uint32 minimum_length,
               const Candidate* candidates, const uint64* candidate_offsets,
               const uint32* candidate_queries, uint64 candidate_count, Page page,
               KeptMems* kept_mems, uint32* counts, uint64* node_visits) {
    uint64 visits = 0;
    for (uint64 candidate = grid_thread(); candidate < candidate_count;
         candidate += grid_threads()) {
        Search search;
        load_candidate(search, candidate, queries, offsets, candidates, candidate_offsets,
                       candidate_queries);
        find_top(search, tree, minimum_length);
        Keeper keeper;
        keeper.kept.clear();
        keeper.count = 0;
        visits += search_below(search, tree, queries, page, keeper);
        counts[candidate] = keeper.count;
        if (keeper.count > 0 && keeper.count <= KEPT_MEMS) {
            kept_mems[candidate] = keeper.kept;
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}

// Writes the MEMs of a candidate into consecutive rows.
struct Writer {
    const Search& search;
    const Queries& queries;
    const Page& page;
    const MemColumns& mems;
    uint64 row;

    // Return the full length of a match. If the match reaches the end of its page, follow it in
    // the joined reference.
    __device__ __forceinline__ uint32 whole_length(uint64 reference_start, uint32 length) const {
        if (reference_start + length != page.begin + page.base_count) {
            return length;
        }
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
        return static_cast<uint32>(query_position - search.start);
    }

    __device__ __forceinline__ void operator()(uint32 suffix, uint32 length) {
        const uint64 reference_start = page.begin + suffix;
        mems.query_starts[row] = search.start - search.query_begin;
        mems.reference_starts[row] = static_cast<long long>(reference_start);
        mems.lengths[row] = whole_length(reference_start, length);
        ++row;
    }
};

// Write the MEMs of each candidate into consecutive rows, from the candidate's offset on.
//
// kept_mems    KeptMems[candidate_count], as `count_mems` writes it
// mem_offsets  uint64[candidate_count + 1], prefix sums of `counts` of `count_mems`
// mems         three columns of mem_offsets[candidate_count] rows each, receives the MEMs
//
// Every other parameter is as for `count_mems`.
//
// Grid: one thread for each candidate, or fewer threads that take several candidates in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_mems(Tree tree, Queries queries, const uint64* offsets, uint32 minimum_length,
               const Candidate* candidates, const uint64* candidate_offsets,
               const uint32* candidate_queries, uint64 candidate_count, Page page,
               const KeptMems* kept_mems, const uint64* mem_offsets, MemColumns mems,
               uint64* node_visits) {
    uint64 visits = 0;
    for (uint64 candidate = grid_thread(); candidate < candidate_count;
         candidate += grid_threads()) {
        const uint64 row = mem_offsets[candidate];
        const uint64 count = mem_offsets[candidate + 1] - row;
        if (count == 0) {
            continue;
        }
        Search search;
        load_candidate(search, candidate, queries, offsets, candidates, candidate_offsets,
                       candidate_queries);
        Writer writer{search, queries, page, mems, row};
        if (count <= KEPT_MEMS) {
            const KeptMems kept = kept_mems[candidate];
#pragma unroll
            for (uint32 index = 0; index < KEPT_MEMS; ++index) {
                if (index < count) {
                    writer(static_cast<uint32>(kept.mems[index] >> 32),
                           static_cast<uint32>(kept.mems[index]));
                }
            }
        } else {
            find_top(search, tree, minimum_length);
            visits += search_below(search, tree, queries, page, writer);
        }
    }
    if constexpr (PROFILE) {
        atomicAdd(node_visits, visits);
    }
}
