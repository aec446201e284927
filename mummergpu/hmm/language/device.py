"""Runs chains on a device: the sums and the best paths of many sequences at once."""

from __future__ import annotations

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
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.stats import Stats

STAGE: Final = "model_evaluation"

_FLOAT_RANGE: Final = 70.0
"""The natural logarithms that floats have on each side of 1, and some to spare."""
_DOUBLE_RANGE: Final = 650.0

_Key = tuple[Shape, bool, bool]


class DevicePaths(NamedTuple):
    """Best paths of sequences: their scores, last nodes, and the bits of `TraceBits` by row."""

    scores: Float64Array
    ends: Int64Array
    bits: Any
    first_rows: Int64Array


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
        self._staging = Staging(device, self._stream)
        self._launcher = Launcher(device, self._stream, self._workspace, stats, STAGE)
        self._programs: dict[_Key, Program] = {}
        self._sources = read_sources()

    def close(self) -> None:
        """Free the stream and all memory."""
        self._staging.free()
        self._workspace.free()
        self._stream.free()

    def sums(
        self, programs: ChainPrograms, block: SymbolBlock, sequences: Int64Array
    ) -> Float64Array:
        """Return the logarithms of the sums over all paths of sequences that are not empty."""
        tables = programs.sums
        kind = np.float64 if self._double else np.float32
        limit = _DOUBLE_RANGE if self._double else _FLOAT_RANGE
        chunk = max(1, int(tables.chunk * limit / _DOUBLE_RANGE))
        numbers = [one.astype(kind) for one in (tables.numbers, tables.emissions, tables.end)]
        totals, offsets, _, _ = self._run(programs, numbers, chunk, block, sequences, True, False)
        with np.errstate(divide="ignore"):
            found: Float64Array = np.log(totals.view(np.float64)) + offsets * np.log(2)
        return found

    def best(
        self, programs: ChainPrograms, block: SymbolBlock, sequences: Int64Array, traces: bool
    ) -> DevicePaths:
        """Return the best paths of sequences that are not empty."""
        tables = programs.best
        numbers = [tables.numbers, tables.emissions, tables.end]
        totals, offsets, last, bits = self._run(
            programs, numbers, tables.chunk, block, sequences, False, traces
        )
        lengths = block.offsets[sequences + 1] - block.offsets[sequences]
        return DevicePaths(
            log_of_units(totals, offsets), last, bits, offsets_of_counts(lengths)[:-1]
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
        block: SymbolBlock,
        sequences: Int64Array,
        sums: bool,
        traces: bool,
    ) -> tuple[Int64Array, Int64Array, Int64Array, Any]:
        """Return totals, offsets, last nodes and bits, as the kernel writes them."""
        program = self._program(programs.chain.shape, sums, traces)
        workspace, count = self._workspace, sequences.size
        begins = block.offsets[sequences]
        lengths = block.offsets[sequences + 1] - begins
        first_rows = offsets_of_counts(lengths)
        own = programs.trace_bits
        word_bytes = own.word_bits // 8
        rows = int(first_rows[-1]) if traces else 0
        bits = workspace.buffer("bits", max(1, rows * own.words * word_bytes))
        totals = workspace.buffer("totals", 8 * count)
        offsets = workspace.buffer("offsets", 8 * count)
        last = workspace.buffer("last", 8 * count)
        names = ("numbers", "emissions", "ends")
        arguments = (
            self._upload("codes", block.codes),
            self._upload("begins", begins),
            self._upload("lengths", lengths),
            count,
            *(self._upload(name, one) for name, one in zip(names, numbers, strict=True)),
            *(chunk, totals, offsets, last),
            self._upload("first rows", first_rows),
            bits,
        )
        self._launcher.launch_on(program, "run_chain", count, arguments)
        found = self._fetch(bits, rows * own.words, f"u{word_bytes}").reshape(rows, own.words)
        results = [self._fetch(address, count, np.int64) for address in (totals, offsets, last)]
        self._launcher.report()
        return results[0], results[1], results[2], found
