"""Computes whole matrices on the processor, in rounds: wave-front and streaming."""

from __future__ import annotations

import os
import queue
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data
from mummergpu.sequence.codes import CodeArray, with_margins
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import OperationArray, reverse_operations
from mummergpu.viterbi.whole.matrix_block import (
    BLOCK_BYTES,
    BLOCK_COLUMNS,
    BLOCK_ROWS,
    BLOCK_STRIDE,
    STATE_NUMBERS,
    Block,
    Edges,
    begin_edges,
    fill_block,
)
from mummergpu.viterbi.whole.rounds import RoundPlan
from mummergpu.viterbi.whole.whole_path import append_backwards, state_before

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

        The codes have no margins, 1 base or more and at most `matrix_block.LONGEST`. Returned are
        the best score from end to end, and the operations of `whole_matrix.align_whole`.
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
        state = self._take_state()
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

    def _take_state(self) -> Int32Array:
        try:
            return self._states.get_nowait()
        except queue.Empty:
            return np.empty(STATE_NUMBERS, dtype=np.int32)


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
    """Write the operations of the best path through a matrix; return how many there are."""
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
