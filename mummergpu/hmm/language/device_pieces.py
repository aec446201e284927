"""Long sequences on a device: a thread a piece, and each state that it may begin in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mummergpu.cuda.device import Argument, Program
from mummergpu.hmm.language.cuda_text import DeviceKind, Keeps, chain_program, paths_program
from mummergpu.hmm.language.device_runner import DeviceRunner
from mummergpu.hmm.language.lanes import offsets_of_counts
from mummergpu.hmm.language.pieces import Borders, LongSequence, Operators
from mummergpu.hmm.language.processor_text import LOST
from mummergpu.hmm.language.tables import Numbers
from mummergpu.hmm.language.traces import (
    NodeVisits,
    Runs,
    StateNames,
    Stretches,
    add_joined,
    run_places,
)
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import jit

_FIRST: Final = 1
_LAST: Final = 2
_JOINS: Final = 4
"""Flags of a piece for `walk_chain`: a path begins or ends with it, or its first run goes on."""


class DeviceLongSequence(LongSequence):
    """A sequence whose pieces a device computes."""

    piece_symbols = 1 << 10

    def __init__(self, device: DeviceRunner, *given: Any) -> None:
        super().__init__(*given)
        self._device = device
        self._address = device.upload_codes(self._codes)
        size = self._codes.size
        self._bounds = np.append(np.arange(0, size, self.piece_symbols), size)

    def _computed(self) -> tuple[Borders, Operators]:
        """Return the values after the first piece, and the operators of the others."""
        units = self._units()[:, :-1]
        count, others = len(units), self._bounds.size - 2
        # The places of a piece are neighbours: their threads read the same symbols.
        pieces = np.append(0, 1 + np.repeat(np.arange(others), count))
        sources = np.append(-1, np.tile(np.arange(count), others))
        double = self._sums and self._device.needs_double(self._tables)
        kind = DeviceKind(self._sums, double, Keeps.NOTHING, True, self._pair_symbols)
        values, offsets = self._passed_on(kind, pieces, sources, units)
        self._device.launcher.report()
        values = values.astype(units.dtype)
        shape = (others, count)
        operators = Operators(values[1:].reshape(*shape, -1), offsets[1:].reshape(shape))
        return Borders(values[:1], offsets[:1]), operators

    def _passed_on(
        self,
        kind: DeviceKind,
        pieces: Int64Array,
        sources: Int64Array,
        given: Numbers,
        kept: int = 0,
    ) -> tuple[Numbers, Int64Array]:
        """Run pieces from given values, or from the start (-1); return the values after them."""
        device, count, nodes = self._device, pieces.size, self._shape.nodes
        number = np.int64 if not kind.sums else np.float64 if kind.double else np.float32
        size = np.dtype(number).itemsize
        results = device.buffer("results", size * count * nodes)
        offsets = device.buffer("offsets", 8 * count)
        numbers, chunk = device.numbers(self._tables, kind, self._tables.chunk)
        begins = device.upload("begins", self._bounds[pieces])
        stops = device.upload("stops", self._bounds[pieces + 1])
        arguments = (
            *(self._address, begins, stops, count),
            *(*numbers, chunk, results, offsets, 0, begins, kept),
            *(device.upload("given", given.astype(number)), device.upload("sources", sources)),
        )
        program = device.programs.load(chain_program(self._shape, kind))
        device.launcher.launch_on(program, "run_chain", count, arguments)
        values = device.fetch(results, count * nodes, number).reshape(count, nodes)
        return values, device.fetch(offsets, count, np.int64)

    def runs(self, names: StateNames, end: int) -> Runs:
        """Return the best path that ends in a state, as runs."""
        return self._walked(names, None, end)

    def node_runs(self, visits: NodeVisits, end: int) -> Runs:
        """Return the best path that ends in a node of a chain with `has_node_paths`, as runs."""
        return self._walked(None, visits, end)

    def _walked(self, names: StateNames | None, visits: NodeVisits | None, end: int) -> Runs:
        device, count, nodes = self._device, self._bounds.size - 1, self._shape.nodes
        bits = self._programs.trace_bits
        size = self._codes.size * bits.words * bits.word_bits // 8
        kept = device.buffer("kept", size)
        kind = DeviceKind(False, False, Keeps.TRACES, True, self._pair_symbols)
        numbers = np.arange(count)
        _, offsets = self._passed_on(kind, numbers, numbers - 1, self._borders.values, kept)
        self.is_lost = bool((offsets > LOST // 2).any())
        begins = device.upload("begins", self._bounds)
        tables = self._programs.trace_tables
        trace = device.trace_arguments(self._shape, tables, names, visits)
        program = device.programs.load(paths_program(bits.word_bits))
        before = device.buffer("before", 4 * count * nodes)
        arguments = (begins, kept, count, nodes, *trace, before)
        # The node after a piece is known only after the later pieces have been walked: so all
        # pieces are walked at once, from each node.
        device.launcher.launch_on(program, "cross_pieces", count * nodes, arguments)
        crossed = device.fetch(before, count * nodes, np.uint32).reshape(count, nodes)
        last = device.upload("last", ends_of_pieces(crossed, end))
        walked = (self._address, begins, begins, last, kept, device.upload("walked", numbers))
        runs = self._listed(program, (*walked, count, *trace), count)
        device.launcher.report()
        return runs

    def _listed(self, program: Program, common: Sequence[Argument], count: int) -> Runs:
        """Return the runs of a path whose pieces are walked: counted, and then written."""
        device = self._device
        parts = np.zeros(count, dtype=np.uint32)
        parts[0] |= _FIRST
        parts[-1] |= _LAST

        def walk(*rest: int) -> None:
            flags = device.upload("parts", parts)
            device.launcher.launch_on(program, "walk_chain", count, (*common, flags, *rest))

        borders = device.buffer("borders", 8 * count)
        first_lengths = device.buffer("first lengths", 8 * count)
        ends = device.buffer("run ends", 8 * count)
        walk(ends, borders, first_lengths, 0, 0)
        run_counts = device.fetch(ends, count, np.int64)
        firsts, lasts = device.fetch(borders, 2 * count, np.uint32).reshape(count, 2).T
        places = run_places(Stretches(run_counts, firsts, lasts))
        ends = device.upload("run ends", places.firsts + run_counts)
        # A run across a border is written by the piece that it begins in, and its rest added later:
        # two threads may not write to one place.
        parts[places.joins] |= _JOINS
        offsets = offsets_of_counts(np.array([places.run_count]))
        runs = device.written_runs(
            offsets, lambda *written: walk(ends, borders, first_lengths, *written)
        )
        add_joined(runs, places, device.fetch(first_lengths, count, np.int64))
        return runs


def ends_of_pieces(before: UInt32Array, end: int) -> Int64Array:
    """Return the node after each piece of a path, from the node to which each piece leads back."""
    found = np.empty(len(before), dtype=np.int64)
    found[-1] = end
    _go_back(before, found)
    return found


@jit
def _go_back(before: UInt32Array, nodes: Int64Array) -> None:
    for piece in range(nodes.size - 1, 0, -1):
        nodes[piece - 1] = before[piece, nodes[piece]]
