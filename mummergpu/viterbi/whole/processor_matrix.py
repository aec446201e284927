"""Computes whole matrices on the processor, in rounds: wave-front and streaming."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import BoolArray, ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data
from mummergpu.sequence.codes import CodeArray, with_margins
from mummergpu.viterbi.recurrence.cell_recurrence import WIDE_LANES, fill_lanes
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import (
    OperationArray,
    append_backwards,
    reverse_operations,
    state_before,
)


@frozen
class RoundPlan:
    """A matrix that is cut into blocks, which are computed an anti-diagonal at a time.

    Blocks of an anti-diagonal depend on those before only, never on each other (Du, Yin and Bader
    2010, section IV A, where a block is a single cell). Both sequences have 1 base or more.
    """

    length: int
    reference_length: int
    block_rows: int
    block_columns: int

    @property
    def strips(self) -> int:
        """The number of rows of blocks."""
        return -(-self.length // self.block_rows)

    @property
    def column_blocks(self) -> int:
        """The number of columns of blocks."""
        return -(-self.reference_length // self.block_columns)

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self.strips + self.column_blocks - 1

    @property
    def max_blocks(self) -> int:
        """The most blocks of a round."""
        return min(self.strips, self.column_blocks)

    def first_strip(self, number: int) -> int:
        """Return the first strip that has a block in a round."""
        return max(0, number - self.column_blocks + 1)

    def block_count(self, number: int) -> int:
        """Return the number of blocks of a round."""
        return min(number, self.strips - 1) - self.first_strip(number) + 1

    @cached_property
    def first_blocks(self) -> Int64Array:
        """The blocks before each round, and all blocks: ndarray, dtype=int64, shape=(rounds + 1,).

        The blocks of a round follow each other, and the rounds do.
        """
        counts = [self.block_count(number) for number in range(self.rounds)]
        return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))


ScoreArray = Int32Array

BLOCK_ROWS: Final = 128
BLOCK_COLUMNS: Final = 512
"""The bases of the query and of the reference in a block: enough to keep a thread busy, and so few
that a matrix of some thousand bases has several blocks in a round."""

BLOCK_STRIDE: Final = BLOCK_ROWS + WIDE_LANES
"""The bytes from the directions of an anti-diagonal to those of the next one."""

BLOCK_DIAGONALS: Final = BLOCK_ROWS + BLOCK_COLUMNS - 1
BLOCK_BYTES: Final = BLOCK_DIAGONALS * BLOCK_STRIDE
"""The directions of a block."""

FITTING_BYTES: Final = 1 << 30
"""The most bytes of directions, on a processor, of a matrix that `--method auto` computes as a
whole: two sequences of 27,000 bases. A device needs fewer, so the choice is the same on both."""

NEVER: Final = -(1 << 29)
"""The score of a cell that no path reaches. Subtracting all costs of a matrix of `LONGEST` bases
does not overflow."""

LONGEST: Final = 1 << 20
"""The longest sequence: scores have 32 bits."""

_LINE: Final = BLOCK_ROWS + 1 + 2 * WIDE_LANES
STATE_NUMBERS: Final = 7 * _LINE
"""The numbers that a thread works with: three anti-diagonals of scores that leave for a match, two
for an insertion, and two for a deletion."""


def matrix_fits(lengths: Int64Array, reference_length: int) -> BoolArray:
    """Return whether the matrix of each query with a reference takes at most `FITTING_BYTES`."""
    blocks = -(-lengths // BLOCK_ROWS) * -(-reference_length // BLOCK_COLUMNS)
    fits: BoolArray = blocks * BLOCK_BYTES <= FITTING_BYTES
    return fits & (np.maximum(lengths, reference_length) <= LONGEST)


class Edges(NamedTuple):
    """The scores that leave blocks for later ones."""

    # By column, from the border on: the scores that leave the lowest row computed so far.
    to_match: ScoreArray
    to_insertion: ScoreArray
    # By row: the scores that leave the last column computed so far.
    row_match: ScoreArray
    row_deletion: ScoreArray
    # By strip: the score that leaves the cell above and left of the block's first, for a match.
    corners: ScoreArray


class Block(NamedTuple):
    """A block of a matrix, and where its sequences and directions are."""

    strip: int
    first_row: int
    rows: int
    first_column: int
    columns: int
    query_at: int  # The index of the first base; `WIDE_LANES` more than the rows may be read
    # The index of the first base in the reversed reference; `WIDE_LANES` more may be read.
    reference_at: int
    directions_at: int  # From there on are `BLOCK_STRIDE` bytes for each anti-diagonal, by row


@inline
def border_score(opening: int, extension: int, bases: int) -> int:
    """Return the score of a cell in the first row or in the first column."""
    return as_int64(0) if bases == 0 else -opening - extension * bases


@jit
def begin_edges(length: int, reference_length: int, costs: Costs, edges: Edges) -> None:
    """Fill the edges of a matrix with the scores that leave its first row and first column."""
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
    """Compute a block; return the score that leaves its last cell for a match.

    The edges are updated. The codes of the reference have the last base first. `state` has
    `STATE_NUMBERS`.
    """
    strip, first_row, rows, first_column, columns, query_at, reference_at, directions_at = block
    above_match, above_insertion, left_match, left_deletion, corners = edges
    for number in range(STATE_NUMBERS):
        state[number] = NEVER
    # Of anti-diagonals: the places of the scores that leave the row above the first one.
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


MapFunction = Callable[..., Iterable[Any]]


class ProcessorMatrix:
    """Aligns pairs of sequences from end to end; one thread calls it, and several work.

    The function is called like `map`, to compute the blocks of a round side by side.
    """

    def __init__(self, costs: Costs, map_function: MapFunction = map) -> None:
        self._costs = costs
        self._map = map_function
        self._states: queue.SimpleQueue[Int32Array] = queue.SimpleQueue()

    def plan(self, query: CodeArray, reference: CodeArray) -> RoundPlan:
        """Return the rounds in which two sequences are aligned."""
        return RoundPlan(query.size, reference.size, BLOCK_ROWS, BLOCK_COLUMNS)

    def matrix_bytes(self, plan: RoundPlan) -> int:
        """Return the bytes of the directions of a whole matrix."""
        return int(plan.first_blocks[-1]) * BLOCK_BYTES

    def align(self, query: CodeArray, reference: CodeArray) -> tuple[int, OperationArray]:
        """Align two sequences; the directions of all cells stay in memory (section IV A).

        The codes have no margins, 1 base or more and at most `LONGEST`. Return the best score from
        end to end, and the operations of `whole_matrix.align_whole`.
        """
        plan = self.plan(query, reference)
        directions = np.empty(self.matrix_bytes(plan), dtype=np.uint8)
        return self._align(plan, query, reference, directions)

    def align_streamed(self, query: CodeArray, reference: CodeArray) -> tuple[int, OperationArray]:
        """Align as `align` does; the directions are in a mapped temporary file (section IV B).

        The system moves them there as memory becomes short.
        """
        plan = self.plan(query, reference)
        size = self.matrix_bytes(plan)
        with temporary_data(), open_temporary_file() as file:
            if reserve := getattr(os, "posix_fallocate", None):
                # A full disk would end the process when a mapped page is written.
                reserve(file.fileno(), 0, size)
            directions = np.memmap(file, dtype=np.uint8, mode="w+", shape=size)
            return self._align(plan, query, reference, directions.view(np.ndarray))

    def _align(
        self, plan: RoundPlan, query: CodeArray, reference: CodeArray, directions: ByteArray
    ) -> tuple[int, OperationArray]:
        work = _MatrixWork(plan, query, reference, self._costs, self._states)
        for number in range(plan.rounds):
            first = int(plan.first_blocks[number]) * BLOCK_BYTES
            self._fill(work, number, directions, first)
        return work.score, _trace(plan, directions)

    def _fill(self, work: _MatrixWork, number: int, directions: ByteArray, first: int) -> None:
        """Compute a round; the directions of its first block are written from `first` on."""
        plan = work.plan
        first_strip = plan.first_strip(number)

        def fill(strip: int) -> None:
            work.fill(
                strip, number - strip, directions, first + (strip - first_strip) * BLOCK_BYTES
            )

        for _ in self._map(fill, range(first_strip, first_strip + plan.block_count(number))):
            pass


class _MatrixWork:
    """A matrix that is being computed; `score` is the best when all blocks have been."""

    def __init__(
        self,
        plan: RoundPlan,
        query: CodeArray,
        reference: CodeArray,
        costs: Any,
        states: queue.SimpleQueue[Int32Array],
    ) -> None:
        self.plan = plan
        self.score = 0
        self._costs = costs
        self._states = states
        self._query = with_margins(query)
        self._reference = with_margins(reference[::-1])
        self._margin = (self._query.size - query.size) // 2
        numbers = (reference.size + 1, reference.size + 1, query.size, query.size, plan.strips)
        first, second, third, fourth, fifth = (np.empty(n, dtype=np.int32) for n in numbers)
        self._edges = Edges(first, second, third, fourth, fifth)
        begin_edges(query.size, reference.size, costs, self._edges)

    def fill(self, strip: int, column: int, directions: ByteArray, directions_at: int) -> None:
        """Compute a block, by its row and its column of blocks."""
        plan = self.plan
        first_row, first_column = strip * BLOCK_ROWS, column * BLOCK_COLUMNS
        rows = min(BLOCK_ROWS, plan.length - first_row)
        columns = min(BLOCK_COLUMNS, plan.reference_length - first_column)
        try:
            state = self._states.get_nowait()
        except queue.Empty:
            state = np.empty(STATE_NUMBERS, dtype=np.int32)
        block = Block(
            *(strip, first_row, rows, first_column, columns),
            query_at=self._margin + first_row,
            reference_at=self._margin + plan.reference_length - 1 - first_column,
            directions_at=directions_at,
        )
        score = fill_block(
            self._query, self._reference, block, self._costs, self._edges, state, directions
        )
        self._states.put(state)
        if strip == plan.strips - 1 and column == plan.column_blocks - 1:
            self.score = score


def _trace(plan: RoundPlan, directions: ByteArray) -> OperationArray:
    """Return the operations of the best path through a matrix."""
    operations = np.empty(plan.length + plan.reference_length, dtype=np.uint32)
    sides = plan.length, plan.reference_length
    count = trace_blocks(directions, plan.first_blocks, plan.column_blocks, *sides, operations)
    return operations[:count]


@jit
def trace_blocks(
    directions: ByteArray,
    first_blocks: Int64Array,
    column_blocks: int,
    length: int,
    reference_length: int,
    operations: OperationArray,
) -> int:
    """Write the operations of the best path through a matrix; return their number."""
    i, j, state, end = length, reference_length, as_int64(0), as_int64(0)
    while i > 0 or j > 0:
        bits = as_int64(0)
        if i > 0 and j > 0:
            strip, column = (i - 1) // BLOCK_ROWS, (j - 1) // BLOCK_COLUMNS
            row, own_column = (i - 1) % BLOCK_ROWS, (j - 1) % BLOCK_COLUMNS
            # A round is an anti-diagonal of blocks, in the order of their strips. In a block, each
            # anti-diagonal of cells has a line of bytes, by row.
            number = strip + column
            block = first_blocks[number] + strip - max(0, number - column_blocks + 1)
            at = block * BLOCK_BYTES + (row + own_column) * BLOCK_STRIDE + row
            bits = as_int64(directions[at])
        state = state_before(state, bits, i, j)
        i, j, end = append_backwards(state, i, j, operations, as_int64(0), end)
    reverse_operations(operations, 0, end)
    return end
