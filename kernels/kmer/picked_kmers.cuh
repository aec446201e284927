// Picks one of several k-mers that lie side by side, by their bases alone.
//
// The rule is the processor's, of `sequence.picked_kmers`: the word of the lowest rank is chosen among
// all words of the bases, and where it begins, modulo the number of k-mers, is where the picked k-mer
// does.
#pragma once

#include "common/bit_planes.cuh"
#include "common/warp.cuh"

// No k-mer is picked: a break is among the bases.
constexpr uint32 NOT_PICKED = ~0u;

// Return how many bases the words have by which one of `kmers` k-mers is picked.
__device__ __forceinline__ uint32 word_length(uint32 kmer_length, uint32 kmers) {
    return kmer_length <= SHORTEST_WORD
               ? kmer_length
               : SHORTEST_WORD + (kmer_length - SHORTEST_WORD) % kmers;
}

// Return which of `kmers` k-mers, the first of which begins with the first base, is picked. They have
// up to 32 bases together.
__device__ __forceinline__ uint32 picked_kmer(const BitPlanes& bases, uint32 kmer_length,
                                              uint32 kmers) {
    const uint32 count = kmer_length + kmers - 1;
    if ((bases.breaks & lowest_bits(count)) != 0) {
        return NOT_PICKED;
    }
    const uint32 first = spread_bits(bases.low & 0xffff) | spread_bits(bases.high & 0xffff) << 1;
    const uint32 second = spread_bits(bases.low >> 16) | spread_bits(bases.high >> 16) << 1;
    uint64 codes = static_cast<uint64>(second) << 32 | first;
    const uint32 length = word_length(kmer_length, kmers);
    const uint32 mask = lowest_bits(2 * length);
    uint32 lowest = ~0u;
    for (uint32 word = 0; word + length <= count; ++word, codes >>= 2) {
        const uint32 mixed = ((static_cast<uint32>(codes) & mask) ^ RANK_SALT) * RANK_FACTOR;
        lowest = min(lowest, (mixed & ~(WORD_BASES * 2 - 1)) | word);
    }
    return lowest % (WORD_BASES * 2) % kmers;
}
