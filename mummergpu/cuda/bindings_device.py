"""A CUDA device through NVIDIA's ``cuda-bindings``, which are installed without a compiler.

Only the driver's own functions are called. The classes of ``cuda-core`` are built on the same
functions, but they bring memory pools of their own, and do not let a context be current for a
while only.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cuda.bindings import driver

from mummergpu.cuda.cuda_device import (
    GRANTED_SHARED_BYTES,
    CudaDevice,
    PrimaryContext,
    argument_codes,
    call,
    call_for_memory,
)
from mummergpu.cuda.device import AnyArray, Argument, BlockShape, KernelResources, Mark, Program

# From the driver's header: what an array of further arguments of a launch holds.
_LAUNCH_PARAMETERS_END: Final = 0
_LAUNCH_PARAMETERS_AT: Final = 1
_LAUNCH_PARAMETERS_SIZE: Final = 2


class _Buffer:
    def __init__(self, context: PrimaryContext, size: int) -> None:
        memory = call_for_memory(f"{size} bytes", driver.cuMemAlloc, size)
        self._free = context.finalizer(self, driver.cuMemFree, memory)
        self.address = int(memory)
        self.size = size

    def free(self) -> None:
        """Free the memory; whoever holds this method holds the memory."""
        self._free()


class _PinnedMemory:
    """Pinned memory of the host, freed when the last array of it is gone."""

    def __init__(self, context: PrimaryContext, size: int) -> None:
        address = call(driver.cuMemHostAlloc, max(size, 1), 0)
        context.finalizer(self, driver.cuMemFreeHost, address)
        self.__array_interface__ = {
            "shape": (size,),
            "typestr": np.dtype(np.uint8).str,
            "data": (int(address), False),
            "version": 3,
        }


class _Events:
    """The events of a stream, which are used again when their marks are gone."""

    def __init__(self, context: PrimaryContext, flags: int = 0) -> None:
        self._context = context
        self._flags = flags
        self._idle: list[Any] = []
        self._is_closed = False

    def take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return call(driver.cuEventCreate, self._flags)

    def give_back(self, event: Any) -> None:
        """Let an event be used again; threads may call this at any time."""
        self._idle.append(event)
        if self._is_closed:
            self.close()

    def close(self) -> None:
        """Destroy the events that are not in use, and from now on those that are given back."""
        self._is_closed = True
        with suppress(IndexError):
            while True:
                self._context.give_back(driver.cuEventDestroy, self._idle.pop())


class _Mark:
    """A recorded event, which goes back to the events of its stream in the end."""

    def __init__(self, events: _Events, event: Any) -> None:
        self._events = events
        self.event = event

    def __del__(self) -> None:
        self._events.give_back(self.event)

    def milliseconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, _Mark)
        return float(call(driver.cuEventElapsedTime, earlier.event, self.event))

    def wait(self) -> None:
        call(driver.cuEventSynchronize, self.event)


class _Arguments:
    """Memory for the arguments of one launch at a time, packed as the kernel reads them."""

    def __init__(self, codes: str) -> None:
        self._layout = struct.Struct(codes)
        self._packed = ctypes.create_string_buffer(max(self._layout.size, 1))
        self._size = ctypes.c_size_t(self._layout.size)
        self._list = (ctypes.c_void_p * 5)(
            *(_LAUNCH_PARAMETERS_AT, ctypes.addressof(self._packed)),
            *(_LAUNCH_PARAMETERS_SIZE, ctypes.addressof(self._size)),
            _LAUNCH_PARAMETERS_END,
        )
        self.address = ctypes.addressof(self._list)

    def fill(self, arguments: Sequence[Argument]) -> None:
        self._layout.pack_into(self._packed, 0, *arguments)


class _Kernel:
    """A kernel of a loaded module, and memory for the arguments of its launches."""

    def __init__(self, function: Any, arguments: Sequence[Argument]) -> None:
        self._function = function
        self._codes = argument_codes(arguments)
        self._idle: list[_Arguments] = []
        self._granted = GRANTED_SHARED_BYTES

    def launch(
        self, stream: Any, blocks: int, arguments: Sequence[Argument], shape: BlockShape
    ) -> None:
        """Queue a launch; threads may do so at the same time."""
        if shape.shared_bytes > self._granted:
            what = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            call(driver.cuFuncSetAttribute, self._function, what, shape.shared_bytes)
            self._granted = shape.shared_bytes
        try:
            packed = self._idle.pop()
        except IndexError:
            packed = _Arguments(self._codes)
        packed.fill(arguments)
        call(
            driver.cuLaunchKernel,
            *(self._function, blocks, 1, 1, shape.threads, 1, 1),
            *(shape.shared_bytes, stream, 0, packed.address),
        )
        # The driver has copied the arguments.
        self._idle.append(packed)


class _Program:
    """A loaded module."""

    def __init__(self, cubin: bytes, device: BindingsDevice, context: PrimaryContext) -> None:
        self._module = call(driver.cuModuleLoadData, cubin)
        self.unload = context.finalizer(self, driver.cuModuleUnload, self._module)
        self._resources_of = device.resources_of
        self._kernels: dict[str, _Kernel] = {}

    def kernel(self, name: str, arguments: Sequence[Argument]) -> _Kernel:
        """Return a kernel, prepared for arguments of these types."""
        kernel = self._kernels.get(name)
        if kernel is None:
            kernel = self._kernels[name] = _Kernel(self._function(name), arguments)
        return kernel

    def resources(self, kernel: str, shape: BlockShape | None = None) -> KernelResources:
        function = self._function(kernel)
        attributes = driver.CUfunction_attribute
        registers, local_bytes, shared_bytes = (
            int(call(driver.cuFuncGetAttribute, attribute, function))
            for attribute in (
                attributes.CU_FUNC_ATTRIBUTE_NUM_REGS,
                attributes.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                attributes.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
            )
        )
        return self._resources_of(registers, local_bytes, shared_bytes, shape)

    def symbol(self, name: str) -> int:
        address, _ = call(driver.cuModuleGetGlobal, self._module, name.encode())
        return int(address)

    def _function(self, name: str) -> Any:
        return call(driver.cuModuleGetFunction, self._module, name.encode())


class _Stream:
    def __init__(self, context: PrimaryContext, block_threads: int) -> None:
        self._stream = call(driver.cuStreamCreate, 0)
        self._destroy = context.finalizer(self, driver.cuStreamDestroy, self._stream)
        self._events = _Events(context)
        flags = driver.CUevent_flags
        self._events_to_sleep = _Events(
            context, flags.CU_EVENT_BLOCKING_SYNC.value | flags.CU_EVENT_DISABLE_TIMING.value
        )
        self._shape = BlockShape(block_threads, 0)
        self.handle = int(self._stream)

    def copy_in(self, address: int, array: AnyArray) -> None:
        if array.nbytes:
            call(driver.cuMemcpyHtoDAsync, address, array.ctypes.data, array.nbytes, self._stream)

    def copy_out(self, array: AnyArray, address: int) -> None:
        if array.nbytes:
            call(driver.cuMemcpyDtoHAsync, array.ctypes.data, address, array.nbytes, self._stream)

    def copy_on_device(self, to: int, address: int, size: int) -> None:
        if size:
            call(driver.cuMemcpyDtoDAsync, to, address, size, self._stream)

    def fill_zero(self, address: int, size: int) -> None:
        if size:
            call(driver.cuMemsetD8Async, address, 0, size, self._stream)

    def launch(
        self,
        program: Program,
        kernel: str,
        blocks: int,
        arguments: Sequence[Argument],
        shape: BlockShape | None = None,
    ) -> None:
        assert isinstance(program, _Program)
        program.kernel(kernel, arguments).launch(
            self._stream, blocks, arguments, shape or self._shape
        )

    def mark(self) -> _Mark:
        return self._record(self._events)

    def synchronize(self) -> None:
        call(driver.cuStreamSynchronize, self._stream)

    def sleep_until_done(self) -> None:
        self._record(self._events_to_sleep).wait()

    def _record(self, events: _Events) -> _Mark:
        mark = _Mark(events, events.take())
        call(driver.cuEventRecord, mark.event, self._stream)
        return mark

    def free(self) -> None:
        self._events.close()
        self._events_to_sleep.close()
        self._destroy()


class BindingsDevice(CudaDevice):
    """A CUDA device, by its number from 0 in the driver's order.

    It works in the primary context, which other libraries share. `BackendError` is raised if there
    is no such device, or the driver creates no context.
    """

    library = "cuda-bindings"

    def __init__(self, number: int) -> None:
        self._programs = weakref.WeakSet[_Program]()
        self._context = PrimaryContext(number)
        try:
            super().__init__(number)
        except BaseException:
            self._context.release()
            raise

    def current(self) -> AbstractContextManager[None]:
        """Make the device current in the calling thread for a ``with`` statement."""
        return self._context.current()

    def memory(self) -> tuple[int, int]:
        """Return the free bytes and the total bytes of the memory."""
        free, total = call(driver.cuMemGetInfo)
        return int(free), int(total)

    def allocate(self, size: int) -> _Buffer:
        """Allocate linear memory, not zeroed; raise `DeviceMemoryError` if too little is free."""
        return _Buffer(self._context, size)

    def pinned(self, count: int, dtype: npt.DTypeLike) -> AnyArray:
        """Return pinned host memory: the device copies to and from it while the host works on."""
        kind = np.dtype(dtype)
        return np.asarray(_PinnedMemory(self._context, count * kind.itemsize)).view(kind)

    def new_stream(self) -> _Stream:
        """Return a new stream."""
        return _Stream(self._context, self.block_threads)

    def load(self, cubin: bytes) -> _Program:
        """Load a compiled program."""
        program = _Program(cubin, self, self._context)
        self._programs.add(program)
        return program

    def close(self) -> None:
        """Release the device; none of its memory or streams may be in use any more."""
        # Another library may keep the context, and the programs with it.
        for program in list(self._programs):
            program.unload()
        self._context.release()
