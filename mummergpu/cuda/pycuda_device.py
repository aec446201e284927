"""A CUDA device through PyCUDA: context, memory, streams, events and launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from mummergpu.cuda.device import (
    AnyArray,
    Argument,
    BlockShape,
    DeviceMemoryError,
    KernelResources,
    Mark,
    Program,
    Texture,
)
from mummergpu.cuda.exported_memory import PrimaryContextMemory
from mummergpu.cuda.nvrtc import choose_architecture
from mummergpu.cuda.occupancy import occupancy
from mummergpu.cuda.program import BLOCK_THREADS
from mummergpu.cuda.textures import ArrayTexture, LinearTexture
from mummergpu.errors import BackendError


@contextmanager
def _failures() -> Iterator[None]:
    """Raise an error that the driver reports as `BackendError`."""
    try:
        yield
    except cuda.Error as error:
        raise BackendError("cuda", f"the device failed: {error}") from error


class PycudaBuffer:
    """Linear memory of a device."""

    def __init__(self, size: int) -> None:
        try:
            self._allocation = cuda.mem_alloc(size)
        except cuda.MemoryError as error:
            raise DeviceMemoryError(f"{size} bytes") from error
        self.address = int(self._allocation)
        self.size = size

    def free(self) -> None:
        """Free the memory, which must no longer be in use."""
        self._allocation.free()


class PycudaMark:
    """A recorded event."""

    def __init__(self, stream: Any) -> None:
        self._event = cuda.Event()
        self._event.record(stream)

    def milliseconds_since(self, earlier: Mark) -> float:
        """Return the device time between two marks that the device has passed."""
        assert isinstance(earlier, PycudaMark)
        return float(self._event.time_since(earlier._event))

    def wait(self) -> None:
        """Wait until the device has passed the mark; raise `BackendError` if it fails."""
        with _failures():
            self._event.synchronize()


class PycudaProgram:
    """A loaded module."""

    def __init__(self, cubin: bytes, device: Any) -> None:
        self._module = cuda.module_from_buffer(cubin)
        self._device = device
        self._functions: dict[str, Any] = {}

    def function(self, kernel: str, arguments: Sequence[Argument]) -> Any:
        """Return a kernel, prepared for arguments of these types."""
        found = self._functions.get(kernel)
        if found is None:
            found = self._module.get_function(kernel)
            found.prepare("".join(argument_code(argument) for argument in arguments))
            self._functions[kernel] = found
        return found

    def resources(self, kernel: str) -> KernelResources:
        """Return the resources that a kernel uses."""
        function = self._module.get_function(kernel)
        attribute = cuda.device_attribute
        share = occupancy(
            function.num_regs,
            self._device.get_attribute(attribute.MAX_THREADS_PER_MULTIPROCESSOR),
            self._device.get_attribute(attribute.MAX_REGISTERS_PER_MULTIPROCESSOR),
        )
        return KernelResources(
            function.num_regs, function.local_size_bytes, function.shared_size_bytes, share
        )

    def symbol(self, name: str) -> int:
        """Return the address of a variable of the kernels, which the host may write."""
        return int(self._module.get_global(name)[0])


def argument_code(argument: Argument) -> str:
    """Return the format code with which PyCUDA packs an argument."""
    return "I" if isinstance(argument, np.uint32) else "Q"


class PycudaStream:
    """A queue of work that runs in order, concurrently with other streams."""

    def __init__(self) -> None:
        self._stream = cuda.Stream()

    @property
    def handle(self) -> int:
        """The stream as the driver knows it, for other libraries."""
        return int(self._stream.handle)

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device."""
        if array.nbytes:
            cuda.memcpy_htod_async(address, array, self._stream)

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill a contiguous array from the device."""
        if array.nbytes:
            cuda.memcpy_dtoh_async(array, address, self._stream)

    def copy_on_device(self, to: int, address: int, size: int) -> None:
        """Copy `size` bytes of the device to another address of it."""
        if size:
            cuda.memcpy_dtod_async(to, address, size, self._stream)

    def fill_zero(self, address: int, size: int) -> None:
        """Zero `size` bytes."""
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
        """Run a kernel on a number of blocks."""
        shape = BlockShape(BLOCK_THREADS, 0) if shape is None else shape
        assert isinstance(program, PycudaProgram)
        function = program.function(kernel, arguments)
        values = [int(argument) for argument in arguments]
        function.prepared_async_call(
            *((blocks, 1), (shape.threads, 1, 1), self._stream, *values),
            shared_size=shape.shared_bytes,
        )

    def mark(self) -> PycudaMark:
        """Record a mark after all work queued so far, and return it."""
        return PycudaMark(self._stream)

    def synchronize(self) -> None:
        """Wait until all work is done; raise `BackendError` if some of it failed."""
        with _failures():
            self._stream.synchronize()

    def sleep_until_done(self) -> None:
        """Wait as `synchronize` does, but let other threads have the processor."""
        flags = cuda.event_flags
        event = cuda.Event(flags.BLOCKING_SYNC | flags.DISABLE_TIMING)
        event.record(self._stream)
        with _failures():
            event.synchronize()

    def free(self) -> None:
        """Destroy the stream, when its work is done."""
        del self._stream


class PycudaDevice:
    """A CUDA device, by its number from 0 in the driver's order.

    It works in the primary context, which other libraries share.

    Raises
    ------
    BackendError
        If there is no such device, or the driver creates no context.
    """

    library = "pycuda"

    def __init__(self, number: int) -> None:
        self._number = number
        try:
            cuda.init()
            count = cuda.Device.count()
            if not 0 <= number < count:
                raise BackendError("cuda", f"there is no device {number}; the driver finds {count}")
            self._device = cuda.Device(number)
            self._context = self._device.retain_primary_context()
        except cuda.Error as error:
            raise BackendError("cuda", f"device {number}: the driver answers: {error}") from error
        attribute = cuda.device_attribute
        major, minor = self._device.compute_capability()
        get = self._device.get_attribute
        self.name = str(self._device.name())
        self.architecture = choose_architecture((major, minor))
        self.block_threads = BLOCK_THREADS
        self.shared_bytes = int(get(attribute.MAX_SHARED_MEMORY_PER_BLOCK))
        self.resident_blocks = int(
            get(attribute.MULTIPROCESSOR_COUNT)
            * (get(attribute.MAX_THREADS_PER_MULTIPROCESSOR) // BLOCK_THREADS)
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the device current in the calling thread for a ``with`` statement.

        Statements for the same device or for several may be nested. An error of the driver that
        leaves the statement does so as `BackendError`.
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

    def allocate(self, size: int) -> PycudaBuffer:
        """Allocate linear memory, not zeroed; raise `DeviceMemoryError` if too little is free."""
        return PycudaBuffer(size)

    def allocate_exported(self, size: int) -> PrimaryContextMemory:
        """Allocate linear memory that outlives the device object; fail as `allocate` does."""
        return PrimaryContextMemory(self._number, size)

    def pinned(self, count: int, dtype: npt.DTypeLike) -> AnyArray:
        """Return pinned host memory: the device copies to and from it while the host works on."""
        found: AnyArray = cuda.pagelocked_empty((count,), np.dtype(dtype))
        return found

    def new_stream(self) -> PycudaStream:
        """Return a new stream."""
        return PycudaStream()

    def load(self, cubin: bytes) -> PycudaProgram:
        """Load a compiled program."""
        return PycudaProgram(cubin, self._device)

    def linear_texture(self, address: int, texels: int, texel_bytes: int) -> Texture:
        """Return a texture of linear memory, read by texel index."""
        return LinearTexture(address, texels, texel_bytes)

    def array_texture(self, data: AnyArray, width: int, texel_bytes: int) -> Texture:
        """Return a texture of a new two-dimensional array, read by column and row."""
        return ArrayTexture(data, width, texel_bytes)

    def close(self) -> None:
        """Release the device; none of its memory or streams may be in use any more."""
        self._context.detach()
