// Runs a chain over sequences, a thread each: the states stay in registers. The host generates the
// recurrence: `begin_chain` and `advance_chain`.
#include "common/grid.cuh"

#if CHAIN_SUMS
#if CHAIN_DOUBLE
using Number = double;
#else
using Number = float;
#endif
#else
// Logarithms in units of the host, so that sums in any order are equal.
using Number = long long;
#endif

#if CHAIN_WORD_BITS == 8
using Word = uint8;
#else
using Word = uint64;
#endif

#if CHAIN_SUMS
// Scale the nodes so that the largest is about 1, and count the exponent.
__device__ __forceinline__ void scale(Number (&nodes)[NODES], long long& offset) {
    Number most = nodes[0];
#pragma unroll
    for (uint32 node = 1; node < NODES; ++node) {
        most = nodes[node] > most ? nodes[node] : most;
    }
#if CHAIN_DOUBLE
    const int power = static_cast<int>(__double_as_longlong(most) >> 52) - 1023;
    const bool has = power > -1023;
    const Number factor = has ? __longlong_as_double(static_cast<long long>(1023 - power) << 52) : 1;
#else
    const int power = static_cast<int>(__float_as_uint(most) >> 23) - 127;
    const bool has = power > -127;
    const Number factor = has ? __uint_as_float(static_cast<uint32>(127 - power) << 23) : 1;
#endif
#pragma unroll
    for (uint32 node = 0; node < NODES; ++node) {
        nodes[node] *= factor;
    }
    offset += has ? power : 0;
}
#else
// Take a multiple of 2**OFFSET_BITS off all nodes that are possible, and count it.
__device__ __forceinline__ void scale(Number (&nodes)[NODES], long long& offset) {
    Number most = nodes[0];
#pragma unroll
    for (uint32 node = 1; node < NODES; ++node) {
        most = nodes[node] > most ? nodes[node] : most;
    }
    const long long taken = most > IMPOSSIBLE / 2 ? most >> OFFSET_BITS : 0;
#pragma unroll
    for (uint32 node = 0; node < NODES; ++node) {
        const bool is_possible = nodes[node] > IMPOSSIBLE / 2;
        // A multiplication: a negative number may not be shifted to the left.
        nodes[node] = is_possible ? nodes[node] - taken * (1ll << OFFSET_BITS) : IMPOSSIBLE;
    }
    offset += taken;
}
#endif

// Run a chain over sequences that are not empty.
//
// codes       uint8[], the codes of all symbols, at a multiple of 4 bytes
// begins      uint64[count], where each sequence begins
// lengths     uint64[count]
// count       how many there are
// numbers     the chances of steps, then those of the start
// emissions   the chances of symbols
// ends        the chances of the end
// chunk       after how many symbols nodes are scaled
// totals      double[count] or int64[count], receives the sum, or the best value, behind the end
// offsets     int64[count], receives what was taken off it
// last        uint64[count], receives the node of the best value, for best paths
// first_rows  uint64[count], where the bits of each sequence begin, for traces
// bits        Word[rows * TRACE_WORDS], receives them
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
run_chain(const uint8* codes, const uint64* begins, const uint64* lengths, uint64 count,
          const Number* numbers, const Number* emissions, const Number* ends, uint64 chunk,
          void* totals, long long* offsets, [[maybe_unused]] uint64* last,
          [[maybe_unused]] const uint64* first_rows, [[maybe_unused]] Word* bits) {
    for (uint64 number = grid_thread(); number < count; number += grid_threads()) {
        const uint64 begin = begins[number];
        const uint64 end = begin + lengths[number];
        Number nodes[NODES];
        long long offset = 0;
        uint64 left = chunk;
        uint32 word = 0;
        [[maybe_unused]] uint64 row = 0;
#if CHAIN_TRACES
        row = first_rows[number];
#endif
        for (uint64 at = begin; at < end; ++at) {
            // Four symbols are loaded at once.
            if (at == begin || at % 4 == 0) {
                word = reinterpret_cast<const uint32*>(codes)[at / 4] >> (at % 4 * 8);
            }
            const uint32 code = word & 255u;
            word >>= 8;
            Word found[TRACE_WORDS] = {};
            if (at == begin) {
                begin_chain(numbers, emissions, code, nodes, found);
            } else {
                advance_chain(numbers, emissions, code, nodes, found);
            }
#if CHAIN_TRACES
#pragma unroll
            for (uint32 each = 0; each < TRACE_WORDS; ++each) {
                bits[row * TRACE_WORDS + each] = found[each];
            }
            ++row;
#endif
            if (--left == 0) {
                scale(nodes, offset);
                left = chunk;
            }
        }
#if CHAIN_SUMS
        double total = 0;
#pragma unroll
        for (uint32 node = 0; node < EMITTING_NODES; ++node) {
            total += static_cast<double>(nodes[node]) * static_cast<double>(ends[node]);
        }
        static_cast<double*>(totals)[number] = total;
#else
        long long best = nodes[0] + ends[0];
        uint64 best_node = 0;
#pragma unroll
        for (uint32 node = 1; node < EMITTING_NODES; ++node) {
            const long long value = nodes[node] + ends[node];
            best_node = value > best ? node : best_node;
            best = value > best ? value : best;
        }
        static_cast<long long*>(totals)[number] = best;
        last[number] = best_node;
#endif
        offsets[number] = offset;
    }
}

