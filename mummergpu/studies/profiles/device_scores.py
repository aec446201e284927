"""Scores proteins on a device under any policy, and times the kernels."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, BlockShape, Device, Mark, Program
from mummergpu.cuda.kernel_cache import KernelCache, Programs
from mummergpu.cuda.program import BLOCK_THREADS, WARP_LANES, ProgramSource
from mummergpu.errors import OptionError
from mummergpu.hmm import tile_filter
from mummergpu.hmm.device_work import items_of, rounds_of
from mummergpu.hmm.filter_programs import (
    SEQUENCE_PROGRAM,
    WORD_RESIDUES,
    RowProgram,
    byte_table,
    quad_table,
    word_floor,
    word_overflow,
    word_table,
)
from mummergpu.hmm.filter_variants import (
    CONSTANT_BYTES,
    TILE_THREADS,
    WORD_AGAIN,
    RowPolicy,
    ThreadPolicy,
    block_shape,
    border_rows,
    constant_words,
    node_emissions,
    node_steps,
    row_bytes,
    row_stride,
    special_steps,
    thread_program,
    tile_blocks,
    tile_count,
    tile_steps,
    tile_table,
)
from mummergpu.hmm.filters import lengths_up_to
from mummergpu.hmm.tables import word_moves
from mummergpu.runtime.arrays import Int64Array
from mummergpu.studies.profiles.data import ProfileData
from mummergpu.studies.profiles.policies import DevicePolicy

AGAIN: Final = RowPolicy()
"""Compares the proteins that tiles leave: Viterbi with a warp a sequence, as in searches."""


class ProteinLayout(NamedTuple):
    """Proteins on the device in some order, packed or interleaved: the kernels' ``Sequences``."""

    addresses: tuple[int, int, int]
    order: Int64Array


class Launch(NamedTuple):
    """The kernel that a run launches, and its arguments besides the proteins."""

    program: Program
    kernel: str
    blocks: int
    arguments: tuple[Any, ...]
    shape: BlockShape


class Scored(NamedTuple):
    """The results of a run: a score for each protein as read, and the milliseconds by kernel.

    `again` is the number of proteins that tiles left to another filter.
    """

    scores: Int64Array
    milliseconds: dict[str, float]
    again: int


