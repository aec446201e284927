// How fast a device follows random addresses: each thread reads a record, and the content says
// which record is next. No search that goes from node to node can visit more nodes in a second.
//
// A record has 32 bytes, like a node of the paper's format: whole, as in a merged tree, or in two
// tables of 16 bytes, as in a split tree. `read_halves` reads only one half of each.
//
// The kernels read a table of records; they write nothing but one word that cannot be foreseen.
#include "common/grid.cuh"

__device__ __forceinline__ uint32 mixed(uint32 number) {
    number ^= number >> 16;
    number *= 0x7FEB352Du;
    number ^= number >> 15;
    number *= 0x846CA68Bu;
    return number ^ number >> 16;
}

__device__ __forceinline__ uint32 folded(uint4 half) {
    return half.x ^ half.y ^ half.z ^ half.w;
}

// Follow `gathers` addresses; `read` returns the content of a record from its number.
//
// Each thread has keys of its own: else all threads that come to the same record in the same step
// would go on together, and soon most reads would be answered by a cache.
template <typename Read>
__device__ __forceinline__ void follow(uint32 records, uint32 gathers, uint32* result, Read read) {
    const uint32 key = mixed(static_cast<uint32>(grid_thread()));
    uint32 address = key;
    for (uint32 number = 0; number < gathers; ++number) {
        address = mixed(read(__umulhi(address, records)) ^ (key + number));
    }
    // Without a use of the address the compiler would remove the loop.
    if (address == 0) {
        *result = address;
    }
}

// Fill a table with words that depend on their index.
//
// table  uint32[words], receives the words
// words  their number
//
// Grid: any number of threads. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) fill_table(uint32* table,
                                                                       uint64 words) {
    for (uint64 word = grid_thread(); word < words; word += grid_threads()) {
        table[word] = mixed(static_cast<uint32>(word));
    }
}

// Read whole records.
//
// table    uint4[2 * records], the records
// records  their number
// gathers  the number of addresses that a thread follows
// result   uint32[1], receives a word that means nothing
//
// Grid: as many threads as are resident at once. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    read_merged(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    follow(records, gathers, result, [=](uint32 record) {
        return folded(__ldg(table + 2 * record)) ^ folded(__ldg(table + 2 * record + 1));
    });
}

// Read the halves of records in two tables. Each parameter is as for `read_merged`: `table` has the
// first halves, then the second ones; `records`, `gathers` and `result` are the same.
//
// Grid: as many threads as are resident at once. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    read_split(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    follow(records, gathers, result, [=](uint32 record) {
        return folded(__ldg(table + record)) ^ folded(__ldg(table + records + record));
    });
}

// Read one half of each record. The parameters `table`, `records`, `gathers` and `result` are as
// for `read_merged`.
//
// Grid: as many threads as are resident at once. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    read_halves(const uint4* table, uint32 records, uint32 gathers, uint32* result) {
    follow(records, gathers, result,
           [=](uint32 record) { return folded(__ldg(table + 2 * record)); });
}
