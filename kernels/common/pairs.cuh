// Two small numbers in the halves of a word: integers of 16 bits, or numbers of half precision.
#pragma once

#include "common/types.cuh"

// Write a number into both halves of a word.
__device__ __forceinline__ uint32 in_both(int number) {
    return (static_cast<uint32>(number) & 0xFFFFu) * 0x00010001u;
}

__device__ __forceinline__ int low_half(uint32 pair) {
    return static_cast<short>(pair & 0xFFFFu);
}

__device__ __forceinline__ int high_half(uint32 pair) {
    return static_cast<short>(pair >> 16);
}

// Return the larger of a sum and a third number, in both halves.
__device__ __forceinline__ uint32 larger_sum(uint32 one, uint32 other, uint32 third) {
#ifdef __CUDACC_RTC__
    return __viaddmax_s16x2(one, other, third);
#else
    const int low = max(low_half(one) + low_half(other), low_half(third));
    const int high = max(high_half(one) + high_half(other), high_half(third));
    return (static_cast<uint32>(low) & 0xFFFFu) | static_cast<uint32>(high) << 16;
#endif
}

// Return the larger numbers of two words, in both halves.
__device__ __forceinline__ uint32 larger_of(uint32 one, uint32 other) {
#ifdef __CUDACC_RTC__
    return __vmaxs2(one, other);
#else
    return larger_sum(one, 0, other);
#endif
}

// Return the largest of three numbers, in both halves.
__device__ __forceinline__ uint32 largest_of(uint32 one, uint32 other, uint32 third) {
#ifdef __CUDACC_RTC__
    return __vimax3_s16x2(one, other, third);
#else
    return larger_of(larger_of(one, other), third);
#endif
}
