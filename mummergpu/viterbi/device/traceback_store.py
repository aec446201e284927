"""The directions of a whole matrix, kept on the host as the kernels of rounds write them."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.cuda.program import WARP_LANES
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.viterbi.device.cuda_program import LANE_ROWS
from mummergpu.viterbi.recurrence.model import PAIRWISE, bit_count
from mummergpu.viterbi.recurrence.operations import (
    OperationArray,
    append_backwards,
    reverse_operations,
    state_before,
)
from mummergpu.viterbi.whole.processor_matrix import RoundPlan

_BITS: Final = bit_count(PAIRWISE)
_BIT_MASK: Final = (1 << _BITS) - 1


class TracebackStore:
    """Keeps the directions of rounds, and follows the best path back through them.

    A block has `block_lines` steps.
    """

    def __init__(self, plan: RoundPlan, block_lines: int) -> None:
        self._plan = plan
        self._block_lines = block_lines
        self._first_blocks = plan.first_blocks
        blocks = int(self._first_blocks[-1])
        self._directions = np.empty(blocks * block_lines * WARP_LANES, dtype=np.uint32)

    def words(self, number: int) -> int:
        """Return how many words the directions of a round have."""
        return self._plan.block_count(number) * self._block_lines * WARP_LANES

    def add(self, number: int, directions: UInt32Array) -> None:
        """Keep the directions of a round."""
        first = int(self._first_blocks[number]) * self._block_lines * WARP_LANES
        self._directions[first : first + directions.size] = directions

    def trace(self) -> OperationArray:
        """Return the operations of the best path."""
        plan = self._plan
        operations = np.empty(plan.length + plan.reference_length, dtype=np.uint32)
        count = trace_stored(
            self._directions,
            self._first_blocks,
            (plan.column_blocks, plan.block_columns, self._block_lines),
            plan.length,
            plan.reference_length,
            operations,
        )
        return operations[:count]


@jit
def trace_stored(
    directions: UInt32Array,
    first_blocks: Int64Array,
    shape: tuple[int, int, int],
    length: int,
    reference_length: int,
    operations: OperationArray,
) -> int:
    """Write the operations of the best path through a matrix; return how many there are.

    The directions are those of all rounds: of each step of each block, a word for each lane. The
    shape is the columns of blocks, the columns of a block, and the steps of a block.
    """
    column_blocks, block_columns, block_lines = shape
    i, j, state, end = length, reference_length, as_int64(0), as_int64(0)
    while i > 0 or j > 0:
        bits = as_int64(0)
        if i > 0 and j > 0:
            row, column = i - 1, j - 1
            lane = row // LANE_ROWS % WARP_LANES
            strip, block = row // (LANE_ROWS * WARP_LANES), column // block_columns
            number = strip + block
            first_strip = max(0, number - column_blocks + 1)
            line = (first_blocks[number] + strip - first_strip) * block_lines
            # Each lane begins a step later than the one before it; a word has all of its rows.
            line += column % block_columns + lane
            word = as_int64(directions[line * WARP_LANES + lane])
            bits = word >> _BITS * (row % LANE_ROWS) & _BIT_MASK
        state = state_before(state, bits, i, j)
        i, j, end = append_backwards(state, i, j, operations, as_int64(0), end)
    reverse_operations(operations, 0, end)
    return end
