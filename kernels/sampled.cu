// The sampled search: every few bases of the queries a k-mer is looked up and extended.
//
// A MEM holds a k-mer at a multiple of the step, which is the minimum length less k, plus one.
// A thread works on one such sample at a time: it looks the k-mer up in the table of the
// reference, and extends each place to the left and to the right. If it gets a step or more
// to the left, an earlier sample has found the same MEM; so each comes out once.
//
// MEMs are counted first, and kept where they are few; the writing kernel searches again for
// the others. K-mers with long lists are left to kernels that give a block to each sample.
#pragma once

#include "mems.cuh"
#include "offsets.cu"
#include "planes.cu"

// So many MEMs of a sample are kept by the counting kernel.
constexpr uint32 KEPT_OF_SAMPLE = 4;

// Of a kept MEM: how much less than the longest its left extension is, above its place, above
// its length. So the order of numbers is that of MEMs.
constexpr uint32 KEPT_LENGTH_BITS = 20;
constexpr uint32 KEPT_LEFT_SHIFT = 32 + KEPT_LENGTH_BITS;
constexpr uint32 MOST_LEFT = 1u << (64 - KEPT_LEFT_SHIFT);
constexpr uint64 NOT_KEPT = ~0ull;

// The blocks of a multiprocessor that are to have registers enough for long lists.
constexpr uint32 BLOCKS_AT_ONCE = 4;

// A thread works on lists of so many places.
constexpr uint32 LONGEST_LIST = 32;

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

// The MEMs of a sample, in order, if all of them could be kept; else the first is NOT_KEPT.
struct alignas(16) KeptExtensions {
    uint64 mems[KEPT_OF_SAMPLE];
};

__device__ __forceinline__ bool can_be_kept(const Extension& found, uint32 step) {
    return step <= MOST_LEFT && found.length >> KEPT_LENGTH_BITS == 0;
}

__device__ __forceinline__ uint64 packed(const Extension& found, uint32 step) {
    return static_cast<uint64>(step - 1 - found.left) << KEPT_LEFT_SHIFT |
           static_cast<uint64>(found.place) << KEPT_LENGTH_BITS | found.length;
}

__device__ __forceinline__ Extension unpacked(uint64 mem, uint32 step) {
    return {static_cast<uint32>(mem >> KEPT_LENGTH_BITS),
            step - 1 - static_cast<uint32>(mem >> KEPT_LEFT_SHIFT),
            static_cast<uint32>(mem) & ((1u << KEPT_LENGTH_BITS) - 1)};
}

__device__ __forceinline__ void insert(KeptExtensions& kept, uint64 mem) {
#pragma unroll
    for (uint32 place = 0; place < KEPT_OF_SAMPLE; ++place) {
        const uint64 other = kept.mems[place];
        kept.mems[place] = min(other, mem);
        mem = max(other, mem);
    }
}

// Count the MEMs of each sample, and keep them if they are few; list samples of long lists.
extern "C" __global__ void __launch_bounds__(256)
    count_sampled(Samples samples, Table table, KeptExtensions* kept_mems, uint32* counts,
                  uint32* long_samples, uint32* long_count) {
    for (uint64 number = first_item(); number < samples.count; number += item_step()) {
        const Sample sample = load_sample(samples, table, number);
        if (list_length(sample) > LONGEST_LIST) {
            long_samples[atomicAdd(long_count, 1u)] = static_cast<uint32>(number);
            reinterpret_cast<ulonglong2*>(kept_mems + number)[0] = {NOT_KEPT, NOT_KEPT};
            continue;
        }
        uint32 count = 0;
        bool all_kept = true;
        KeptExtensions kept;
#pragma unroll
        for (uint32 place = 0; place < KEPT_OF_SAMPLE; ++place) {
            kept.mems[place] = NOT_KEPT;
        }
        for (uint32 place = sample.list_begin; place < sample.list_end; ++place) {
            const Extension found = extend(samples, table, sample, place);
            if (found.length > 0) {
                all_kept &= can_be_kept(found, samples.step);
                insert(kept, packed(found, samples.step));
                ++count;
            }
        }
        counts[number] = count;
        if (count > 0 && count <= KEPT_OF_SAMPLE) {
            ulonglong2* pairs = reinterpret_cast<ulonglong2*>(kept_mems + number);
            pairs[0] = {all_kept ? kept.mems[0] : NOT_KEPT, kept.mems[1]};
            if (count > 2) {
                pairs[1] = {kept.mems[2], kept.mems[3]};
            }
        }
    }
}

// Count the MEMs of the listed samples, each by a block of threads.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS, BLOCKS_AT_ONCE)
    count_long_lists(Samples samples, Table table, const uint32* long_samples,
                     const uint32* long_count, uint32* counts) {
    __shared__ uint64 shared[SCAN_THREADS];
    for (uint32 item = blockIdx.x; item < *long_count; item += gridDim.x) {
        const Sample sample = load_sample(samples, table, long_samples[item]);
        uint64 count = 0;
        for (uint32 place = threadIdx.x; place < list_length(sample); place += blockDim.x) {
            count += extend(samples, table, sample, sample.list_begin + place).length > 0;
        }
        uint64 total;
        sum_before(count, shared, total);
        if (threadIdx.x == 0) {
            counts[long_samples[item]] = static_cast<uint32>(total);
        }
    }
}

