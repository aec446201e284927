"""A pool of open devices by number: each device is opened once and closed once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from mummergpu.cuda.device import Device
from mummergpu.runtime.closing import ClosedAtEnd


class DevicePool(ClosedAtEnd):
    """The devices that a process has opened; threads may share it.

    `open_device` opens the device with a given number, in the driver's order, or raises
    `BackendError`. Different devices are opened one after the other, and closed at the end of the
    ``with`` block.
    """

    def __init__(self, open_device: Callable[[int], Device]) -> None:
        self._open_device = open_device
        self._devices: dict[int, Device] = {}
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the open devices, in the order in which they were opened."""
        return tuple(self._devices)

    def device(self, number: int) -> Device:
        """Return a device by its number as in ``--device``; the first call for a device opens it.

        The caller must not close it, and must free its memory and streams before the pool is
        closed.

        Raises
        ------
        BackendError
            If it cannot be opened.
        ValueError
            If the pool is closed.
        """
        with self._lock:
            if self._is_closed:
                raise ValueError("the pool of devices is closed")
            if number not in self._devices:
                self._devices[number] = self._open_device(number)
            return self._devices[number]

    def close(self) -> None:
        """Close all devices, the last one first; further calls do nothing.

        If a device cannot be closed, the others are closed before its error is raised.
        """
        with self._lock, ExitStack() as stack:
            self._is_closed = True
            for device in self._devices.values():
                stack.callback(device.close)
            self._devices.clear()
