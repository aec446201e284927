// Walks the paths of chains, and writes them as runs of equal states. All chains whose words have
// one size have this program.
#include "chains/runs.cuh"

#if CHAIN_WORD_BITS == 8
using Word = uint8;
#elif CHAIN_WORD_BITS == 16
using Word = uint16;
#else
using Word = uint64;
#endif

// How a best path is walked backwards: `TraceTables`, and the visits that a step stands for, or
// those that the node after a symbol stands for.
struct Trace {
    const uint4* nodes;          // of each node: its word of bits, their place and their mask, and
                                 // the first step into it
    const uint32* sources;       // of each step
    const uint32* first_visits;  // of each step, then of each start and of each end; then the end
    const uint32* visits;
    const uint32* node_visits;  // `width` for each symbol, or null
    uint64 width;
    uint64 emitting;  // how many nodes emit; they come first
    uint64 words;     // of a row
    uint64 steps;

    // Go from the node after the symbol of a row to the one before; return the step between them.
    __device__ __forceinline__ uint64 back(const Word* bits, uint64& row, uint32& node) const {
        const uint4 own = nodes[node];
        const uint64 word = bits[row * words + own.x];
        const uint32 step = own.w + (static_cast<uint32>(word >> own.y) & own.z);
        // A step into a silent node comes from the same row, one into another from the row before.
        row -= node < emitting;
        node = sources[step];
        return step;
    }

    __device__ __forceinline__ Visits of_step(uint64 step) const {
        return {visits, first_visits[step], first_visits[step + 1]};
    }

    __device__ __forceinline__ Visits of_node(uint8 code, uint32 node) const {
        const uint64 place = code * width + node;
        return {node_visits, place, place + 1};
    }
};

// Walk the best paths of sequences backwards, and count or write the runs of their states; or those
// of pieces of a sequence, which begin and end in the middle of a path.
//
// codes       uint8[], the codes of all symbols, or null if steps give the visits
// begins      uint64[], where each sequence begins there
// first_rows  uint64[], where the rows of each sequence begin, then where the last ends
// last        the node after the last symbol of each
// bits        as `run_chain` has left them
// numbers     uint64[count], the sequences to walk: each has a path
// count       how many there are
// trace       what `Trace` says
// parts       uint32[], whether a path begins (1) with each piece, and ends (2); null: both
// ends        uint64[count]: receives how many runs each path has; if there are `visits`, has where
//             they end
// borders     uint2[count], for pieces: receives the first and the last visit of each
// firsts      uint64[count], for pieces: receives the lengths of their first runs
// visits      uint32[], receives the states of the runs, or null
// run_lengths uint64[], receives their lengths; not that of the first one of a piece that goes on
//             with the run before it, which has 4 in `parts`
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
walk_chain(const uint8* codes, const uint64* begins, const uint64* first_rows,
           const uint64* last, const Word* bits, const uint64* numbers,
           uint64 count, Trace trace, const uint32* parts, uint64* ends, uint2* borders,
           uint64* firsts, uint32* visits, uint64* run_lengths) {
    for (uint64 path = grid_thread(); path < count; path += grid_threads()) {
        const uint64 number = numbers[path];
        const uint32 part = parts != nullptr ? parts[path] : 3u;
        const uint64 first = first_rows[number];
        uint64 row = first_rows[number + 1] - 1;
        uint32 node = static_cast<uint32>(last[number]);
        RunWriter runs{visits, run_lengths, visits != nullptr ? ends[path] : 0};
        const bool has_start = (part & 1u) != 0;
        // A path goes on before the first row of a piece: rows end at one less than that.
        const uint64 stop = has_start ? first : first - 1;
        const bool of_nodes = trace.node_visits != nullptr;
        Visits own{nullptr, 0, 0};
        if ((part & 2u) != 0 && !of_nodes) {
            own = trace.of_step(trace.steps + trace.emitting + node);
        }
        for (bool goes_on = true;;) {
            runs.take_all(own);
            if (!goes_on) {
                break;
            }
            goes_on = row != stop || (has_start && node >= trace.emitting);
            if (!goes_on && !has_start) {
                break;
            }
            if (of_nodes) {
                own = trace.of_node(codes[begins[number] + (row - first)], node);
            }
            const uint64 step = goes_on ? trace.back(bits, row, node) : trace.steps + node;
            if (!of_nodes) {
                own = trace.of_step(step);
            }
        }
        if (parts != nullptr) {
            firsts[path] = runs.length;
            borders[path] = uint2{runs.visit, runs.last};
            if ((part & 4u) != 0) {
                runs.length = 0;
            }
        }
        runs.end_run();
        if (visits == nullptr) {
            ends[path] = -runs.place;
        }
    }
}

// Walk pieces of a sequence from each node that may follow them to the one before them.
//
// first_rows  as for `walk_chain`
// bits        likewise
// count       how many pieces there are
// nodes       how many nodes the chain has
// trace       as for `walk_chain`
// before      uint32[count * nodes], receives the node before each piece for each after it
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
cross_pieces(const uint64* first_rows, const Word* bits, uint64 count,
             uint64 nodes, Trace trace, uint32* before) {
    for (uint64 item = grid_thread(); item < count * nodes; item += grid_threads()) {
        // Neighbours walk one piece, and soon find the same bits.
        const uint64 piece = item / nodes;
        const uint64 first = first_rows[piece];
        uint64 row = first_rows[piece + 1] - 1;
        uint32 node = static_cast<uint32>(item % nodes);
        // Before the first symbol of the sequence there is nothing.
        for (const uint64 stop = first - (piece > 0); row != stop;) {
            trace.back(bits, row, node);
        }
        before[item] = node;
    }
}
