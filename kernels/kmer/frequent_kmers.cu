// Searches the query k-mers whose k-mers occur often: a block of threads works on each.
//
// Lists of more than `Table::longest_ascending` occurrences are sorted by the bases before each.
// Those that an earlier query k-mer finds too lie side by side, and are skipped at once.
//
// Where only MEMs are wanted that are unique in the reference, those are left out that lie in
// another one of their query k-mer, and of those with the same bases all but two: enough to show
// that they are not unique. The others are the query k-mer's front: no more than two for each
// start.
//
// The kernels read a table, and the queries and the reference as bit planes; they write MEMs as
// columns.
#pragma once

#include "common/scan.cu"
#include "kmer/mem_rows.cuh"

// The compiler limits registers so that this many blocks fit on a multiprocessor at once.
constexpr uint32 FREQUENT_KMER_BLOCKS = 4;

// The occurrences of a query k-mer that an earlier query k-mer extends too, as indices of
// `Table::positions`.
struct Skipped {
    uint32 begin;
    uint32 end;
};

// Return the occurrences of a query k-mer to skip, which are none if its list is not sorted by
// enough bases.
__device__ __forceinline__ Skipped find_skipped(const QueryKmers& kmers, const Table& table,
                                                const QueryKmer& kmer) {
    const uint32 bases = left_limit_of(kmers, kmer);
    if (!kmer.is_ordered || bases > table.ordered_bases) {
        return {kmer.list_end, kmer.list_end};
    }
    const uint32 begin = place_by_bases(kmers, table, kmer, bases, kmer.list_begin, false);
    return {begin, place_by_bases(kmers, table, kmer, bases, begin, true)};
}

// Return the number of occurrences that are left.
__device__ __forceinline__ uint32 count_left(const QueryKmer& kmer, const Skipped& skipped) {
    return occurrence_count(kmer) - (skipped.end - skipped.begin);
}

// Return the index of an occurrence in `Table::positions`, from its number among those left.
__device__ __forceinline__ uint32 index_of(const QueryKmer& kmer, const Skipped& skipped,
                                           uint32 number) {
    const uint32 index = kmer.list_begin + number;
    return index < skipped.begin ? index : index + (skipped.end - skipped.begin);
}

// The most starts of the MEMs of a query k-mer of which there is a front.
constexpr uint32 FRONT_STARTS = 128;

// The MEMs with each left extension that reach furthest to the right: two for each. The upper half
// of a number are the bases from the k-mer on, the lower one is the occurrence; 0 is none.
struct Front {
    uint64 first[FRONT_STARTS];
    uint64 second[FRONT_STARTS];
};

// Return whether only the front of a query k-mer's MEMs is wanted.
__device__ __forceinline__ bool has_front(const QueryKmers& kmers, const QueryKmer& kmer) {
    return kmers.only_fronts && left_limit_of(kmers, kmer) <= FRONT_STARTS;
}

