// Makes probabilities of states of what nodes have from both ends of a sequence, and the paths of
// the likeliest states. All chains have this program.
#include "chains/runs.cuh"
#include "common/warp.cuh"

// Turn the shares of nodes in a symbol into probabilities of states, or find the likeliest state.
//
// shares      double[rows * emitting], of the nodes that emit
// rows        how many symbols there are
// emitting    how many nodes emit
// states      how many states they belong to
// lanes       how many lanes share a row: a power of 2, up to WARP_LANES
// firsts      uint32[states + 1], where the nodes of each state begin in `members`
// members     uint32[emitting], the nodes, state by state
// table       double[rows * states], receives the probabilities, or null; no numbers where the
//             shares are too small for that
// likeliest   uint32[rows], receives the state, or null; of equal ones the first; `states` where the
//             shares are too small
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
finish_shares(const double* shares, uint64 rows, uint64 emitting, uint64 states, uint64 lanes,
              const uint32* firsts, const uint32* members, double* table, uint32* likeliest) {
    const uint32 lane = lane_number() % static_cast<uint32>(lanes);
    const uint64 together = WARP_LANES / lanes;
    for (uint64 base = grid_warp() * together; base < rows; base += grid_warps() * together) {
        const uint64 row = base + lane_number() / static_cast<uint32>(lanes);
        const bool is_row = row < rows;
        const double* own = shares + (is_row ? row : base) * emitting;
        double total = 0;
        for (uint64 node = lane; node < emitting; node += lanes) {
            total += own[node];
        }
        for (uint32 distance = 1; distance < lanes; distance *= 2) {
            total += __shfl_xor_sync(ALL_LANES, total, distance);
        }
        // This is also true of NaN.
        const bool is_lost = !(total >= __longlong_as_double((1023ll - TOTAL_POWERS) << 52));
        double most = -1;
        uint32 best = 0;
        for (uint64 state = lane; state < states; state += lanes) {
            double sum = 0;
            for (uint32 place = firsts[state]; place < firsts[state + 1]; ++place) {
                sum += own[members[place]];
            }
            sum /= is_lost ? __longlong_as_double(0x7FF8000000000000ll) : total;
            if (table != nullptr && is_row) {
                table[row * states + state] = sum;
            }
            best = sum > most ? static_cast<uint32>(state) : best;
            most = sum > most ? sum : most;
        }
        for (uint32 distance = 1; distance < lanes; distance *= 2) {
            const double other = __shfl_xor_sync(ALL_LANES, most, distance);
            const uint32 state = __shfl_xor_sync(ALL_LANES, best, distance);
            const bool is_better = other > most || (other == most && state < best);
            most = is_better ? other : most;
            best = is_better ? state : best;
        }
        if (likeliest != nullptr && is_row && lane == 0) {
            likeliest[row] = is_lost ? static_cast<uint32>(states) : best;
        }
    }
}

// Count or write the runs of the likeliest states.
//
// first_rows  as for `walk_chain`
// numbers     as for `walk_chain`
// count       likewise
// likeliest   as `finish_shares` has left it
// names       uint32[states + 1], the visit that each state stands for, and one for none
// ends        as for `walk_chain`
// visits      likewise
// run_lengths likewise
//
// Grid: any number of blocks. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
list_states(const uint64* first_rows, const uint64* numbers, uint64 count,
            const uint32* likeliest, const uint32* names, uint64* ends, uint32* visits,
            uint64* run_lengths) {
    for (uint64 path = grid_thread(); path < count; path += grid_threads()) {
        const uint64 number = numbers[path];
        const uint64 first = first_rows[number];
        RunWriter runs{visits, run_lengths, visits != nullptr ? ends[path] : 0};
        for (uint64 row = first_rows[number + 1]; row > first; --row) {
            runs.take(names[likeliest[row - 1]]);
        }
        runs.end_run();
        if (visits == nullptr) {
            ends[path] = -runs.place;
        }
    }
}
