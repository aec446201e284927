"""The host's device for several threads, which tells what is asked of it, and can refuse."""

import os
import threading
from contextlib import contextmanager
from pathlib import Path

from helpers.host_device import HostCompiler, HostDevice, HostProgram
from mummergpu.cuda.device import DeviceMemoryError

_TURN = threading.Lock()
"""Kernels on the host keep the numbers of their threads in variables of the library."""


class WatchedProgram(HostProgram):
    """Runs one kernel at a time, whoever launches it."""

    def __init__(self, library, device):
        super().__init__(library)
        self._device = device

    def run(self, kernel, blocks, threads, arguments):
        self._device.before_launch(kernel)
        with _TURN:
            super().run(kernel, blocks, threads, arguments)


class WatchedDevice(HostDevice):
    """A device whose memory can be refused.

    `refuse` is given the number of a request, counted from 1 by buffers and textures together,
    and its bytes, and says whether it is in vain. `before_launch` is called with the name of
    each kernel by the thread that launches it.
    """

    def __init__(self, memory_bytes=1 << 30, resident_blocks=3):
        super().__init__(memory_bytes, resident_blocks)
        self.refuse = lambda number, size: False
        self.before_launch = lambda kernel: None
        self.requests = 0
        self.textures_made = 0
        self.max_users = 0
        self._users = 0
        self._lock = threading.Lock()

    @contextmanager
    def current(self):
        with self._lock:
            self._users += 1
            self.max_users = max(self.max_users, self._users)
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1

    def allocate(self, size):
        self._ask(size)
        return super().allocate(size)

    def allocate_exported(self, size):
        self._ask(size)
        return super().allocate_exported(size)

    def linear_texture(self, address, texels, texel_bytes):
        self._ask(0)
        self.textures_made += 1
        return super().linear_texture(address, texels, texel_bytes)

    def array_texture(self, data, width, texel_bytes):
        self._ask(data.nbytes)
        self.textures_made += 1
        return super().array_texture(data, width, texel_bytes)

    def load(self, cubin):
        return WatchedProgram(Path(os.fsdecode(cubin)), self)

    def _ask(self, size):
        with self._lock:
            self.requests += 1
            refused = self.refuse(self.requests, size)
        if refused:
            self.refusals += 1
            raise DeviceMemoryError(f"{size} bytes")


class WatchedCompiler(HostCompiler):
    """Keeps account of what it is asked for."""

    def __init__(self, folder):
        super().__init__(folder)
        self.asked = []

    def cubin(self, sources, program, architecture):
        self.asked.append(program)
        return super().cubin(sources, program, architecture)
