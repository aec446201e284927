"""A CUDA device through PyCUDA: context, memory, streams, events and launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from mummergpu.cuda.cuda_device import GRANTED_SHARED_BYTES, CudaDevice, argument_codes
from mummergpu.cuda.device import (
    AnyArray,
    Argument,
    BlockShape,
    DeviceMemoryError,
    KernelResources,
    Mark,
    Program,
)
from mummergpu.errors import BackendError


@contextmanager
def _failures() -> Iterator[None]:
    """Raise an error that the driver reports as `BackendError`."""
    try:
        yield
    except cuda.Error as error:
        raise BackendError("cuda", f"the device failed: {error}") from error


class _Buffer:
    def __init__(self, size: int) -> None:
        try:
            self._allocation = cuda.mem_alloc(size)
        except cuda.MemoryError as error:
            raise DeviceMemoryError(f"{size} bytes") from error
        self.address = int(self._allocation)
        self.size = size

    def free(self) -> None:
        self._allocation.free()


class _Mark:
    """A recorded event."""

    def __init__(self, stream: Any) -> None:
        self._event = cuda.Event()
        self._event.record(stream)

    def milliseconds_since(self, earlier: Mark) -> float:
        assert isinstance(earlier, _Mark)
        return float(self._event.time_since(earlier._event))

    def wait(self) -> None:
        with _failures():
            self._event.synchronize()


class _Program:
    """A loaded module."""

    def __init__(self, cubin: bytes, device: PycudaDevice) -> None:
        self._module = cuda.module_from_buffer(cubin)
        self._resources_of = device.resources_of
        self._functions: dict[str, Any] = {}
        self._granted: dict[str, int] = {}

    def function(self, kernel: str, arguments: Sequence[Argument], shared_bytes: int) -> Any:
        """Return a kernel, prepared for arguments of these types and this much shared memory."""
        function = self._functions.get(kernel)
        if function is None:
            function = self._module.get_function(kernel)
            function.prepare(argument_codes(arguments))
            self._functions[kernel] = function
        if shared_bytes > self._granted.get(kernel, GRANTED_SHARED_BYTES):
            attribute = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            function.set_attribute(attribute, shared_bytes)
            self._granted[kernel] = shared_bytes
        return function

    def resources(self, kernel: str, shape: BlockShape | None = None) -> KernelResources:
        function = self._module.get_function(kernel)
        return self._resources_of(
            function.num_regs, function.local_size_bytes, function.shared_size_bytes, shape
        )

    def symbol(self, name: str) -> int:
        return int(self._module.get_global(name)[0])


class _Stream:
    def __init__(self, block_threads: int) -> None:
        self._stream = cuda.Stream()
        self._shape = BlockShape(block_threads, 0)
        self.handle = int(self._stream.handle)

    def copy_in(self, address: int, array: AnyArray) -> None:
        if array.nbytes:
            cuda.memcpy_htod_async(address, array, self._stream)

    def copy_out(self, array: AnyArray, address: int) -> None:
        if array.nbytes:
            cuda.memcpy_dtoh_async(array, address, self._stream)

    def copy_on_device(self, to: int, address: int, size: int) -> None:
        if size:
            cuda.memcpy_dtod_async(to, address, size, self._stream)

    def fill_zero(self, address: int, size: int) -> None:
        if size:
            cuda.memset_d8_async(address, 0, size, self._stream)

    def launch(
        self,
        program: Program,
        kernel: str,
        blocks: int,
        arguments: Sequence[Argument],
        shape: BlockShape | None = None,
    ) -> None:
        assert isinstance(program, _Program)
        shape = shape or self._shape
        function = program.function(kernel, arguments, shape.shared_bytes)
        values = [int(argument) for argument in arguments]
        function.prepared_async_call(
            *((blocks, 1), (shape.threads, 1, 1), self._stream, *values),
            shared_size=shape.shared_bytes,
        )

    def mark(self) -> _Mark:
        return _Mark(self._stream)

    def synchronize(self) -> None:
        with _failures():
            self._stream.synchronize()

    def sleep_until_done(self) -> None:
        flags = cuda.event_flags
        event = cuda.Event(flags.BLOCKING_SYNC | flags.DISABLE_TIMING)
        event.record(self._stream)
        with _failures():
            event.synchronize()

    def free(self) -> None:
        del self._stream


class PycudaDevice(CudaDevice):
    """A CUDA device, by its number from 0 in the driver's order.

    It works in the primary context, which other libraries share. `BackendError` is raised if there
    is no such device, or the driver creates no context.
    """

    library = "pycuda"

    def __init__(self, number: int) -> None:
        try:
            cuda.init()
            count = cuda.Device.count()
            if not 0 <= number < count:
                raise BackendError("cuda", f"there is no device {number}; the driver finds {count}")
            self._context = cuda.Device(number).retain_primary_context()
        except cuda.Error as error:
            raise BackendError("cuda", f"device {number}: the driver answers: {error}") from error
        try:
            super().__init__(number)
        except BaseException:
            self._context.detach()
            raise

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device current in the calling thread for a ``with`` statement.

        An error of the driver that leaves the statement does so as `BackendError`.
        """
        with _failures():
            self._context.push()
            try:
                yield
            finally:
                cuda.Context.pop()

    def memory(self) -> tuple[int, int]:
        """Return the free bytes and the total bytes of the memory."""
        free, total = cuda.mem_get_info()
        return int(free), int(total)

    def allocate(self, size: int) -> _Buffer:
        """Allocate linear memory, not zeroed; raise `DeviceMemoryError` if too little is free."""
        return _Buffer(size)

    def pinned(self, count: int, dtype: npt.DTypeLike) -> AnyArray:
        """Return pinned host memory: the device copies to and from it while the host works on."""
        memory: AnyArray = cuda.pagelocked_empty((count,), np.dtype(dtype))
        return memory

    def new_stream(self) -> _Stream:
        """Return a new stream."""
        return _Stream(self.block_threads)

    def load(self, cubin: bytes) -> _Program:
        """Load a compiled program."""
        return _Program(cubin, self)

    def close(self) -> None:
        """Release the device; none of its memory or streams may be in use any more."""
        self._context.detach()
