// Searches the samples whose k-mers occur often: a block of threads works on each.
//
// The kernels read a table, and the queries and the reference as bit planes; they write MEMs as
// columns.
#pragma once

#include "common/scan.cu"
#include "kmer/mem_rows.cuh"

// The compiler limits registers so that this many blocks fit on a multiprocessor at once.
constexpr uint32 FREQUENT_KMER_BLOCKS = 4;

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
// thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    count_frequent_kmer_mems(Samples samples, Table table, const uint32* frequent_samples,
                             const uint32* frequent_count, uint32* counts,
                             uint64* tile_counts) {
    __shared__ uint64 shared[BLOCK_THREADS];
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const Sample sample = load_sample(samples, table, frequent_samples[item]);
        uint64 count = 0;
        for (uint32 number = threadIdx.x; number < occurrence_count(sample);
             number += blockDim.x) {
            count += extend(samples, table, sample, sample.list_begin + number).length > 0;
        }
        uint64 total;
        block_exclusive_sum(count, shared, total);
        if (threadIdx.x == 0) {
            counts[frequent_samples[item]] = static_cast<uint32>(total);
            atomicAdd(tile_counts + frequent_samples[item] / TILE_SAMPLES, total);
        }
    }
}

// Write the MEMs of the listed samples, and sort the rows of each sample.
//
// samples           the samples of the queries
// table             the table of the reference
// frequent_samples  uint32[*frequent_count], the numbers of the listed samples
// frequent_count    uint32[1], the number of listed samples
// counts            uint32[samples.count], the number of MEMs of each sample
// tile_offsets      uint64[tiles + 1], the first row of each tile, then the row count
// rows              three columns of tile_offsets[tiles] rows each, receives the MEMs
//
// Grid: one block of threads for each listed sample, or fewer blocks that take several in turn; a
// thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    write_frequent_kmer_mems(Samples samples, Table table, const uint32* frequent_samples,
                             const uint32* frequent_count, const uint32* counts,
                             const uint64* tile_offsets, Rows rows) {
    __shared__ uint64 shared[BLOCK_THREADS];
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const uint64 sample_number = frequent_samples[item];
        const uint64 count = counts[sample_number];
        if (count == 0) {
            continue;
        }
        const uint64 begin = mems_before(tile_offsets, counts, sample_number);
        const Sample sample = load_sample(samples, table, sample_number);
        const uint64 start = sample.position - query_begin_at(rows, sample.position);
        uint64 row = begin;
        for (uint32 first = 0; first < occurrence_count(sample); first += blockDim.x) {
            const uint32 number = first + threadIdx.x;
            Extension found;
            found.length = 0;
            if (number < occurrence_count(sample)) {
                found = extend(samples, table, sample, sample.list_begin + number);
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
        // With a period of one base, a sample's MEMs share a query start and are sorted already.
        if (samples.period > 1) {
            sort_by_block<true>(rows.mems, begin, count);
        }
    }
}
