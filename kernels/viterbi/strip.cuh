// Computes a strip of whole matrices: neighbouring threads have neighbouring rows, and each lags one
// column after the one above it, so that they compute an anti-diagonal of their rows together.
#pragma once

#include "common/warp.cuh"
#include "viterbi/whole_numbers.cuh"

// What leaves the lowest row of a thread, or the row above a strip, in one column.
template <typename Score>
struct Edge {
    Score match, insertion;
};

// The rows of a thread.
template <typename Numbers>
struct LaneRows {
    using Score = typename Numbers::Score;

    Score to_match[LANE_ROWS];     // what leaves the column before for a match
    Score to_deletion[LANE_ROWS];  // and for a deletion
    Score above;                   // what leaves the row above, in the column before, for a match
    RowScores scores[LANE_ROWS];

    // Compute a column below an edge; return the value that leaves its lowest row.
    __device__ __forceinline__ Edge<Score> fill_column(const Numbers& with,
                                                       const ColumnBases& column,
                                                       const Edge<Score>& edge,
                                                       typename Numbers::Directions& directions) {
        Score diagonal = above, insertion = edge.insertion;
        above = edge.match;
#pragma unroll
        for (uint32 row = 0; row < LANE_ROWS; ++row) {
            const Cell<Score> cell = {with.sum(diagonal, column.score(scores[row])), insertion,
                                      to_deletion[row]};
            typename Numbers::Bits bits = {};
            const Cell<Score> left = recurrence(with, cell, bits);
            with.keep(directions, row, bits);
            diagonal = to_match[row];
            to_match[row] = left.match;
            to_deletion[row] = left.deletion;
            insertion = left.insertion;
        }
        return {to_match[LANE_ROWS - 1], insertion};
    }

    // Return the value that leaves a row for a match; its number need not be known to the compiler.
    __device__ __forceinline__ Score match_of(uint32 wanted) const {
        Score found = to_match[0];
#pragma unroll
        for (uint32 row = 1; row < LANE_ROWS; ++row) {
            found = row == wanted ? to_match[row] : found;
        }
        return found;
    }
};

// Compute the columns of a strip. All lanes of a warp call this with the same number of steps.
//
// GROUP lanes have a strip. `strip` has its `columns`; the `bases(j)` of a column, counted from
// 1, and the `edge(j)` above it, which it may be asked for beyond the columns; and it takes, of
// each lane and column, the directions and what leaves its lowest row: `take(step, j, directions,
// edge, rows)`.
template <typename Numbers, uint32 GROUP, typename Strip>
__device__ __forceinline__ void fill_strip(const Numbers& with, LaneRows<Numbers>& rows,
                                           Strip& strip, int steps) {
    using Score = typename Numbers::Score;
    const uint32 lane = lane_number() % GROUP;
    const uint32 first_lane = lane_number() - lane;
    Edge<Score> below = {with.never(), with.never()}, next_edge = below;
    ColumnBases column = {0, 0}, next_column = column;
    for (int step = 0; step < steps; ++step) {
        const uint32 turn = static_cast<uint32>(step) % GROUP;
        if (turn == 0) {
            // Every lane asks for one of the next columns.
            const int ahead = step + static_cast<int>(lane) + 1;
            next_column = strip.bases(ahead);
            next_edge = strip.edge(ahead);
        }
        const uint32 source = first_lane + turn;
        const ColumnBases first_column = {__shfl_sync(ALL_LANES, next_column.selector, source),
                                          __shfl_sync(ALL_LANES, next_column.breaks, source)};
        const Edge<Score> first_edge = {__shfl_sync(ALL_LANES, next_edge.match, source),
                                        __shfl_sync(ALL_LANES, next_edge.insertion, source)};
        const ColumnBases upper_column = {__shfl_up_sync(ALL_LANES, column.selector, 1),
                                          __shfl_up_sync(ALL_LANES, column.breaks, 1)};
        const Edge<Score> upper_edge = {__shfl_up_sync(ALL_LANES, below.match, 1),
                                        __shfl_up_sync(ALL_LANES, below.insertion, 1)};
        column = lane == 0 ? first_column : upper_column;
        const Edge<Score> edge = lane == 0 ? first_edge : upper_edge;
        const int j = step - static_cast<int>(lane) + 1;
        if (j >= 1 && j <= strip.columns) {
            typename Numbers::Directions directions = {};
            below = rows.fill_column(with, column, edge, directions);
            strip.take(step, j, directions, below, rows);
        }
    }
}

// The scores of the first row and the first column of a matrix: one gap.
struct Borders {
    int insertion_open, insertion_extend, deletion_open, deletion_extend;

    __device__ __forceinline__ explicit Borders(const Costs& costs)
        : insertion_open(costs.insertion_open), insertion_extend(costs.insertion_extend),
          deletion_open(costs.deletion_open), deletion_extend(costs.deletion_extend) {}

    // Return the score of the first cell of a row.
    __device__ __forceinline__ int first_of_row(int row) const {
        return row == 0 ? 0 : -insertion_open - insertion_extend * row;
    }

    // Return the score of the first cell of a column.
    __device__ __forceinline__ int first_of_column(int column) const {
        return column == 0 ? 0 : -deletion_open - deletion_extend * column;
    }

    // Return the value that leaves the first row in a column.
    template <typename Numbers>
    __device__ __forceinline__ Edge<typename Numbers::Score> edge(const Numbers& with,
                                                                  int column) const {
        return {with.number(first_of_column(column)), with.never()};
    }
};
