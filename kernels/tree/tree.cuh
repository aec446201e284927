// How the kernels read a flat tree. The functions are the same for every policy.
//
// An address (uint32) is the index of a node in every layout. In the two-dimensional layouts the
// nodes are stored row after row.
#pragma once

#include "tree/node.cuh"

// A tree on the device, as a kernel receives it. A one-dimensional texture has at most
// 2**TEXTURE_PART_BITS texels; a larger tree uses several textures, at most TEXTURE_PARTS.

struct Tree {
    const uint8* nodes;     // the first halves, STRIDE texels apart; may be null with textures
    const uint8* children;  // the second halves, STRIDE texels apart
    cudaTextureObject_t node_textures[TEXTURE_PARTS];
    cudaTextureObject_t children_textures[TEXTURE_PARTS];

    // The number of texels from one node's half to the same half of the next node.
    static constexpr uint32 STRIDE = (MERGED_TREE ? 2 : 1) * NodeHalf::TEXELS;

    __device__ __forceinline__ NodeHalf node(uint32 address) const {
        return read_half(nodes, node_textures, 0, address);
    }

    // Return the second half of a node; in a merged tree it follows the first.
    __device__ __forceinline__ NodeHalf second_half(uint32 address) const {
        if constexpr (MERGED_TREE && TREE_TEXTURE) {
            return read_half(nodes, node_textures, NodeHalf::TEXELS, address);
        } else {
            return read_half(children, children_textures, 0, address);
        }
    }

    // Return the child of an inner node by the first code of its edge, or NO_NODE.
    __device__ __forceinline__ uint32 child(uint32 address, uint32 code) const {
        return second_half(address).number(code);
    }

  private:
    __device__ __forceinline__ static NodeHalf read_half(const uint8* global,
                                                         const cudaTextureObject_t* textures,
                                                         uint32 skipped, uint32 address) {
        using Texel = NodeHalf::Texel;
        NodeHalf found;
#pragma unroll
        for (uint32 number = 0; number < NodeHalf::TEXELS; ++number) {
            if constexpr (TREE_TEXTURE && TWO_DIMENSIONAL_TREE) {
                const uint32 column = address & ((1u << TREE_WIDTH_BITS) - 1);
                const uint32 row = address >> TREE_WIDTH_BITS;
                found.texels[number] = tex2D<Texel>(
                    textures[0], column * STRIDE + skipped + number + 0.5f, row + 0.5f);
            } else if constexpr (TREE_TEXTURE) {
                const uint64 texel = static_cast<uint64>(address) * STRIDE + skipped + number;
                const uint32 part = WIDE ? static_cast<uint32>(texel >> TEXTURE_PART_BITS) : 0;
                found.texels[number] = tex1Dfetch<Texel>(
                    textures[part], static_cast<int>(texel & ((1u << TEXTURE_PART_BITS) - 1)));
            } else {
                const uint64 texel = static_cast<uint64>(address) * STRIDE + skipped + number;
                found.texels[number] = __ldg(reinterpret_cast<const Texel*>(global) + texel);
            }
        }
        return found;
    }
};

static_assert(Tree::STRIDE * sizeof(NodeHalf::Texel) == NODE_STRIDE_BYTES,
              "as the trees are laid out");

__device__ __forceinline__ bool is_leaf(const NodeHalf& node) {
    return node.number(IS_LEAF) != 0;
}

// Return the number of bases from the root to a node.
__device__ __forceinline__ uint32 string_depth(const NodeHalf& node) {
    return node.number(STRING_DEPTH);
}

// Return the string depth of a node's parent, computed from the node's own fields.
__device__ __forceinline__ uint32 parent_depth(const NodeHalf& node) {
    return node.number(STRING_DEPTH) - (node.number(EDGE_END) - node.number(EDGE_START));
}

// Return where in the page an occurrence of a node's path begins.
__device__ __forceinline__ uint32 path_start(const NodeHalf& node) {
    return node.number(EDGE_END) - node.number(STRING_DEPTH);
}

// Return whether a second half belongs to a leaf.
__device__ __forceinline__ bool belongs_to_leaf(const NodeHalf& second_half) {
    return (second_half.number(FLAGS) & LEAF_FLAG) != 0;
}

// Return the code of the base before a leaf's suffix, from the leaf's second half.
__device__ __forceinline__ uint32 preceding_base(const NodeHalf& second_half) {
    return second_half.number(FLAGS) & PRECEDING_BASE_MASK;
}
