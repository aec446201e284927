"""Runs chains on a device: sums, best paths and posteriors of many sequences at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import Argument
from mummergpu.cuda.program import BLOCK_THREADS, WARP_LANES
from mummergpu.cuda.stream_worker import WAVES
from mummergpu.hmm.language.cuda_text import (
    SHARES_PROGRAM,
    DeviceKind,
    Keeps,
    chain_program,
    paths_program,
    wide_program,
)
from mummergpu.hmm.language.device_pieces import DeviceLongSequence
from mummergpu.hmm.language.device_runner import DeviceRunner, is_narrow, trace_bits
from mummergpu.hmm.language.lanes import SymbolBlock, is_every, offsets_of_counts
from mummergpu.hmm.language.pieces import LongSequence
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.hmm.language.tables import ChainTables
from mummergpu.hmm.language.traces import Runs, StateNames, trace_tables
from mummergpu.hmm.language.wide import block_shape, fits_block, wide_tables
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array

_MAX_SYMBOLS: Final = 1 << 31
_MIN_SYMBOLS: Final = 1 << 16
_LANE_NODES: Final = 4
"""About the nodes of a symbol that a lane processes when sums become probabilities."""


_NO_VISIT: Final = (1 << 32) - 2
"""Stands for the state of a symbol whose products from both ends are too small."""


class PlacedSymbols(NamedTuple):
    """A block whose symbols are on the device, at an address."""

    block: SymbolBlock
    codes: int


class DevicePaths(NamedTuple):
    """The scores of best paths, which of the sequences have one, and the runs of these.

    Scores are NaN where a path has become too bad compared with others.
    """

    scores: Float64Array
    chosen: Int64Array
    runs: Runs | None


class DevicePosteriors(NamedTuple):
    """The scores of sequences, and the runs of the likeliest states or the rows of a table.

    Scores are NaN where the states of a symbol have no common scale.
    """

    scores: Float64Array
    runs: Runs | None
    table: Float64Array | None


class Items(NamedTuple):
    """The number of sequences of a launch, and the addresses of their arrays on the device.

    The data kept of them has `row_count` rows.
    """

    sequences: int
    codes: int
    begins: int
    stops: int
    first_rows: int
    last: int
    row_count: int


class DeviceChains(DeviceRunner):
    """Runs chains on a stream of a device; one thread uses it at a time.

    Best paths are exact; posteriors, and sums of chains of many states, have 64 bits.
    """

    def splits(self, shape: Shape) -> bool:
        """Return whether long sequences are computed in pieces."""
        return is_narrow(shape)

    def long_sequence(self, *given: Any) -> LongSequence:
        """Return a sequence that is computed in pieces; the arguments are `LongSequence`'s."""
        return DeviceLongSequence(self, *given)

    def supports(self, shape: Shape) -> bool:
        """Return whether the device has room for the states of a chain."""
        return is_narrow(shape) or fits_block(shape, self.device.shared_bytes)

    def symbols_at_once(self, block: SymbolBlock, symbol_bytes: int) -> int:
        """Return the symbols of a block that fit the memory, if each needs `symbol_bytes`."""
        left = (self.memory - block.codes.nbytes) // 2
        return max(_MIN_SYMBOLS, min(_MAX_SYMBOLS, left // max(1, symbol_bytes)))

    def place(self, block: SymbolBlock) -> PlacedSymbols:
        """Copy the symbols of a block, in place of those of the last one."""
        return PlacedSymbols(block, self.upload_codes(block.codes))

    def sums(
        self, programs: ChainPrograms, placed: PlacedSymbols, sequences: Int64Array
    ) -> Float64Array:
        """Return the logarithms of the sums over all paths of sequences that are not empty.

        They are NaN where a sum has become too small compared with others.
        """
        is_double = self.needs_double(programs.sums) or not is_narrow(programs.chain.shape)
        kind = DeviceKind(True, is_double)
        items = self._items(placed, sequences, False)
        scores = self._run(programs, kind, items, programs.sums.chunk)
        self.launcher.report()
        return scores

    def best(
        self,
        programs: ChainPrograms,
        placed: PlacedSymbols,
        sequences: Int64Array,
        names: StateNames | None,
    ) -> DevicePaths:
        """Return the best paths of sequences that are not empty; with `names`, their runs too."""
        items = self._items(placed, sequences, names is not None)
        shape = programs.chain.shape
        bits, kept = trace_bits(shape), 0
        if names is not None:
            size = items.row_count * bits.words * bits.word_bits // 8
            kept = self.buffer("kept", size)
        kind = DeviceKind(False, False, Keeps.TRACES if kept else Keeps.NOTHING)
        scores = self._run(programs, kind, items, programs.best.chunk, kept)
        chosen = np.flatnonzero(np.isfinite(scores))
        runs = None
        if names is not None:
            trace = self.trace_arguments(shape, trace_tables(programs.chain, bits), names)
            places = (0, 0, items.first_rows, items.last, kept)
            common = (*places, self.upload("walked", chosen), chosen.size, *trace, 0)
            program = self.programs.load(paths_program(bits.word_bits))

            def walk(ends: int, visits: int, lengths: int) -> None:
                arguments = (*common, ends, 0, 0, visits, lengths)
                self.launcher.launch_on(program, "walk_chain", chosen.size, arguments)

            runs = self._listed(walk, chosen.size)
        self.launcher.report()
        return DevicePaths(scores, chosen, runs)

    def posteriors(
        self,
        both: tuple[ChainPrograms, ChainPrograms],
        placed: PlacedSymbols,
        sequences: Int64Array,
        states: Int64Array,
        names: Int64Array | None,
    ) -> DevicePosteriors:
        """Return the results of chains from both ends, for sequences that are not empty.

        `states` are those of the nodes that emit, and `names` the visits that these states stand
        for in runs; without them there is a table.
        """
        items = self._items(placed, sequences, True)
        rows, emitting, count = items.row_count, states.size, int(states.max()) + 1
        kept = self.buffer("kept", 8 * rows * emitting)
        # Each column is scaled: a product of both ends has the range of one number only.
        scores = self._run(both[0], DeviceKind(True, True, Keeps.COLUMNS), items, 1, kept)
        back = self._run(both[1], DeviceKind(True, True, Keeps.SHARES), items, 1, kept)
        scores[np.isnan(back) & ~np.isneginf(scores)] = np.nan
        firsts = offsets_of_counts(np.bincount(states, minlength=count))
        members = np.argsort(states, kind="stable")
        places = [
            self.upload(name, one.astype(np.uint32))
            for name, one in (("state nodes", firsts), ("nodes by state", members))
        ]
        program = self.programs.load(SHARES_PROGRAM)
        lanes = 1
        while lanes < WARP_LANES and lanes * _LANE_NODES < emitting:
            lanes *= 2
        common = (kept, rows, emitting, count, lanes, *places)
        if names is None:
            table = self.buffer("table", 8 * count * rows)
            self.launcher.launch_on(program, "finish_shares", rows * lanes, (*common, table, 0))
            found: Float64Array = self.fetch(table, rows * count, np.float64)
            self.launcher.report()
            offsets = offsets_of_counts(placed.block.lengths[sequences])
            found = found.reshape(rows, count)
            return DevicePosteriors(_known(scores, np.isnan(found[:, 0]), offsets), None, found)
        likeliest = self.buffer("likeliest", 4 * rows)
        self.launcher.launch_on(program, "finish_shares", rows * lanes, (*common, 0, likeliest))
        numbers = self.upload("walked", np.arange(items.sequences))
        shown = self.upload("state visits", np.append(names, _NO_VISIT).astype(np.uint32))
        listed = (items.first_rows, numbers, items.sequences, likeliest, shown)

        def walk(*written: int) -> None:
            self.launcher.launch_on(program, "list_states", items.sequences, (*listed, *written))

        runs = self._listed(walk, items.sequences)
        self.launcher.report()
        return DevicePosteriors(_known(scores, runs.visits == _NO_VISIT, runs.offsets), runs, None)

    def _listed(self, walk: Any, count: int) -> Runs:
        """Return runs of paths that are counted, and then written."""
        counts = self.buffer("run ends", 8 * count)
        walk(counts, 0, 0)
        offsets = offsets_of_counts(self.fetch(counts, count, np.int64))
        ends = self.upload("run ends", offsets[1:])
        return self.written_runs(offsets, lambda *places: walk(ends, *places))

    def _items(self, placed: PlacedSymbols, sequences: Int64Array, keeps: bool) -> Items:
        """Return the items of a launch on some sequences; rows are where something is kept."""
        count, offsets = sequences.size, placed.block.offsets
        last = self.buffer("last", 8 * count)
        if is_every(sequences, offsets.size - 1):
            # All sequences in their order: where one begins the one before ends, and so do rows.
            bounds = self.upload("begins", offsets)
            row_count = int(offsets[-1]) if keeps else 0
            return Items(count, placed.codes, bounds, bounds + 8, bounds, last, row_count)
        begins, stops = offsets[sequences], offsets[sequences + 1]
        rows = offsets_of_counts(stops - begins if keeps else begins[:0])
        return Items(
            *(count, placed.codes),
            *(self.upload("begins", begins), self.upload("stops", stops)),
            *(self.upload("first rows", rows), last, int(rows[-1])),
        )

    def _run(
        self, programs: ChainPrograms, kind: DeviceKind, items: Items, chunk: int, kept: int = 0
    ) -> Float64Array:
        """Run the kernel on some sequences, and return their scores."""
        shape, count = programs.chain.shape, items.sequences
        tables = programs.sums if kind.sums else programs.best
        results = self.buffer("results", 8 * count)
        sequences = (items.codes, items.begins, items.stops, count)
        behind = (items.last, items.first_rows, kept)
        if is_narrow(shape):
            numbers, chunk = self.numbers(tables, kind, chunk)
            arguments = (*sequences, *numbers, chunk, results, 0, *behind, 0, 0)
            program = self.programs.load(chain_program(shape, kind))
            self.launcher.launch_on(program, "run_chain", count, arguments)
        else:
            self._run_wide(shape, kind, tables, sequences, (chunk, results, *behind))
        scores: Float64Array = self.fetch(results, count, np.float64)
        return scores

    def _run_wide(
        self,
        shape: Shape,
        kind: DeviceKind,
        tables: ChainTables,
        sequences: Sequence[Argument],
        behind: Sequence[Argument],
    ) -> None:
        chain = wide_tables(shape).arguments(shape, tables, self.upload)
        block = block_shape(shape)
        at_once = WAVES * self.device.resident_blocks * (BLOCK_THREADS // block.threads)
        program = self.programs.load(wide_program(kind))
        arguments = (*sequences, *chain, *behind)
        blocks = min(int(sequences[3]), at_once)
        self.launcher.launch(program, "run_wide_chain", blocks, arguments, block)


def _known(scores: Float64Array, lost: BoolArray, offsets: Int64Array) -> Float64Array:
    """Return scores, but NaN for possible sequences of which a part is lost."""
    is_lost = np.logical_or.reduceat(lost, offsets[:-1]) & ~np.isneginf(scores)
    return np.where(is_lost, np.nan, scores)
