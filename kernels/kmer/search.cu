// The k-mer search: looks up a k-mer of the queries every few bases, and extends its occurrences.
//
// Each k-mer that begins at a multiple of the step in the block of queries is a query k-mer. The
// table lists k-mers of the reference in such a way that every MEM contains a query k-mer and its
// occurrence, and contains such a pair again after every sampling step. The kernels look up each
// query k-mer in the table, and extend it to the left and to the right at each occurrence. If a
// query k-mer extends to the left by a sampling step or more, an earlier query k-mer finds the same
// MEM; therefore each MEM is reported once. For a mapper, `seed_kmers.cu` says where query k-mers
// are.
//
// A warp works on a tile of 32 query k-mers at a time: each lane looks up one query k-mer, and then
// the lanes share all occurrences evenly. The first kernel counts the MEMs, and keeps them if a
// tile has few; the writing kernel searches the other tiles again. Query k-mers with more than
// MOST_OCCURRENCES occurrences are left to other kernels, where a block of threads works on each.
//
// The kernels read a table, and the queries and the reference as bit planes; they write MEMs as
// columns.
#pragma once

#include "common/grid.cuh"
#include "kmer/mem_rows.cuh"
#include "kmer/warp_tiles.cuh"

// The blocks of a multiprocessor at least when matches are counted. For a mapper, some registers
// spill with the compiler's own choice.
constexpr int COUNTING_BLOCKS = FOR_MAPPING ? 2 : 0;

// Count the MEMs of each query k-mer and of each tile, and keep the MEMs of tiles that have few.
// List the query k-mers whose k-mers occur more than MOST_OCCURRENCES times.
//
// kmers           the k-mers of the queries
// table           the table of the reference
// kept            KeptMem[KEPT_MEMS_OF_TILE * tiles], receives the MEMs of tiles that have few
// tiles           Tile[tiles], receives the listed query k-mers and the number of kept MEMs of each
// counts          uint32[kmers.count], receives the number of MEMs of each query k-mer; 0 if listed
// tile_counts     uint64[tiles], receives the sum of these counts for each tile
// frequent_kmers  uint32[kmers.count], receives the numbers of the listed query k-mers
// frequent_count  uint32[1], zero before the launch, receives the number of listed query k-mers
//
// Grid: one warp for each tile, or fewer warps that take several tiles in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, COUNTING_BLOCKS)
    count_kmer_mems(QueryKmers kmers, Table table, KeptMem* kept, Tile* tiles, uint32* counts,
                    uint64* tile_counts, uint32* frequent_kmers, uint32* frequent_count) {
    for (uint64 tile = grid_warp(); tile < tile_count(kmers); tile += grid_warps()) {
        QueryKmer kmer = kmer_of_lane(kmers, table, tile, false);
        const uint64 number = tile * TILE_KMERS + lane_number();
        const bool is_frequent = occurrence_count(kmer) > MOST_OCCURRENCES;
        if (is_frequent) {
            frequent_kmers[atomicAdd(frequent_count, 1u)] = static_cast<uint32>(number);
            kmer.list_end = kmer.list_begin;
        }
        bool all_kept = true;
        const uint32 count = search_occurrences(
            kmers, table, kmer, [&](uint32 owner, uint32 before, const Extension& found) {
                if (found.length == 0) {
                    return;
                }
                if (before < KEPT_MEMS_OF_TILE && can_be_kept(found, beyond_left(kmers, table))) {
                    kept[tile * KEPT_MEMS_OF_TILE + before] =
                        pack_mem(owner, found, beyond_left(kmers, table));
                } else {
                    all_kept = false;
                }
            });
        if (number < kmers.count) {
            counts[number] = count;
        }
        uint32 total;
        warp_exclusive_sum(count, total);
        const uint32 frequent_lanes = __ballot_sync(ALL_LANES, is_frequent);
        all_kept = __all_sync(ALL_LANES, all_kept);
        if (lane_number() == 0) {
            tile_counts[tile] = total;
            tiles[tile] = {frequent_lanes, all_kept ? total : NOT_KEPT};
        }
    }
}

// Write the first row of each query's MEMs, and then the number of all rows.
//
// tile_offsets   uint64[tiles + 1], the first row of each tile, then the row count
// counts         uint32[kmer_count], the number of MEMs of each query k-mer
// kmer_count     the number of query k-mers
// step           the bases from one query k-mer to the next
// first_kmers    uint64[query_count + 1], for a mapper the number of query k-mers of all queries
//                before each; null if the steps are those of the block
// offsets        uint64[query_count + 1], where each query begins in the block, then the end
// query_count    the number of queries
// query_offsets  uint64[query_count + 1], receives the first row of each query, then the row count
//
// Grid: one thread for each query and one for the last offset, or fewer threads that take several
// queries in turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    offset_query_mems(const uint64* tile_offsets, const uint32* counts, uint64 kmer_count,
                      uint32 step, const uint64* first_kmers, const uint64* offsets,
                      uint64 query_count, uint64* query_offsets) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        const uint64 kmer =
            first_kmers == nullptr ? (offsets[query] + step - 1) / step : first_kmers[query];
        query_offsets[query] = mems_before(tile_offsets, counts, min(kmer, kmer_count));
    }
}

