// The print kernel: from candidate matches to MEMs (paper, section 2.4).
//
// L is the lowest node of a candidate match, and P is the highest ancestor of L whose string depth
// is at least the minimum length. Each leaf below P is an occurrence. Its match is as long as the
// string depth of the lowest common ancestor of the leaf and L. The match is a MEM if the bases
// before it differ in the query and the reference.
//
// In the paper a thread searches below one P. Most candidates have few leaves below theirs and some
// have thousands, so the lanes of a warp share the searches of 32 candidates: `find_mems` keeps the
// nodes to visit in shared memory, and each lane visits one of the last of them. A node is read
// once for each candidate. If the nodes to visit become too many, the warp searches below the last
// one as the paper does: it needs no stack, because it follows parent pointers.
//
// A search does not know how many MEMs it will find. `find_mems` writes them in any order, each with
// its candidate and its number among the candidate's. `place_mems` writes them as columns, at the
// offsets that follow from the counts.
//
// The kernels read a tree, a block of queries and its candidate matches; they write MEMs as
// columns.
#pragma once

#include "common/mems.cuh"
#include "common/warp.cuh"
#include "tree/match.cu"

// A node has one child slot for each base, and one for the $ child.
constexpr uint32 SLOTS = BREAK + 1;

constexpr uint32 BLOCK_WARPS = BLOCK_THREADS / WARP_LANES;

// The candidates beside each other that a warp takes; it takes as many from other places.
constexpr uint32 NEIGHBOURS = 2;

// A page's part of the reference.
struct Page {
    uint64 begin;         // the page's first base, as a position in the joined reference
    uint32 base_count;    // the number of bases in the page
    uint32 owned_count;   // the page reports suffixes that begin in its first owned_count bases
    uint64 joined_count;  // the number of bases in the joined reference
    const uint8* joined_reference;  // uint8[joined_count], to follow a match beyond the page
};

// The candidate matches of a block, as `match_kernel` and `assign_queries` write them.
struct Candidates {
    const Candidate* records;  // Candidate[bases of the block]
    const uint64* offsets;     // uint64[queries + 1], the candidates before each query, then all
    const uint32* queries;     // uint32[count], the query of each candidate
    uint64 count;              // the number of candidates

    // Return a candidate's record, given the candidate's query and where that begins in the block.
    __device__ __forceinline__ Candidate record(uint64 candidate, uint32 query,
                                                uint64 query_begin) const {
        return records[query_begin + (candidate - offsets[query])];
    }

    // Return where a candidate's matches begin in its query, given where queries begin.
    __device__ __forceinline__ uint32 query_start(uint64 candidate,
                                                  const uint64* query_begins) const {
        const uint32 query = queries[candidate];
        return record(candidate, query, query_begins[query]).query_start;
    }
};

// A MEM as `find_mems` writes it, as one 16-byte word.
struct alignas(16) FoundMem {
    uint32 candidate;  // or NO_CANDIDATE, in a place that was left empty
    uint32 number;     // its number among the candidate's, in any order
    uint32 suffix;     // where it begins in the page
    uint32 length;     // in bases, up to the end of the page
};

static_assert(sizeof(FoundMem) == FOUND_MEM_BYTES, "as the host allocates them");

constexpr uint32 NO_CANDIDATE = ~0u;

// A list that all warps extend by CHUNK_MEMS places at a time.
struct MemList {
    FoundMem* mems;
    uint64 room;
    uint64* filled;  // may exceed `room`; the MEMs beyond it are counted and not written
};

// What a warp knows of the candidate of each of its lanes.
struct Owners {
    uint32 starts[WARP_LANES];     // where the match begins in the block
    uint32 preceding[WARP_LANES];  // the code before it, or BREAK at the first base of a query
    uint32 lowest[WARP_LANES];     // the address of L
    uint32 match_lengths[WARP_LANES];  // the length of the longest match
    uint32 candidates[WARP_LANES];
    uint32 mem_counts[WARP_LANES];  // the number of MEMs found so far
};

