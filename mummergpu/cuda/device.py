"""The interface of a device: memory, streams, programs, textures.

The real devices are `cuda_device.CudaDevice` with the calls of one of two libraries
(`device_library`). Tests have another one, which runs kernels compiled for the host, thread by
thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.frozen import frozen

AnyArray = npt.NDArray[Any]

Argument = int | np.uint32
"""An argument of a kernel: 32 bits if it is a `numpy.uint32`, otherwise 64 bits."""


class DeviceMemoryError(Exception):
    """An allocation exceeds the free device memory, or a limit.

    Users never see it: the backend splits its work in two and tries again.
    """


class BlockShape(NamedTuple):
    """The threads of a block, and its shared memory in bytes, up to `Device.shared_bytes`."""

    threads: int
    shared_bytes: int


@frozen
class KernelResources:
    """The registers and the local memory of a kernel's thread, and the shared memory of its block.

    The occupancy is the resident threads of a multiprocessor as a share of the most that it
    supports.
    """

    registers: int
    local_bytes: int
    shared_bytes: int
    occupancy: float


class Buffer(Protocol):
    """Linear memory of a device."""

    address: int
    size: int

    def free(self) -> None:
        """Free the memory, which must no longer be in use."""
        ...


class ExportedMemory(Buffer, Protocol):
    """Linear memory that outlives the `Device`, for other libraries of the process.

    It is freed when `free` is called, or when nothing refers to it any more; any thread may do so.

    Attributes
    ----------
    device_number : int
        The number of the device, as the driver counts them.
    """

    device_number: int

    def copy_out(self, array: AnyArray) -> None:
        """Fill a contiguous array from the beginning of the memory, and wait until that is done."""
        ...


class Texture(Protocol):
    """A texture object, with the array that it reads if it owns one."""

    handle: int
    size: int

    def free(self) -> None:
        """Destroy the object, and its array."""
        ...


class Mark(Protocol):
    """An event recorded in a stream."""

    def milliseconds_since(self, earlier: Mark) -> float:
        """Return the device time between two marks that the device has passed."""
        ...

    def wait(self) -> None:
        """Wait until the device has passed the mark; raise `BackendError` if it fails."""
        ...


class Program(Protocol):
    """A compiled and loaded set of kernels."""

    def resources(self, kernel: str, shape: BlockShape | None = None) -> KernelResources:
        """Return the resources that a kernel uses in blocks of some shape (`Stream.launch`)."""
        ...

    def symbol(self, name: str) -> int:
        """Return the address of a variable of the kernels, which the host may write."""
        ...


class Stream(Protocol):
    """A queue of work that a device does in order, concurrently with other streams.

    Only `synchronize` and `sleep_until_done` wait for the device. Host arrays must not change until
    then, or until the device has passed a mark after their copy.
    """

    @property
    def handle(self) -> int:
        """The stream as the driver knows it, for other libraries."""
        ...

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device."""
        ...

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill a contiguous array from the device."""
        ...

    def copy_on_device(self, to: int, address: int, size: int) -> None:
        """Copy `size` bytes of the device to another address of it."""
        ...

    def fill_zero(self, address: int, size: int) -> None:
        """Zero `size` bytes."""
        ...

    def launch(
        self,
        program: Program,
        kernel: str,
        blocks: int,
        arguments: Sequence[Argument],
        shape: BlockShape | None = None,
    ) -> None:
        """Run a kernel on a number of blocks; None: of `Device.block_threads` threads each."""
        ...

    def mark(self) -> Mark:
        """Record a mark after all work queued so far, and return it."""
        ...

    def synchronize(self) -> None:
        """Wait until all work is done; raise `BackendError` if some of it failed."""
        ...

    def sleep_until_done(self) -> None:
        """Wait as `synchronize` does, which keeps a processor busy meanwhile; this does not.

        It takes some hundredths of a millisecond longer.
        """
        ...

    def free(self) -> None:
        """Destroy the stream."""
        ...


class Device(Protocol):
    """A device, or its substitute in tests.

    Attributes
    ----------
    library : str
        The library that it works through, by its name for pip.
    name : str
        The name shown to users.
    architecture : str
        The architecture that programs are compiled for, such as ``sm_90``.
    block_threads : int
        The number of threads per block, in launches that ask for no other.
    shared_bytes : int
        The most shared memory that a launch can ask for, for a block.
    resident_blocks : int
        About how many blocks can be resident at once.
    """

    library: str
    name: str
    architecture: str
    block_threads: int
    shared_bytes: int
    resident_blocks: int

    def current(self) -> AbstractContextManager[None]:
        """Make the device current in the calling thread for a ``with`` statement."""
        ...

    def memory(self) -> tuple[int, int]:
        """Return the free bytes and the total bytes of the memory."""
        ...

    def allocate(self, size: int) -> Buffer:
        """Allocate linear memory, not zeroed; raise `DeviceMemoryError` if too little is free."""
        ...

    def allocate_exported(self, size: int) -> ExportedMemory:
        """Allocate linear memory that outlives the device object; fail as `allocate` does."""
        ...

    def pinned(self, count: int, dtype: npt.DTypeLike) -> AnyArray:
        """Return pinned host memory: the device copies to and from it while the host works on."""
        ...

    def new_stream(self) -> Stream:
        """Return a new stream."""
        ...

    def load(self, cubin: bytes) -> Program:
        """Load a compiled program."""
        ...

    def linear_texture(self, address: int, texels: int, texel_bytes: int) -> Texture:
        """Return a texture of linear memory, read by texel index."""
        ...

    def array_texture(self, data: AnyArray, width: int, texel_bytes: int) -> Texture:
        """Return a texture of a new two-dimensional array, read by column and row.

        `data` is contiguous, row after row, each of `width` texels.
        """
        ...

    def close(self) -> None:
        """Release the device."""
        ...
