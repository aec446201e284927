// Samples of the queries, the table in which they are looked up, and their extension.
#pragma once

#include "planes.cuh"

struct Table {
    const uint32* offsets;    // of the list of each k-mer
    const uint32* positions;  // where k-mers begin, from the first base of the part on
    uint64 part_begin;        // of the part, in the joined reference
    const Planes* reference;  // the joined reference
    uint32 kmer_length;
};

struct Samples {
    const Planes* queries;
    uint64 count;
    uint32 step;            // from one sample to the next, in bases
    uint32 minimum_length;  // of a MEM
};

struct Sample {
    uint64 position;  // in the block
    Surroundings around;
    uint32 list_begin;
    uint32 list_end;
};

struct Extension {
    uint32 place;   // the position of the k-mer in the part
    uint32 left;    // bases before it
    uint32 length;  // of the whole match; 0 if it is no MEM, or that of an earlier sample
};

__device__ __forceinline__ Sample load_sample(const Samples& samples, const Table& table,
                                              uint64 number) {
    Sample sample;
    sample.position = number * samples.step;
    sample.around =
        query_surroundings(samples.queries, static_cast<long long>(sample.position));
    sample.list_begin = sample.list_end = 0;
    const Planes& ahead = sample.around.ahead;
    if ((ahead.breaks & ((1u << table.kmer_length) - 1)) == 0) {
        const uint32 kmer = front_kmer(ahead, table.kmer_length);
        sample.list_begin = __ldg(table.offsets + kmer);
        sample.list_end = __ldg(table.offsets + kmer + 1);
    }
    return sample;
}

__device__ __forceinline__ uint32 list_length(const Sample& sample) {
    return sample.list_end - sample.list_begin;
}

// Extend a sample at one place of its list.
__device__ __forceinline__ Extension extend(const Samples& samples, const Table& table,
                                            const Sample& sample, uint32 number) {
    Extension found;
    found.place = __ldg(table.positions + number);
    found.length = 0;
    const long long query = static_cast<long long>(sample.position);
    const long long reference = static_cast<long long>(table.part_begin + found.place);
    const Surroundings there = surroundings(table.reference, reference);
    uint32 different = differences(sample.around.before, there.before);
    found.left = __clz(different);
    while (different == 0 && found.left < samples.step) {
        different = differences(query_surroundings(samples.queries, query - found.left).before,
                                surroundings(table.reference, reference - found.left).before);
        found.left += __clz(different);
    }
    if (found.left >= samples.step) {
        return found;
    }
    different = differences(sample.around.ahead, there.ahead);
    uint32 right = different == 0 ? WORD_BASES : __ffs(different) - 1;
    while (different == 0) {
        Planes ahead = surroundings(samples.queries, query + right).ahead;
        ahead.breaks |= ahead.borders;
        different = differences(ahead, surroundings(table.reference, reference + right).ahead);
        right += different == 0 ? WORD_BASES : __ffs(different) - 1;
    }
    if (found.left + right >= samples.minimum_length) {
        found.length = found.left + right;
    }
    return found;
}