// The rows that receive the MEMs of a lane's query k-mer.
struct Destination {
    uint64 begin;   // the first row of the query k-mer
    uint32 start;   // where the query k-mer begins in its query
    uint32 before;  // the number of MEMs of earlier query k-mers of the tile that are not listed
    uint32 count;   // the number of MEMs of this query k-mer, or 0 if it is listed
};

// Return another lane's destination.
__device__ __forceinline__ Destination from_lane(const Destination& destination, uint32 lane) {
    return {__shfl_sync(ALL_LANES, destination.begin, lane), from_lane(destination.start, lane),
            from_lane(destination.before, lane), from_lane(destination.count, lane)};
}

// Return the destination of this lane's query k-mer. The arguments are those of the kernel.
__device__ __forceinline__ Destination destination_of_lane(const QueryKmers& kmers,
                                                           const Table& table, uint64 tile,
                                                           const Tile& known, const uint32* counts,
                                                           const uint64* tile_offsets,
                                                           const Rows& rows) {
    Destination destination = {};
    const uint64 number = tile * TILE_KMERS + lane_number();
    const uint64 count = number < kmers.count ? counts[number] : 0;
    uint64 total;
    destination.begin = tile_offsets[tile] + warp_exclusive_sum(count, total);
    destination.count = known.frequent >> lane_number() & 1 ? 0 : static_cast<uint32>(count);
    uint32 searched;
    destination.before = warp_exclusive_sum(destination.count, searched);
    if (destination.count > 0) {
        PlacedKmer placed = place_of_kmer(kmers, number);
        pick_kmer(kmers, table, placed);
        destination.start = static_cast<uint32>(placed.place - query_begin_at(rows, placed.place));
    }
    return destination;
}

// Write the kept MEMs of a tile, those of each query k-mer in order.
__device__ __forceinline__ void write_kept(const QueryKmers& kmers, const Table& table,
                                           const KeptMem* kept, uint32 count, const Rows& rows,
                                           const Destination& destination) {
    for (uint32 first = 0; first < count; first += WARP_LANES) {
        const uint32 number = first + lane_number();
        const KeptMem mem = number < count ? kept[number] : 0;
        const Destination to = from_lane(destination, kmer_of_mem(mem));
        if (number >= count) {
            continue;
        }
        uint32 rank = number - to.before;
        if (sorts_mems(kmers) && to.count > 1) {
            rank = 0;
            for (uint32 other = to.before; other < to.before + to.count; ++other) {
                rank += kept[other] < mem ? 1 : 0;
            }
        }
        write_row(rows, to.begin + rank, table, to.start,
                  unpack_mem(mem, beyond_left(kmers, table)));
    }
}

// Search a tile again, because its MEMs have not been kept. Write the MEMs and sort them.
__device__ __forceinline__ void write_again(const QueryKmers& kmers, const Table& table,
                                            uint64 tile, const Tile& known, const Rows& rows,
                                            const Destination& destination) {
    const bool is_frequent = known.frequent >> lane_number() & 1;
    const QueryKmer kmer = kmer_of_lane(kmers, table, tile, is_frequent);
    search_occurrences(
        kmers, table, kmer, [&](uint32 owner, uint32 before, const Extension& found) {
            const Destination to = from_lane(destination, owner);
            if (found.length > 0) {
                write_row(rows, to.begin + before - to.before, table, to.start, found);
            }
        });
    __syncwarp();
    if (sorts_mems(kmers)) {
        for (uint32 row = 1; row < destination.count; ++row) {
            insert_row(rows.mems, destination.begin, destination.begin + row);
        }
    }
}

// Write the MEMs of all query k-mers that are not listed.
//
// kmers         the k-mers of the queries
// table         the table of the reference
// kept          KeptMem[KEPT_MEMS_OF_TILE * tiles], as `count_kmer_mems` writes it
// tiles         Tile[tiles], as `count_kmer_mems` writes it
// counts        uint32[kmers.count], the number of MEMs of each query k-mer, listed or not
// tile_offsets  uint64[tiles + 1], the prefix sums of `tile_counts`: the first row of each tile
// rows          three columns of tile_offsets[tiles] rows each, receives the MEMs
//
// Grid: one warp for each tile, or fewer warps that take several tiles in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_kmer_mems(QueryKmers kmers, Table table, const KeptMem* kept, const Tile* tiles,
                    const uint32* counts, const uint64* tile_offsets, Rows rows) {
    for (uint64 tile = grid_warp(); tile < tile_count(kmers); tile += grid_warps()) {
        if (tile_offsets[tile] == tile_offsets[tile + 1]) {
            continue;
        }
        const Tile known = tiles[tile];
        const Destination destination =
            destination_of_lane(kmers, table, tile, known, counts, tile_offsets, rows);
        if (known.kept_count == NOT_KEPT) {
            write_again(kmers, table, tile, known, rows, destination);
        } else {
            write_kept(kmers, table, kept + tile * KEPT_MEMS_OF_TILE, known.kept_count, rows,
                       destination);
        }
    }
}
