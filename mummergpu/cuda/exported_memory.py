"""Memory of a device that other libraries of the process use for as long as they like.

It does not depend on the device object that it was asked of: it retains the primary context
itself, and releases it when it is freed. It always comes through NVIDIA's ``cuda-bindings``, which
every installation for a GPU has: a context that PyCUDA holds at the end of the process would abort
it, and nobody knows how long others keep the memory.
"""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from typing import Any

from cuda.bindings import driver

from mummergpu.cuda.device import AnyArray
from mummergpu.cuda.driver_calls import call, call_for_memory
from mummergpu.cuda.primary_context import PrimaryContext
from mummergpu.errors import BackendError


class PrimaryContextMemory:
    """Linear memory in the primary context of a device (`device.ExportedMemory`).

    Raises
    ------
    DeviceMemoryError
        If too little memory is free.
    """

    def __init__(self, number: int, size: int) -> None:
        context = PrimaryContext(number)
        try:
            with context.current():
                memory = call_for_memory(f"{size} bytes", driver.cuMemAlloc, size)
        except BaseException:
            context.release()
            raise
        self.address = int(memory)
        self.size = size
        self.device_number = number
        self._context = context
        self._free = weakref.finalize(self, _give_back, context, memory, os.getpid())
        # The end of the process gives everything back.
        self._free.atexit = False

    def copy_out(self, array: AnyArray) -> None:
        """Fill a contiguous array from the beginning of the memory, and wait until that is done."""
        if array.nbytes:
            with self._context.current():
                call(driver.cuMemcpyDtoH, array.ctypes.data, self.address, array.nbytes)

    def free(self) -> None:
        """Free the memory; further calls do nothing."""
        self._free()


def _give_back(context: PrimaryContext, memory: Any, process: int) -> None:
    """Free memory, and release its context; a forked process has neither.

    The driver waits for work that still uses the memory before it frees it, so whoever lets an
    array go need not wait.
    """
    if os.getpid() == process:
        context.give_back(driver.cuMemFree, memory)
        with suppress(BackendError):
            context.release()
