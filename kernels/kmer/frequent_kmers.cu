// Searches the samples whose k-mers occur often: a block of threads works on each.
//
// Lists of more than `Table::longest_ascending` occurrences are sorted by the bases before each.
// Those that an earlier sample finds too lie side by side, and are skipped at once.
//
// Where only MEMs are wanted that are unique in the reference, those are left out that lie in another
// one of their sample, and of those with the same bases all but two: enough to show that they are not
// unique. The others are the sample's front: no more than two for each start.
//
// The kernels read a table, and the queries and the reference as bit planes; they write MEMs as
// columns.
#pragma once

#include "common/scan.cu"
#include "kmer/mem_rows.cuh"

// The compiler limits registers so that this many blocks fit on a multiprocessor at once.
constexpr uint32 FREQUENT_KMER_BLOCKS = 4;

// The occurrences of a sample that an earlier sample extends too, as indices of `Table::positions`.
struct Skipped {
    uint32 begin;
    uint32 end;
};

// Return the occurrences of a sample to skip, which are none if its list is not sorted by enough
// bases.
__device__ __forceinline__ Skipped find_skipped(const Samples& samples, const Table& table,
                                                const Sample& sample) {
    const uint32 bases = found_before(samples, sample);
    if (!sample.is_ordered || bases > table.ordered_bases) {
        return {sample.list_end, sample.list_end};
    }
    const uint32 begin =
        place_by_bases(samples, table, sample, bases, sample.list_begin, false);
    return {begin, place_by_bases(samples, table, sample, bases, begin, true)};
}

// Return the number of occurrences that are left.
__device__ __forceinline__ uint32 count_left(const Sample& sample, const Skipped& skipped) {
    return occurrence_count(sample) - (skipped.end - skipped.begin);
}

// Return the index of an occurrence in `Table::positions`, from its number among those left.
__device__ __forceinline__ uint32 index_of(const Sample& sample, const Skipped& skipped,
                                           uint32 number) {
    const uint32 index = sample.list_begin + number;
    return index < skipped.begin ? index : index + (skipped.end - skipped.begin);
}

// The most starts of the MEMs of a sample of which there is a front.
constexpr uint32 FRONT_STARTS = 128;

// The MEMs with each left extension that reach furthest to the right: two for each. The upper half
// of a number are the bases from the k-mer on, the lower one is the occurrence; 0 is none.
struct Front {
    uint64 first[FRONT_STARTS];
    uint64 second[FRONT_STARTS];
};

// Return whether only the front of a sample's MEMs is wanted.
__device__ __forceinline__ bool has_front(const Samples& samples, const Sample& sample) {
    return samples.only_fronts && found_before(samples, sample) <= FRONT_STARTS;
}