#if CHAIN_TRACES
// How a best path is walked backwards: `TraceTables`, and the visits that a step stands for.
struct TraceSteps {
    const uint4* nodes;          // of each node: its word of bits, their place and their mask, and
                                 // the first step into it
    const uint32* sources;       // of each step
    const uint32* first_visits;  // of each step, then of each start and of each end; and behind all
    const uint32* visits;
};

// The runs of a path from its last one on, in front of a place; nowhere if there is no memory.
struct RunWriter {
    uint32* visits;
    uint64* lengths;
    uint64 place;
    uint32 visit = 0xFFFFFFFFu;
    uint64 length = 0;

    __device__ __forceinline__ void take(const TraceSteps& steps, uint32 step) {
        // Of a step, the last visit comes first here.
        for (uint32 at = steps.first_visits[step + 1]; at > steps.first_visits[step]; --at) {
            const uint32 next = steps.visits[at - 1];
            if (next != visit) {
                end_run();
                visit = next;
            }
            ++length;
        }
    }

    __device__ __forceinline__ void end_run() {
        if (length > 0) {
            --place;
            if (visits != nullptr) {
                visits[place] = visit;
                lengths[place] = length;
            }
            length = 0;
        }
    }
};

// Walk the best paths of sequences backwards, and count or write the runs of their states.
//
// first_rows  as for `run_chain`
// lengths     as for `run_chain`
// last        as `run_chain` has left it
// bits        likewise
// numbers     uint64[count], the sequences to walk: each has a path
// count       how many there are
// steps       how many steps the chain has
// tables      what `TraceSteps` says
// ends        uint64[count]: receives how many runs each path has; if there are `visits`, has where
//             they end
// visits      uint32[], receives the states of the runs, or null
// run_lengths uint64[], receives their lengths
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
walk_chain(const uint64* first_rows, const uint64* lengths, const uint64* last, const Word* bits,
           const uint64* numbers, uint64 count, uint64 steps, TraceSteps tables, uint64* ends,
           uint32* visits, uint64* run_lengths) {
    for (uint64 path = grid_thread(); path < count; path += grid_threads()) {
        const uint64 number = numbers[path];
        const uint64 first = first_rows[number];
        uint64 row = first + lengths[number] - 1;
        uint32 node = static_cast<uint32>(last[number]);
        RunWriter runs{visits, run_lengths, visits != nullptr ? ends[path] : 0};
        runs.take(tables, static_cast<uint32>(steps) + EMITTING_NODES + node);
        // A step into a silent state comes from the same row, one into another from the row before.
        while (row > first || node >= EMITTING_NODES) {
            const uint4 own = tables.nodes[node];
            const uint64 word = bits[row * TRACE_WORDS + own.x];
            const uint32 step = own.w + (static_cast<uint32>(word >> own.y) & own.z);
            row -= node < EMITTING_NODES;
            node = tables.sources[step];
            runs.take(tables, step);
        }
        runs.take(tables, static_cast<uint32>(steps) + node);
        runs.end_run();
        if (visits == nullptr) {
            ends[path] = -runs.place;
        }
    }
}
#endif
