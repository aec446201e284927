"""The host's device for several threads, which tells what is asked of it, and can refuse."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from helpers.host_device import (
    HostBuffer,
    HostCompiler,
    HostDevice,
    HostExportedMemory,
    HostProgram,
    HostTexture,
)
from mummergpu.cuda.device import AnyArray, Argument, DeviceMemoryError
from mummergpu.cuda.program import ProgramSource

_TURN = threading.Lock()
"""Kernels on the host keep the numbers of their threads in variables of the library."""


class WatchedProgram(HostProgram):
    """Runs one kernel at a time, whoever launches it."""

    def __init__(self, library: Path, device: WatchedDevice) -> None:
        super().__init__(library)
        self._device = device

    def run(self, kernel: str, blocks: int, threads: int, arguments: Sequence[Argument]) -> None:
        self._device.before_launch(kernel)
        with _TURN:
            super().run(kernel, blocks, threads, arguments)


class WatchedDevice(HostDevice):
    """A device whose memory can be refused.

    `refuse` is given the number of a request, counted from 1 by buffers and textures together,
    and its bytes, and says whether it is in vain. `before_launch` is called with the name of
    each kernel by the thread that launches it.
    """

    def __init__(self, memory_bytes: int = 1 << 30, resident_blocks: int = 3) -> None:
        super().__init__(memory_bytes, resident_blocks)
        self.refuse: Callable[[int, int], bool] = lambda number, size: False
        self.before_launch: Callable[[str], None] = lambda kernel: None
        self.requests = 0
        self.textures_made = 0
        self.max_users = 0
        self._users = 0
        self._lock = threading.Lock()

    @contextmanager
    def current(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            self.max_users = max(self.max_users, self._users)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1

    def allocate(self, size: int) -> HostBuffer:
        self._ask(size)
        buffer = super().allocate(size)
        assert isinstance(buffer, HostBuffer)
        return buffer

    def allocate_exported(self, size: int) -> HostExportedMemory:
        self._ask(size)
        return super().allocate_exported(size)

    def linear_texture(self, address: int, texels: int, texel_bytes: int) -> HostTexture:
        self._ask(0)
        self.textures_made += 1
        return super().linear_texture(address, texels, texel_bytes)

    def array_texture(self, data: AnyArray, width: int, texel_bytes: int) -> HostTexture:
        self._ask(data.nbytes)
        self.textures_made += 1
        return super().array_texture(data, width, texel_bytes)

    def load(self, cubin: bytes) -> WatchedProgram:
        return WatchedProgram(Path(os.fsdecode(cubin)), self)

    def _ask(self, size: int) -> None:
        with self._lock:
            self.requests += 1
            refused = self.refuse(self.requests, size)
        if refused:
            self.refusals += 1
            raise DeviceMemoryError(f"{size} bytes")


class WatchedCompiler(HostCompiler):
    """Keeps account of what it is asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[ProgramSource] = []

    def cubin(self, sources: dict[str, str], program: ProgramSource, architecture: str) -> bytes:
        self.asked.append(program)
        return super().cubin(sources, program, architecture)
