"""The part of a CUDA device that is the same through either library.

It calls NVIDIA's ``cuda-bindings``, which every installation for a GPU has: PyCUDA has no textures.
Memory for other libraries of the process comes from there, too: a context that PyCUDA holds at the
end of the process would abort it, and nobody knows how long others keep the memory.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import numpy as np
from cuda.bindings import driver

from mummergpu.cuda.device import (
    AnyArray,
    Argument,
    BlockShape,
    DeviceMemoryError,
    KernelResources,
    Texture,
)
from mummergpu.cuda.nvrtc import choose_architecture
from mummergpu.cuda.program import BLOCK_THREADS
from mummergpu.errors import BackendError
from mummergpu.runtime.optional_imports import in_one_line

_NAME_BYTES: Final = 256

GRANTED_SHARED_BYTES: Final = 48 << 10
"""The shared memory that a launch may ask for without permission."""

_REGISTER_UNIT: Final = 8
"""The registers of a thread are allocated in multiples of this number."""

_TEXEL_FORMATS: Final = {
    1: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1),
    8: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, 2),
    16: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, 4),
}
"""The channel format and the number of channels, by the bytes of a texel."""

_READ_AS_INTEGER: Final = 1
"""CU_TRSF_READ_AS_INTEGER."""

_TEXTURE: Final = "a texture"
"""What the memory is for, if there is too little."""


class CallError(BackendError):
    """A call of the driver failed."""

    def __init__(self, reason: str, is_out_of_memory: bool = False) -> None:
        super().__init__("cuda", f"the device failed: {reason}")
        self.reason = reason
        self.is_out_of_memory = is_out_of_memory

    def __reduce__(self) -> tuple[type[CallError], tuple[str, bool]]:
        return type(self), (self.reason, self.is_out_of_memory)


def call(function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a function of ``cuda.bindings.driver``; return None, its value or its values.

    `CallError` is raised if it returns an error, or the driver does not have it.
    """
    try:
        error, *values = function(*arguments)
    except RuntimeError as problem:
        # There is no driver, or it is too old for this function.
        raise CallError(f"{function.__name__} failed: {in_one_line(problem)}") from problem
    if error != driver.CUresult.CUDA_SUCCESS:
        reason = f"{function.__name__} failed: {_meaning(error)}"
        raise CallError(reason, error == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY)
    if len(values) > 1:
        return tuple(values)
    return values[0] if values else None


def argument_codes(arguments: Sequence[Argument]) -> str:
    """Return the format codes, those of `struct`, with which a kernel's arguments are packed."""
    return "".join("I" if isinstance(one, np.uint32) else "Q" for one in arguments)


def call_for_memory(wanted: str, function: Callable[..., tuple[Any, ...]], *arguments: Any) -> Any:
    """Call a function that takes memory of the device; `DeviceMemoryError` if it is too little."""
    try:
        return call(function, *arguments)
    except CallError as error:
        if error.is_out_of_memory:
            raise DeviceMemoryError(wanted) from error
        raise


def _meaning(error: Any) -> str:
    """Return the meaning of an error code, in the words of the driver where it knows the code."""
    try:
        answer, text = driver.cuGetErrorString(error)
        if answer == driver.CUresult.CUDA_SUCCESS and text:
            return str(text.decode(errors="replace"))
    except (RuntimeError, TypeError, ValueError):
        # A driver that is newer than the bindings may return a code that they do not know.
        pass
    return str(getattr(error, "name", error))


class PrimaryContext:
    """The primary context of a device, which all libraries of the process share.

    It is retained until `release` is called, and never reset: memory of other libraries stays as it
    is. `BackendError` is raised if there is no such device, or the driver creates no context.
    """

    def __init__(self, number: int) -> None:
        try:
            call(driver.cuInit, 0)
            count = call(driver.cuDeviceGetCount)
            if not 0 <= number < count:
                raise BackendError("cuda", f"there is no device {number}; the driver finds {count}")
            self._device = call(driver.cuDeviceGet, number)
            self._handle = call(driver.cuDevicePrimaryCtxRetain, self._device)
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
    ) -> Callable[[], Any]:
        """Return a function that gives a handle of this context back with a function of the driver.

        If nobody has called it before, that is done when the owner is collected; later calls do
        nothing. No error is raised: if the driver gives nothing back, the device has failed, and
        those who waited for its work have had the error.
        """
        finalizer = weakref.finalize(owner, self.give_back, free, handle)
        # The end of the process gives everything back.
        finalizer.atexit = False
        return finalizer

    def give_back(self, free: Callable[[Any], tuple[Any, ...]], handle: Any) -> None:
        """Give something of this context back, as the function of `finalizer` does."""
        if self._is_released:
            # The rest went with the context, and its address may be somebody else's by now.
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
            call(driver.cuDevicePrimaryCtxRelease, self._device)


