// Runs a chain over sequences, a thread each: the states stay in registers. The host generates the
// recurrence: `join_ways` and `emit_symbol`.
#include "chains/numbers.cuh"

#if CHAIN_WORD_BITS == 8
using Word = uint8;
#else
using Word = uint64;
#endif

// Scale the nodes, and count what was taken off them.
__device__ __forceinline__ void scale(Number (&nodes)[NODES], long long& offset) {
    Extremes extremes;
#pragma unroll
    for (uint32 node = 0; node < NODES; ++node) {
        extremes.take(nodes[node]);
    }
    const Scale scale(extremes);
#pragma unroll
    for (uint32 node = 0; node < NODES; ++node) {
        nodes[node] = scale.of(nodes[node]);
    }
    offset = scale.after(offset);
}

// The symbols of a sequence, one after the other; from its end on for sums from both ends.
struct Symbols {
    const uint8* codes;
    uint64 begin;
    uint64 end;
    uint32 word = 0;
    [[maybe_unused]] uint32 previous = PAIR_SYMBOLS;

    __device__ __forceinline__ Symbols(const uint8* codes, uint64 begin, uint64 end)
        : codes(codes), begin(begin), end(end) {
        // A piece begins with the pair of the symbol before it and its own.
        if (PAIR_SYMBOLS > 0 && begin > 0) {
            previous = codes[begin - 1];
        }
    }

    __device__ __forceinline__ uint64 place(uint64 at) const {
#if CHAIN_KEEPS == KEEPS_SHARES
        return end - 1 - (at - begin);
#else
        return at;
#endif
    }

    __device__ __forceinline__ uint32 next(uint64 at) {
#if CHAIN_KEEPS == KEEPS_SHARES
        return codes[place(at)];
#else
        // Four symbols are loaded at once.
        if (at == begin || at % 4 == 0) {
            word = reinterpret_cast<const uint32*>(codes)[at / 4] >> (at % 4 * 8);
        }
        uint32 code = word & 255u;
        word >>= 8;
        if (PAIR_SYMBOLS > 0) {
            const uint32 pair = previous * PAIR_SYMBOLS + code;
            previous = code;
            code = pair;
        }
        return code;
#endif
    }
};

// Run a chain over sequences that are not empty, or over pieces of sequences: these go on from
// given values, and leave those of all nodes after them.
//
// codes       uint8[], the codes of all symbols, at a multiple of 4 bytes; with `PAIR_SYMBOLS` the
//             nodes emit pairs, of a symbol and the one before it
// begins      uint64[count], where each sequence begins
// stops       uint64[count], where it ends
// count       how many there are
// numbers     the chances of steps, then those of the start
// emissions   the chances of symbols
// ends        the chances of the end
// chunk       after how many symbols nodes are scaled
// results     double[count], receives the logarithm of the sum, or of the best path, no number if
//             nodes have no common scale; for pieces Number[count * NODES], receives the nodes
//             after them
// offsets     int64[count], for pieces: receives what was taken off these
// last        uint64[count], receives the node of the best value, for best paths
// first_rows  uint64[count], where what is kept of each sequence begins
// kept        Word[rows * TRACE_WORDS], receives bits; or Number[rows * EMITTING_NODES]: receives
//             columns, or is multiplied with those from the other end
// given       Number[][NODES], what pieces go on from
// sources     uint64[count], which of these; none for a piece at the beginning
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
run_chain(const uint8* codes, const uint64* begins, const uint64* stops, uint64 count,
          const Number* numbers, const Number* emissions,
          [[maybe_unused]] const Number* ends, uint64 chunk, void* results,
          [[maybe_unused]] long long* offsets, [[maybe_unused]] uint64* last,
          [[maybe_unused]] const uint64* first_rows, [[maybe_unused]] void* kept,
          [[maybe_unused]] const Number* given,
          [[maybe_unused]] const uint64* sources) {
    for (uint64 number = grid_thread(); number < count; number += grid_threads()) {
        const uint64 begin = begins[number];
        const uint64 end = stops[number];
        Number nodes[NODES] = {};
        long long offset = 0;
        uint64 left = chunk;
        bool is_start = true;
        Symbols symbols(codes, begin, end);
#if CHAIN_PIECES
        const uint64 source = sources[number];
        is_start = source == ~0ull;
        if (!is_start) {
#pragma unroll
            for (uint32 node = 0; node < NODES; ++node) {
                nodes[node] = given[source * NODES + node];
            }
        }
#endif
#pragma unroll 1
        for (uint64 at = begin; at < end; ++at) {
#if CHAIN_KEEPS == KEEPS_SHARES
            Number found[EMITTING_NODES];
#else
            Word found[TRACE_WORDS] = {};
#endif
            if (is_start) {
#pragma unroll
                for (uint32 node = 0; node < EMITTING_NODES; ++node) {
                    nodes[node] = numbers[STEPS + node];
                }
                is_start = false;
            } else {
                join_ways(numbers, nodes, found);
            }
            emit_symbol(numbers, emissions, symbols.next(at), nodes, found);
            // The last symbol, too: what follows is not looked at any more.
            if (--left == 0 || at + 1 == end) {
                scale(nodes, offset);
                left = chunk;
            }
#if CHAIN_KEEPS
            const uint64 row = first_rows[number] + (symbols.place(at) - begin);
#endif
#if CHAIN_KEEPS == KEEPS_TRACES
#pragma unroll
            for (uint32 each = 0; each < TRACE_WORDS; ++each) {
                static_cast<Word*>(kept)[row * TRACE_WORDS + each] = found[each];
            }
#elif CHAIN_KEEPS
            Number* column = static_cast<Number*>(kept) + row * EMITTING_NODES;
#pragma unroll
            for (uint32 node = 0; node < EMITTING_NODES; ++node) {
#if CHAIN_KEEPS == KEEPS_COLUMNS
                column[node] = nodes[node];
#else
                column[node] *= found[node];
#endif
            }
#endif
        }
#if CHAIN_PIECES
        offsets[number] = offset;
#pragma unroll
        for (uint32 node = 0; node < NODES; ++node) {
            static_cast<Number*>(results)[number * NODES + node] = nodes[node];
        }
#elif CHAIN_SUMS
        double total = 0;
#pragma unroll
        for (uint32 node = 0; node < EMITTING_NODES; ++node) {
            total += static_cast<double>(nodes[node]) * static_cast<double>(ends[node]);
        }
        static_cast<double*>(results)[number] = score_of(total, offset);
#else
        long long best = nodes[0] + ends[0];
        uint64 best_node = 0;
#pragma unroll
        for (uint32 node = 1; node < EMITTING_NODES; ++node) {
            const long long value = nodes[node] + ends[node];
            best_node = value > best ? node : best_node;
            best = value > best ? value : best;
        }
        static_cast<double*>(results)[number] = score_of(best, offset);
        last[number] = best_node;
#endif
    }
}
