// Runs a chain of many nodes over sequences, a block each: the nodes lie in the block's memory, and
// its threads share them. Tables describe the structure, so that all chains have this program.
//
// The nodes that emit are computed side by side, in slices of a warp's lanes. What they cannot
// share is computed by all threads of the block, one unit after the other: a hub is a node with
// many ways into it, or a silent one; a line is a row of silent nodes, each of which follows the
// one before, and what earlier units have: such are the deletions of a profile.
#include "chains/numbers.cuh"
#include "common/warp.cuh"

extern __shared__ uint4 block_memory[];

constexpr uint32 NO_NODE = ~0u;

// The structure and the numbers of a chain.
struct WideChain {
    const uint32* slice_rows;   // where the rows of each slice begin; then where the last ends
    const uint32* slice_nodes;  // the node of each lane of a slice, or `NO_NODE`
    const uint32* sources;      // of each lane of a row
    const Number* weights;      // likewise
    uint64 slices;
    const uint2* units;    // the first member of each, and how many; those that emit come first
    const uint4* members;  // a node, its first step, how many it has, and which of these comes from
                           // the member before in its line; `NO_NODE` for its first
    const uint32* step_sources;
    uint64 units_emitting;
    uint64 units_all;
    uint64 nodes;
    uint64 emitting;
    const Number* numbers;    // of steps, and then of the start
    const Number* emissions;  // of all nodes that emit, symbol by symbol
    const Number* ends;
    uint64 steps;
};

// A value of a node, and the number of the way that it came.
struct Way {
    Number value = NOTHING;
    uint32 rank = 0;

    // Take another way, of a higher number, into account.
    __device__ __forceinline__ void take(Number other, [[maybe_unused]] uint32 number) {
#if CHAIN_SUMS
        value += other;
#else
        rank = other > value ? number : rank;
        value = other > value ? other : value;
#endif
    }

    // Take a way of any number into account.
    __device__ __forceinline__ void join(const Way& other) {
#if CHAIN_SUMS
        value += other.value;
#else
        const bool is_better =
            other.value > value || (other.value == value && other.rank < rank);
        value = is_better ? other.value : value;
        rank = is_better ? other.rank : rank;
#endif
    }
};

__device__ __forceinline__ Number along(Number value, Number weight) {
#if CHAIN_SUMS
    return value * weight;
#else
    return value + weight;
#endif
}

__device__ __forceinline__ Number possible(Number value) {
#if CHAIN_SUMS
    return value;
#else
    return value > IMPOSSIBLE ? value : IMPOSSIBLE;
#endif
}

// What a part of a line does to the value before it: that goes `along` a weight, and joins another.
struct Passage {
    Number weight = UNIT;
    Number value = NOTHING;

    __device__ __forceinline__ void follow(Number link, Number own) {
        const Number passed = along(value, link);
#if CHAIN_SUMS
        value = passed + own;
#else
        value = possible(passed > own ? passed : own);
#endif
        weight = possible(along(weight, link));
    }
};

// Return a passage that follows another.
__device__ __forceinline__ Passage after(const Passage& first, const Passage& second) {
    Passage both = first;
    both.follow(second.weight, second.value);
    return both;
}

// The block's memory: two columns of nodes, and what warps exchange.
struct Columns {
    Number* before;
    Number* found;
    Way* ways;
    Passage* passages;
    // No line is computed while these are compared.
    Extremes* extremes;

    __device__ explicit Columns(uint64 nodes)
        : before(reinterpret_cast<Number*>(block_memory)),
          found(before + nodes),
          ways(reinterpret_cast<Way*>(found + nodes)),
          passages(reinterpret_cast<Passage*>(ways + WARP_LANES)),
          extremes(reinterpret_cast<Extremes*>(passages)) {
        static_assert(sizeof(Extremes) <= sizeof(Passage), "they share the memory");
    }

    __device__ void turn() {
        Number* const other = before;
        before = found;
        found = other;
    }
};

// Return another lane's way, or extremes.
__device__ __forceinline__ Way across(Way own, uint32 distance) {
    own.value = __shfl_xor_sync(ALL_LANES, own.value, distance);
    own.rank = __shfl_xor_sync(ALL_LANES, own.rank, distance);
    return own;
}

__device__ __forceinline__ Extremes across(Extremes own, uint32 distance) {
    own.most = __shfl_xor_sync(ALL_LANES, own.most, distance);
#if CHAIN_SUMS
    own.least = __shfl_xor_sync(ALL_LANES, own.least, distance);
#else
    own.is_lost = __shfl_xor_sync(ALL_LANES, static_cast<uint32>(own.is_lost), distance);
#endif
    return own;
}

// Return the parts of all threads joined: the best of ways or their sum, or the extremes.
template <typename Part>
__device__ __forceinline__ Part joined(Part own, Part* parts) {
#pragma unroll
    for (uint32 distance = WARP_LANES / 2; distance > 0; distance /= 2) {
        own.join(across(own, distance));
    }
    if (blockDim.x == WARP_LANES) {
        return own;
    }
    // Those of the last call have been read.
    __syncthreads();
    if (lane_number() == 0) {
        parts[threadIdx.x / WARP_LANES] = own;
    }
    __syncthreads();
    own = parts[0];
    for (uint32 warp = 1; warp < blockDim.x / WARP_LANES; ++warp) {
        own.join(parts[warp]);
    }
    return own;
}