// Find the front of a sample, in shared memory, and return the number of its MEMs. All threads of the
// block must call.
__device__ __forceinline__ uint32 find_front(const Samples& samples, const Table& table,
                                             const Sample& sample, const Skipped& skipped,
                                             Front& front) {
    __shared__ uint32 total;
    for (uint32 left = threadIdx.x; left < FRONT_STARTS; left += blockDim.x) {
        front.first[left] = front.second[left] = 0;
    }
    __syncthreads();
    const uint32 occurrences = count_left(sample, skipped);
    for (uint32 number = threadIdx.x; number < occurrences; number += blockDim.x) {
        const Extension found =
            extend(samples, table, sample, index_of(sample, skipped, number));
        if (found.length == 0) {
            continue;
        }
        const uint64 mem =
            static_cast<uint64>(found.length - found.left) << 32 | found.occurrence;
        // Whatever is displaced or comes too late may be the second one.
        const uint64 before = atomicMax(&front.first[found.left], mem);
        const uint64 other = min(before, mem);
        if (other != 0) {
            atomicMax(&front.second[found.left], other);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        total = 0;
        uint64 furthest = 0;
        for (uint32 left = FRONT_STARTS; left-- > 0;) {
            const uint64 right = front.first[left] >> 32;
            if (right <= furthest) {
                front.first[left] = 0;
            }
            if (right <= furthest || front.second[left] >> 32 != right) {
                front.second[left] = 0;
            }
            total += (front.first[left] != 0) + (front.second[left] != 0);
            furthest = max(furthest, right);
        }
    }
    __syncthreads();
    const uint32 count = total;
    __syncthreads();
    return count;
}

// Write the MEMs of a front into rows, from one row on, in order.
__device__ __forceinline__ void write_front(const Rows& rows, uint64 row, const Table& table,
                                            uint64 start, const Front& front) {
    for (uint32 left = FRONT_STARTS; left-- > 0;) {
        const uint64 mems[2] = {front.second[left], front.first[left]};
        for (uint32 one = 0; one < 2; ++one) {
            if (mems[one] != 0) {
                const uint32 length = left + static_cast<uint32>(mems[one] >> 32);
                write_row(rows, row++, table, start,
                          {static_cast<uint32>(mems[one]), left, length});
            }
        }
    }
}

// Count the MEMs of the listed samples.
//
// samples           the samples of the queries
// table             the table of the reference
// frequent_samples  uint32[*frequent_count], the numbers of the listed samples
// frequent_count    uint32[1], the number of listed samples
// counts            uint32[samples.count], receives the number of MEMs of each listed sample
// tile_counts       uint64[tiles], the MEMs of each listed sample are added to its tile's count
//
// Grid: one block of threads for each listed sample, or fewer blocks that take several in turn; a
// thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes, and a front.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    count_frequent_kmer_mems(Samples samples, Table table, const uint32* frequent_samples,
                             const uint32* frequent_count, uint32* counts,
                             uint64* tile_counts) {
    __shared__ uint64 shared[BLOCK_THREADS];
    __shared__ Front front;
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const Sample sample = load_sample(samples, table, frequent_samples[item]);
        const Skipped skipped = find_skipped(samples, table, sample);
        uint64 total;
        if (has_front(samples, sample)) {
            total = find_front(samples, table, sample, skipped, front);
        } else {
            const uint32 occurrences = count_left(sample, skipped);
            uint64 count = 0;
            for (uint32 number = threadIdx.x; number < occurrences; number += blockDim.x) {
                const uint32 index = index_of(sample, skipped, number);
                count += extend(samples, table, sample, index).length > 0;
            }
            block_exclusive_sum(count, shared, total);
        }
        if (threadIdx.x == 0) {
            counts[frequent_samples[item]] = static_cast<uint32>(total);
            atomicAdd(tile_counts + frequent_samples[item] / TILE_SAMPLES, total);
        }
    }
}

// Write the MEMs of the listed samples, and sort the rows of each sample.
//
// counts        uint32[samples.count], the number of MEMs of each sample
// tile_offsets  uint64[tiles + 1], the first row of each tile, then the row count
// rows          three columns of tile_offsets[tiles] rows each, receives the MEMs
//
// Every other parameter is as for `count_frequent_kmer_mems`.
//
// Grid: one block of threads for each listed sample, or fewer blocks that take several in turn; a
// thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes, and a front.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    write_frequent_kmer_mems(Samples samples, Table table, const uint32* frequent_samples,
                             const uint32* frequent_count, const uint32* counts,
                             const uint64* tile_offsets, Rows rows) {
    __shared__ uint64 shared[BLOCK_THREADS];
    __shared__ Front front;
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const uint64 sample_number = frequent_samples[item];
        const uint64 count = counts[sample_number];
        if (count == 0) {
            continue;
        }
        const uint64 begin = mems_before(tile_offsets, counts, sample_number);
        const Sample sample = load_sample(samples, table, sample_number);
        const uint64 start = sample.position - query_begin_at(rows, sample.position);
        const Skipped skipped = find_skipped(samples, table, sample);
        if (has_front(samples, sample)) {
            find_front(samples, table, sample, skipped, front);
            if (threadIdx.x == 0) {
                write_front(rows, begin, table, start, front);
            }
            __syncthreads();
            continue;
        }
        const uint32 occurrences = count_left(sample, skipped);
        uint64 row = begin;
        for (uint32 first = 0; first < occurrences; first += blockDim.x) {
            const uint32 number = first + threadIdx.x;
            Extension found;
            found.length = 0;
            if (number < occurrences) {
                found = extend(samples, table, sample, index_of(sample, skipped, number));
            }
            uint64 total;
            const uint64 before =
                block_exclusive_sum(found.length > 0 ? 1 : 0, shared, total);
            if (found.length > 0) {
                write_row(rows, row + before, table, start, found);
            }
            row += total;
        }
        __syncthreads();
        // With a period of one base, the MEMs of an ascending list are sorted already. Whoever
        // wants whole windows sorts matches by their diagonals.
        if (!FOR_MAPPING && (samples.period > 1 || sample.is_ordered)) {
            sort_by_block<true>(rows.mems, begin, count);
        }
    }
}