// The nodes that a warp has to visit, the next one last.
struct Waiting {
    uint32 nodes[WAITING_NODES];
    uint32 lengths[WAITING_NODES];  // of the matches below the node, if it is not on the path
    uint8 owners[WAITING_NODES];    // the lane of the candidate, and ON_PATH
};

static_assert(WAITING_NODES >= WARP_LANES, "the tops of a warp's candidates wait first");
static_assert(CHUNK_MEMS >= SLOTS * WARP_LANES, "a warp fills at most one more chunk at a time");

constexpr uint8 ON_PATH = WARP_LANES;

// A node to visit for a candidate.
struct Visit {
    uint32 node;
    uint32 length;  // of matches below it, if it is not on the path
    uint32 owner;   // the lane of the candidate
    bool on_path;   // whether it is on the path from P to L
};

// Return P: climb from L to the first node whose parent's string depth is below the minimum length.
__device__ __forceinline__ uint32 find_top(uint32 lowest, const Tree& tree,
                                           uint32 minimum_length) {
    uint32 top = lowest;
    NodeHalf node = tree.node(top);
    while (parent_depth(node) >= minimum_length) {
        top = node.number(PARENT);
        node = tree.node(top);
    }
    return top;
}

// The search of a warp below the tops of its candidates. All lanes call every function that writes.
struct WarpSearch {
    const Tree& tree;
    const Queries& queries;
    uint32 owned_count;
    Owners& owners;
    Waiting& waiting;
    uint32 waiting_count;
    MemList list;
    uint64 place;   // where the warp's next MEM is written
    uint32 left;    // the places left in its chunk of the list
    uint64 visits;  // the nodes that this lane has visited

    // Write the MEMs of the slots that have a bit in `mems`, given the suffixes of all slots and the
    // length of all but `lowest`, the slot of L. `rank` is the number of MEMs of earlier lanes, and
    // `total` that of all lanes.
    __device__ __forceinline__ void write(uint32 mems, uint32 rank, uint32 total,
                                          const uint32 (&suffixes)[SLOTS], uint32 length,
                                          uint32 lowest, uint32 owner) {
        uint64 fresh = 0;
        if (total > left) {
            if (lane_number() == 0) {
                fresh = atomicAdd(list.filled, static_cast<uint64>(CHUNK_MEMS));
            }
            fresh = __shfl_sync(ALL_LANES, fresh, 0);
        }
        if (mems != 0) {
            const uint32 count = static_cast<uint32>(__popc(mems));
            const uint32 number = atomicAdd(&owners.mem_counts[owner], count);
#pragma unroll
            for (uint32 slot = 0; slot < SLOTS; ++slot) {
                const uint32 before = static_cast<uint32>(__popc(mems & lowest_bits(slot)));
                const uint32 index = rank + before;
                const uint64 to = index < left ? place + index : fresh + (index - left);
                if ((mems >> slot & 1) != 0 && to < list.room) {
                    list.mems[to] = FoundMem{owners.candidates[owner], number + before,
                                             suffixes[slot],
                                             slot == lowest ? owners.match_lengths[owner] : length};
                }
            }
        }
        place = total <= left ? place + total : fresh + (total - left);
        left = total <= left ? left - total : left + CHUNK_MEMS - total;
    }

    // Return whether a leaf, given its second half, is a MEM that the page owns.
    __device__ __forceinline__ bool is_mem(const NodeHalf& leaf, uint32 owner) const {
        const uint32 preceding = owners.preceding[owner];
        return leaf.number(LEAF_ID) < owned_count &&
               (preceding == BREAK || preceding_base(leaf) != preceding);
    }

    // Return the next waiting node but `index`.
    __device__ __forceinline__ Visit visit_at(uint32 index) const {
        const uint32 owner = waiting.owners[index];
        return Visit{waiting.nodes[index], waiting.lengths[index], owner % WARP_LANES,
                     owner >= ON_PATH};
    }

