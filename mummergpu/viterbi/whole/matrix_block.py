"""Computes a block of a whole matrix on the processor, an anti-diagonal after the other."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.runtime.arrays import ByteArray, Int32Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.wide_lanes import WIDE_LANES, fill_lanes

ScoreArray = Int32Array

BLOCK_ROWS: Final = 128
BLOCK_COLUMNS: Final = 512
"""The bases of the query and of the reference in a block: so many that a thread is busy for long,
and so few that a matrix of some thousand bases has several blocks in a round."""

BLOCK_STRIDE: Final = BLOCK_ROWS + WIDE_LANES
"""The bytes from the directions of an anti-diagonal to those of the next one."""

BLOCK_DIAGONALS: Final = BLOCK_ROWS + BLOCK_COLUMNS - 1
BLOCK_BYTES: Final = BLOCK_DIAGONALS * BLOCK_STRIDE
"""The directions of a block."""

NEVER: Final = -(1 << 29)
"""The score of what no path reaches. As many costs as a matrix of `LONGEST` bases can subtract do
not overflow."""

LONGEST: Final = 1 << 20
"""The longest sequence: scores have 32 bits."""

_LINE: Final = BLOCK_ROWS + 1 + 2 * WIDE_LANES
STATE_NUMBERS: Final = 7 * _LINE
"""The numbers that a thread works with: three anti-diagonals of what leaves for a match, two of
what leaves for an insertion, and two of what leaves for a deletion."""


class Edges(NamedTuple):
    """What blocks leave to later ones."""

    to_match: ScoreArray
    to_insertion: ScoreArray
    """By column, from the border on: what leaves the lowest row that is computed."""
    row_match: ScoreArray
    row_deletion: ScoreArray
    """By row: what leaves the last column that is computed."""
    corners: ScoreArray
    """By strip: what leaves the row above the block, in the column before it, for a match."""


class Block(NamedTuple):
    """A block of a matrix, and where its sequences and directions are."""

    strip: int
    first_row: int
    rows: int
    first_column: int
    columns: int
    query_at: int
    """The index of the first base; `WIDE_LANES` more than the rows may be read."""
    reference_at: int
    """The index of the first base in the reversed reference; as many more may be read."""
    directions_at: int
    """From there on are `BLOCK_STRIDE` bytes for each anti-diagonal, by row."""


@inline
def border_score(opening: int, extension: int, bases: int) -> int:
    """Return the score of a cell in the first row or in the first column."""
    return as_int64(0) if bases == 0 else -opening - extension * bases


@jit
def begin_edges(length: int, reference_length: int, costs: Costs, edges: Edges) -> None:
    """Fill the edges of a matrix with what leaves its first row and its first column."""
    to_match, to_insertion, row_match, row_deletion, corners = edges
    for column in range(reference_length + 1):
        to_match[column] = border_score(costs.deletion_open, costs.deletion_extend, column)
        to_insertion[column] = NEVER
    for row in range(length):
        row_match[row] = border_score(costs.insertion_open, costs.insertion_extend, row + 1)
        row_deletion[row] = NEVER
    for strip in range(corners.size):
        corners[strip] = border_score(
            costs.insertion_open, costs.insertion_extend, strip * BLOCK_ROWS
        )


@jit
def fill_block(
    query: CodeArray,
    reference: CodeArray,
    block: Block,
    costs: Costs,
    edges: Edges,
    state: ScoreArray,
    directions: ByteArray,
) -> int:
    """Compute a block; return what leaves its last cell for a match.

    The edges are brought up to date. The codes of the reference have the last base first. `state`
    has `STATE_NUMBERS`.
    """
    strip, first_row, rows, first_column, columns, query_at, reference_at, directions_at = block
    above_match, above_insertion, left_match, left_deletion, corners = edges
    for number in range(STATE_NUMBERS):
        state[number] = NEVER
    # Of anti-diagonals: where what leaves the row above the first one is.
    before, last, next_match = as_int64(0), as_int64(_LINE), as_int64(2 * _LINE)
    insertion, next_insertion = as_int64(3 * _LINE), as_int64(4 * _LINE)
    deletion, next_deletion = as_int64(5 * _LINE), as_int64(6 * _LINE)
    # The corner of the next block of the strip: its place is written to below.
    corner = above_match[first_column + columns]
    upper, left = as_int64(corners[strip]), as_int64(corners[strip])
    for diagonal in range(rows + columns - 1):
        if diagonal < columns:
            state[before] = upper
            # If the block has one row, this one is replaced below.
            upper = as_int64(above_match[first_column + diagonal + 1])
            state[insertion] = above_insertion[first_column + diagonal + 1]
        if diagonal < rows:
            if diagonal > 0:
                state[before + diagonal] = left
            # If the block has one column, this one is replaced below.
            left = as_int64(left_match[first_row + diagonal])
            state[deletion + diagonal + 1] = left_deletion[first_row + diagonal]
        first = max(0, diagonal - columns + 1)
        end = min(rows, diagonal + 1)
        column = first_column + diagonal
        for row in range(first, end, WIDE_LANES):
            fill_lanes(
                query,
                query_at + row,
                reference,
                reference_at - diagonal + row,
                state,
                (
                    before + row,
                    insertion + row,
                    deletion + row + 1,
                    next_match + row + 1,
                    next_insertion + row + 1,
                    next_deletion + row + 1,
                ),
                costs,
                directions,
                directions_at + diagonal * BLOCK_STRIDE + row,
            )
        if diagonal >= rows - 1:
            below = column - rows + 2
            above_match[below] = state[next_match + rows]
            above_insertion[below] = state[next_insertion + rows]
        if diagonal >= columns - 1:
            row = diagonal - columns + 1
            left_match[first_row + row] = state[next_match + row + 1]
            left_deletion[first_row + row] = state[next_deletion + row + 1]
        # The oldest anti-diagonal gives its place to the next one.
        before, last, next_match = last, next_match, before
        insertion, next_insertion = next_insertion, insertion
        deletion, next_deletion = next_deletion, deletion
    corners[strip] = corner
    return as_int64(state[last + rows])
