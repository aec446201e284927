// Proteins on the device, the longest first; and how the blocks of a grid share the work.
#pragma once

#include "common/warp.cuh"

constexpr uint32 WORD_RESIDUES = 8;  // a byte for each residue
constexpr uint32 PADDING_WORD = PADDING_CODE * 0x01010101u;

// Each sequence begins at a word, and its last word is filled up with PADDING_CODE.
struct Sequences {
    const uint2* words;
    const uint32* first_words;  // where each sequence begins in `words`
    const uint32* lengths;      // in residues, 1 or more, descending
};

// Return the words of a sequence.
__device__ __forceinline__ uint32 word_count(uint32 length) {
    return (length + WORD_RESIDUES - 1) / WORD_RESIDUES;
}

// The residues of this lane's sequence, a word ahead.
struct Reader {
    const uint2* words;
    uint32 count;
    uint2 next;

    __device__ __forceinline__ Reader(const Sequences& sequences, uint32 sequence, bool is_there)
        : words(sequences.words + (is_there ? sequences.first_words[sequence] : 0)),
          count(is_there ? word_count(sequences.lengths[sequence]) : 0), next(load(0)) {}

    __device__ __forceinline__ uint2 load(uint32 word) const {
        return word < count ? words[word] : uint2{PADDING_WORD, PADDING_WORD};
    }

    __device__ __forceinline__ uint2 take(uint32 word) {
        const uint2 now = next;
        next = load(word + 1);
        return now;
    }
};

// Return a residue of a word.
__device__ __forceinline__ uint32 code_at(const uint2& word, uint32 place) {
    return (place < 4 ? word.x : word.y) >> 8 * (place % 4) & 255u;
}

// What the Viterbi filter needs of a profile besides its table.
struct WordLimits {
    int floor;     // below any new entry
    int overflow;  // a higher match may exceed 16 bits with the next emission
};

// Some work of a block: comparisons from `first` to `last` - 1 with a profile of the launch.
struct alignas(16) Item {
    uint32 profile;
    uint32 first;
    uint32 last;
    uint32 unused;
};

static_assert(sizeof(Item) == ITEM_BYTES, "as the host writes them");

// Return the number of the next item. All threads of the block call, when they have done the last.
__device__ __forceinline__ uint32 take_ticket(uint32* tickets) {
    __shared__ uint32 ticket;
    // The threads have done their last item, and read its ticket.
    __syncthreads();
    if (threadIdx.x == 0) {
        ticket = atomicAdd(tickets, 1u);
    }
    __syncthreads();
    return ticket;
}
