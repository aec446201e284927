"""Creates the contexts of GPUs in the background at the start of a run.

The driver takes some tenths of a second to initialize itself and a device. Python takes as long
to import the modules of the main job, so the two run at the same time. The primary context of a
device belongs to the process: a later request returns the same context at once.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

LIBRARY: Final = "libcuda.so.1"


def ask_for_contexts(devices: Sequence[int] | None) -> threading.Thread:
    """Create the primary contexts of devices, or of all, in threads; nothing has to wait for them.

    Returned is a thread that ends when all contexts are created. It reports no errors: the code
    that uses a device later meets the same error and reports it.
    """
    thread = threading.Thread(target=_retain_all, args=(devices,), name="context", daemon=True)
    thread.start()
    return thread


def _retain_all(devices: Sequence[int] | None) -> None:
    """Create the contexts at the same time, one of them in the calling thread."""
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL(LIBRARY)
        if driver.cuInit(0) != 0:
            return
        if devices is None:
            count = ctypes.c_int()
            if driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
                return
            devices = range(count.value)
        others = [
            threading.Thread(target=_retain, args=(driver, device), name="context", daemon=True)
            for device in devices[1:]
        ]
        for thread in others:
            thread.start()
        for device in devices[:1]:
            _retain(driver, device)
        for thread in others:
            thread.join()


def _retain(driver: Any, device: int) -> None:
    with suppress(AttributeError):
        handle = ctypes.c_int()
        context = ctypes.c_void_p()
        if driver.cuDeviceGet(ctypes.byref(handle), device) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
