"""Creates the context of a GPU in the background at the start of a run.

The driver takes some tenths of a second to initialize itself and a device. Python takes as long
to import the modules of the main job, so the two run at the same time. The primary context of a
device belongs to the process: a later request returns the same context at once.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from typing import Final

LIBRARY: Final = "libcuda.so.1"


def ask_for_context(device: int) -> threading.Thread:
    """Create the primary context of a device in a thread, for which nothing has to wait.

    It reports no errors: the code that uses the device later meets the same error and reports it.
    """
    thread = threading.Thread(target=_retain, args=(device,), name="context", daemon=True)
    thread.start()
    return thread


def _retain(device: int) -> None:
    with suppress(OSError, AttributeError):
        driver = ctypes.CDLL(LIBRARY)
        handle = ctypes.c_int()
        context = ctypes.c_void_p()
        if driver.cuInit(0) == 0 and driver.cuDeviceGet(ctypes.byref(handle), device) == 0:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), handle)
