// The k-mer search: looks up a k-mer of the queries every few bases, and extends its occurrences.
//
// Each k-mer that begins at a multiple of the step in the block of queries is a sample; or in its
// query, where only MEMs that contain a sample so placed are wanted. The table lists k-mers of the
// reference in such a way that every MEM contains a sample and its occurrence, and contains such a
// pair again after every period. The kernels look up each sample in the table, and extend it
// to the left and to the right at each occurrence. If a sample extends to the left by a period or
// more, an earlier sample finds the same MEM; therefore each MEM is reported once.
//
// Where only MEMs are wanted that contain a whole window of their query, the samples of a window are
// its last k-mers, as many as the steps of the table, which lists one of them wherever the window
// occurs. A MEM has the bases of the window before its sample as well: the lead. Of the sorted list
// of a frequent k-mer, only those occurrences are looked at that the lead precedes.
//
// A warp works on a tile of 32 samples at a time: each lane looks up one sample, and then the
// lanes share all occurrences evenly. The first kernel counts the MEMs, and keeps them if a tile
// has few; the writing kernel searches the other tiles again. Samples with more than
// MOST_OCCURRENCES occurrences are left to other kernels, where a block of threads works on each.
//
// The kernels read a table, and the queries and the reference as bit planes; they write MEMs as
// columns.
#pragma once

#include "common/grid.cuh"
#include "kmer/mem_rows.cuh"
#include "kmer/seed_choice.cuh"
#include "kmer/warp_tiles.cuh"

// The blocks of a multiprocessor at least when matches are counted: with the compiler's own choice of
// registers some of them spill.
constexpr int COUNTING_BLOCKS = 2;

// Where the samples of a query are if no seeds are chosen of it.
struct QuerySampling {
    uint32 window;       // the bases of a window; 0 if samples are at every step
    uint32 leads;        // the samples of a window, or of a seed that is taken, which lie side by side
    uint32 step;         // the bases from one sample to the next, without windows
    uint32 period;       // the bases from one pair of a MEM to the next, without windows
    uint32 kmer_length;  // the bases of a sample, or those of which a k-mer is picked
};

// Return how many samples a query of some bases has if no seeds are chosen of it.
__device__ __forceinline__ uint32 sample_count(const QuerySampling& sampling, uint32 length) {
    if (sampling.window > 0) {
        return length / sampling.window * sampling.leads;
    }
    return length < sampling.kmer_length ? 0
                                         : (length - sampling.kmer_length) / sampling.step + 1;
}

// Count the samples of each query: so many in each of its windows, or of the seeds that are taken.
//
// offsets            uint64[query_count + 1], where each query begins in the block, then the end
// query_count        the number of queries
// sampling           where samples are
// choices            SeedChoice[query_count], as `choose_query_seeds` writes it; null if none are
//                    chosen
// counts             uint64[query_count], receives the number of samples of each query
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_query_samples(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                        const SeedChoice* choices, uint64* counts) {
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        const uint32 length = static_cast<uint32>(offsets[query + 1] - offsets[query]);
        counts[query] = takes_all ? sample_count(sampling, length)
                                  : __popc(choices[query].taken) * sampling.leads;
    }
}

// Write where each sample of each query begins in the block, and what it finds first.
//
// offsets            uint64[query_count + 1], where each query begins in the block, then the end
// query_count        the number of queries
// sampling           where samples are
// choices            SeedChoice[query_count], as for `count_query_samples`
// first_samples      uint64[query_count + 1], the number of samples of all queries before each
// placed             PlacedSample[first_samples[query_count]], receives the samples
//
// Grid: one thread for each query, or fewer threads that take several queries in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    place_query_samples(const uint64* offsets, uint64 query_count, QuerySampling sampling,
                        const SeedChoice* choices, const uint64* first_samples,
                        PlacedSample* placed) {
    const uint32 window = sampling.window;
    for (uint64 query = grid_thread(); query < query_count; query += grid_threads()) {
        const bool takes_all = choices == nullptr || choices[query].bases == 0;
        if (takes_all && window == 0) {
            uint32 place = static_cast<uint32>(offsets[query]);
            for (uint64 sample = first_samples[query]; sample < first_samples[query + 1];
                 ++sample, place += sampling.step) {
                placed[sample] = {place, 0, 0, sampling.period, ALL_PLACES};
            }
            continue;
        }
        const SeedChoice choice =
            takes_all ? SeedChoice{window, 0, 0, 0, ALL_PLACES} : choices[query];
        uint32 seed = 0;
        uint32 last = NO_SEED_BEFORE;
        for (uint64 sample = first_samples[query]; sample < first_samples[query + 1]; ++seed) {
            if (!takes_all && (choice.taken >> seed & 1) == 0) {
                continue;
            }
            // All windows are the same to a match; of chosen seeds, the first one finds it.
            const uint32 before = takes_all ? window
                                  : last == NO_SEED_BEFORE ? NO_SEED_BEFORE
                                                           : (seed - last) * choice.bases;
            for (uint32 number = 0; number < sampling.leads; ++number) {
                const uint32 lead =
                    choice.bases - sampling.kmer_length - (sampling.leads - 1) + number;
                const uint64 place = offsets[query] + seed * choice.bases + lead;
                placed[sample++] = {
                    static_cast<uint32>(place), static_cast<uint16>(lead),
                    static_cast<uint16>(choice.bases),
                    before == NO_SEED_BEFORE ? NO_SEED_BEFORE : lead + before,
                    choice.spread_bits};
            }
            last = seed;
        }
    }
}