// Write where the MEMs of each query begin, and behind them where the last ones end.
extern "C" __global__ void __launch_bounds__(256)
    offsets_of_sampled(const uint64* mem_offsets, uint64 sample_count, uint32 step,
                       const uint64* offsets, uint64 query_count, uint64* query_offsets) {
    for (uint64 query = first_item(); query <= query_count; query += item_step()) {
        const uint64 sample = (offsets[query] + step - 1) / step;
        query_offsets[query] = mem_offsets[sample < sample_count ? sample : sample_count];
    }
}

struct Rows {
    Mems mems;
    const uint64* query_offsets;     // where queries begin in the block
    const uint32* queries_of_words;  // which query each word of the block begins in
};

// Return where the query begins that a position of the block belongs to.
__device__ __forceinline__ uint64 query_begin_at(const Rows& rows, uint64 position) {
    uint64 query = rows.queries_of_words[position / WORD_BASES];
    while (rows.query_offsets[query + 1] <= position) {
        ++query;
    }
    return rows.query_offsets[query];
}

__device__ __forceinline__ void write_row(const Rows& rows, uint64 row, const Table& table,
                                          uint64 start_in_query, const Extension& found) {
    rows.mems.query_starts[row] = static_cast<long long>(start_in_query - found.left);
    rows.mems.reference_starts[row] =
        static_cast<long long>(table.part_begin + found.place - found.left);
    rows.mems.lengths[row] = found.length;
}

// Put a row that has just been written behind the others where it belongs.
__device__ __forceinline__ void insert_row(const Mems& mems, uint64 begin, uint64 row) {
    while (row > begin && is_behind<true>(mems, row - 1, row)) {
        exchange(mems.query_starts, row - 1, row);
        exchange(mems.reference_starts, row - 1, row);
        exchange(mems.lengths, row - 1, row);
        --row;
    }
}

// Write the MEMs of a sample that have been kept; return whether they have been.
__device__ __forceinline__ bool write_kept(const Samples& samples, const Table& table,
                                           const KeptExtensions& kept, const Rows& rows,
                                           uint64 begin, uint32 count, uint64 position) {
    const ulonglong2* pairs = reinterpret_cast<const ulonglong2*>(&kept);
    const ulonglong2 first = pairs[0];
    if (first.x == NOT_KEPT) {
        return false;
    }
    const uint64 start = position - query_begin_at(rows, position);
    write_row(rows, begin, table, start, unpacked(first.x, samples.step));
    if (count > 1) {
        write_row(rows, begin + 1, table, start, unpacked(first.y, samples.step));
    }
    if (count > 2) {
        const ulonglong2 second = pairs[1];
        write_row(rows, begin + 2, table, start, unpacked(second.x, samples.step));
        if (count > 3) {
            write_row(rows, begin + 3, table, start, unpacked(second.y, samples.step));
        }
    }
    return true;
}

// Write the MEMs of each sample where they have been counted, but for those of long lists.
extern "C" __global__ void __launch_bounds__(256)
    write_sampled(Samples samples, Table table, const KeptExtensions* kept_mems,
                  const uint64* mem_offsets, Rows rows) {
    for (uint64 number = first_item(); number < samples.count; number += item_step()) {
        const uint64 begin = mem_offsets[number];
        const uint64 count = mem_offsets[number + 1] - begin;
        if (count == 0) {
            continue;
        }
        const uint64 position = number * samples.step;
        if (count <= KEPT_OF_SAMPLE && write_kept(samples, table, kept_mems[number], rows, begin,
                                                  static_cast<uint32>(count), position)) {
            continue;
        }
        const Sample sample = load_sample(samples, table, number);
        if (list_length(sample) > LONGEST_LIST) {
            continue;
        }
        const uint64 start = position - query_begin_at(rows, position);
        uint64 row = begin;
        for (uint32 place = sample.list_begin; place < sample.list_end; ++place) {
            const Extension found = extend(samples, table, sample, place);
            if (found.length > 0) {
                write_row(rows, row, table, start, found);
                insert_row(rows.mems, begin, row);
                ++row;
            }
        }
    }
}

// Write the MEMs of the listed samples, each by a block of threads, and order them.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS, BLOCKS_AT_ONCE)
    write_long_lists(Samples samples, Table table, const uint32* long_samples,
                     const uint32* long_count, const uint64* mem_offsets, Rows rows) {
    __shared__ uint64 shared[SCAN_THREADS];
    for (uint32 item = blockIdx.x; item < *long_count; item += gridDim.x) {
        const uint64 number = long_samples[item];
        const uint64 begin = mem_offsets[number];
        const uint64 count = mem_offsets[number + 1] - begin;
        if (count == 0) {
            continue;
        }
        const Sample sample = load_sample(samples, table, number);
        const uint64 start = sample.position - query_begin_at(rows, sample.position);
        uint64 row = begin;
        for (uint32 first = 0; first < list_length(sample); first += blockDim.x) {
            const uint32 place = first + threadIdx.x;
            Extension found;
            found.length = 0;
            if (place < list_length(sample)) {
                found = extend(samples, table, sample, sample.list_begin + place);
            }
            uint64 total;
            const uint64 before = sum_before(found.length > 0 ? 1 : 0, shared, total);
            if (found.length > 0) {
                write_row(rows, row + before, table, start, found);
            }
            row += total;
        }
        __syncthreads();
        // With a step of one base all begin together, in the order of their places.
        if (samples.step > 1) {
            order_by_block<true>(rows.mems, begin, count);
        }
    }
}