    // Return the match length of the leaves below a node that are not below a child on the path.
    __device__ __forceinline__ uint32 length_at(const Visit& visit) const {
        if (!visit.on_path) {
            return visit.length;
        }
        return visit.node == owners.lowest[visit.owner] ? owners.match_lengths[visit.owner]
                                                        : string_depth(tree.node(visit.node));
    }

    // Return the slot of the child on the path of a node on it: the query's next base. L has none.
    __device__ __forceinline__ uint32 slot_on_path(uint32 node, uint32 length,
                                                   uint32 owner) const {
        return node == owners.lowest[owner] ? SLOTS
                                            : queries.code_at(owners.starts[owner] + length);
    }

    // Visit one of the last waiting nodes in each lane: write the MEMs of its leaves, and let its
    // inner children wait. A leaf lets the next one that ends at the same bases wait.
    __device__ __forceinline__ void visit_waiting() {
        // Each visit may add SLOTS - 1 nodes.
        const uint32 taken = min(min(waiting_count, WARP_LANES),
                                 (WAITING_NODES - waiting_count) / (SLOTS - 1));
        if (taken == 0) {
            search_alone();
            return;
        }
        waiting_count -= taken;
        Visit visit = {NO_NODE, 0, 0, false};
        if (lane_number() < taken) {
            visit = visit_at(waiting_count + lane_number());
        }
        // Other nodes take their places below.
        __syncwarp();
        uint32 mems = 0;
        uint32 nodes = 0;
        uint32 length = 0;
        uint32 path = SLOTS;    // the slot of the inner child on the path
        uint32 lowest = SLOTS;  // the slot of L
        uint32 addresses[SLOTS] = {};
        uint32 suffixes[SLOTS] = {};
        if (lane_number() < taken) {
            const NodeHalf half = tree.second_half(visit.node);
            NodeHalf halves[SLOTS] = {half};
            length = length_at(visit);
            if (belongs_to_leaf(half)) {
                addresses[0] = visit.node;
            } else {
                path = visit.on_path ? slot_on_path(visit.node, length, visit.owner) : SLOTS;
#pragma unroll
                for (uint32 slot = 0; slot < SLOTS; ++slot) {
                    addresses[slot] = half.number(slot);
                    if (addresses[slot] != NO_NODE) {
                        halves[slot] = tree.second_half(addresses[slot]);
                    }
                }
                visits += PROFILE;
            }
#pragma unroll
            for (uint32 slot = 0; slot < SLOTS; ++slot) {
                if (addresses[slot] == NO_NODE) {
                    continue;
                }
                lowest = addresses[slot] == owners.lowest[visit.owner] ? slot : lowest;
                if (belongs_to_leaf(halves[slot])) {
                    mems |= (is_mem(halves[slot], visit.owner) ? 1u : 0u) << slot;
                    suffixes[slot] = halves[slot].number(LEAF_ID);
                    addresses[slot] = halves[slot].number(NEXT_LEAF);
                    path = path == slot ? SLOTS : path;
                    visits += PROFILE;
                }
                nodes |= (addresses[slot] != NO_NODE ? 1u : 0u) << slot;
            }
        }
        uint32 totals;
        const uint32 counts = static_cast<uint32>(__popc(mems) << 16 | __popc(nodes));
        const uint32 ranks = warp_exclusive_sum(counts, totals);
        write(mems, ranks >> 16, totals >> 16, suffixes, length, lowest, visit.owner);
#pragma unroll
        for (uint32 slot = 0; slot < SLOTS; ++slot) {
            if ((nodes >> slot & 1) != 0) {
                const uint32 before = static_cast<uint32>(__popc(nodes & lowest_bits(slot)));
                const uint32 to = waiting_count + (ranks & 0xFFFF) + before;
                waiting.nodes[to] = addresses[slot];
                waiting.lengths[to] =
                    slot == lowest ? owners.match_lengths[visit.owner] : length;
                waiting.owners[to] =
                    static_cast<uint8>(visit.owner | (slot == path ? ON_PATH : 0));
            }
        }
        waiting_count += totals & 0xFFFF;
        __syncwarp();
    }