// Return the joined passages of all threads before this one.
__device__ __forceinline__ Passage before_thread(const Passage& own, Passage* parts) {
    Passage sum = own;
#pragma unroll
    for (uint32 distance = 1; distance < WARP_LANES; distance *= 2) {
        Passage other;
        other.weight = __shfl_up_sync(ALL_LANES, sum.weight, distance);
        other.value = __shfl_up_sync(ALL_LANES, sum.value, distance);
        if (lane_number() >= distance) {
            sum = after(other, sum);
        }
    }
    Passage found;
    found.weight = __shfl_up_sync(ALL_LANES, sum.weight, 1);
    found.value = __shfl_up_sync(ALL_LANES, sum.value, 1);
    if (lane_number() == 0) {
        found = Passage();
    }
    if (blockDim.x == WARP_LANES) {
        return found;
    }
    __syncthreads();
    if (lane_number() == WARP_LANES - 1) {
        parts[threadIdx.x / WARP_LANES] = sum;
    }
    __syncthreads();
    Passage all;
    for (uint32 warp = 0; warp < threadIdx.x / WARP_LANES; ++warp) {
        all = after(all, parts[warp]);
    }
    return after(all, found);
}

// What is kept of a symbol.
struct Row {
    uint16* ranks;
    Number* numbers;

    __device__ __forceinline__ void keep_rank([[maybe_unused]] uint32 node,
                                              [[maybe_unused]] uint32 rank) const {
#if CHAIN_KEEPS == KEEPS_TRACES
        ranks[node] = static_cast<uint16>(rank);
#endif
    }

    // Return whether the way that is kept has a higher number than another, which is preferred if
    // both are equal.
    __device__ __forceinline__ bool is_after([[maybe_unused]] uint32 node,
                                             [[maybe_unused]] uint32 rank) const {
#if CHAIN_KEEPS == KEEPS_TRACES
        return rank < ranks[node];
#else
        return false;
#endif
    }
};

// Write the value of a node that emits.
__device__ __forceinline__ void emit(const WideChain& chain, uint32 code, uint32 node,
                                     const Way& way, const Columns& columns, const Row& row) {
    const Number emitted = chain.emissions[code * chain.emitting + node];
    columns.found[node] = possible(along(way.value, emitted));
    row.keep_rank(node, way.rank);
#if CHAIN_KEEPS == KEEPS_SHARES
    row.numbers[node] *= way.value;
#endif
}

// Return the ways into a member of a unit, one in `stride`, but for that from the member before.
__device__ __forceinline__ Way ways_into(const WideChain& chain, const uint4& member,
                                         const Number* before, uint32 first, uint32 stride) {
    Way way;
    for (uint32 step = first; step < member.z; step += stride) {
        const uint32 place = member.y + step;
        if (step != member.w) {
            way.take(along(before[chain.step_sources[place]], chain.numbers[place]), step);
        }
    }
    return way;
}

// Compute a hub from values in `before`.
__device__ __forceinline__ void run_hub(const WideChain& chain, const uint4& member, uint32 code,
                                        const Number* before, const Columns& columns,
                                        const Row& row) {
    const Way own = ways_into(chain, member, before, threadIdx.x, blockDim.x);
    const Way way = joined(own, columns.ways);
    if (threadIdx.x == 0) {
        if (member.x < chain.emitting) {
            emit(chain, code, member.x, way, columns, row);
        } else {
            columns.found[member.x] = possible(way.value);
            row.keep_rank(member.x, way.rank);
        }
    }
}

// Return the value of the step from the member before in a line.
__device__ __forceinline__ Number link_of(const WideChain& chain, const uint4& member) {
    return member.w == NO_NODE ? NOTHING : chain.numbers[member.y + member.w];
}

// Compute a line: each thread has some members that follow each other.
__device__ __forceinline__ void run_line(const WideChain& chain, const uint2& unit,
                                         const Columns& columns, const Row& row) {
    // An odd number of them: neighbouring threads find their nodes in different banks.
    const uint32 each = ((unit.y + blockDim.x - 1) / blockDim.x) | 1;
    const uint32 begin = threadIdx.x * each < unit.y ? threadIdx.x * each : unit.y;
    const uint32 end = begin + each < unit.y ? begin + each : unit.y;
    Passage own;
    for (uint32 place = begin; place < end; ++place) {
        const uint4 member = chain.members[unit.x + place];
        const Way way = ways_into(chain, member, columns.found, 0, 1);
        columns.found[member.x] = way.value;
        row.keep_rank(member.x, way.rank);
        own.follow(link_of(chain, member), way.value);
    }
    Number value = before_thread(own, columns.passages).value;
    for (uint32 place = begin; place < end; ++place) {
        const uint4 member = chain.members[unit.x + place];
        const Number passed = along(value, link_of(chain, member));
        value = columns.found[member.x];
#if CHAIN_SUMS
        value += passed;
#else
        if (passed > value || (passed == value && row.is_after(member.x, member.w))) {
            value = passed;
            row.keep_rank(member.x, member.w);
        }
        value = possible(value);
#endif
        columns.found[member.x] = value;
    }
}

