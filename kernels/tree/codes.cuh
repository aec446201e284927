// How the kernels read the base codes of queries and of a page of the reference, under every
// policy. A code is one byte: A, C, G and T are 0 to 3, and BREAK matches nothing.
#pragma once

#include "tree/node.cuh"

constexpr uint64 BREAKS_OF_WORD = 0x0101010101010101ull * BREAK;
static_assert(BREAK == 4, "a code is a break if its third bit is set");

// Codes in linear memory. The buffer extends at least two words of CODES_IN_WORD codes beyond the
// last code. The texture `words` is bound to the same memory if codes are read through a texture.
template <bool texture>
struct LinearCodes {
    const uint8* codes;
    cudaTextureObject_t words;

    __device__ __forceinline__ uint64 aligned_word(uint64 word) const {
        uint2 pair;
        if constexpr (texture) {
            pair = tex1Dfetch<uint2>(words, static_cast<int>(word));
        } else {
            pair = __ldg(reinterpret_cast<const uint2*>(codes) + word);
        }
        return pair.x | static_cast<uint64>(pair.y) << 32;
    }

    // Return the CODES_IN_WORD codes from a position on, the first in the lowest byte.
    __device__ __forceinline__ uint64 word_at(uint64 position) const {
        const uint64 word = position / CODES_IN_WORD;
        const uint32 shift = 8 * static_cast<uint32>(position % CODES_IN_WORD);
        const uint64 low = aligned_word(word);
        return shift == 0 ? low : low >> shift | aligned_word(word + 1) << (64 - shift);
    }

    __device__ __forceinline__ uint32 code_at(uint64 position) const {
        if constexpr (texture) {
            return aligned_word(position / CODES_IN_WORD) >> 8 * (position % CODES_IN_WORD) & 0xFF;
        } else {
            return __ldg(codes + position);
        }
    }
};

// Codes in strips of rows (policy r): eight consecutive codes fill two columns of four rows.
template <bool texture>
struct CodesInStrips {
    const uint8* codes;
    cudaTextureObject_t rows;

    __device__ __forceinline__ uint32 code_at(uint64 position) const {
        const uint64 place = place_in_strips(position, REFERENCE_WIDTH_BITS, REFERENCE_STRIP_BITS);
        if constexpr (texture) {
            const uint32 column = place & ((1u << REFERENCE_WIDTH_BITS) - 1);
            const uint32 row = static_cast<uint32>(place >> REFERENCE_WIDTH_BITS);
            return tex2D<uint8>(rows, column + 0.5f, row + 0.5f);
        } else {
            return __ldg(codes + place);
        }
    }
};

using Queries = LinearCodes<QUERY_TEXTURE>;
using Reference = Conditional<TWO_DIMENSIONAL_REFERENCE, CodesInStrips<REFERENCE_TEXTURE>,
                              LinearCodes<REFERENCE_TEXTURE>>::Type;

// Return the number of equal bases from two positions on, at most `limit`. `codes` is the query's
// word at its position, which the caller has read already.
template <bool query_texture, bool reference_texture>
__device__ __forceinline__ uint32 count_equal(const LinearCodes<query_texture>& queries,
                                              uint64 query_position, uint64 codes,
                                              const LinearCodes<reference_texture>& reference,
                                              uint64 reference_position, uint32 limit) {
    uint32 equal = 0;
    while (equal < limit) {
        const uint64 others = reference.word_at(reference_position + equal);
        const uint64 different = (codes ^ others) | (codes & BREAKS_OF_WORD);
        if (different != 0) {
            equal += (__ffsll(static_cast<long long>(different)) - 1) / 8;
            break;
        }
        equal += CODES_IN_WORD;
        if (equal < limit) {
            codes = queries.word_at(query_position + equal);
        }
    }
    return equal < limit ? equal : limit;
}

// Return the same for a reference in strips, base by base.
template <bool query_texture, bool reference_texture>
__device__ __forceinline__ uint32 count_equal(const LinearCodes<query_texture>& queries,
                                              uint64 query_position, uint64,
                                              const CodesInStrips<reference_texture>& reference,
                                              uint64 reference_position, uint32 limit) {
    uint32 equal = 0;
    while (equal < limit) {
        const uint32 code = queries.code_at(query_position + equal);
        if (code == BREAK || code != reference.code_at(reference_position + equal)) {
            break;
        }
        ++equal;
    }
    return equal;
}