    // Write the MEMs of a leaf, given its second half, and of those that end at the same bases.
    __device__ __forceinline__ void write_leaves(NodeHalf leaf, uint32 length, uint32 owner) {
        const bool is_first = lane_number() == 0;
        for (;;) {
            const uint32 mems = is_mem(leaf, owner) ? 1 : 0;
            write(is_first ? mems : 0, is_first ? 0 : mems, mems, {leaf.number(LEAF_ID)}, length,
                  SLOTS, owner);
            visits += PROFILE && is_first;
            const uint32 next = leaf.number(NEXT_LEAF);
            if (next == NO_NODE) {
                return;
            }
            leaf = tree.second_half(next);
        }
    }

    // Search below the last waiting node without a stack, as the paper does. All lanes do the same,
    // and the first one writes.
    __device__ __forceinline__ void search_alone() {
        const Visit top = visit_at(--waiting_count);
        const uint32 owner = top.owner;
        uint32 node = top.node;
        uint32 length = length_at(top);
        uint32 distance = top.on_path ? 0 : 1;  // edges from the node up to the path
        NodeHalf children = tree.second_half(node);
        if (belongs_to_leaf(children)) {
            write_leaves(children, length, owner);
            return;
        }
        uint32 slot = 0;
        for (;;) {
            if (slot == SLOTS) {
                if (node == top.node) {
                    return;
                }
                // Back at the parent, go on behind the node's slot.
                const uint32 came_from = node;
                node = tree.node(came_from).number(PARENT);
                children = tree.second_half(node);
                if (distance == 0) {
                    length = string_depth(tree.node(node));
                } else {
                    --distance;
                }
                for (slot = 0; children.number(slot) != came_from; ++slot) {
                }
                ++slot;
                continue;
            }
            const uint32 child = children.number(slot);
            if (child == NO_NODE) {
                ++slot;
                continue;
            }
            const bool on_path = distance == 0 && slot == slot_on_path(node, length, owner);
            const NodeHalf half = tree.second_half(child);
            const uint32 below = on_path ? length_at(Visit{child, 0, owner, true}) : length;
            if (belongs_to_leaf(half)) {
                write_leaves(half, below, owner);
                ++slot;
                continue;
            }
            visits += PROFILE && lane_number() == 0;
            distance += on_path ? 0 : 1;
            length = below;
            node = child;
            children = half;
            slot = 0;
        }
    }

    // Mark what is left of the chunk as empty.
    __device__ __forceinline__ void close() const {
        for (uint32 index = lane_number(); index < left; index += WARP_LANES) {
            if (place + index < list.room) {
                list.mems[place + index].candidate = NO_CANDIDATE;
            }
        }
    }
};

