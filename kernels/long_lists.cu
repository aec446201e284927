// Samples whose k-mers have long lists: each is searched by a block of threads.
#pragma once

#include "offsets.cu"
#include "rows.cuh"

// The blocks of a multiprocessor that are to have registers enough for long lists.
constexpr uint32 BLOCKS_AT_ONCE = 4;

// Count the MEMs of the listed samples, each by a block of threads.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS, BLOCKS_AT_ONCE)
    count_long_lists(Samples samples, Table table, const uint32* long_samples,
                     const uint32* long_count, uint32* counts, uint64* tile_counts) {
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
            atomicAdd(tile_counts + long_samples[item] / LANES, total);
        }
    }
}

// Write the MEMs of the listed samples, each by a block of threads, and order them.
extern "C" __global__ void __launch_bounds__(SCAN_THREADS, BLOCKS_AT_ONCE)
    write_long_lists(Samples samples, Table table, const uint32* long_samples,
                     const uint32* long_count, const uint32* counts,
                     const uint64* tile_offsets, Rows rows) {
    __shared__ uint64 shared[SCAN_THREADS];
    for (uint32 item = blockIdx.x; item < *long_count; item += gridDim.x) {
        const uint64 number = long_samples[item];
        const uint64 count = counts[number];
        if (count == 0) {
            continue;
        }
        const uint64 begin = mems_before(tile_offsets, counts, number);
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
