// The arithmetic of scores: of one tile, or of two tiles in the halves of a word.
//
// `recurrence`, which is generated from the model, takes either.
#pragma once

#include "common/pairs.cuh"

// The score of what no path reaches, and of what has less, in 32 bits and in 16. Two of them do
// not overflow.
constexpr int NEVER = -(1 << 29);
constexpr int NEVER_OF_PAIR = -(1 << 14);

// Scores of two tiles. They never fall below NEVER_OF_PAIR.
struct PairNumbers {
    using Score = uint32;
    using Bits = uint32;

    StepCosts<uint32> steps;  // negative, so that they are added

    __device__ __forceinline__ explicit PairNumbers(const Costs& costs)
        : steps(step_costs<uint32>(costs, [](int cost) { return in_both(-cost); })) {}

    __device__ __forceinline__ uint32 less(uint32 score, uint32 step) const {
        return larger_sum(score, step, in_both(NEVER_OF_PAIR));
    }
    __device__ __forceinline__ uint32 larger(uint32 score, uint32 other) const {
        return larger_of(score, other);
    }
    __device__ __forceinline__ uint32 larger_less(uint32 score, uint32 step,
                                                  uint32 other) const {
        return larger_sum(score, step, other);
    }
    __device__ __forceinline__ void note(uint32&, uint32, uint32, uint32) const {}
};

// Scores of one tile, with its directions.
struct SingleNumbers {
    using Score = int;
    using Bits = uint32;

    StepCosts<int> steps;

    __device__ __forceinline__ explicit SingleNumbers(const Costs& costs)
        : steps(step_costs<int>(costs, [](int cost) { return cost; })) {}

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
};
