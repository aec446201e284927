// What the nodes of a chain have: sums of probabilities, or the logarithms of best paths in units
// of the host, whole numbers, so that sums in any order are equal.
#pragma once

#include "common/grid.cuh"

// What a run keeps of each symbol.
#define KEEPS_NOTHING 0
#define KEEPS_TRACES 1   // the bits of the best way into each node
#define KEEPS_COLUMNS 2  // the sums of the nodes that emit
#define KEEPS_SHARES 3   // those times what is kept there: sums from both ends

#if CHAIN_SUMS
#if CHAIN_DOUBLE
using Number = double;
#else
using Number = float;
#endif
constexpr Number NOTHING = 0;
constexpr Number UNIT = 1;
#else
using Number = long long;
constexpr Number NOTHING = IMPOSSIBLE;
constexpr Number UNIT = 0;
#endif

// The largest value, and of sums the smallest that is neither 0 nor more than 1; or whether a best
// path is possible, and too bad to go on.
struct Extremes {
    Number most = NOTHING;
#if CHAIN_SUMS
    Number least = UNIT;
#else
    bool is_lost = false;
#endif

    // Take a value into account, unless it is NaN.
    __device__ __forceinline__ void take(Number value) {
        most = value > most ? value : most;
#if CHAIN_SUMS
        least = value > 0 && value < least ? value : least;
#else
        is_lost = is_lost || (value >= LEAST_POSSIBLE && value <= IMPOSSIBLE / 2);
#endif
    }

    __device__ __forceinline__ void join(const Extremes& other) {
        most = other.most > most ? other.most : most;
#if CHAIN_SUMS
        least = other.least < least ? other.least : least;
#else
        is_lost = is_lost || other.is_lost;
#endif
    }
};

#if CHAIN_SUMS
// What all nodes are multiplied with so that the largest is about 1: a power of 2. It is no number
// if a node is too small for a common scale, so that no node is a number from then on.
struct Scale {
    Number factor;
    long long offset;

    __device__ __forceinline__ explicit Scale(const Extremes& nodes) {
#if CHAIN_DOUBLE
        const int power = static_cast<int>(__double_as_longlong(nodes.most) >> 52) - 1023;
        const bool has = power > -1023;
        factor = has ? __longlong_as_double(static_cast<long long>(1023 - power) << 52) : 1;
        const Number range = __longlong_as_double((1023ll - RANGE_POWERS) << 52);
        const Number no_number = __longlong_as_double(0x7FF8000000000000ll);
#else
        const int power = static_cast<int>(__float_as_uint(nodes.most) >> 23) - 127;
        const bool has = power > -127;
        factor = has ? __uint_as_float(static_cast<uint32>(127 - power) << 23) : 1;
        const Number range = __uint_as_float((127u - RANGE_POWERS) << 23);
        const Number no_number = __uint_as_float(0x7FC00000u);
#endif
        factor = nodes.least < nodes.most * range ? no_number : factor;
        offset = has ? power : 0;
    }

    __device__ __forceinline__ Number of(Number value) const {
        return value * factor;
    }

    __device__ __forceinline__ long long after(long long before) const {
        return before + offset;
    }
};
#else
// What is taken off all nodes that are possible: a multiple of 2**OFFSET_BITS.
struct Scale {
    long long offset;
    bool is_lost;

    __device__ __forceinline__ explicit Scale(const Extremes& nodes)
        : offset(nodes.most > IMPOSSIBLE / 2 ? nodes.most >> OFFSET_BITS : 0),
          is_lost(nodes.is_lost) {}

    __device__ __forceinline__ long long after(long long before) const {
        return is_lost ? LOST : before + offset;
    }

    __device__ __forceinline__ Number of(Number value) const {
        // A multiplication: a negative number may not be shifted to the left.
        return value > IMPOSSIBLE / 2 ? value - offset * (1ll << OFFSET_BITS) : IMPOSSIBLE;
    }
};
#endif

// Return the natural logarithm of a sum, or of a best path, and of what was taken off it.
__device__ __forceinline__ double score_of(double total, long long offset) {
    return log(total) + static_cast<double>(offset) * 0.6931471805599453;
}

__device__ __forceinline__ double score_of(long long best, long long offset) {
    constexpr double UNITS = static_cast<double>(1ll << LOG_BITS);
    constexpr double STEP = static_cast<double>(1ll << OFFSET_BITS) / UNITS;
    // Both products are exact.
    const double score = static_cast<double>(best) / UNITS + static_cast<double>(offset) * STEP;
    const long long none = offset > LOST / 2 ? 0x7FF8000000000000ll : 0xFFF0000000000000ll;
    return offset > LOST / 2 || best < IMPOSSIBLE / 2 ? __longlong_as_double(none) : score;
}