class DeviceScores:
    """A profile and proteins on a device, which is current while this is used.

    The data of a policy is uploaded before kernels are timed.
    """

    def __init__(self, device: Device, cache: KernelCache, data: ProfileData) -> None:
        self._device = device
        self.programs = Programs(device, cache)
        self._data = data
        self._stack = ExitStack()
        self._stream = device.new_stream()
        self._stack.callback(self._stream.free)
        self._own = ExitStack()
        self._stack.callback(lambda: self._own.close())
        self._layouts: dict[str, ProteinLayout] = {}
        longest = data.longest
        self._count = data.sizes.size
        self._word_moves = self._upload(word_moves(longest).astype(np.int32))
        moves = lengths_up_to(longest).move[: longest + 1]
        self._byte_moves = self._upload(moves.astype(np.int32))
        # Of SSV, every cell is of interest.
        self._least_cells = self._upload(np.zeros(longest + 1, dtype=np.uint8))
        costs = [data.filter.bytes.entry, data.filter.bytes.bias]
        self._byte_costs = self._upload(np.array(costs, dtype=np.uint32))
        words = data.filter.words
        self._lowest_move = int(word_moves(longest)[-1])
        limits = [word_floor(words) + self._lowest_move, word_overflow(words)]
        self._word_limits = self._upload(np.array(limits, dtype=np.int32))
        self._scores = self._memory(8 * self._count)
        self._ticket = self._memory(8)
        self._numbers = self._upload(np.arange(self._count, dtype=np.uint32))
        self._again: tuple[Launch, int, int] | None = None

    def close(self) -> None:
        """Free all memory."""
        self._stack.close()

    def program_of(self, policy: DevicePolicy) -> ProgramSource | None:
        """Return the program of a policy; None if the profile does not fit it."""
        nodes = self._data.nodes
        if isinstance(policy, ThreadPolicy):
            fits = block_shape(policy, nodes).shared_bytes + 1024 <= self._device.shared_bytes
            return thread_program(policy, nodes) if fits and _constants_fit(policy, nodes) else None
        found = self._row_program(policy)
        return None if found is None else found.source

    def _row_program(self, policy: RowPolicy) -> RowProgram | None:
        return policy.program(self._data.nodes, self._device.shared_bytes - 1024)

    def prepare(self, policy: DevicePolicy) -> _Prepared:
        """Upload the data of a policy; that of the last one is freed."""
        self._own.close()
        program = self.programs.load(self._needed(policy))
        if isinstance(policy, ThreadPolicy):
            layout = self.layout(policy.sequences)
            if policy.is_tiled:
                launch = self._tiles(policy, program, layout)
                return _Prepared("V", layout, launch, program)
            return _Prepared("V", layout, self._rows(policy, program, layout), program)
        layout = self.layout("p")
        return _Prepared(policy.filter, layout, self._groups(policy, program, layout), program)

    def run(self, prepared: _Prepared) -> Scored:
        """Score all proteins once."""
        stream = self._stream
        stream.fill_zero(self._ticket, 8)
        marks: list[tuple[str, Mark, Mark]] = []
        self._time(prepared.launch, marks)
        found = self._fetch(self._count, prepared.kind)
        is_tiled = prepared.launch.kernel == tile_filter.KERNEL
        again = np.nonzero(found == WORD_AGAIN)[0] if is_tiled else found[:0]
        if again.size:
            found[again] = self._compare_again(prepared.layout, again, marks)
        scores = np.empty(self._count, dtype=np.int64)
        scores[prepared.layout.order] = found
        milliseconds = {name: after.milliseconds_since(before) for name, before, after in marks}
        return Scored(scores, milliseconds, int(again.size))

    def _time(self, launch: Launch, marks: list[tuple[str, Mark, Mark]]) -> None:
        before = self._stream.mark()
        self._stream.launch(
            launch.program, launch.kernel, launch.blocks, launch.arguments, launch.shape
        )
        marks.append((launch.kernel, before, self._stream.mark()))

    def _fetch(self, count: int, kind: str = "V") -> Int64Array:
        found: AnyArray = np.empty(count, dtype=np.int64 if kind == "S" else np.int32)
        self._stream.copy_out(found, self._scores)
        self._stream.synchronize()
        if kind == "S":
            # Sequences come in any order, with their cells in the lowest bits.
            found = np.sort(found) & 255
        return found.astype(np.int64)

    def _compare_again(
        self, layout: ProteinLayout, again: Int64Array, marks: list[tuple[str, Mark, Mark]]
    ) -> Int64Array:
        """Compare some proteins, as numbered in a layout, with a warp each."""
        # Rows read packed proteins, of which the first of a warp is the longest.
        packed = self.layout("p")
        places = np.empty(self._count, dtype=np.int64)
        places[packed.order] = np.arange(self._count)
        own = places[layout.order[again]]
        order = np.argsort(own)
        program = self.programs.load(self._needed(AGAIN))
        with ExitStack() as stack:
            first, lengths = (
                self._upload(array[own[order]], stack) for array in self._packed_places
            )
            addresses = (packed.addresses[0], first, lengths)
            self._stream.fill_zero(self._ticket, 8)
            launch = self._groups(AGAIN, program, ProteinLayout(addresses, own[order]), stack)
            self._time(launch, marks)
            found = np.empty(own.size, dtype=np.int64)
            found[order] = self._fetch(own.size)
        return found

    def _needed(self, policy: DevicePolicy) -> ProgramSource:
        source = self.program_of(policy)
        if source is None:
            raise OptionError("policies", f"'{policy.code}' does not suit {self._data.nodes} nodes")
        return source

    def layout(self, kind: str) -> ProteinLayout:
        """Return the proteins as `ThreadPolicy.sequences` says; ``p``: sorted, but packed."""
        if kind not in self._layouts:
            self._layouts[kind] = self._made_layout(kind)
        return self._layouts[kind]

    def _made_layout(self, kind: str) -> ProteinLayout:
        sizes = self._data.sizes
        order = np.argsort(-sizes, kind="stable") if kind in "sp" else np.arange(self._count)
        own = sizes[order]
        counts = -(-own // WORD_RESIDUES)
        ends = np.cumsum(counts)
        firsts = (ends - counts).astype(np.uint32)
        lengths = own.astype(np.uint32)
        packed = self._pack(order, firsts, lengths, int(ends[-1]))
        if kind in "rp":
            if kind == "p":
                self._packed_places = (firsts, lengths)
            return ProteinLayout((packed, self._upload(firsts), self._upload(lengths)), order)
        words = np.empty(int(ends[-1]), dtype=np.uint64)
        self._stream.copy_out(words.view(np.uint8), packed)
        self._stream.synchronize()
        groups = -(-self._count // WARP_LANES)
        group_counts = np.zeros(groups * WARP_LANES, dtype=np.int64)
        group_counts[: self._count] = counts
        longest = group_counts.reshape(groups, WARP_LANES).max(axis=1)
        group_firsts = WARP_LANES * (np.cumsum(longest) - longest)
        places = np.arange(self._count)
        starts = group_firsts[places // WARP_LANES] + places % WARP_LANES
        interleaved = np.zeros(WARP_LANES * int(longest.sum()), dtype=np.uint64)
        within = np.arange(words.size) - np.repeat(ends - counts, counts)
        interleaved[np.repeat(starts, counts) + WARP_LANES * within] = words
        address = self._upload(interleaved)
        return ProteinLayout(
            (address, self._upload(starts.astype(np.uint32)), self._upload(lengths)), order
        )

    def _pack(self, order: Int64Array, firsts: AnyArray, lengths: AnyArray, words: int) -> int:
        """Pack proteins on the device, as searches do."""
        block = self._data.block
        packed = self._memory(WORD_RESIDUES * words)
        with ExitStack() as stack:
            codes = self._upload(block.codes, stack)
            begins = self._upload(block.offsets[order].astype(np.uint64), stack)
            own = packed, self._upload(firsts, stack), self._upload(lengths, stack)
            program = self.programs.load(SEQUENCE_PROGRAM)
            blocks = min(-(-order.size // 8), 4 * self._device.resident_blocks)
            arguments = (codes, begins, *own, order.size)
            self._stream.launch(program, "pack_sequences", blocks, arguments)
            self._stream.synchronize()
        return packed

    def _rows(self, policy: ThreadPolicy, program: Program, layout: ProteinLayout) -> Launch:
        words, nodes = self._data.filter.words, self._data.nodes
        steps, special = node_steps(words), special_steps()
        if "c" in (policy.steps, policy.special):
            self._write_constants(program, steps, special)
        memory = row_bytes(policy, nodes, self._count)
        shape = block_shape(policy, nodes)
        emissions = node_emissions(words, policy.emissions == "t")
        arguments = (
            *(*layout.addresses, self._count, nodes),
            *(self._for_policy(one) for one in (steps, emissions, special)),
            self._word_moves,
            self._memory(max(memory, 1), self._own),
            row_stride(policy, self._count),
            self._scores,
        )
        blocks = -(-self._count // shape.threads)
        return Launch(program, ROWS, blocks, arguments, shape)

    def _tiles(self, policy: ThreadPolicy, program: Program, layout: ProteinLayout) -> Launch:
        words, tiles = self._data.filter.words, tile_count(self._data.nodes)
        if policy.steps == "c":
            self._write_constants(program, tile_steps(words, tiles), special_steps())
        items = items_of(np.zeros(self._count, dtype=np.int64), 2 * TILE_THREADS)
        blocks = tile_blocks(items.size, tile_filter.multiprocessors(self._device))
        table = tile_table(words, tiles, policy.emissions == "t")
        rows = border_rows(self._data.longest)
        borders = self._memory(8 * rows * blocks * TILE_THREADS, self._own)
        arguments = (
            *(*layout.addresses, self._numbers, self._for_policy(items.view(np.uint32))),
            *(items.size, self._for_policy(table), table.size // 4, tiles, self._word_limits),
            *(self._word_moves, self._ticket, self._scores, borders),
        )
        shape = block_shape(policy, self._data.nodes)
        return Launch(program, tile_filter.KERNEL, blocks, arguments, shape)

    def _groups(
        self,
        policy: RowPolicy,
        program: Program,
        layout: ProteinLayout,
        stack: ExitStack | None = None,
    ) -> Launch:
        found = self._row_program(policy)
        assert found is not None
        filter, stack = self._data.filter, stack or self._own
        row, threads, count = policy.row(self._data.nodes), found.shape.threads, layout.order.size
        is_viterbi = policy.filter == "V"
        byte_rows = quad_table if policy.scores == "b" else byte_table
        table = word_table(filter.words, row) if is_viterbi else byte_rows(filter.bytes, row)
        tables = self._upload(table, stack), table.size // 4
        resident = max(self._device.resident_blocks * BLOCK_THREADS // threads, 1)
        at_once = threads // policy.lanes
        size = at_once * rounds_of(count, resident, at_once)
        items = items_of(np.zeros(count, dtype=np.int64), size)
        arguments: tuple[Any, ...]
        if policy.filter == "S":
            cells = self._least_cells, self._data.longest + 1, 1, 0, size
            arguments = count, *tables, *cells, self._ticket, self._scores, self._ticket + 4
        else:
            own = self._numbers, self._upload(items.view(np.uint32), stack), items.size
            moves = self._word_moves if is_viterbi else self._byte_moves
            limits = self._word_limits if is_viterbi else self._byte_costs
            arguments = *own, *tables, limits, moves, self._ticket, self._scores
        return Launch(
            *(program, GROUPS[policy.filter], min(items.size, resident)),
            (*layout.addresses, *arguments),
            found.shape,
        )

    def _write_constants(self, program: Program, steps: AnyArray, special: AnyArray) -> None:
        words = constant_words(self._data.nodes)
        values = np.zeros(words, dtype=np.uint32)
        values[: steps.size] = steps
        values[words - special.size :] = special
        self._stream.copy_in(program.symbol("constant_steps"), values.view(np.uint8))
        self._stream.synchronize()

    def _for_policy(self, array: AnyArray) -> int:
        return self._upload(array, self._own)

    def _upload(self, array: AnyArray, stack: ExitStack | None = None) -> int:
        address = self._memory(max(array.nbytes, 1), stack)
        self._stream.copy_in(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        self._stream.synchronize()
        return address

    def _memory(self, size: int, stack: ExitStack | None = None) -> int:
        buffer = self._device.allocate(size)
        (stack or self._stack).callback(buffer.free)
        return buffer.address


ROWS: Final = "score_in_rows"
GROUPS: Final = {"S": "find_cells", "M": "score_passes", "V": "score_paths"}


class _Prepared(NamedTuple):
    """A policy that is ready to run."""

    kind: str
    layout: ProteinLayout
    launch: Launch
    program: Program


def _constants_fit(policy: ThreadPolicy, nodes: int) -> bool:
    needs = "c" in (policy.steps, policy.special)
    return not needs or 4 * constant_words(nodes) <= CONSTANT_BYTES
