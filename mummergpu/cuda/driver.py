"""What NVIDIA's driver says about itself and its devices.

The driver's own library is asked through ctypes: it is there wherever a GPU is, also where
none of the Python packages is installed that the backend needs.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from mummergpu.cuda.warm_up import LIBRARY

_NAME_BYTES: Final = 256

# Of the driver's enumeration of device attributes.
_MULTIPROCESSORS: Final = 16
_CAPABILITY_MAJOR: Final = 75
_CAPABILITY_MINOR: Final = 76


class DriverError(Exception):
    """A call that the driver answers with an error; the message is one line."""


@dataclass(frozen=True)
class DeviceFacts:
    """A device as the driver describes it.

    Attributes
    ----------
    number : int
        As in ``--device``.
    name : str
        The maker's name.
    capability : tuple of int
        The compute capability, such as (9, 0).
    multiprocessors : int
        How many.
    total_bytes : int
        Its memory.
    free_bytes : int or None
        What of it is free; None if that was not asked, or has no answer.
    problem : str or None
        Why nothing can run on it now; None as far as one knows that something can.
    """

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    total_bytes: int
    free_bytes: int | None
    problem: str | None


@dataclass(frozen=True)
class DriverFacts:
    """The driver and its devices.

    Attributes
    ----------
    cuda_version : tuple of int or None
        The highest version of CUDA that it serves; None without a driver.
    devices : tuple of DeviceFacts
        Those that this process may use.
    problem : str or None
        Why there are none.
    """

    cuda_version: tuple[int, int] | None
    devices: tuple[DeviceFacts, ...]
    problem: str | None


def ask_driver(measure_memory: bool, load: Callable[[str], Any] = ctypes.CDLL) -> DriverFacts:
    """Ask the driver what there is.

    Parameters
    ----------
    measure_memory : bool
        Ask for free memory too. That needs a context on each device, which takes some
        tenths of a second.
    load : callable
        Returns the library of a name, or raises OSError.

    Returns
    -------
    DriverFacts
        Whatever goes wrong is the problem of the driver or of one device.
    """
    try:
        driver = _Driver(load(LIBRARY))
    except OSError as error:
        return DriverFacts(None, (), f"no NVIDIA driver ({error})")
    version = None
    try:
        version = driver.cuda_version()
        driver.call("cuInit", 0)
        count = driver.number("cuDeviceGetCount")
        devices = tuple(driver.device(number, measure_memory) for number in range(count))
    except DriverError as error:
        return DriverFacts(version, (), str(error))
    return DriverFacts(version, devices, None if devices else "the driver has no device")


_ASKING: Final = threading.Lock()


def driver_facts() -> DriverFacts:
    """Return what there is, for which the driver is asked once in a process.

    Returns
    -------
    DriverFacts
        As `ask_driver` returns it, without free memory. Threads that ask at the same time wait
        for one answer.
    """
    with _ASKING:
        return _kept_facts()


def forget_driver_facts() -> None:
    """Have the driver asked again, for tests that stand in for it."""
    with _ASKING:
        _kept_facts.cache_clear()


@cache
def _kept_facts() -> DriverFacts:
    return ask_driver(False)


class _Driver:
    """The few calls that are needed, with errors as exceptions."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def call(self, name: str, *arguments: Any) -> None:
        function = getattr(self._library, name, None)
        if function is None:
            raise DriverError(f"the driver has no {name}; it is too old")
        code = function(*arguments)
        if code:
            raise DriverError(f"{name}: {self._meaning(code)}")

    def number(self, name: str, *arguments: Any) -> int:
        """Return the one number that a call answers."""
        answer = ctypes.c_int()
        self.call(name, ctypes.byref(answer), *arguments)
        return answer.value

    def cuda_version(self) -> tuple[int, int]:
        version = self.number("cuDriverGetVersion")
        return version // 1000, version % 1000 // 10

    def device(self, number: int, measure_memory: bool) -> DeviceFacts:
        handle = self.number("cuDeviceGet", number)
        name = ctypes.create_string_buffer(_NAME_BYTES)
        self.call("cuDeviceGetName", name, _NAME_BYTES, handle)
        total = ctypes.c_size_t()
        self.call("cuDeviceTotalMem_v2", ctypes.byref(total), handle)
        multiprocessors, major, minor = (
            self.number("cuDeviceGetAttribute", attribute, handle)
            for attribute in (_MULTIPROCESSORS, _CAPABILITY_MAJOR, _CAPABILITY_MINOR)
        )
        free = problem = None
        if measure_memory:
            try:
                free = self._free_memory(handle)
            except DriverError as error:
                problem = str(error)
        return DeviceFacts(
            number,
            name.value.decode(errors="replace"),
            (major, minor),
            multiprocessors,
            total.value,
            free,
            problem,
        )

    def _free_memory(self, handle: int) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._context(handle):
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    @contextmanager
    def _context(self, handle: int) -> Iterator[None]:
        """Make the device's primary context current, and let go of it afterwards."""
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        try:
            self.call("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        finally:
            self.call("cuDevicePrimaryCtxRelease_v2", handle)

    def _meaning(self, code: int) -> str:
        for name in ("cuGetErrorString", "cuGetErrorName"):
            function = getattr(self._library, name, None)
            text = ctypes.c_char_p()
            if function is not None and not function(code, ctypes.byref(text)) and text.value:
                return text.value.decode(errors="replace")
        return f"error {code}"
