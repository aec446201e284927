// The arithmetic of whole matrices: of one in 32 bits, or of two in the halves of a word.
#pragma once

#include "common/pairs.cuh"

// The score of what no path reaches, in 32 bits. Two of them do not overflow.
constexpr int NEVER = -(1 << 29);

static_assert(DIRECTION_BITS == 4 && LANE_ROWS == 8,
              "the directions of the rows of a thread fill one word or two");

// Return the bytes of two words that a selector names; those whose number is 8 more than a byte's
// are filled with the highest bit of that byte.
__device__ __forceinline__ uint32 chosen_bytes(uint32 one, uint32 other, uint32 selector) {
#ifdef __CUDACC_RTC__
    uint32 chosen;
    asm("prmt.b32 %0, %1, %2, %3;" : "=r"(chosen) : "r"(one), "r"(other), "r"(selector));
    return chosen;
#else
    const uint64 both = static_cast<uint64>(other) << 32 | one;
    uint32 chosen = 0;
    for (uint32 place = 0; place < 4; ++place) {
        const uint32 nibble = selector >> 4 * place & 15;
        const uint32 byte = static_cast<uint32>(both >> 8 * (nibble & 7)) & 255;
        chosen |= (nibble & 8 ? (byte & 128 ? 255u : 0u) : byte) << 8 * place;
    }
    return chosen;
#endif
}

// What a row scores on each base of the reference: a byte for each, for one matrix or two.
struct RowScores {
    uint32 one, two;  // a signed byte for each of the four bases
    uint32 penalty;   // the score on a break of the reference, as a number of `Numbers`
};

// A column: which bytes of `RowScores` its bases choose, and bits of all numbers that are breaks.
struct ColumnBases {
    uint32 selector;
    uint32 breaks;

    __device__ __forceinline__ uint32 score(const RowScores& row) const {
        const uint32 chosen = chosen_bytes(row.one, row.two, selector);
        return (chosen & ~breaks) | (row.penalty & breaks);
    }
};

// Return the bytes of one base of the query.
__device__ __forceinline__ uint32 base_scores(uint32 base, const Costs& costs) {
    if (base > 3) {
        return (static_cast<uint32>(-costs.unknown) & 255u) * 0x01010101u;
    }
    const uint32 mismatches = (static_cast<uint32>(-costs.mismatch) & 255u) * 0x01010101u;
    const uint32 place = 8 * base;
    return (mismatches & ~(255u << place)) | static_cast<uint32>(costs.match) << place;
}

// Return the score of a base of the query on a break of the reference.
__device__ __forceinline__ int break_score(uint32 base, const Costs& costs) {
    return base > 3 ? -costs.unknown : -costs.mismatch;
}

// Scores of one matrix.
struct WideNumbers {
    using Score = int;
    using Bits = uint32;
    using Directions = uint32;  // DIRECTION_BITS for each row of a thread

    StepCosts<int> steps;

    __device__ __forceinline__ explicit WideNumbers(const Costs& costs)
        : steps(step_costs<int>(costs, [](int cost) { return cost; })) {}

    __device__ __forceinline__ int number(int score) const {
        return score;
    }
    __device__ __forceinline__ int never() const {
        return NEVER;
    }
    __device__ __forceinline__ int sum(int score, uint32 other) const {
        return score + static_cast<int>(other);
    }
    __device__ __forceinline__ int less(int score, int step) const {
        return score - step;
    }
    __device__ __forceinline__ int larger(int score, int other) const {
        return max(score, other);
    }
    __device__ __forceinline__ int larger_less(int score, int step, int other) const {
        return max(score - step, other);
    }
    __device__ __forceinline__ void note(uint32& bits, uint32 bit, int score, int other) const {
        bits |= static_cast<uint32>(score > other) << bit;
    }
    __device__ __forceinline__ void keep(uint32& directions, uint32 row, uint32 bits) const {
        directions |= bits << DIRECTION_BITS * row;
    }
    static __device__ __forceinline__ uint32 bits_of(uint32 directions, uint32 row, uint32) {
        return directions >> DIRECTION_BITS * row & ((1u << DIRECTION_BITS) - 1);
    }
    static __device__ __forceinline__ uint32 selector(uint32 base, uint32) {
        return (base & 3) * 0x1111u | 0x8880u;
    }
    static __device__ __forceinline__ uint32 breaks(uint32 base, uint32) {
        return base > 3 ? ~0u : 0u;
    }
};

// Scores of two matrices. Both corners have CORNER_OF_TWO, and all scores lie between 0, which stands
// for whatever no good path reaches, and 2^15 - 1: a sum or difference never spoils the other half.
struct TwoNumbers {
    using Score = uint32;
    struct Bits {
        // In each half the highest bit is not set if a step is better than those before it.
        uint32 differences[DIRECTION_BITS];
    };
    using Directions = uint2;  // for each row of a thread, DIRECTION_BITS of each matrix

    StepCosts<uint32> steps;  // negative, so that they are added

    __device__ __forceinline__ explicit TwoNumbers(const Costs& costs)
        : steps(step_costs<uint32>(costs, [](int cost) { return in_both(-cost); })) {}

    __device__ __forceinline__ uint32 number(int score) const {
        return in_both(max(score + static_cast<int>(CORNER_OF_TWO), 0));
    }
    __device__ __forceinline__ uint32 never() const {
        return 0;
    }
    __device__ __forceinline__ uint32 sum(uint32 score, uint32 other) const {
        return larger_sum(score, other, 0);
    }
    __device__ __forceinline__ uint32 less(uint32 score, uint32 step) const {
        return larger_sum(score, step, 0);
    }
    __device__ __forceinline__ uint32 larger(uint32 score, uint32 other) const {
        return larger_of(score, other);
    }
    __device__ __forceinline__ uint32 larger_less(uint32 score, uint32 step,
                                                  uint32 other) const {
        return larger_sum(score, step, other);
    }
    __device__ __forceinline__ void note(Bits& bits, uint32 bit, uint32 score,
                                         uint32 other) const {
        bits.differences[bit] = other + 0x80008000u - score;
    }
    __device__ __forceinline__ void keep(uint2& directions, uint32 row, const Bits& bits) const {
        // The signs of two pairs of numbers, a byte each: those of the first, then of the second.
        const uint32 first = chosen_bytes(bits.differences[0], bits.differences[1], 0xFDB9u);
        const uint32 second = chosen_bytes(bits.differences[2], bits.differences[3], 0xFDB9u);
        const uint32 place = 2 * (row % 4);
        const uint32 both =
            (first & 0x01010101u << place) | (second & 0x02020202u << place);
        if (row < 4) {
            directions.x |= both;
        } else {
            directions.y |= both;
        }
    }
    static __device__ __forceinline__ uint32 bits_of(uint2 directions, uint32 row,
                                                     uint32 matrix) {
        const uint32 word = row < 4 ? directions.x : directions.y;
        const uint32 bits = ~word >> (8 * matrix + 2 * (row % 4));
        return (bits & 1) | (bits >> 15 & 2) | (bits << 1 & 4) | (bits >> 14 & 8);
    }
    static __device__ __forceinline__ uint32 selector(uint32 one, uint32 two) {
        return (one & 3) * 0x11u | 0x80u | ((two & 3) * 0x11u | 0xC4u) << 8;
    }
    static __device__ __forceinline__ uint32 breaks(uint32 one, uint32 two) {
        return (one > 3 ? 0xFFFFu : 0u) | (two > 3 ? 0xFFFF0000u : 0u);
    }
};
