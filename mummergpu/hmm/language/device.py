"""Runs chains on a device: the sums and the best paths of many sequences at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.device import Device, Program
from mummergpu.cuda.kernel_cache import KernelCache
from mummergpu.cuda.launcher import Launcher
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.sources import read_sources
from mummergpu.cuda.workspace import Workspace
from mummergpu.hmm.language.cuda_text import chain_program
from mummergpu.hmm.language.lanes import SymbolBlock, offsets_of_counts
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.hmm.language.tables import log_of_units
from mummergpu.hmm.language.traces import Runs, StateNames, trace_tables
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.stats import Stats

STAGE: Final = "model_evaluation"
WALK: Final = "walk_chain"

_FLOAT_RANGE: Final = 70.0
"""The natural logarithms that floats have on each side of 1, and some to spare."""
_DOUBLE_RANGE: Final = 650.0

_MOST_COPIERS: Final = 8
"""More threads do not copy faster."""

_Key = tuple[Shape, bool, bool]


class PlacedBlock(NamedTuple):
    """A block whose symbols are on the device, at an address."""

    block: SymbolBlock
    codes: int


class DevicePaths(NamedTuple):
    """The scores of best paths, which of the sequences have one, and the runs of these."""

    scores: Float64Array
    chosen: Int64Array
    runs: Runs | None


class _Ran(NamedTuple):
    """What a launch has found, and where on the device what walks its paths is."""

    totals: Int64Array
    offsets: Int64Array
    program: Program
    places: tuple[int, int, int, int]
    """Of the first rows, the lengths, the last nodes, and the bits."""


class DeviceChains:
    """A stream of a device with memory of `memory` bytes; one thread uses it at a time.

    Parameters
    ----------
    double : bool
        Whether sums are computed with 64 bits instead of 32; best paths are exact.
    """

    def __init__(
        self, device: Device, cache: KernelCache, memory: int, stats: Stats, double: bool
    ) -> None:
        self._device, self._cache, self._double = device, cache, double
        self._stats = stats
        self._stream = device.new_stream()
        self._workspace = Workspace(device, memory)
        self._copiers = ThreadPoolExecutor(min(os.cpu_count() or 1, _MOST_COPIERS))
        self._staging = Staging(device, self._stream, copiers=self._copiers)
        self._launcher = Launcher(device, self._stream, self._workspace, stats, STAGE)
        self._programs: dict[_Key, Program] = {}
        self._sources = read_sources()

    def close(self) -> None:
        """Free the stream and all memory."""
        self._copiers.shutdown()
        self._staging.free()
        self._workspace.free()
        self._stream.free()

    def place(self, block: SymbolBlock) -> PlacedBlock:
        """Copy the symbols of a block, in place of those of the last one."""
        return PlacedBlock(block, self._upload("codes", block.codes))

    def sums(
        self, programs: ChainPrograms, placed: PlacedBlock, sequences: Int64Array
    ) -> Float64Array:
        """Return the logarithms of the sums over all paths of sequences that are not empty."""
        tables = programs.sums
        kind = np.float64 if self._double else np.float32
        limit = _DOUBLE_RANGE if self._double else _FLOAT_RANGE
        chunk = max(1, int(tables.chunk * limit / _DOUBLE_RANGE))
        numbers = [one.astype(kind) for one in (tables.numbers, tables.emissions, tables.end)]
        ran = self._run(programs, numbers, chunk, placed, sequences, True, False)
        self._launcher.report()
        with np.errstate(divide="ignore"):
            found: Float64Array = np.log(ran.totals.view(np.float64)) + ran.offsets * np.log(2)
        return found

    def best(
        self,
        programs: ChainPrograms,
        placed: PlacedBlock,
        sequences: Int64Array,
        names: StateNames | None,
    ) -> DevicePaths:
        """Return the best paths of sequences that are not empty; with `names`, their runs too."""
        tables = programs.best
        numbers = [tables.numbers, tables.emissions, tables.end]
        traces = names is not None
        ran = self._run(programs, numbers, tables.chunk, placed, sequences, False, traces)
        scores = log_of_units(ran.totals, ran.offsets)
        chosen = np.flatnonzero(~np.isneginf(scores))
        runs = None if names is None else self._walk(programs, ran, chosen, names)
        self._launcher.report()
        return DevicePaths(scores, chosen, runs)

    def _walk(
        self, programs: ChainPrograms, ran: _Ran, chosen: Int64Array, names: StateNames
    ) -> Runs:
        """Return the runs of the chosen paths: they are counted, and then written."""
        workspace, count = self._workspace, chosen.size
        tables = trace_tables(programs.chain)
        columns = (tables.words, tables.shifts, tables.masks, tables.first_steps)
        walked = (
            self._upload("trace nodes", np.stack(columns, axis=1).astype(np.uint32)),
            self._upload("trace sources", tables.sources.astype(np.uint32)),
            self._upload("first visits", names.offsets.astype(np.uint32)),
            self._upload("step visits", names.visits.astype(np.uint32)),
        )
        steps = len(programs.chain.shape.steps)
        common = (*ran.places, self._upload("walked", chosen), count, steps, *walked)
        counts = workspace.buffer("run ends", 8 * max(1, count))
        self._launcher.launch_on(ran.program, WALK, count, (*common, counts, 0, 0))
        offsets = offsets_of_counts(self._fetch(counts, count, np.int64))
        total = int(offsets[-1])
        visits = workspace.buffer("run visits", 4 * max(1, total))
        lengths = workspace.buffer("run lengths", 8 * max(1, total))
        ends = self._upload("run ends", offsets[1:])
        self._launcher.launch_on(ran.program, WALK, count, (*common, ends, visits, lengths))
        return Runs(
            self._fetch(visits, total, np.uint32).astype(np.int64),
            self._fetch(lengths, total, np.int64),
            offsets,
        )

    def _program(self, shape: Shape, sums: bool, traces: bool) -> Program:
        key = (shape, sums, traces)
        if key not in self._programs:
            source = chain_program(shape, sums, sums and self._double, traces)
            image = self._cache.cubin(self._sources, source, self._device.architecture)
            self._programs[key] = self._device.load(image)
        return self._programs[key]

    def _upload(self, name: str, array: npt.NDArray[Any]) -> int:
        # Kernels load four symbols at once, and the last of them may be beyond the end.
        address = self._workspace.buffer(name, array.nbytes + 4)
        self._staging.copy_in(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return address

    def _fetch(self, address: int, count: int, kind: npt.DTypeLike) -> npt.NDArray[Any]:
        found = np.empty(count, dtype=kind)
        self._staging.copy_out(found, address)
        return found

    def _run(
        self,
        programs: ChainPrograms,
        numbers: list[npt.NDArray[Any]],
        chunk: int,
        placed: PlacedBlock,
        sequences: Int64Array,
        sums: bool,
        traces: bool,
    ) -> _Ran:
        """Run the kernel on some sequences, and fetch what it finds of each."""
        program = self._program(programs.chain.shape, sums, traces)
        workspace, count = self._workspace, sequences.size
        begins, lengths = placed.block.offsets[sequences], placed.block.lengths[sequences]
        # Rows are where bits are kept.
        first_rows = offsets_of_counts(lengths if traces else lengths[:0])
        own = programs.trace_bits
        rows = int(first_rows[-1]) if traces else 0
        bits = workspace.buffer("bits", max(1, rows * own.words * own.word_bits // 8))
        totals = workspace.buffer("totals", 8 * count)
        offsets = workspace.buffer("offsets", 8 * count)
        last = workspace.buffer("last", 8 * count)
        names = ("numbers", "emissions", "ends")
        length_place = self._upload("lengths", lengths)
        first_row_place = self._upload("first rows", first_rows)
        arguments = (
            placed.codes,
            self._upload("begins", begins),
            *(length_place, count),
            *(self._upload(name, one) for name, one in zip(names, numbers, strict=True)),
            *(chunk, totals, offsets, last, first_row_place, bits),
        )
        self._launcher.launch_on(program, "run_chain", count, arguments)
        found, taken = (self._fetch(address, count, np.int64) for address in (totals, offsets))
        return _Ran(found, taken, program, (first_row_place, length_place, last, bits))
