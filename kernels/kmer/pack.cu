// Packs base codes into bit planes, and marks in them where queries begin.
//
// The kernels read codes, one byte for each base, and write bit planes.
#pragma once

#include "common/warp.cuh"
#include "common/bit_planes.cuh"

constexpr uint32 CODES_IN_GROUP = 8;
static_assert(BREAK == 4, "a code is a break if its third bit is set");

// Return one bit of each of eight codes; the first code gives the lowest bit.
__device__ __forceinline__ uint32 bits_of_codes(uint64 codes, uint32 bit) {
    return static_cast<uint32>((codes >> bit & 0x0101010101010101ull) * 0x0102040810204080ull >>
                               56);
}

// Pack codes into words of bit planes, with words of breaks before and after them.
//
// codes       uint8[count], read as uint64[ceil(count / 8)]
// count       the number of codes
// bit_planes  BitPlanes[before + ceil(count / WORD_BASES) + after], receives the words; the pointer
//             is to the first word of the codes, after `before` words of padding
// before      the number of words of padding to write before the codes
// after       the number of words of padding to write after the codes
//
// Grid: one thread for each word, or fewer threads that take several words in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    pack_codes(const uint64* codes, uint64 count, BitPlanes* bit_planes, uint64 before,
               uint64 after) {
    const uint64 words = before + (count + WORD_BASES - 1) / WORD_BASES + after;
    for (uint64 item = grid_thread(); item < words; item += grid_threads()) {
        BitPlanes packed = {0, 0, 0, 0};
        for (uint32 group = 0; group < WORD_BASES / CODES_IN_GROUP; ++group) {
            const uint64 base = (item - before) * WORD_BASES + CODES_IN_GROUP * group;
            // Before the first word of codes this number wraps around and exceeds `count`.
            if (base >= count) {
                packed.breaks |= 0xFFu << CODES_IN_GROUP * group;
                continue;
            }
            const uint64 eight = codes[base / CODES_IN_GROUP];
            const uint32 missing = base + CODES_IN_GROUP > count
                                       ? static_cast<uint32>(base + CODES_IN_GROUP - count)
                                       : 0;
            packed.low |= bits_of_codes(eight, 0) << CODES_IN_GROUP * group;
            packed.high |= bits_of_codes(eight, 1) << CODES_IN_GROUP * group;
            packed.breaks |= (bits_of_codes(eight, 2) | (0xFFu << (8 - missing) & 0xFFu))
                             << CODES_IN_GROUP * group;
        }
        bit_planes[static_cast<long long>(item - before)] = packed;
    }
}

// Mark the first base of each query, and write the query of the first base of each word.
//
// offsets           uint64[query_count + 1], where each query begins in the block, then the end
// query_count       the number of queries
// threads           the number of threads that share the words of a query
// bit_planes        BitPlanes[words of the block], the packed codes; receives the bits of `starts`
// queries_of_words  uint32[words of the block], receives the query of each word's first base
//
// Grid: `threads` threads for each query, or fewer threads in all that take several queries in
// turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    mark_queries(const uint64* offsets, uint64 query_count, uint32 threads,
                 BitPlanes* bit_planes, uint32* queries_of_words) {
    for (uint64 item = grid_thread(); item < query_count * threads; item += grid_threads()) {
        const uint64 query = item / threads;
        const uint32 number = static_cast<uint32>(item % threads);
        const uint64 begin = offsets[query];
        const uint64 end = offsets[query + 1];
        if (begin == end) {
            continue;
        }
        if (number == 0) {
            atomicOr(&bit_planes[begin / WORD_BASES].starts, 1u << begin % WORD_BASES);
        }
        for (uint64 word = (begin + WORD_BASES - 1) / WORD_BASES + number;
             word * WORD_BASES < end; word += threads) {
            queries_of_words[word] = static_cast<uint32>(query);
        }
    }
}

// Write the reverse complement of each query at the query's own offsets, and the padding.
//
// bit_planes        BitPlanes[words of the block], the packed codes with their `starts` set; the
//                   pointer is to the first word after PADDING_WORDS words of padding
// base_count        the number of bases in the block
// offsets           uint64[queries + 1], where each query begins in the block, then the end
// queries_of_words  uint32[words of the block], as `mark_queries` writes it
// reversed          BitPlanes[words of the block + 2 * PADDING_WORDS], receives the words; the
//                   pointer is to the first word after PADDING_WORDS words of padding
//
// Grid: one thread for each word, padding included, or fewer threads that take several words in
// turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    reverse_bit_planes(const BitPlanes* bit_planes, uint64 base_count, const uint64* offsets,
                       const uint32* queries_of_words, BitPlanes* reversed) {
    const uint64 words = (base_count + WORD_BASES - 1) / WORD_BASES;
    for (uint64 item = grid_thread(); item < words + 2 * PADDING_WORDS;
         item += grid_threads()) {
        // In the padding before the first word this number wraps around and exceeds `words`.
        const uint64 word = item - PADDING_WORDS;
        BitPlanes packed = {0, 0, ~0u, 0};
        if (word < words) {
            packed.starts = bit_planes[word].starts;
            const uint64 begin = word * WORD_BASES;
            const uint64 end = min(begin + WORD_BASES, base_count);
            uint64 query = queries_of_words[word];
            for (uint64 position = begin; position < end;) {
                while (offsets[query + 1] <= position) {
                    ++query;
                }
                // This query's bases in the word are the reversed bases before `source`.
                const long long source =
                    static_cast<long long>(offsets[query] + offsets[query + 1] - position);
                const BitPlanes bases = bases_before(bit_planes, source);
                const uint64 next = min(offsets[query + 1], end);
                const uint32 shift = static_cast<uint32>(position - begin);
                const uint32 mask = lowest_bits(static_cast<uint32>(next - position)) << shift;
                packed.low |= __brev(~bases.low) << shift & mask;
                packed.high |= __brev(~bases.high) << shift & mask;
                packed.breaks &= __brev(bases.breaks) << shift | ~mask;
                position = next;
            }
        }
        reversed[static_cast<long long>(word)] = packed;
    }
}
