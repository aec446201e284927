"""The primary context of a device, which all libraries of a process share.

It is retained and released, but never reset: memory of other libraries stays as it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cuda.bindings import driver

from mummergpu.cuda.driver_calls import CallError, call
from mummergpu.errors import BackendError

Finalizer = Callable[[], Any]
"""Gives something back when it is called, or when its owner is collected: once."""


class PrimaryContext:
    """The primary context of a device, retained until `release` is called.

    Attributes
    ----------
    device : object
        The driver's handle of the device.

    Raises
    ------
    BackendError
        If there is no such device, or the driver creates no context.
    """

    def __init__(self, number: int) -> None:
        try:
            call(driver.cuInit, 0)
            count = call(driver.cuDeviceGetCount)
            if not 0 <= number < count:
                raise BackendError("cuda", f"there is no device {number}; the driver finds {count}")
            self.device = call(driver.cuDeviceGet, number)
            self._handle = call(driver.cuDevicePrimaryCtxRetain, self.device)
        except CallError as error:
            message = f"device {number}: the driver answers: {error.reason}"
            raise BackendError("cuda", message) from error
        self._is_released = False

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the context current in the calling thread for a ``with`` statement."""
        call(driver.cuCtxPushCurrent, self._handle)
        try:
            yield
        finally:
            call(driver.cuCtxPopCurrent)

    def finalizer(
        self, owner: object, free: Callable[[Any], tuple[Any, ...]], handle: Any
    ) -> Finalizer:
        """Return a function that gives a handle of this context back with a function of the driver.

        If nobody has called it before, that is done when the owner is collected; later calls do
        nothing. No error is raised: if the driver gives nothing back, it is because the device has
        failed, which those who waited for its work have been told.
        """
        found = weakref.finalize(owner, self.give_back, free, handle)
        # The end of the process gives everything back.
        found.atexit = False
        return found

    def give_back(self, free: Callable[[Any], tuple[Any, ...]], handle: Any) -> None:
        """Give something of this context back, as the function of `finalizer` does."""
        if self._is_released:
            # What is left went with the context, and its address may be somebody else's by now.
            return
        if driver.cuCtxPushCurrent(self._handle)[0] == driver.CUresult.CUDA_SUCCESS:
            try:
                free(handle)
            finally:
                driver.cuCtxPopCurrent()

    def release(self) -> None:
        """Release the context; further calls do nothing."""
        if not self._is_released:
            self._is_released = True
            call(driver.cuDevicePrimaryCtxRelease, self.device)
