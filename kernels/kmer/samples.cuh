// Samples of the queries, the table in which their k-mers are looked up, and their extension.
#pragma once

#include "kmer/bit_planes.cuh"

// The occurrences of all k-mers in one part of the reference.
struct Table {
    const uint32* offsets;       // uint32[4**kmer_length + 1], where the list of a k-mer begins
    const uint32* positions;     // where k-mers occur, from the first base of the part on
    uint64 part_begin;           // the first base of the part, in the joined reference
    const BitPlanes* reference;  // the joined reference
    uint32 kmer_length;
};

// Every `step`-th position of a block of queries.
struct Samples {
    const BitPlanes* queries;
    uint64 count;
    uint32 step;            // in bases
    uint32 minimum_length;  // the fewest bases of a MEM
};

struct Sample {
    uint64 position;  // in the block
    Flanks flanks;
    uint32 list_begin;  // the occurrences of its k-mer, as indices of `Table::positions`
    uint32 list_end;
};

struct Extension {
    uint32 occurrence;  // the position of the k-mer in the part
    uint32 left;        // the matching bases before it
    uint32 length;      // of the whole match; 0 if it is no MEM, or one of an earlier sample
};

// Return a sample with the occurrences of its k-mer; it has none if the k-mer has a break.
__device__ __forceinline__ Sample load_sample(const Samples& samples, const Table& table,
                                              uint64 number) {
    Sample sample;
    sample.position = number * samples.step;
    sample.flanks =
        load_query_flanks(samples.queries, static_cast<long long>(sample.position));
    sample.list_begin = sample.list_end = 0;
    const BitPlanes& right = sample.flanks.right;
    if ((right.breaks & ((1u << table.kmer_length) - 1)) == 0) {
        const uint32 kmer = first_kmer(right, table.kmer_length);
        sample.list_begin = __ldg(table.offsets + kmer);
        sample.list_end = __ldg(table.offsets + kmer + 1);
    }
    return sample;
}

// Return how many occurrences a sample's k-mer has.
__device__ __forceinline__ uint32 occurrence_count(const Sample& sample) {
    return sample.list_end - sample.list_begin;
}

// Extend a sample at one occurrence of its k-mer, an index of `Table::positions`.
__device__ __forceinline__ Extension extend(const Samples& samples, const Table& table,
                                            const Sample& sample, uint32 index) {
    Extension found;
    found.occurrence = __ldg(table.positions + index);
    found.length = 0;
    const long long query = static_cast<long long>(sample.position);
    const long long reference = static_cast<long long>(table.part_begin + found.occurrence);
    const Flanks there = load_flanks(table.reference, reference);
    uint32 different = mismatches(sample.flanks.left, there.left);
    found.left = __clz(different);
    while (different == 0 && found.left < samples.step) {
        different = mismatches(load_query_flanks(samples.queries, query - found.left).left,
                               load_flanks(table.reference, reference - found.left).left);
        found.left += __clz(different);
    }
    if (found.left >= samples.step) {
        return found;
    }
    different = mismatches(sample.flanks.right, there.right);
    uint32 right = different == 0 ? WORD_BASES : __ffs(different) - 1;
    while (different == 0) {
        BitPlanes ahead = load_flanks(samples.queries, query + right).right;
        ahead.breaks |= ahead.starts;
        different = mismatches(ahead, load_flanks(table.reference, reference + right).right);
        right += different == 0 ? WORD_BASES : __ffs(different) - 1;
    }
    if (found.left + right >= samples.minimum_length) {
        found.length = found.left + right;
    }
    return found;
}
