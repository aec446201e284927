// How nodes and sequences lie in memory: the same numbers as mummergpu/index/tree/layout.py.
//
// A node is two halves of five numbers and one field of flags. In the paper's format a
// number has 24 bits and a half 16 bytes, in the wide format 32 bits and 24 bytes.
#pragma once

using uint8 = unsigned char;
using uint32 = unsigned int;
using uint64 = unsigned long long;

// The fields of the first half.
enum NodeField { EDGE_START, EDGE_END, STRING_DEPTH, PARENT, SUFFIX_LINK, IS_LEAF };

// The fields of the second half: the children by the first code of their edge, or, in a
// leaf, the suffix and the next leaf that ends behind the same bases.
enum ChildrenField { LEAF_ID = 0, NEXT_LEAF = 4, FLAGS = 5 };

constexpr uint32 LEAF_FLAG = 0x80;
constexpr uint32 PRECEDING_BASE_MASK = 0x07;
constexpr uint32 ROOT = 0;
constexpr uint32 NO_NODE = 0;
constexpr uint32 BREAK = 4;  // the code of whatever is no base, and the slot of the $ child

constexpr uint32 TREE_STRIP_BITS = 5;
constexpr uint32 REFERENCE_WIDTH_BITS = 16;
constexpr uint32 REFERENCE_STRIP_BITS = 2;

struct PaperHalf {
    static constexpr uint32 TREE_WIDTH_BITS = 12;
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

struct WideHalf {
    static constexpr uint32 TREE_WIDTH_BITS = 14;
    static constexpr uint32 TEXELS = 3;
    using Texel = uint2;

    Texel texels[TEXELS];

    __device__ __forceinline__ uint32 number(uint32 field) const {
        // Selected, not indexed: an indexed array would leave the registers.
        const uint2 pair = field < 2 ? texels[0] : field < 4 ? texels[1] : texels[2];
        return field % 2 == 0 ? pair.x : pair.y;
    }
};

// One of two types.
template <bool condition, typename Yes, typename No>
struct Either {
    using Type = Yes;
};
template <typename Yes, typename No>
struct Either<false, Yes, No> {
    using Type = No;
};

using Half = Either<WIDE, WideHalf, PaperHalf>::Type;

static_assert(sizeof(PaperHalf) == 16 && sizeof(WideHalf) == 24, "as the package has them");

// Return where the number-th item lies in a two-dimensional array stored row after row:
// items fill strips of rows, column by column.
__device__ __forceinline__ uint64 place_in_strips(uint64 number, uint32 width_bits,
                                                  uint32 strip_bits) {
    const uint64 strip = number >> (width_bits + strip_bits);
    const uint64 inside = number & ((1ull << (width_bits + strip_bits)) - 1);
    const uint64 row = (strip << strip_bits) + (inside & ((1ull << strip_bits) - 1));
    return (row << width_bits) + (inside >> strip_bits);
}
