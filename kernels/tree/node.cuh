// The memory layout of the nodes of a suffix tree.
//
// A node has two halves of five numbers and one field of flags each. The first half holds
// EDGE_START, EDGE_END, STRING_DEPTH, PARENT, SUFFIX_LINK and IS_LEAF. The second half of an inner
// node holds the children by the first code of their edge, the $ child, and FLAGS. The second half
// of a leaf holds LEAF_ID, FLAGS and, in the field of the $ child, NEXT_LEAF: the next leaf that
// ends at the same bases. In the paper's format a number has 24 bits and a half has 16 bytes; in
// the wide format a number has 32 bits and a half has 24 bytes.
#pragma once

#include "common/types.cuh"

// A half in the paper's format: one texel of 16 bytes.
struct PaperNodeHalf {
    static constexpr uint32 TEXELS = 1;
    using Texel = uint4;

    Texel texels[TEXELS];

    __device__ __forceinline__ uint32 number(uint32 field) const {
        const uint4 words = texels[0];
        const uint64 low = words.x | static_cast<uint64>(words.y) << 32;
        const uint64 high = words.z | static_cast<uint64>(words.w) << 32;
        const uint32 bit = 24 * field;
        const uint64 number = field < 2   ? low >> bit
                              : field > 2 ? high >> (bit - 64)
                                          : low >> 48 | high << 16;
        return static_cast<uint32>(number) & (field < 5 ? 0xFFFFFF : 0xFF);
    }
};

// A half in the wide format: three texels of 8 bytes.
struct WideNodeHalf {
    static constexpr uint32 TEXELS = 3;
    using Texel = uint2;

    Texel texels[TEXELS];

    __device__ __forceinline__ uint32 number(uint32 field) const {
        // Select the texel by comparison: the compiler would move an indexed array to memory.
        const uint2 pair = field < 2 ? texels[0] : field < 4 ? texels[1] : texels[2];
        return field % 2 == 0 ? pair.x : pair.y;
    }
};

using NodeHalf = Conditional<WIDE, WideNodeHalf, PaperNodeHalf>::Type;

static_assert(sizeof(NodeHalf) == NODE_HALF_BYTES, "as the trees are laid out");

// Return the index of the number-th item in a two-dimensional array stored row after row. Items
// fill strips of rows, each strip column by column.
__device__ __forceinline__ uint64 place_in_strips(uint64 number, uint32 width_bits,
                                                  uint32 strip_bits) {
    const uint64 strip = number >> (width_bits + strip_bits);
    const uint64 inside = number & ((1ull << (width_bits + strip_bits)) - 1);
    const uint64 row = (strip << strip_bits) + (inside & ((1ull << strip_bits) - 1));
    return (row << width_bits) + (inside >> strip_bits);
}
