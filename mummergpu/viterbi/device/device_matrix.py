"""Computes whole matrices on a device, in rounds: wave-front and streaming."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np

from mummergpu.cuda.device import Device, Mark, Program
from mummergpu.cuda.program import WARP_LANES
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.device.cuda_program import LANE_ROWS, WHOLE_MATRIX, DeviceWork
from mummergpu.viterbi.recurrence.model import PAIRWISE, Costs, bit_count
from mummergpu.viterbi.recurrence.operations import (
    OperationArray,
    append_backwards,
    reverse_operations,
    state_before,
)
from mummergpu.viterbi.whole.processor_matrix import RoundPlan

STRIP_ROWS: Final = WARP_LANES * LANE_ROWS
"""The rows of a block: those of a warp."""

BLOCK_COLUMNS: Final = 128
"""The columns of a block. With more of them there are fewer rounds, and fewer blocks in each."""

BLOCK_LINES: Final = BLOCK_COLUMNS + WARP_LANES - 1
"""The steps of a block: the last lane begins as many steps late as there are lanes before it."""

BLOCK_BYTES: Final = 4 * BLOCK_LINES * WARP_LANES
"""The directions of a block: a word for each step and lane."""

BUFFERS: Final = 3
"""The rounds whose directions are on the device if they are streamed: one is computed, one is
copied, one waits."""

_BITS: Final = bit_count(PAIRWISE)
_BIT_MASK: Final = (1 << _BITS) - 1


class DeviceMatrix(DeviceWork):
    """Aligns pairs of sequences from end to end (`DeviceWork`)."""

    def __init__(
        self, device: Device, program: Program, costs: Costs, memory: int, stats: Stats
    ) -> None:
        super().__init__(device, program, costs, memory, stats)
        self._copies = device.new_stream()
        self._pinned: UInt32Array | None = None

    def plan(self, query: CodeArray, reference: CodeArray) -> RoundPlan:
        """Return the rounds in which two sequences are aligned."""
        return RoundPlan(query.size, reference.size, STRIP_ROWS, BLOCK_COLUMNS)

    def has_room(self, plan: RoundPlan) -> bool:
        """Return whether the directions of a whole matrix fit the device's memory."""
        blocks = int(plan.first_blocks[-1])
        return blocks * BLOCK_BYTES + 32 * (plan.length + plan.reference_length) < self.memory // 2

    def align(self, query: CodeArray, reference: CodeArray) -> tuple[int, OperationArray]:
        """Align two sequences; the directions of all cells stay on the device (section IV A).

        The codes have no margins and 1 base or more; the matrix has room (`has_room`). Return the
        best score from end to end, and the operations of `whole_matrix.align_whole`.
        """
        plan = self.plan(query, reference)
        first_blocks = plan.first_blocks
        with self._placed(query, reference, plan) as matrix:
            buffer = self.buffer
            directions = buffer("all directions", int(first_blocks[-1]) * BLOCK_BYTES)
            for number in range(plan.rounds):
                at = directions + int(first_blocks[number]) * BLOCK_BYTES
                self._fill(plan, number, matrix, at)
            most = plan.length + plan.reference_length
            lines = first_blocks * BLOCK_LINES
            places = buffer("first lines", lines.nbytes)
            operations = buffer("operations", 4 * most)
            count = buffer("count", 4)
            self.stream.copy_in(places, lines)
            self.launcher.launch(
                self.program,
                "trace_rounds",
                1,
                (matrix, places, directions, operations, np.uint32(most), count),
            )
            total = np.empty(1, dtype=np.uint32)
            self.stream.copy_out(total, count)
            self.stream.synchronize()
            written = np.empty(int(total[0]), dtype=np.uint32)
            self.stream.copy_out(written, operations + 4 * (most - written.size))
            score = self._score()
        self.launcher.report()
        return score, written

    def align_streamed(self, query: CodeArray, reference: CodeArray) -> tuple[int, OperationArray]:
        """Align as `align` does; the directions go to the host meanwhile (section IV B).

        Only the host needs room for the matrix.
        """
        plan = self.plan(query, reference)
        kept = TracebackStore(plan, BLOCK_LINES)
        round_bytes = plan.max_blocks * BLOCK_BYTES
        with self._placed(query, reference, plan) as matrix:
            directions = self.buffer("directions of rounds", BUFFERS * round_bytes)
            pinned = self._pinned_words(BUFFERS * round_bytes // 4).reshape(BUFFERS, -1)
            computed: list[Mark] = []
            copied: list[Mark] = []

            def copy(number: int) -> None:
                """Begin to copy a round that has been computed."""
                computed[number].wait()
                words = kept.words(number)
                source = directions + number % BUFFERS * round_bytes
                self._copies.copy_out(pinned[number % BUFFERS, :words], source)
                copied.append(self._copies.mark())

            def keep(number: int) -> None:
                """Keep a round that is being copied."""
                copied[number].wait()
                kept.add(number, pinned[number % BUFFERS, : kept.words(number)])

            for number in range(plan.rounds):
                if number >= BUFFERS:
                    keep(number - BUFFERS)
                self._fill(plan, number, matrix, directions + number % BUFFERS * round_bytes)
                computed.append(self.stream.mark())
                if number > 0:
                    copy(number - 1)
            copy(plan.rounds - 1)
            for number in range(max(0, plan.rounds - BUFFERS), plan.rounds):
                keep(number)
            score = self._score()
        self.launcher.report()
        return score, kept.trace()

    def free(self) -> None:
        """Free all memory and the streams."""
        # Pinned memory must be freed before its CUDA context.
        self._pinned = None
        self._copies.free()
        super().free()

    def _pinned_words(self, count: int) -> UInt32Array:
        if self._pinned is None or self._pinned.size < count:
            self._pinned = self.device.pinned(count, np.uint32)
        return self._pinned[:count]

    @contextmanager
    def _placed(self, query: CodeArray, reference: CodeArray, plan: RoundPlan) -> Iterator[int]:
        """Copy two sequences to the device; yield the address of their matrix."""
        buffer = self.buffer
        described = np.zeros(1, dtype=WHOLE_MATRIX)
        described["query"] = buffer("query", query.size)
        described["reference"] = buffer("reference", reference.size)
        described["column_edges"] = buffer("column edges", 8 * (reference.size + 1))
        described["row_edges"] = buffer("row edges", 8 * STRIP_ROWS * plan.strips)
        described["corners"] = buffer("corners", 4 * plan.strips)
        described["length"], described["reference_length"] = query.size, reference.size
        described["block_columns"] = plan.block_columns
        address = buffer("matrix", WHOLE_MATRIX.itemsize)
        try:
            self.stream.copy_in(int(described["query"][0]), query)
            self.stream.copy_in(int(described["reference"][0]), reference)
            self.stream.copy_in(address, described.view(np.uint8))
            self.stream.copy_in(buffer("costs", self.costs.nbytes), self.costs)
            yield address
        finally:
            self.stream.synchronize()
            self._copies.synchronize()

    def _fill(self, plan: RoundPlan, number: int, matrix: int, directions: int) -> None:
        """Compute the blocks of a round."""
        count = plan.block_count(number)
        buffer = self.buffer
        self.launcher.launch(
            self.program,
            "fill_round",
            min(count, self.device.resident_blocks),
            (
                *(matrix, buffer("costs", self.costs.nbytes), np.uint32(number)),
                *(np.uint32(plan.first_strip(number)), np.uint32(count)),
                *(directions, buffer("score", 4)),
            ),
        )

    def _score(self) -> int:
        score = np.empty(1, dtype=np.int32)
        self.stream.copy_out(score, self.buffer("score", 4))
        self.stream.synchronize()
        return int(score[0])


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
        """Return the number of words of a round's directions."""
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
    """Write the operations of the best path through a matrix; return their number.

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
