"""The tables of chains of many states for ``kernels/chains/wide_chain.cu``.

The states lie in the memory of a block, which runs a sequence. Those that emit are computed side by
side, in slices of a warp's lanes. Each unit waits for the ones before it: a silent state, or one
that has many ways into it, whose ways all threads share; or a line of silent states, each of which
follows the one before, and which is scanned.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import BlockShape
from mummergpu.cuda.program import WARP_LANES
from mummergpu.hmm.language.processor_text import IMPOSSIBLE
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.hmm.language.tables import ChainTables, Numbers
from mummergpu.runtime.arrays import Int64Array, UInt32Array

_NO_NODE: Final = (1 << 32) - 1
_MIN_LINE: Final = 8
_MAX_LANE_WAYS: Final = 32
"""More ways into a state, and many more than others have, are shared by all threads."""
_MAX_WAYS: Final = 1 << 16
_WARP_NODES: Final = 256
"""About the number of states that a warp shares."""
_MAX_WARPS: Final = 8
_WARP_BYTES: Final = 32
"""The bytes that each possible warp shares with the others."""


class WideTables(NamedTuple):
    """A shape in slices and units; the kernel's `WideChain` describes the arrays.

    Attributes
    ----------
    lane_steps : ndarray of int64
        The step of each lane of the rows of slices; -1: none.
    unit_count, units_emitting : int
        The number of units, and of those that emit.
    """

    slice_rows: UInt32Array
    slice_nodes: UInt32Array
    sources: UInt32Array
    lane_steps: Int64Array
    units: UInt32Array
    members: UInt32Array
    step_sources: UInt32Array
    unit_count: int
    units_emitting: int

    def arguments(
        self, shape: Shape, tables: ChainTables, upload: Callable[[str, Numbers], int]
    ) -> list[int]:
        """Return the members of the kernel's `WideChain`; `upload` returns where an array is."""
        nothing = 0 if tables.numbers.dtype.kind == "f" else IMPOSSIBLE
        weights = np.append(tables.numbers, nothing)[self.lane_steps]
        by_symbol = tables.emissions[list(shape.emissions)].T
        return [
            upload("slice rows", self.slice_rows),
            upload("slice nodes", self.slice_nodes),
            upload("slice sources", self.sources),
            upload("slice weights", weights),
            self.slice_rows.size - 1,
            upload("units", self.units),
            upload("members", self.members),
            upload("step sources", self.step_sources),
            *(self.units_emitting, self.unit_count, shape.nodes, shape.emitting),
            upload("numbers", tables.numbers),
            upload("emissions", by_symbol),
            upload("ends", tables.end),
            len(shape.steps),
        ]


def block_shape(shape: Shape) -> BlockShape:
    """Return the threads of a block, and the memory that it needs."""
    warps = 1
    while warps < _MAX_WARPS and warps * _WARP_NODES < shape.nodes:
        warps *= 2
    return BlockShape(warps * WARP_LANES, 16 * shape.nodes + _WARP_BYTES * WARP_LANES)


def fits_block(shape: Shape, shared_bytes: int) -> bool:
    """Return whether blocks with some shared memory can run a shape."""
    ways = max((len(steps) for steps in shape.into()), default=0)
    return block_shape(shape).shared_bytes <= shared_bytes and ways < _MAX_WAYS


@lru_cache(maxsize=8)
def wide_tables(shape: Shape) -> WideTables:
    """Return the tables of a shape."""
    into, count = shape.into(), shape.emitting
    usual = _MAX_LANE_WAYS + 4 * len(shape.steps) // max(1, shape.nodes)
    hubs = [node for node in range(count) if len(into[node]) > usual]
    lanes = [node for node in range(count) if len(into[node]) <= usual]
    lanes += [_NO_NODE] * (-len(lanes) % WARP_LANES)
    # A slice has as many rows as its node with the most ways; the lanes of the others do nothing.
    rows, steps = [0], []
    for first in range(0, len(lanes), WARP_LANES):
        ways = [into[node] if node != _NO_NODE else [] for node in lanes[first:][:WARP_LANES]]
        longest = max(len(one) for one in ways)
        steps += [one[rank] if rank < len(one) else -1 for rank in range(longest) for one in ways]
        rows.append(rows[-1] + longest)
    # Hubs come first: they, too, emit from the column before, and wait for none of the lines.
    lines = [[hub] for hub in hubs] + _lines(shape, into)
    members: list[tuple[int, int, int, int]] = []
    units: list[tuple[int, int]] = []
    for line in lines:
        units.append((len(members), len(line)))
        for before, node in zip([_NO_NODE, *line], line, strict=False):
            sources = [shape.steps[step][0] for step in into[node]]
            link = sources.index(before) if before in sources else _NO_NODE
            members.append((node, into[node][0] if sources else 0, len(sources), link))
    step_sources = [source for source, _ in shape.steps] or [0]
    lane_steps = np.array(steps, dtype=np.int64)
    return WideTables(
        _numbers(rows),
        _numbers(lanes),
        _numbers(np.where(lane_steps < 0, 0, np.array(step_sources)[lane_steps])),
        lane_steps,
        _numbers(units),
        _numbers(members),
        _numbers(step_sources),
        len(units),
        len(hubs),
    )


def _numbers(values: Any) -> UInt32Array:
    # An array of nothing has no address.
    return np.array(values if len(values) else [0], dtype=np.uint32)


def _lines(shape: Shape, into: list[list[int]]) -> list[list[int]]:
    """Return the silent states in lines, each of which waits for the ones before it alone."""
    lines: list[list[int]] = []
    line_of: dict[int, int] = {}
    is_hub = [len(steps) > _MAX_LANE_WAYS for steps in into]
    for node in range(shape.emitting, shape.nodes):
        silent = [source for step in into[node] if (source := shape.steps[step][0]) in line_of]
        number = line_of[silent[-1]] if silent else -1
        # The other ways come from earlier lines.
        fits = number >= 0 and lines[number][-1] == silent[-1]
        fits = fits and all(line_of[source] < number for source in silent[:-1])
        if not fits or is_hub[node] or is_hub[silent[-1]]:
            number = len(lines)
            lines.append([])
        lines[number].append(node)
        line_of[node] = number
    found = []
    for line in lines:
        found += [line] if len(line) >= _MIN_LINE else [[node] for node in line]
    return found