// Count the MEMs of each sample and of each tile, and keep the MEMs of tiles that have few. List
// the samples whose k-mers occur more than MOST_OCCURRENCES times.
//
// samples           the samples of the queries
// table             the table of the reference
// kept              KeptMem[KEPT_MEMS_OF_TILE * tiles], receives the MEMs of tiles that have few
// tiles             Tile[tiles], receives the listed samples and the number of kept MEMs of each
// counts            uint32[samples.count], receives the number of MEMs of each sample; 0 if listed
// tile_counts       uint64[tiles], receives the sum of these counts for each tile
// frequent_samples  uint32[samples.count], receives the numbers of the listed samples
// frequent_count    uint32[1], zero before the launch, receives the number of listed samples
// skipped_count     uint64[1], zero before the launch, receives the number of skipped samples
//
// Grid: one warp for each tile, or fewer warps that take several tiles in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS, COUNTING_BLOCKS)
    count_kmer_mems(Samples samples, Table table, KeptMem* kept, Tile* tiles, uint32* counts,
                    uint64* tile_counts, uint32* frequent_samples, uint32* frequent_count,
                    uint64* skipped_count) {
    for (uint64 tile = grid_warp(); tile < tile_count(samples); tile += grid_warps()) {
        Sample sample = sample_of_lane(samples, table, tile, false);
        const uint64 number = tile * TILE_SAMPLES + lane_number();
        const bool is_frequent = occurrence_count(sample) > MOST_OCCURRENCES;
        if (is_frequent) {
            frequent_samples[atomicAdd(frequent_count, 1u)] = static_cast<uint32>(number);
            sample.list_end = sample.list_begin;
        }
        bool all_kept = true;
        const uint32 count = search_occurrences(
            samples, table, sample,
            [&](uint32 owner, uint32 before, const Extension& found) {
                if (found.length == 0) {
                    return;
                }
                if (before < KEPT_MEMS_OF_TILE && can_be_kept(found, beyond_left(samples, table))) {
                    kept[tile * KEPT_MEMS_OF_TILE + before] =
                        pack_mem(owner, found, beyond_left(samples, table));
                } else {
                    all_kept = false;
                }
            });
        if (number < samples.count) {
            counts[number] = count;
        }
        uint32 total;
        warp_exclusive_sum(count, total);
        const uint32 frequent_lanes = __ballot_sync(ALL_LANES, is_frequent);
        const uint32 skipped_lanes = __ballot_sync(ALL_LANES, sample.is_skipped);
        all_kept = __all_sync(ALL_LANES, all_kept);
        if (lane_number() == 0) {
            tile_counts[tile] = total;
            if (skipped_lanes != 0) {
                atomicAdd(skipped_count, static_cast<uint64>(__popc(skipped_lanes)));
            }
            tiles[tile] = {frequent_lanes, all_kept ? total : NOT_KEPT};
        }
    }
}

// Write the first row of each query's MEMs, and then the number of all rows.
//
// tile_offsets   uint64[tiles + 1], the first row of each tile, then the row count
// counts         uint32[sample_count], the number of MEMs of each sample
// sample_count   the number of samples
// step           the bases from one sample to the next
// first_samples  uint64[query_count + 1], the number of samples of all queries before each; null if
//                the steps are those of the block
// offsets        uint64[query_count + 1], where each query begins in the block, then the end
// query_count    the number of queries
// query_offsets  uint64[query_count + 1], receives the first row of each query, then the row count
//
// Grid: one thread for each query and one for the last offset, or fewer threads that take several
// queries in turn. Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    offset_query_mems(const uint64* tile_offsets, const uint32* counts, uint64 sample_count,
                      uint32 step, const uint64* first_samples, const uint64* offsets,
                      uint64 query_count, uint64* query_offsets) {
    for (uint64 query = grid_thread(); query <= query_count; query += grid_threads()) {
        const uint64 sample = first_samples == nullptr ? (offsets[query] + step - 1) / step
                                                       : first_samples[query];
        query_offsets[query] = mems_before(tile_offsets, counts, min(sample, sample_count));
    }
}

// The rows that receive the MEMs of a lane's sample.
struct Destination {
    uint64 begin;   // the first row of the sample
    uint32 start;   // where the sample begins in its query
    uint32 before;  // the number of MEMs of earlier samples of the tile that are not listed
    uint32 count;   // the number of MEMs of this sample, or 0 if it is listed
};