// Find the front of a query k-mer, in shared memory, and return the number of its MEMs. All threads
// of the block must call.
__device__ __forceinline__ uint32 find_front(const QueryKmers& kmers, const Table& table,
                                             const QueryKmer& kmer, const Skipped& skipped,
                                             Front& front) {
    __shared__ uint32 total;
    for (uint32 left = threadIdx.x; left < FRONT_STARTS; left += blockDim.x) {
        front.first[left] = front.second[left] = 0;
    }
    __syncthreads();
    const uint32 occurrences = count_left(kmer, skipped);
    for (uint32 number = threadIdx.x; number < occurrences; number += blockDim.x) {
        const Extension found = extend(kmers, table, kmer, index_of(kmer, skipped, number));
        if (found.length == 0) {
            continue;
        }
        const uint64 mem = static_cast<uint64>(found.length - found.left) << 32 | found.occurrence;
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

// Count the MEMs of the listed query k-mers.
//
// kmers           the k-mers of the queries
// table           the table of the reference
// frequent_kmers  uint32[*frequent_count], the numbers of the listed query k-mers
// frequent_count  uint32[1], the number of listed query k-mers
// counts          uint32[kmers.count], receives the number of MEMs of each listed query k-mer
// tile_counts     uint64[tiles], the MEMs of each listed query k-mer are added to its tile's count
//
// Grid: one block of threads for each listed query k-mer, or fewer blocks that take several in
// turn; a thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes, and a
// front.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    count_frequent_kmer_mems(QueryKmers kmers, Table table, const uint32* frequent_kmers,
                             const uint32* frequent_count, uint32* counts, uint64* tile_counts) {
    __shared__ uint64 shared[BLOCK_THREADS];
    __shared__ Front front;
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const QueryKmer kmer = load_kmer(kmers, table, frequent_kmers[item]);
        const Skipped skipped = find_skipped(kmers, table, kmer);
        uint64 total;
        if (has_front(kmers, kmer)) {
            total = find_front(kmers, table, kmer, skipped, front);
        } else {
            const uint32 occurrences = count_left(kmer, skipped);
            uint64 count = 0;
            for (uint32 number = threadIdx.x; number < occurrences; number += blockDim.x) {
                const uint32 index = index_of(kmer, skipped, number);
                count += extend(kmers, table, kmer, index).length > 0;
            }
            block_exclusive_sum(count, shared, total);
        }
        if (threadIdx.x == 0) {
            counts[frequent_kmers[item]] = static_cast<uint32>(total);
            atomicAdd(tile_counts + frequent_kmers[item] / TILE_KMERS, total);
        }
    }
}

// Write the MEMs of the listed query k-mers, and sort the rows of each query k-mer.
//
// counts        uint32[kmers.count], the number of MEMs of each query k-mer
// tile_offsets  uint64[tiles + 1], the first row of each tile, then the row count
// rows          three columns of tile_offsets[tiles] rows each, receives the MEMs
//
// Every other parameter is as for `count_frequent_kmer_mems`.
//
// Grid: one block of threads for each listed query k-mer, or fewer blocks that take several in
// turn; a thread extends one occurrence at a time. Shared memory: 8 * BLOCK_THREADS bytes, and a
// front.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, FREQUENT_KMER_BLOCKS)
    write_frequent_kmer_mems(QueryKmers kmers, Table table, const uint32* frequent_kmers,
                             const uint32* frequent_count, const uint32* counts,
                             const uint64* tile_offsets, Rows rows) {
    __shared__ uint64 shared[BLOCK_THREADS];
    __shared__ Front front;
    for (uint32 item = blockIdx.x; item < *frequent_count; item += gridDim.x) {
        const uint64 kmer_number = frequent_kmers[item];
        const uint64 count = counts[kmer_number];
        if (count == 0) {
            continue;
        }
        const uint64 begin = mems_before(tile_offsets, counts, kmer_number);
        const QueryKmer kmer = load_kmer(kmers, table, kmer_number);
        const uint64 start = kmer.position - query_begin_at(rows, kmer.position);
        const Skipped skipped = find_skipped(kmers, table, kmer);
        if (has_front(kmers, kmer)) {
            find_front(kmers, table, kmer, skipped, front);
            if (threadIdx.x == 0) {
                write_front(rows, begin, table, start, front);
            }
            __syncthreads();
            continue;
        }
        const uint32 occurrences = count_left(kmer, skipped);
        uint64 row = begin;
        for (uint32 first = 0; first < occurrences; first += blockDim.x) {
            const uint32 number = first + threadIdx.x;
            Extension found;
            found.length = 0;
            if (number < occurrences) {
                found = extend(kmers, table, kmer, index_of(kmer, skipped, number));
            }
            uint64 total;
            const uint64 before = block_exclusive_sum(found.length > 0 ? 1 : 0, shared, total);
            if (found.length > 0) {
                write_row(rows, row + before, table, start, found);
            }
            row += total;
        }
        __syncthreads();
        // With a sampling step of one base, the MEMs of an ascending list are sorted already.
        // Whoever wants whole windows sorts matches by their diagonals.
        if (!FOR_MAPPING && (kmers.sampling_step > 1 || kmer.is_ordered)) {
            sort_by_block<true>(rows.mems, begin, count);
        }
    }
}
