// Computes one whole matrix in blocks. The blocks of an anti-diagonal are independent of each
// other: a round computes them all, as a wave-front (Du, Yin and Bader 2010, section IV A).
#pragma once

#include "viterbi/strip.cuh"
#include "viterbi/whole_paths.cuh"

constexpr int STRIP_ROWS = static_cast<int>(WARP_LANES * LANE_ROWS);

// What a matrix is made of, and what its blocks leave to later ones.
struct alignas(16) WholeMatrix {
    const uint8* query;      // the codes of the query
    const uint8* reference;  // those of the reference
    int2* column_edges;      // what leaves the lowest row that is computed, by column
    int2* row_edges;         // what leaves the last column that is computed, by row
    int* corners;            // by strip, what leaves the row above the block for a match
    long long length;
    long long reference_length;
    long long block_columns;
};

static_assert(sizeof(WholeMatrix) == WHOLE_MATRIX_BYTES, "as the host writes them");

// A block: a strip of rows, and some of the columns.
struct BlockStrip {
    WholeMatrix matrix;
    Borders borders;
    WideNumbers with;
    int strip, first_column;
    int columns;
    uint32* directions;
    int* score;

    __device__ __forceinline__ BlockStrip(const WholeMatrix& matrix, const Costs& costs,
                                          int strip, int first_column)
        : matrix(matrix), borders(costs), with(costs), strip(strip), first_column(first_column),
          columns(static_cast<int>(min(matrix.block_columns,
                                       matrix.reference_length - first_column))) {}

    __device__ __forceinline__ ColumnBases bases(int j) const {
        const uint32 base = j <= columns ? matrix.reference[first_column + j - 1] : BREAK;
        return {WideNumbers::selector(base, 0), WideNumbers::breaks(base, 0)};
    }

    __device__ __forceinline__ Edge<int> edge(int j) const {
        if (strip == 0) {
            return borders.edge(with, first_column + j);
        }
        const int2 edge = j <= columns ? matrix.column_edges[first_column + j] : int2{0, 0};
        return {edge.x, edge.y};
    }

    __device__ __forceinline__ int first_row() const {
        return strip * STRIP_ROWS + static_cast<int>(lane_number() * LANE_ROWS);
    }

    __device__ __forceinline__ LaneRows<WideNumbers> lane_rows(const Costs& costs) const {
        const int above = first_row();
        LaneRows<WideNumbers> found;
        if (first_column == 0) {
            found.above = borders.first_of_row(above);
        } else if (above == 0) {
            found.above = borders.first_of_column(first_column);
        } else if (lane_number() == 0) {
            found.above = matrix.corners[strip];
        } else {
            found.above = matrix.row_edges[above - 1].x;
        }
#pragma unroll
        for (uint32 row = 0; row < LANE_ROWS; ++row) {
            const int place = above + static_cast<int>(row);
            const uint32 base = place < matrix.length ? matrix.query[place] : BREAK;
            found.scores[row] = {base_scores(base, costs), 0,
                                 static_cast<uint32>(break_score(base, costs))};
            if (first_column == 0) {
                found.to_match[row] = borders.first_of_row(place + 1);
                found.to_deletion[row] = with.never();
            } else {
                const int2 edge = matrix.row_edges[place];
                found.to_match[row] = edge.x;
                found.to_deletion[row] = edge.y;
            }
        }
        return found;
    }

    __device__ __forceinline__ void take(int step, int j, uint32 found, const Edge<int>& below,
                                         const LaneRows<WideNumbers>& lane_rows) {
        directions[static_cast<uint32>(step) * WARP_LANES + lane_number()] = found;
        if (lane_number() == WARP_LANES - 1) {
            matrix.column_edges[first_column + j] = {below.match, below.insertion};
        }
        const long long row = matrix.length - 1 - first_row();
        if (first_column + j == matrix.reference_length && row >= 0 && row < LANE_ROWS) {
            *score = lane_rows.match_of(static_cast<uint32>(row));
        }
    }