// Find the MEMs of all candidates, and count those of each.
//
// tree            the tree of a page
// queries         the codes of the block
// offsets         uint64[queries + 1], where each query begins in the block, then the end
// minimum_length  the fewest bases of a MEM
// candidates      the candidate matches of the block
// owned_count     the page reports suffixes that begin in its first owned_count bases
// list            receives the MEMs, with empty places between them; `filled` is 0 before the launch
// counts          uint32[candidates.count], receives the number of MEMs of each candidate
// node_visits     uint64[1], if PROFILE is set, the number of visited nodes is added to it
//
// Grid: any number of warps, which take up to WARP_LANES candidates at once.
// Shared memory: static, for each warp what it knows of candidates, and the nodes to visit.
//
// The compiler would fit a fifth block into a multiprocessor, with too few registers: on an H200
// it is then a quarter slower.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, 4)
    find_mems(Tree tree, Queries queries, const uint64* offsets, uint32 minimum_length,
              Candidates candidates, uint32 owned_count, MemList list, uint32* counts,
              uint64* node_visits) {
    __shared__ Owners owners_of_warps[BLOCK_WARPS];
    __shared__ Waiting waiting_of_warps[BLOCK_WARPS];
    const uint32 warp = threadIdx.x / WARP_LANES;
    const uint32 lane = lane_number();
    Owners& owners = owners_of_warps[warp];
    Waiting& waiting = waiting_of_warps[warp];
    WarpSearch search = {tree, queries, owned_count, owners, waiting, 0, list, 0, 0, 0};
    // Neighbours have about as many leaves, so they go to different warps; but a few of them share
    // the sectors of memory that `place_mems` reads and writes.
    const uint64 warp_first = grid_warp() * NEIGHBOURS;
    const uint64 lane_first =
        lane / NEIGHBOURS * NEIGHBOURS * grid_warps() + lane % NEIGHBOURS;
    for (uint64 first = warp_first; first < candidates.count;
         first += grid_warps() * WARP_LANES) {
        const uint64 number = first + lane_first;
        const bool is_active = number < candidates.count;
        if (is_active) {
            const uint32 query = candidates.queries[number];
            const uint32 query_begin = static_cast<uint32>(offsets[query]);
            const Candidate candidate = candidates.record(number, query, query_begin);
            const uint32 start = query_begin + candidate.query_start;
            owners.starts[lane] = start;
            owners.preceding[lane] = start > query_begin ? queries.code_at(start - 1) : BREAK;
            owners.lowest[lane] = candidate.lowest_node;
            owners.match_lengths[lane] = candidate.match_length;
            owners.candidates[lane] = static_cast<uint32>(number);
            owners.mem_counts[lane] = 0;
            waiting.nodes[lane] = find_top(candidate.lowest_node, tree, minimum_length);
            waiting.lengths[lane] = 0;
            waiting.owners[lane] = static_cast<uint8>(lane | ON_PATH);
        }
        search.waiting_count = static_cast<uint32>(__popc(__ballot_sync(ALL_LANES, is_active)));
        __syncwarp();
        while (search.waiting_count > 0) {
            search.visit_waiting();
        }
        __syncwarp();
        if (is_active) {
            counts[number] = owners.mem_counts[lane];
        }
    }
    search.close();
    if constexpr (PROFILE) {
        atomicAdd(node_visits, search.visits);
    }
}

// Return the full length of a match that ends at the end of its page: follow it in the joined
// reference.
__device__ __forceinline__ uint32 whole_length(const Queries& queries, uint64 start,
                                               uint64 query_end, const Page& page,
                                               uint64 reference_start, uint32 length) {
    uint64 query_position = start + length;
    uint64 reference_position = reference_start + length;
    while (query_position < query_end && reference_position < page.joined_count) {
        const uint32 code = queries.code_at(query_position);
        if (code == BREAK || code != page.joined_reference[reference_position]) {
            break;
        }
        ++query_position;
        ++reference_position;
    }
    return static_cast<uint32>(query_position - start);
}

// Write the MEMs of each candidate into consecutive rows, in any order. `sort_candidates` and
// `sort_long_candidates` write their query starts.
//
// queries, offsets, candidates  as for `find_mems`
// page         the page's part of the reference
// found        FoundMem[place_count], as `find_mems` writes them
// mem_offsets  uint64[candidates.count + 1], prefix sums of `counts` of `find_mems`
// mems         three columns of mem_offsets[candidates.count] rows each, receives the MEMs
//
// Grid: one thread for each place, or fewer threads that take several places in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    place_mems(Queries queries, const uint64* offsets, Candidates candidates, Page page,
               const FoundMem* found, uint64 place_count, const uint64* mem_offsets,
               MemColumns mems) {
    for (uint64 place = grid_thread(); place < place_count; place += grid_threads()) {
        const FoundMem mem = found[place];
        if (mem.candidate == NO_CANDIDATE) {
            continue;
        }
        const uint64 row = mem_offsets[mem.candidate] + mem.number;
        const uint64 reference_start = page.begin + mem.suffix;
        uint32 length = mem.length;
        if (mem.suffix + length == page.base_count) {
            const uint32 query = candidates.queries[mem.candidate];
            const uint64 start = offsets[query] + candidates.query_start(mem.candidate, offsets);
            length = whole_length(queries, start, offsets[query + 1], page, reference_start, length);
        }
        mems.reference_starts[row] = static_cast<long long>(reference_start);
        mems.lengths[row] = length;
    }
}
