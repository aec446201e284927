// Sequences as bit planes: 32 bases take 16 bytes, and every plane has one bit of each base.
//
// The kernels compare two sequences 32 bases at a time, from any position. PADDING_WORDS words of
// breaks lie before the first word of a sequence and after its last word, so no comparison has to
// check where a sequence ends.
#pragma once

#include "common/types.cuh"

static_assert(WORD_BASES == 32, "a word of a plane has a bit for each of its bases");
static_assert(PADDING_WORDS >= 2, "two words are read after the one in which a sequence ends");

// 32 bases; the first base has the lowest bits.
struct alignas(16) BitPlanes {
    uint32 low;     // the lower bit of each code
    uint32 high;    // the higher bit of each code
    uint32 breaks;  // set where the base is a break
    uint32 starts;  // set at the first base of each query
};

static_assert(sizeof(BitPlanes) == BIT_PLANES_BYTES, "as the host allocates them");

// Return a word of a sequence or its padding. Words before the sequence have negative numbers.
__device__ __forceinline__ BitPlanes load_bit_planes(const BitPlanes* words, long long word) {
    const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(words) + word);
    return {loaded.x, loaded.y, loaded.z, loaded.w};
}

// Return the 32 bases that begin `shift` bases after the first of two adjacent words.
__device__ __forceinline__ BitPlanes shift_bit_planes(const BitPlanes& first,
                                                      const BitPlanes& second, uint32 shift) {
    return {__funnelshift_r(first.low, second.low, shift),
            __funnelshift_r(first.high, second.high, shift),
            __funnelshift_r(first.breaks, second.breaks, shift),
            __funnelshift_r(first.starts, second.starts, shift)};
}

// Return the 32 bases from a position on, which may lie in the padding.
__device__ __forceinline__ BitPlanes bases_from(const BitPlanes* words, long long position) {
    const long long word = position >> 5;
    return shift_bit_planes(load_bit_planes(words, word), load_bit_planes(words, word + 1),
                            static_cast<uint32>(position) % WORD_BASES);
}

// Return the 32 bases before a position.
__device__ __forceinline__ BitPlanes bases_before(const BitPlanes* words, long long position) {
    return bases_from(words, position - WORD_BASES);
}

// The bases around a position.
struct Flanks {
    BitPlanes left;   // the 32 bases before the position
    BitPlanes right;  // the 32 bases from the position on
};

// Return the bases around a position of the reference.
__device__ __forceinline__ Flanks load_flanks(const BitPlanes* words, long long position) {
    const long long word = position >> 5;
    const uint32 shift = static_cast<uint32>(position) % WORD_BASES;
    const BitPlanes middle = load_bit_planes(words, word);
    return {shift_bit_planes(load_bit_planes(words, word - 1), middle, shift),
            shift_bit_planes(middle, load_bit_planes(words, word + 1), shift)};
}

// Return the bases around a position of the queries. Bases at which an extension has to end count
// as breaks: to the left, the last base of the query before; to the right, the first base of the
// next query. The position itself may be the first base of its query.
__device__ __forceinline__ Flanks load_query_flanks(const BitPlanes* words, long long position) {
    Flanks flanks = load_flanks(words, position);
    flanks.left.breaks |= flanks.left.starts >> 1 | flanks.right.starts << 31;
    flanks.right.breaks |= flanks.right.starts & ~1u;
    return flanks;
}

// Return a mask of the bases that differ or are breaks.
__device__ __forceinline__ uint32 mismatches(const BitPlanes& one, const BitPlanes& other) {
    return (one.low ^ other.low) | (one.high ^ other.high) | one.breaks | other.breaks;
}

// Return the code of one of 32 bases. The code of a break is larger than those of the bases.
__device__ __forceinline__ uint32 code_of(const BitPlanes& bases, uint32 base) {
    const uint32 code = (bases.low >> base & 1) | (bases.high >> base & 1) << 1;
    return bases.breaks >> base & 1 ? BREAK : code;
}

// Return a 16-bit number with a zero inserted above each of its bits.
__device__ __forceinline__ uint32 spread_bits(uint32 number) {
    number = (number | number << 8) & 0x00FF00FFu;
    number = (number | number << 4) & 0x0F0F0F0Fu;
    number = (number | number << 2) & 0x33333333u;
    return (number | number << 1) & 0x55555555u;
}

// Return the first k-mer as a number, its first base in the two lowest bits.
__device__ __forceinline__ uint32 first_kmer(const BitPlanes& bases, uint32 kmer_length) {
    const uint32 mask = (1u << kmer_length) - 1;
    return spread_bits(bases.low & mask) | spread_bits(bases.high & mask) << 1;
}
