"""Launches kernels on one stream; the device times each launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from mummergpu.cuda.device import Argument, BlockShape, Device, Mark, Program, Stream
from mummergpu.cuda.program import COUNTS_PER_THREAD
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.stats import Stats

WAVES: Final = 4
"""The most blocks launched, as a multiple of the blocks that are resident at once: some blocks
end long before others, and later blocks take their place."""


class Launcher:
    """Launches kernels on a stream and records their times as those of a stage.

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

        Parameters
        ----------
        program : Program
            The kernels.
        counts : int
            The address of `count` numbers, of the program's ``SCAN_COUNT_BYTES`` each.
        count : int
            May be 0.
        offsets : int
            The address of a buffer for `count` + 1 numbers of 64 bits.
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