// Return another lane's destination.
__device__ __forceinline__ Destination from_lane(const Destination& destination, uint32 lane) {
    return {__shfl_sync(ALL_LANES, destination.begin, lane), from_lane(destination.start, lane),
            from_lane(destination.before, lane), from_lane(destination.count, lane)};
}

// Return the destination of this lane's sample. The arguments are those of the kernel.
__device__ __forceinline__ Destination destination_of_lane(const Samples& samples,
                                                           const Table& table, uint64 tile,
                                                           const Tile& known,
                                                           const uint32* counts,
                                                           const uint64* tile_offsets,
                                                           const Rows& rows) {
    Destination destination = {};
    const uint64 number = tile * TILE_SAMPLES + lane_number();
    const uint64 count = number < samples.count ? counts[number] : 0;
    uint64 total;
    destination.begin = tile_offsets[tile] + warp_exclusive_sum(count, total);
    destination.count = known.frequent >> lane_number() & 1 ? 0 : static_cast<uint32>(count);
    uint32 searched;
    destination.before = warp_exclusive_sum(destination.count, searched);
    if (destination.count > 0) {
        PlacedSample placed = place_of_sample(samples, number);
        pick_kmer(samples, table, placed);
        destination.start = static_cast<uint32>(placed.place - query_begin_at(rows, placed.place));
    }
    return destination;
}

// Write the kept MEMs of a tile, those of each sample in order.
__device__ __forceinline__ void write_kept(const Samples& samples, const Table& table,
                                           const KeptMem* kept, uint32 count, const Rows& rows,
                                           const Destination& destination) {
    for (uint32 first = 0; first < count; first += WARP_LANES) {
        const uint32 number = first + lane_number();
        const KeptMem mem = number < count ? kept[number] : 0;
        const Destination to = from_lane(destination, sample_of_mem(mem));
        if (number >= count) {
            continue;
        }
        uint32 rank = number - to.before;
        // With a period of one base, a sample's MEMs share a query start and are sorted already.
        // Whoever wants whole windows sorts matches by their diagonals.
        if (samples.window == 0 && samples.period > 1 && to.count > 1) {
            rank = 0;
            for (uint32 other = to.before; other < to.before + to.count; ++other) {
                rank += kept[other] < mem ? 1 : 0;
            }
        }
        write_row(rows, to.begin + rank, table, to.start, unpack_mem(mem, beyond_left(samples, table)));
    }
}

// Search a tile again, because its MEMs have not been kept. Write the MEMs and sort them.
__device__ __forceinline__ void write_again(const Samples& samples, const Table& table,
                                            uint64 tile, const Tile& known, const Rows& rows,
                                            const Destination& destination) {
    const bool is_frequent = known.frequent >> lane_number() & 1;
    const Sample sample = sample_of_lane(samples, table, tile, is_frequent);
    search_occurrences(samples, table, sample,
                       [&](uint32 owner, uint32 before, const Extension& found) {
                           const Destination to = from_lane(destination, owner);
                           if (found.length > 0) {
                               write_row(rows, to.begin + before - to.before, table, to.start,
                                         found);
                           }
                       });
    __syncwarp();
    if (samples.window == 0 && samples.period > 1) {
        for (uint32 row = 1; row < destination.count; ++row) {
            insert_row(rows.mems, destination.begin, destination.begin + row);
        }
    }
}

// Write the MEMs of all samples that are not listed.
//
// samples       the samples of the queries
// table         the table of the reference
// kept          KeptMem[KEPT_MEMS_OF_TILE * tiles], as `count_kmer_mems` writes it
// tiles         Tile[tiles], as `count_kmer_mems` writes it
// counts        uint32[samples.count], the number of MEMs of each sample, listed or not
// tile_offsets  uint64[tiles + 1], the prefix sums of `tile_counts`: the first row of each tile
// rows          three columns of tile_offsets[tiles] rows each, receives the MEMs
//
// Grid: one warp for each tile, or fewer warps that take several tiles in turn.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    write_kmer_mems(Samples samples, Table table, const KeptMem* kept, const Tile* tiles,
                    const uint32* counts, const uint64* tile_offsets, Rows rows) {
    for (uint64 tile = grid_warp(); tile < tile_count(samples); tile += grid_warps()) {
        if (tile_offsets[tile] == tile_offsets[tile + 1]) {
            continue;
        }
        const Tile known = tiles[tile];
        const Destination destination =
            destination_of_lane(samples, table, tile, known, counts, tile_offsets, rows);
        if (known.kept_count == NOT_KEPT) {
            write_again(samples, table, tile, known, rows, destination);
        } else {
            write_kept(samples, table, kept + tile * KEPT_MEMS_OF_TILE, known.kept_count, rows,
                       destination);
        }
    }
}