    // Leave the last column to the next block of the strip.
    __device__ __forceinline__ void leave(const LaneRows<WideNumbers>& rows) const {
#pragma unroll
        for (uint32 row = 0; row < LANE_ROWS; ++row) {
            matrix.row_edges[first_row() + static_cast<int>(row)] = {rows.to_match[row],
                                                                     rows.to_deletion[row]};
        }
        if (lane_number() == 0) {
            matrix.corners[strip] = rows.above;
        }
    }
};

// Compute the blocks of a round.
//
// matrix       WholeMatrix[1]; row_edges and corners have room for whole strips
// costs        Costs[1]
// round        the number of the round: block b of a column c is in round b + c
// first_strip  the first strip that has a block in the round
// count        how many strips have one
// directions   uint32[count * (block_columns + WARP_LANES - 1) * WARP_LANES], receives the
//              directions of the blocks
// score        int[1], receives the score of the last cell when it is computed
//
// Grid: a warp for each block; those of one round lie in as many thread blocks as there are.
// Shared memory: none.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    fill_round(const WholeMatrix* matrix, const Costs* costs, uint32 round, uint32 first_strip,
               uint32 count, uint32* directions, int* score) {
    const Costs numbers = *costs;
    const WideNumbers with(numbers);
    const uint32 warp = threadIdx.x / WARP_LANES;
    const uint32 warps = blockDim.x / WARP_LANES;
    for (uint32 item = blockIdx.x + gridDim.x * warp; item < count; item += gridDim.x * warps) {
        const uint32 strip_number = first_strip + item;
        const long long first_column =
            static_cast<long long>(round - strip_number) * matrix->block_columns;
        BlockStrip strip(*matrix, numbers, static_cast<int>(strip_number),
                         static_cast<int>(first_column));
        const uint64 steps = static_cast<uint64>(matrix->block_columns) + WARP_LANES - 1;
        strip.directions = directions + item * steps * WARP_LANES;
        strip.score = score;
        LaneRows<WideNumbers> rows = strip.lane_rows(numbers);
        __syncwarp();
        fill_strip<WideNumbers, WARP_LANES>(with, rows, strip,
                                            strip.columns + static_cast<int>(WARP_LANES) - 1);
        strip.leave(rows);
        __syncwarp();
    }
}

// Write the operations of the best path through a matrix that has been computed in rounds.
//
// matrix       WholeMatrix[1]
// first_lines  int64[rounds], where the directions of each round begin, in lines of WARP_LANES
// directions   uint32[], those of all rounds
// operations   uint32[most], receives the operations, as BAM packs them; the last one comes last
// most         the operations that there is room for
// count        uint32[1], receives how many there are
//
// Grid: one warp. Shared memory: a window of directions.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    trace_rounds(const WholeMatrix* matrix, const long long* first_lines,
                 const uint32* directions, uint32* operations, uint32 most, uint32* count) {
    __shared__ uint32 window[WINDOW_WORDS];
    if (grid_warp() > 0) {
        return;
    }
    const long long steps = matrix->block_columns + WARP_LANES - 1;
    const long long block_columns = matrix->block_columns;
    const int column_blocks =
        static_cast<int>((matrix->reference_length + block_columns - 1) / block_columns);
    DirectionWindow<uint32> cached(directions, window, WARP_LANES);
    const auto bits = [&](int i, int j) {
        const uint32 row = static_cast<uint32>(i - 1);
        const uint32 lane = row / LANE_ROWS % WARP_LANES;
        const int strip = static_cast<int>(row / STRIP_ROWS);
        const int column = static_cast<int>((j - 1) / block_columns);
        const int round = strip + column;
        const int first_strip = max(0, round - column_blocks + 1);
        const long long line = first_lines[round] + (strip - first_strip) * steps +
                               (j - 1) % block_columns + lane;
        return WideNumbers::bits_of(cached.at(line, lane), row % LANE_ROWS, 0);
    };
    const uint32 written = write_whole_path(static_cast<int>(matrix->length),
                                            static_cast<int>(matrix->reference_length), bits,
                                            operations + most, most);
    if (lane_number() == 0) {
        *count = written;
    }
}
