"""Launches on one stream, each of them timed by the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mummergpu.cuda.device import Argument, Device, Mark, Program, Stream
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.stats import Stats

COUNTS_OF_THREAD: Final = 8
"""As in ``offsets.cu``."""

WAVES: Final = 4
"""So many times the blocks that a device holds at once are launched at most: some end long
before others, and those behind them take their place."""

MATCH_STAGE: Final = {"match_kernel": "match_kernel"}
"""The stage that a kernel's time belongs to, where it is not that of its launcher."""


class Launcher:
    """Launches kernels on a stream and keeps account of them.

    Parameters
    ----------
    device : Device
        The device; the calling thread's in all methods.
    stream : Stream
        Where the work goes.
    workspace : Workspace
        Gives the little memory that a scan needs.
    stats : Stats
        Takes the times of the kernels.
    stage : str
        The stage that they belong to, but for the match kernel.
    """

    def __init__(
        self, device: Device, stream: Stream, workspace: Workspace, stats: Stats, stage: str
    ) -> None:
        self._device = device
        self._stream = stream
        self._workspace = workspace
        self._stats = stats
        self._stage = stage
        self._marks: list[tuple[str, Mark, Mark]] = []

    def launch(
        self, program: Program, kernel: str, blocks: int, arguments: Sequence[Argument]
    ) -> None:
        """Run a kernel on so many blocks of threads.

        Parameters
        ----------
        program : Program
            What the kernel is part of.
        kernel : str
            Its name.
        blocks : int
            The number of blocks.
        arguments : sequence of int or numpy.uint32
            In the order of the kernel's parameters, structures member by member.
        """
        before = self._stream.mark()
        self._stream.launch(program, kernel, blocks, arguments)
        self._marks.append((kernel, before, self._stream.mark()))

    def launch_on(
        self, program: Program, kernel: str, items: int, arguments: Sequence[Argument]
    ) -> None:
        """Run a kernel on so many items, with a thread each or `WAVES` as the device holds."""
        if items == 0:
            # A device refuses to be given nothing to do.
            return
        blocks = -(-items // self._device.block_threads)
        self.launch(program, kernel, min(blocks, WAVES * self._device.resident_blocks), arguments)

    def scan(self, program: Program, counts: int, count: int, offsets: int) -> None:
        """Turn counts into offsets.

        Parameters
        ----------
        program : Program
            The kernels.
        counts : int
            The address of `count` numbers, of the bits that ``offsets.cu`` says.
        count : int
            How many they are; may be 0.
        offsets : int
            The address of room for `count` + 1 numbers of 64 bits.
        """
        if count == 0:
            self._stream.fill_zero(offsets, 8)
            return
        tiles = -(-count // (COUNTS_OF_THREAD * self._device.block_threads))
        sums = self._workspace.room("tile offsets", 8 * tiles)
        self.launch(program, "sum_tiles", tiles, (counts, count, sums))
        self.launch(program, "scan_tile_sums", 1, (sums, tiles))
        self.launch(program, "scan_tiles", tiles, (counts, count, sums, offsets))

    def report(self) -> None:
        """Add the times of all launches to the stats; the stream must be done with them."""
        for kernel, before, behind in self._marks:
            milliseconds = behind.milliseconds_since(before)
            stage = MATCH_STAGE.get(kernel, self._stage)
            self._stats.add_kernel(kernel, stage, milliseconds)
        self._marks.clear()

    def forget(self) -> None:
        """Drop the times of launches that came to nothing."""
        self._marks.clear()
