// From codes to planes, and where queries begin in them.
#pragma once

#include "planes.cuh"
#include "threads.cuh"

// Return a bit of each of eight codes, the first lowest.
__device__ __forceinline__ uint32 bits_of_codes(uint64 codes, uint32 bit) {
    return static_cast<uint32>((codes >> bit & 0x0101010101010101ull) * 0x0102040810204080ull >>
                               56);
}

// Pack codes, and write so many words of padding before and behind them; `planes` is the
// first word of the codes, which are read eight at a time.
extern "C" __global__ void __launch_bounds__(256)
    pack_codes(const uint64* codes, uint64 count, Planes* planes, uint64 before, uint64 behind) {
    const uint64 words = before + (count + WORD_BASES - 1) / WORD_BASES + behind;
    for (uint64 item = first_item(); item < words; item += item_step()) {
        Planes packed = {0, 0, 0, 0};
        for (uint32 group = 0; group < WORD_BASES / 8; ++group) {
            const uint64 base = (item - before) * WORD_BASES + 8 * group;
            // Wraps around before the first word, and is too large then.
            if (base >= count) {
                packed.breaks |= 0xFFu << 8 * group;
                continue;
            }
            const uint64 eight = codes[base / 8];
            const uint32 missing = base + 8 > count ? static_cast<uint32>(base + 8 - count) : 0;
            packed.low |= bits_of_codes(eight, 0) << 8 * group;
            packed.high |= bits_of_codes(eight, 1) << 8 * group;
            packed.breaks |= (bits_of_codes(eight, 2) | (0xFFu << (8 - missing) & 0xFFu))
                             << 8 * group;
        }
        planes[static_cast<long long>(item - before)] = packed;
    }
}

// Mark the first base of each query, and write which query each word begins in. So many
// threads share the words of a query.
extern "C" __global__ void __launch_bounds__(256)
    mark_queries(const uint64* offsets, uint64 query_count, uint32 threads, Planes* planes,
                 uint32* queries_of_words) {
    for (uint64 item = first_item(); item < query_count * threads; item += item_step()) {
        const uint64 query = item / threads;
        const uint32 number = static_cast<uint32>(item % threads);
        const uint64 begin = offsets[query];
        const uint64 end = offsets[query + 1];
        if (begin == end) {
            continue;
        }
        if (number == 0) {
            atomicOr(&planes[begin / WORD_BASES].borders, 1u << begin % WORD_BASES);
        }
        for (uint64 word = (begin + WORD_BASES - 1) / WORD_BASES + number;
             word * WORD_BASES < end; word += threads) {
            queries_of_words[word] = static_cast<uint32>(query);
        }
    }
}
