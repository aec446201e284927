"""A stream of a device that runs chains: its memory, its programs, and their arguments."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np

from mummergpu.cuda.device import Device
from mummergpu.cuda.kernel_cache import KernelCache, Programs
from mummergpu.cuda.stream_worker import StreamWorker
from mummergpu.hmm.language.cuda_text import DeviceKind
from mummergpu.hmm.language.recurrence import Shape, TraceBits
from mummergpu.hmm.language.tables import ChainTables
from mummergpu.hmm.language.traces import NodeVisits, Runs, StateNames, TraceTables
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.stats import Stats

STAGE: Final = "model_evaluation"

MAX_THREAD_NODES: Final = 32
"""A chain of more nodes does not fit the registers of a thread."""

_MAX_COPIERS: Final = 8
"""More threads do not copy faster."""


class DeviceRunner(StreamWorker):
    """A stream of a device that runs chains.

    Parameters
    ----------
    double : bool
        Whether sums are computed with 64 bits instead of 32.

    Attributes
    ----------
    programs : Programs
        The programs of the device.
    fallback_count : int
        The number of sequences left to the processor: their states have no common scale.
    """

    fallback_count = 0

    def __init__(
        self, device: Device, cache: KernelCache, memory: int, stats: Stats, double: bool
    ) -> None:
        self.double = double
        self._copiers = ThreadPoolExecutor(min(os.cpu_count() or 1, _MAX_COPIERS))
        super().__init__(device, memory, stats, STAGE, self._copiers)
        self.programs = Programs(device, cache)

    def close(self) -> None:
        """Free the stream and all memory."""
        self._copiers.shutdown()
        self.free()

    def upload_codes(self, codes: ByteArray) -> int:
        """Copy the symbols of sequences, in place of those of the last ones."""
        # Kernels load four symbols at once, and the last of them may be beyond the end.
        return self.upload("codes", codes, 4)

    def numbers(self, tables: ChainTables, kind: DeviceKind, chunk: int) -> tuple[list[int], int]:
        """Return the addresses of a chain's numbers, and the columns between two scalings.

        `chunk` is that of numbers of 64 bits.
        """
        arrays = [tables.numbers, tables.emissions, tables.end]
        if kind.sums and not kind.double:
            arrays = [array.astype(np.float32) for array in arrays]
            chunk = tables.float_chunk
        names = ("numbers", "emissions", "ends")
        return [self.upload(*pair) for pair in zip(names, arrays, strict=True)], chunk

    def trace_arguments(
        self,
        shape: Shape,
        tables: TraceTables,
        names: StateNames | None,
        visits: NodeVisits | None = None,
    ) -> list[int]:
        """Return the members of the kernels' `Trace`: the visits of steps, or of nodes."""
        columns = (tables.words, tables.shifts, tables.masks, tables.first_steps)
        shown, width = 0, 0
        if visits is not None:
            shown = self.upload("node visits", visits.table.astype(np.uint32))
            width = visits.width
        of_steps = [] if names is None else [names.offsets, names.visits]
        places = [
            self.upload(name, one.astype(np.uint32))
            for name, one in zip(("first visits", "step visits"), of_steps, strict=False)
        ]
        return [
            self.upload("trace nodes", np.stack(columns, axis=1).astype(np.uint32)),
            self.upload("trace sources", tables.sources.astype(np.uint32)),
            *(places or [0, 0]),
            *(shown, width, shape.emitting, trace_bits(shape).words, len(shape.steps)),
        ]

    def written_runs(self, offsets: Int64Array, write: Callable[[int, int], None]) -> Runs:
        """Return runs that a kernel writes: their visits to one address, their lengths to one."""
        total = int(offsets[-1])
        visits = self.buffer("run visits", 4 * total)
        lengths = self.buffer("run lengths", 8 * total)
        write(visits, lengths)
        return Runs(
            self.fetch(visits, total, np.uint32).astype(np.int64),
            self.fetch(lengths, total, np.int64),
            offsets,
        )

    def needs_double(self, tables: ChainTables) -> bool:
        """Return whether sums of a chain need 64 bits, or are to have them."""
        return self.double or not tables.float_chunk


def trace_bits(shape: Shape) -> TraceBits:
    """Return where the kernels of a shape leave the bits of best ways."""
    return TraceBits.of(shape) if is_narrow(shape) else TraceBits.by_node(shape)


def is_narrow(shape: Shape) -> bool:
    """Return whether the states fit the registers of a thread."""
    return shape.nodes <= MAX_THREAD_NODES and shape.is_unrolled
