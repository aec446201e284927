// How the kernels read queries and the reference, whatever the policies say.
#pragma once

#include "layout.cuh"

constexpr uint32 CODES_IN_WORD = 8;
constexpr uint64 BREAK_IN_WORD = 0x0404040404040404ull;

// Codes, one byte each, in linear memory with eight bytes of room behind the last.
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

    // Return the eight codes from a position on, the first in the lowest byte.
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

// Codes in strips of rows (policy r): eight codes in a row lie in two columns of four rows.
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

template <bool two_dimensional, bool texture>
struct ReferenceOf {
    using Type = LinearCodes<texture>;
};
template <bool texture>
struct ReferenceOf<true, texture> {
    using Type = CodesInStrips<texture>;
};

using Queries = LinearCodes<QUERY_TEXTURE>;
using Reference = ReferenceOf<TWO_DIMENSIONAL_REFERENCE, REFERENCE_TEXTURE>::Type;

// Return how many bases from two positions on are equal, at most `most`; `codes` are the
// first of the query, which have been read already.
template <bool query_texture, bool reference_texture>
__device__ __forceinline__ uint32 count_equal(const LinearCodes<query_texture>& queries,
                                              uint64 query_position, uint64 codes,
                                              const LinearCodes<reference_texture>& reference,
                                              uint64 reference_position, uint32 most) {
    uint32 equal = 0;
    while (equal < most) {
        const uint64 others = reference.word_at(reference_position + equal);
        const uint64 different = (codes ^ others) | (codes & BREAK_IN_WORD);
        if (different != 0) {
            equal += (__ffsll(static_cast<long long>(different)) - 1) / 8;
            break;
        }
        equal += CODES_IN_WORD;
        if (equal < most) {
            codes = queries.word_at(query_position + equal);
        }
    }
    return equal < most ? equal : most;
}

template <bool query_texture, bool reference_texture>
__device__ __forceinline__ uint32 count_equal(const LinearCodes<query_texture>& queries,
                                              uint64 query_position, uint64,
                                              const CodesInStrips<reference_texture>& reference,
                                              uint64 reference_position, uint32 most) {
    uint32 equal = 0;
    while (equal < most) {
        const uint32 code = queries.code_at(query_position + equal);
        if (code == BREAK || code != reference.code_at(reference_position + equal)) {
            break;
        }
        ++equal;
    }
    return equal;
}
