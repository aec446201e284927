"""The context of a GPU, asked for before anything else is done.

A driver takes some tenths of a second to initialize itself and a device, and Python as long
to import what the main job needs. The primary context of a device belongs to the process:
whoever asks for it later gets the same, at once.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import suppress
from typing import Final

LIBRARY: Final = "libcuda.so.1"


def ask_for_context(device: int) -> threading.Thread:
    """Have the driver make the primary context of a device, in a thread that need not end.

    Parameters
    ----------
    device : int
        Its number, as the driver counts.

    Returns
    -------
    threading.Thread
        Already started. Nothing that goes wrong in it is reported: whoever needs the device
        will meet the same fault, and tell.
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
