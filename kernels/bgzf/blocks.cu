// Puts deflated texts into blocks of bgzf, one after the other.
//
// A block has a head, the deflated text, the checksum and the size of the text (section 4.1 of the
// SAM format specification). A warp makes a block; a text that deflating made longer is stored.
#pragma once

#include "bgzf/checksum.cuh"

// A part of a file before compression, in pieces of BGZF_BLOCK_BYTES, and their deflated forms.
struct Deflated {
    const uint8* text;
    uint64 text_bytes;
    const uint8* pieces;   // each deflated form begins `stride` bytes after the one before
    const uint64* sizes;   // the bytes of each deflated form
    uint64 stride;
};

// Return the bytes of a piece of the text.
__device__ __forceinline__ uint32 text_size(const Deflated& deflated, uint64 piece) {
    const uint64 left = deflated.text_bytes - piece * BGZF_BLOCK_BYTES;
    return static_cast<uint32>(left < BGZF_BLOCK_BYTES ? left : BGZF_BLOCK_BYTES);
}

// Return whether a piece of the text is stored as it is.
__device__ __forceinline__ bool is_stored(const Deflated& deflated, uint64 piece) {
    return deflated.sizes[piece] > text_size(deflated, piece);
}

// Return the bytes between the head and the tail of a block.
__device__ __forceinline__ uint32 content_size(const Deflated& deflated, uint64 piece) {
    return is_stored(deflated, piece) ? text_size(deflated, piece) + STORED_HEAD_BYTES
                                      : static_cast<uint32>(deflated.sizes[piece]);
}

// Return where the block of a piece begins. All lanes of a warp must call.
__device__ __forceinline__ uint64 block_begin(const Deflated& deflated, uint64 piece) {
    uint64 sum = 0;
    for (uint64 before = lane_number(); before < piece; before += WARP_LANES) {
        sum += BGZF_HEAD_BYTES + content_size(deflated, before) + BGZF_TAIL_BYTES;
    }
    uint64 total;
    warp_exclusive_sum(sum, total);
    return total;
}

// Write a number, the lowest byte first.
__device__ __forceinline__ void store_number(uint8* at, uint32 value, uint32 bytes) {
    for (uint32 byte = 0; byte < bytes; ++byte) {
        at[byte] = static_cast<uint8>(value >> 8 * byte);
    }
}

// Write the head of a block of `block_bytes`.
__device__ __forceinline__ void store_head(uint8* at, uint32 block_bytes) {
    store_number(at, BGZF_MAGIC, 4);
    store_number(at + 4, BGZF_TIME, 4);
    store_number(at + 8, BGZF_SYSTEM_AND_EXTRA, 4);
    store_number(at + 12, BGZF_SUBFIELD, 4);
    store_number(at + 16, block_bytes - 1, 2);
}

// Write the blocks of a part of a file.
//
// deflated    the part of the file, and its deflated pieces
// count       the number of pieces
// blocks      receives the blocks, one after the other
// block_ends  uint64[count], receives where each block ends
//
// Grid: one warp for each block of bgzf, or fewer warps that take several in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_blocks(Deflated deflated, uint64 count, uint8* __restrict__ blocks,
                 uint64* __restrict__ block_ends) {
    for (uint64 piece = grid_warp(); piece < count; piece += grid_warps()) {
        const uint64 begin = block_begin(deflated, piece);
        const uint8* text = deflated.text + piece * BGZF_BLOCK_BYTES;
        const uint32 text_bytes = text_size(deflated, piece);
        const uint32 checksum = checksum_of(text, text_bytes);
        const bool stored = is_stored(deflated, piece);
        const uint32 content = content_size(deflated, piece);
        uint8* block = blocks + begin;
        uint8* to = block + BGZF_HEAD_BYTES;
        if (lane_number() == 0) {
            store_head(block, BGZF_HEAD_BYTES + content + BGZF_TAIL_BYTES);
            store_number(to + content, checksum, 4);
            store_number(to + content + 4, text_bytes, 4);
            block_ends[piece] = begin + BGZF_HEAD_BYTES + content + BGZF_TAIL_BYTES;
            if (stored) {
                to[0] = 1;
                store_number(to + 1, text_bytes, 2);
                store_number(to + 3, ~text_bytes, 2);
            }
        }
        const uint8* from = stored ? text : deflated.pieces + piece * deflated.stride;
        to += stored ? STORED_HEAD_BYTES : 0;
#pragma unroll 8
        for (uint32 byte = lane_number(); byte < content - (stored ? STORED_HEAD_BYTES : 0);
             byte += WARP_LANES) {
            to[byte] = from[byte];
        }
    }
}
