"""What the backend asks of a device: memory, streams, programs, textures.

`pycuda_device.PycudaDevice` is the real one. Tests have another, on which the kernels are
compiled for the host and run thread by thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

AnyArray = npt.NDArray[Any]

Argument = int | np.uint32
"""An argument of a kernel: 64 bits, or 32 where it is a `numpy.uint32`."""


class DeviceMemoryError(Exception):
    """Device memory that was asked for is not there, or over a limit.

    Not for users: the backend cuts its work in two and tries again.
    """


@dataclass(frozen=True)
class KernelResources:
    """What a thread or a block of a compiled kernel takes.

    Attributes
    ----------
    registers : int
        Registers of a thread.
    local_bytes : int
        Local memory of a thread.
    shared_bytes : int
        Shared memory of a block.
    occupancy : float
        The threads that a multiprocessor can keep under way, as a share of the most it could.
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
        """Give the memory back; nothing may use it any more."""
        ...


class Texture(Protocol):
    """A texture object, and the array that it reads if it has one of its own."""

    handle: int
    size: int

    def free(self) -> None:
        """Destroy the object, and its array."""
        ...


class Mark(Protocol):
    """A point in the work of a stream."""

    def milliseconds_since(self, earlier: Mark) -> float:
        """Return the device's time between two marks that it has passed."""
        ...

    def wait(self) -> None:
        """Wait until the device has passed the mark; raise `BackendError` if it fails."""
        ...


class Program(Protocol):
    """A compiled and loaded set of kernels."""

    def resources(self, kernel: str) -> KernelResources:
        """Return what a kernel takes."""
        ...


class Stream(Protocol):
    """Work of a device that is done in order, beside that of other streams.

    Only `synchronize` waits for the device; host arrays must stay as they are until then, or
    until a mark after their copy has been passed.
    """

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device."""
        ...

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill a contiguous array from the device."""
        ...

    def fill_zero(self, address: int, size: int) -> None:
        """Zero `size` bytes."""
        ...

    def launch(
        self, program: Program, kernel: str, blocks: int, arguments: Sequence[Argument]
    ) -> None:
        """Run a kernel on a number of blocks of `Device.block_threads` threads each."""
        ...

    def mark(self) -> Mark:
        """Return a mark after everything that has been asked for so far."""
        ...

    def synchronize(self) -> None:
        """Wait until all work is done; raise `BackendError` if some of it failed."""
        ...

    def free(self) -> None:
        """Give the stream back."""
        ...


class Device(Protocol):
    """A device, or what stands in for one.

    Attributes
    ----------
    name : str
        For people.
    architecture : str
        What programs are compiled for, such as ``sm_90``.
    block_threads : int
        The threads of a block, in every launch.
    resident_blocks : int
        About how many blocks can be under way at once.
    texture_texels : int
        The most texels of a one-dimensional texture.
    """

    name: str
    architecture: str
    block_threads: int
    resident_blocks: int
    texture_texels: int

    def current(self) -> AbstractContextManager[None]:
        """Make the device the calling thread's for the block of a ``with`` statement."""
        ...

    def memory(self) -> tuple[int, int]:
        """Return the bytes that are free, and all bytes."""
        ...

    def allocate(self, size: int) -> Buffer:
        """Return linear memory, not zeroed; raise `DeviceMemoryError` if there is not enough."""
        ...

    def pinned(self, count: int, dtype: npt.DTypeLike) -> AnyArray:
        """Return host memory that the device can copy to and from while the host goes on."""
        ...

    def new_stream(self) -> Stream:
        """Return a new stream."""
        ...

    def load(self, cubin: bytes) -> Program:
        """Load a compiled program."""
        ...

    def linear_texture(self, address: int, texels: int, texel_bytes: int) -> Texture:
        """Return a texture of linear memory, read by the number of a texel."""
        ...

    def array_texture(self, data: AnyArray, width: int, texel_bytes: int) -> Texture:
        """Return a texture of a new two-dimensional array, read by column and row.

        `data` is contiguous, row after row, each of `width` texels.
        """
        ...

    def close(self) -> None:
        """Let go of the device."""
        ...