class PrimaryContextMemory:
    """Linear memory that retains the primary context by itself (`device.ExportedMemory`)."""

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

    The driver waits for work that still uses the memory before it frees it, so a caller who drops
    an array need not wait.
    """
    if os.getpid() == process:
        context.give_back(driver.cuMemFree, memory)
        with suppress(BackendError):
            context.release()


class _Texture:
    """A texture object, and the array that it reads if it owns one."""

    def __init__(self, resource: Any, size: int = 0, array: Any = None) -> None:
        # It reads integers by unscaled coordinates, unfiltered.
        description = driver.CUDA_TEXTURE_DESC()
        description.flags = _READ_AS_INTEGER
        description.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
        description.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
        self._texture = call_for_memory(
            _TEXTURE, driver.cuTexObjectCreate, resource, description, None
        )
        self._array = array
        self.handle = int(self._texture)
        self.size = size

    def free(self) -> None:
        call(driver.cuTexObjectDestroy, self._texture)
        if self._array is not None:
            call(driver.cuArrayDestroy, self._array)


class CudaDevice:
    """The part of a device that is the same through either library (`device.Device`).

    The subclass has initialized the driver.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._handle = call(driver.cuDeviceGet, number)
        capability = tuple(
            self._attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
        )
        self._threads = self._attribute("MAX_THREADS_PER_MULTIPROCESSOR")
        name = call(driver.cuDeviceGetName, _NAME_BYTES, self._handle)
        self.name = name.partition(b"\0")[0].decode(errors="replace")
        self.architecture = choose_architecture((capability[0], capability[1]))
        self.block_threads = BLOCK_THREADS
        self.shared_bytes = self._attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        blocks = self._threads // BLOCK_THREADS
        self.resident_blocks = self._attribute("MULTIPROCESSOR_COUNT") * blocks

    def _attribute(self, name: str) -> int:
        attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(call(driver.cuDeviceGetAttribute, attribute, self._handle))

    def resources_of(
        self, registers: int, local_bytes: int, shared_bytes: int, shape: BlockShape | None
    ) -> KernelResources:
        """Return the resources of a kernel in blocks of some shape.

        The resident blocks are bounded by threads, registers, shared memory and their number, as
        in NVIDIA's occupancy calculator.
        """
        threads, dynamic = shape or BlockShape(BLOCK_THREADS, 0)
        taken = -(-max(registers, 1) // _REGISTER_UNIT) * _REGISTER_UNIT
        reserved = self._attribute("RESERVED_SHARED_MEMORY_PER_BLOCK")
        shared_bytes += dynamic
        blocks = min(
            self._threads // threads,
            self._attribute("MAX_BLOCKS_PER_MULTIPROCESSOR"),
            self._attribute("MAX_REGISTERS_PER_MULTIPROCESSOR") // (taken * threads),
            self._attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") // (shared_bytes + reserved),
        )
        occupancy = blocks * threads / self._threads
        return KernelResources(registers, local_bytes, shared_bytes, occupancy)

    def allocate_exported(self, size: int) -> PrimaryContextMemory:
        """Allocate linear memory that outlives the device object; fail as `allocate` does."""
        return PrimaryContextMemory(self._number, size)

    def linear_texture(self, address: int, texels: int, texel_bytes: int) -> Texture:
        """Return a texture of linear memory, read by texel index."""
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        resource.res.linear.devPtr = driver.CUdeviceptr(address)
        resource.res.linear.format, resource.res.linear.numChannels = _TEXEL_FORMATS[texel_bytes]
        resource.res.linear.sizeInBytes = texels * texel_bytes
        return _Texture(resource)

    def array_texture(self, data: AnyArray, width: int, texel_bytes: int) -> Texture:
        """Return a texture of a new two-dimensional array, read by column and row."""
        row_bytes = width * texel_bytes
        shape = driver.CUDA_ARRAY_DESCRIPTOR()
        shape.Width, shape.Height = width, data.nbytes // row_bytes
        shape.Format, shape.NumChannels = _TEXEL_FORMATS[texel_bytes]
        array = call_for_memory(_TEXTURE, driver.cuArrayCreate, shape)
        try:
            copy = driver.CUDA_MEMCPY2D()
            copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
            copy.srcHost, copy.srcPitch = data.ctypes.data, row_bytes
            copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
            copy.dstArray = array
            copy.WidthInBytes, copy.Height = row_bytes, shape.Height
            call_for_memory(_TEXTURE, driver.cuMemcpy2D, copy)
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = array
            return _Texture(resource, data.nbytes, array)
        except BaseException:
            call(driver.cuArrayDestroy, array)
            raise
