// Pairs of numbers of half precision. Whole numbers up to 2,048 are exact, and numbers that are not
// negative order as the integers do that their bits are.
#pragma once

#include "common/pairs.cuh"

// Return the half of a whole number from 0 to 2,047.
__device__ __forceinline__ uint32 half_of(uint32 number) {
    if (number == 0) {
        return 0;
    }
    const uint32 exponent = 31 - __clz(number);
    return (exponent + 15) << 10 | (number << (10 - exponent) & 1023u);
}

// Return the whole number of a half that is not negative.
__device__ __forceinline__ uint32 whole_of(uint32 half) {
    const uint32 exponent = half >> 10;
    const uint32 digits = (half & 1023u) | 1024u;
    if (exponent < 15) {
        return 0;
    }
    return exponent < 25 ? digits >> (25 - exponent) : digits << (exponent - 25);
}

// Return a sum, or 0 where it is negative, in both halves.
__device__ __forceinline__ uint32 sum_from_zero(uint32 one, uint32 other) {
#ifdef __CUDACC_RTC__
    uint32 sum;
#if __CUDA_ARCH__ >= 800
    constexpr uint32 ONES = 0x3C003C00u;
    asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(one), "r"(ONES), "r"(other));
    return sum;
#else
    asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(one), "r"(other));
    return sum & ~((sum >> 15 & 0x00010001u) * 0xFFFFu);
#endif
#else
    return host_sum_from_zero(one, other);
#endif
}
