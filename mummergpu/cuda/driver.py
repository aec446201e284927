"""Queries NVIDIA's driver for its version and its devices, and wakes devices up.

The driver's own library is called through ctypes. Every machine with a GPU has this
library, even if the Python packages that the backend needs are not installed.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Final

from mummergpu.runtime.frozen import frozen

LIBRARY: Final = "libcuda.so.1"

_NAME_BYTES: Final = 256

# From the driver's enumeration of device attributes.
_CLOCK: Final = 13
_MULTIPROCESSORS: Final = 16
_MEMORY_CLOCK: Final = 36
_CAPABILITY_MAJOR: Final = 75
_CAPABILITY_MINOR: Final = 76


class DriverError(Exception):
    """A driver call returned an error; the message is one line."""


@frozen
class DeviceFacts:
    """The properties of a device that the driver reports.

    The compute capability is such as (9, 0). The free memory is None if it was not measured;
    `problem` says why the device cannot be used, if that is known. The clocks are the highest ones,
    or 0 if the driver does not say.
    """

    number: int
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    total_bytes: int
    free_bytes: int | None
    problem: str | None
    clock_kilohertz: int = 0
    memory_clock_kilohertz: int = 0


@frozen
class DriverFacts:
    """The driver and the devices that this process may use; `problem` says why there are none.

    The version is the highest one of CUDA that the driver supports, None without a driver.
    """

    cuda_version: tuple[int, int] | None
    devices: tuple[DeviceFacts, ...]
    problem: str | None


def ask_driver(measure_memory: bool, load: Callable[[str], Any] = ctypes.CDLL) -> DriverFacts:
    """Query the driver for its version and its devices; an error becomes a `problem`.

    Measuring free memory needs a context on each device, which takes some tenths of a second.
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
    """Return the driver's version and devices, without free memory.

    The process queries the driver only once; threads that call at the same time wait for one query.
    """
    with _ASKING:
        return _kept_facts()


@cache
def _kept_facts() -> DriverFacts:
    return ask_driver(False)


class _Driver:
    """The few driver calls that are needed; they raise errors as exceptions."""

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
        """Return the number that a driver call writes."""
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
            self._clock(_CLOCK, handle),
            self._clock(_MEMORY_CLOCK, handle),
        )

    def _clock(self, attribute: int, handle: int) -> int:
        """Return a clock, or 0 from a driver that no longer knows the attribute."""
        try:
            return self.number("cuDeviceGetAttribute", attribute, handle)
        except DriverError:
            return 0

    def _free_memory(self, handle: int) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._context(handle):
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    @contextmanager
    def _context(self, handle: int) -> Iterator[None]:
        """Make the device's primary context current, and release it afterwards."""
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


def ask_for_context(device: int) -> threading.Thread:
    """Create the primary context of a device in a thread, for which nothing has to wait.

    The driver takes some tenths of a second for it, as Python does to import the modules of the
    main job. The context belongs to the process: a later request returns it at once. Errors are
    reported by the code that uses the device later, and meets them too.
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
