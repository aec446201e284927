"""A stream of a device, and what each piece of work on it takes: memory, copies and launches."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.device import AnyArray, Device
from mummergpu.cuda.launcher import Launcher
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.cuda.workspace import Workspace
from mummergpu.runtime.stats import Stats


class StreamWorker:
    """A stream with memory of `memory` bytes; one thread uses it at a time.

    The times of kernels are those of `stage`; `copiers` are as for `Staging`.
    """

    def __init__(
        self,
        device: Device,
        memory: int,
        stats: Stats,
        stage: str,
        copiers: ThreadPoolExecutor | None = None,
    ) -> None:
        self.memory = memory
        self.stream = device.new_stream()
        self._workspace = Workspace(device, memory)
        self._staging = Staging(device, self.stream, copiers=copiers)
        self.launcher = Launcher(device, self.stream, self._workspace, stats, stage)

    def free(self) -> None:
        """Free the stream and all memory."""
        self._staging.free()
        self._workspace.free()
        self.stream.free()

    def buffer(self, name: str, size: int) -> int:
        """Return the address of memory of at least so many bytes."""
        return self._workspace.buffer(name, max(size, 1))

    def upload(self, name: str, array: AnyArray, spare: int = 0) -> int:
        """Copy an array to memory of some name, with `spare` bytes behind; return its address."""
        address = self.buffer(name, array.nbytes + spare)
        self._staging.copy_in(address, np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return address

    def fetch(self, address: int, count: int, kind: npt.DTypeLike) -> AnyArray:
        """Return so many numbers of the device, when all work queued so far is done."""
        found = np.empty(count, dtype=kind)
        self._staging.copy_out(found, address)
        return found
