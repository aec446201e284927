"""A stream of a device, and what each piece of work on it takes: memory, copies and launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.device import (
    AnyArray,
    Argument,
    BlockShape,
    Buffer,
    Device,
    DeviceMemoryError,
    Mark,
    Program,
    Stream,
)
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.program import COUNTS_PER_THREAD
from mummergpu.runtime.stats import Stats

SMALLEST_BUFFER: Final = 512
"""The size of the smallest buffer in bytes."""

SLACK: Final = 8
"""A buffer is allocated one eighth larger than requested, so that it seldom has to grow."""

WAVES: Final = 4
"""The most blocks launched, as a multiple of the blocks that are resident at once: some blocks
end long before others, and later blocks take their place."""


class Workspace:
    """Named buffers in the linear memory of a device, of at most `limit` bytes together."""

    def __init__(self, device: Device, limit: int) -> None:
        self._device = device
        self._limit = limit
        self._buffers: dict[str, Buffer] = {}

    @property
    def size(self) -> int:
        """The total size of all buffers in bytes."""
        return sum(buffer.size for buffer in self._buffers.values())

    def buffer(self, name: str, size: int) -> int:
        """Return the address of a buffer of at least `size` bytes, a multiple of 256.

        Its contents are lost if it has to grow. `DeviceMemoryError` says that the buffers would
        exceed the limit, or that the device has too little free memory.
        """
        buffer = self._buffers.get(name)
        if buffer is not None and buffer.size >= size:
            return buffer.address
        if buffer is not None:
            del self._buffers[name]
            buffer.free()
        left = self._limit - self.size
        if size > left:
            raise DeviceMemoryError(f"{size} bytes for {name}, and {left} are left")
        self._buffers[name] = self._device.allocate(
            max(min(size + size // SLACK, left), min(SMALLEST_BUFFER, left), 1)
        )
        return self._buffers[name].address

    def free(self) -> None:
        """Free all buffers; new ones can be allocated afterwards."""
        while self._buffers:
            self._buffers.popitem()[1].free()


class Launcher:
    """Launches kernels on a stream and records their times as those of a stage, for a report.

    The device must be current in the thread that calls any method. The workspace provides the
    little memory that a scan needs; `stages` names those of kernels that belong to another stage.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        workspace: Workspace,
        stats: Stats,
        stage: str,
        stages: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._device = device
        self._stream = stream
        self._workspace = workspace
        self._stats = stats
        self._stage = stage
        self._stages = stages
        self._marks: list[tuple[str, Mark, Mark]] = []

    def launch(
        self,
        program: Program,
        kernel: str,
        blocks: int,
        arguments: Sequence[Argument],
        shape: BlockShape | None = None,
    ) -> None:
        """Run a kernel on a number of blocks of threads.

        The arguments are integers of 64 bits or `numpy.uint32`, in the order of the kernel's
        parameters, structures member by member.
        """
        if not self._stats.is_reported:
            # Marks take as long as launches, and threads wait for their lock.
            self._stream.launch(program, kernel, blocks, arguments, shape)
            return
        before = self._stream.mark()
        self._stream.launch(program, kernel, blocks, arguments, shape)
        self._marks.append((kernel, before, self._stream.mark()))

    def launch_on(
        self, program: Program, kernel: str, items: int, arguments: Sequence[Argument]
    ) -> None:
        """Run a kernel with a thread for each item, or as many threads as `WAVES` allows."""
        if items == 0:
            # CUDA refuses a launch without blocks.
            return
        blocks = -(-items // self._device.block_threads)
        self.launch(program, kernel, min(blocks, WAVES * self._device.resident_blocks), arguments)

    def scan(self, program: Program, counts: int, count: int, offsets: int) -> None:
        """Turn counts into offsets: their prefix sum, from 0 to the total.

        `counts` is the address of `count` numbers of the program's ``SCAN_COUNT_BYTES`` each,
        `offsets` that of room for `count` + 1 numbers of 64 bits.
        """
        if count == 0:
            self._stream.fill_zero(offsets, 8)
            return
        tiles = -(-count // (COUNTS_PER_THREAD * self._device.block_threads))
        sums = self._workspace.buffer("tile offsets", 8 * tiles)
        self.launch(program, "sum_tiles", tiles, (counts, count, sums))
        self.launch(program, "scan_tile_sums", 1, (sums, tiles))
        self.launch(program, "scan_tiles", tiles, (counts, count, sums, offsets))

    def report(self) -> None:
        """Add the times of all launches, which must have ended, to the stats."""
        for kernel, before, after in self._marks:
            milliseconds = after.milliseconds_since(before)
            stage = self._stages.get(kernel, self._stage)
            self._stats.add_kernel(kernel, stage, milliseconds)
        self._marks.clear()

    def forget(self) -> None:
        """Drop the times of launches whose results are not used."""
        self._marks.clear()


class StreamWorker:
    """A stream with memory of `memory` bytes; one thread uses it at a time.

    The device is current in the thread that calls any method. The times of kernels are those of
    `stage`, or of the stage that `stages` names; `copiers` are as for `Staging`.
    """

    def __init__(
        self,
        device: Device,
        memory: int,
        stats: Stats,
        stage: str,
        copiers: ThreadPoolExecutor | None = None,
        stages: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.device = device
        self.memory = memory
        self.stats = stats
        self.stream = device.new_stream()
        self.workspace = Workspace(device, memory)
        self.buffer = self.workspace.buffer
        self.staging = Staging(device, self.stream, copiers=copiers)
        self.launcher = Launcher(device, self.stream, self.workspace, stats, stage, stages)

    def free(self) -> None:
        """Free the stream and all memory."""
        self.staging.free()
        self.workspace.free()
        self.stream.free()

    def upload(self, name: str, array: AnyArray, spare: int = 0) -> int:
        """Copy an array to the buffer of a name, with `spare` bytes more; return its address."""
        address = self.buffer(name, array.nbytes + spare)
        self.staging.copy_in(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return address

    def fetch(self, address: int, count: int, kind: npt.DTypeLike) -> AnyArray:
        """Return `count` numbers of the device, when all work queued so far is done."""
        numbers = np.empty(count, dtype=kind)
        self.staging.copy_out(numbers, address)
        return numbers
