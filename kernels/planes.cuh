// Sequences of the sampled search: 32 bases in 16 bytes, a bit of each base in every plane.
//
// Two sequences are compared 32 bases at a time, wherever they begin. Before the first word
// and behind the last lie PADDING_WORDS words of breaks, so that no comparison needs to know
// where a sequence ends.
#pragma once

#include "layout.cuh"

constexpr uint32 WORD_BASES = 32;
constexpr uint32 PADDING_WORDS = 2;

struct alignas(16) Planes {
    uint32 low;      // the lower bit of each code
    uint32 high;     // the higher bit
    uint32 breaks;   // whether it is a break
    uint32 borders;  // whether a query begins there
};

__device__ __forceinline__ Planes planes_at(const Planes* words, long long word) {
    const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(words) + word);
    return {loaded.x, loaded.y, loaded.z, loaded.w};
}

// Return the 32 bases that begin `shift` bases behind the first of two words.
__device__ __forceinline__ Planes shifted(const Planes& first, const Planes& second,
                                          uint32 shift) {
    return {__funnelshift_r(first.low, second.low, shift),
            __funnelshift_r(first.high, second.high, shift),
            __funnelshift_r(first.breaks, second.breaks, shift),
            __funnelshift_r(first.borders, second.borders, shift)};
}

// The 32 bases before a position and the 32 from it on.
struct Surroundings {
    Planes before;
    Planes ahead;
};

__device__ __forceinline__ Surroundings surroundings(const Planes* words, long long position) {
    const long long word = position >> 5;
    const uint32 shift = static_cast<uint32>(position) % WORD_BASES;
    const Planes middle = planes_at(words, word);
    return {shifted(planes_at(words, word - 1), middle, shift),
            shifted(middle, planes_at(words, word + 1), shift)};
}

// As `surroundings`, of queries: bases where an extension from the position has to end count
// as breaks. To the left it takes the first base of a query and ends behind it; to the right
// it ends before the first base of the next, which `position` itself may be the first of.
__device__ __forceinline__ Surroundings query_surroundings(const Planes* words,
                                                           long long position) {
    Surroundings around = surroundings(words, position);
    around.before.breaks |= around.before.borders >> 1 | around.ahead.borders << 31;
    around.ahead.breaks |= around.ahead.borders & ~1u;
    return around;
}

__device__ __forceinline__ uint32 differences(const Planes& one, const Planes& other) {
    return (one.low ^ other.low) | (one.high ^ other.high) | one.breaks | other.breaks;
}

// Return a number of 16 bits with its bits two apart.
__device__ __forceinline__ uint32 spread_bits(uint32 number) {
    number = (number | number << 8) & 0x00FF00FFu;
    number = (number | number << 4) & 0x0F0F0F0Fu;
    number = (number | number << 2) & 0x33333333u;
    return (number | number << 1) & 0x55555555u;
}

// Return the k-mer at the front as a number, its first base in the two lowest bits.
__device__ __forceinline__ uint32 front_kmer(const Planes& bases, uint32 kmer_length) {
    const uint32 mask = (1u << kmer_length) - 1;
    return spread_bits(bases.low & mask) | spread_bits(bases.high & mask) << 1;
}