// Compute the column of nodes after a symbol.
__device__ __forceinline__ void advance(const WideChain& chain, uint32 code, bool is_start,
                                        const Columns& columns, const Row& row) {
    if (is_start) {
        for (uint32 node = threadIdx.x; node < chain.emitting; node += blockDim.x) {
            Way way;
            way.value = chain.numbers[chain.steps + node];
            emit(chain, code, node, way, columns, row);
        }
    } else {
        const uint32 warps = blockDim.x / WARP_LANES;
        for (uint32 slice = threadIdx.x / WARP_LANES; slice < chain.slices; slice += warps) {
            const uint32 first = chain.slice_rows[slice];
            const uint32 count = chain.slice_rows[slice + 1] - first;
            Way way;
#pragma unroll 4
            for (uint32 rank = 0; rank < count; ++rank) {
                const uint32 place = (first + rank) * WARP_LANES + lane_number();
                way.take(along(columns.before[chain.sources[place]], chain.weights[place]), rank);
            }
            const uint32 node = chain.slice_nodes[slice * WARP_LANES + lane_number()];
            if (node != NO_NODE) {
                emit(chain, code, node, way, columns, row);
            }
        }
        for (uint32 unit = 0; unit < chain.units_emitting; ++unit) {
            const uint4 member = chain.members[chain.units[unit].x];
            run_hub(chain, member, code, columns.before, columns, row);
        }
    }
    for (uint64 number = chain.units_emitting; number < chain.units_all; ++number) {
        const uint2 unit = chain.units[number];
        __syncthreads();
        if (unit.y == 1) {
            run_hub(chain, chain.members[unit.x], code, columns.found, columns, row);
        } else {
            run_line(chain, unit, columns, row);
        }
    }
    __syncthreads();
}

// Run a chain over sequences that are not empty.
//
// codes       uint8[], the codes of all symbols
// begins      uint64[count], where each sequence begins
// stops       uint64[count], where it ends
// count       how many there are
// chain       what `WideChain` says
// chunk       after how many symbols nodes are scaled
// results     as for `run_chain`
// last        likewise
// first_rows  likewise
// kept        uint16[rows * nodes], receives the numbers of the best ways; or numbers of nodes that
//             emit, as for `run_chain`
//
// Grid: any number of blocks. Shared memory: two numbers for each node, and `Way` and `Passage` for
// each of WARP_LANES warps.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
run_wide_chain(const uint8* codes, const uint64* begins, const uint64* stops, uint64 count,
               WideChain chain, uint64 chunk, double* results,
               [[maybe_unused]] uint64* last, [[maybe_unused]] const uint64* first_rows,
               [[maybe_unused]] void* kept) {
    for (uint64 number = blockIdx.x; number < count; number += gridDim.x) {
        const uint64 begin = begins[number];
        const uint64 length = stops[number] - begin;
        Columns columns(chain.nodes);
        long long offset = 0;
        uint64 left = chunk;
        for (uint64 at = 0; at < length; ++at) {
            Row row{};
#if CHAIN_KEEPS == KEEPS_SHARES
            // From the end on.
            const uint64 place = length - 1 - at;
#else
            const uint64 place = at;
#endif
#if CHAIN_KEEPS
            const uint64 own = first_rows[number] + place;
            row.ranks = static_cast<uint16*>(kept) + own * chain.nodes;
            row.numbers = static_cast<Number*>(kept) + own * chain.emitting;
#endif
            advance(chain, codes[begin + place], at == 0, columns, row);
            // The last symbol, too: what follows is not looked at any more.
            if (--left == 0 || at + 1 == length) {
                Extremes own_nodes;
                for (uint32 node = threadIdx.x; node < chain.nodes; node += blockDim.x) {
                    own_nodes.take(columns.found[node]);
                }
                const Scale scale(joined(own_nodes, columns.extremes));
                for (uint32 node = threadIdx.x; node < chain.nodes; node += blockDim.x) {
                    columns.found[node] = scale.of(columns.found[node]);
                }
                __syncthreads();
                offset = scale.after(offset);
                left = chunk;
            }
#if CHAIN_KEEPS == KEEPS_COLUMNS
            for (uint32 node = threadIdx.x; node < chain.emitting; node += blockDim.x) {
                row.numbers[node] = columns.found[node];
            }
#endif
            columns.turn();
        }
        Way own;
        for (uint32 node = threadIdx.x; node < chain.emitting; node += blockDim.x) {
            own.take(along(columns.before[node], chain.ends[node]), node);
        }
        const Way best = joined(own, columns.ways);
        if (threadIdx.x == 0) {
            results[number] = score_of(best.value, offset);
#if !CHAIN_SUMS
            last[number] = best.rank;
#endif
        }
        __syncthreads();
    }
}
