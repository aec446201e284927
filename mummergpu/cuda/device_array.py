"""A column in the memory of a GPU, which other libraries take over without a copy."""

from __future__ import annotations

import weakref
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.cuda import dlpack
from mummergpu.cuda.device import SharedMemory
from mummergpu.errors import ExportError

Number = TypeVar("Number", bound=np.generic)


class DeviceArray(Generic[Number]):
    """A one-dimensional array in the memory of a GPU.

    It has no arithmetic of its own: ``cupy.from_dlpack(x)``, ``torch.from_dlpack(x)``,
    ``jax.dlpack.from_dlpack(x)``, ``cupy.asarray(x)`` and ``numba.cuda.as_cuda_array(x)`` return an
    array of that library in the same memory, without a copy. The memory is freed when neither this
    array nor any of those refers to it, whether the index is closed or not.

    All work on it is done when you get it, so no stream has to wait for another.

    Attributes
    ----------
    dtype : dtype
        The type of its numbers.
    shape : tuple of int
        Its length, as a tuple.
    """

    def __init__(self, memory: SharedMemory, dtype: type[Number], count: int) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (count,)
        self._memory = memory
        # Capsules of this array that nobody took would keep its memory.
        weakref.finalize(self, dlpack.drop_refused).atexit = False

    @property
    def size(self) -> int:
        """The number of its numbers."""
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of its dimensions, 1."""
        return 1

    @property
    def nbytes(self) -> int:
        """The bytes of its numbers."""
        return self.size * self.dtype.itemsize

    @property
    def address(self) -> int:
        """The address of its first number on the device."""
        return self._memory.address

    def to_host(self) -> npt.NDArray[Number]:
        """Return a copy of the numbers in an array of numpy; `BackendError` if the device fails."""
        found = np.empty(self.shape, dtype=self.dtype)
        self._memory.copy_out(found)
        return cast("npt.NDArray[Number]", found)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        kind, number = self._memory.place
        where = f"GPU {number}" if kind == dlpack.CUDA else f"device {kind}:{number}"
        return f"<mummergpu.DeviceArray of {self.size:,} {self.dtype} on {where}>"

    def __array__(self, dtype: object = None, copy: object = None) -> npt.NDArray[Any]:
        """Refuse to become an array of numpy unasked, which would be a copy to the host."""
        raise ExportError("it is on a device; to_host() copies it to an array of numpy")

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the type of the device, as DLPack numbers it, and its number."""
        return self._memory.place

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a capsule of DLPack, for the ``from_dlpack`` of another library.

        As all work on the array is done, any `stream` may use it at once. The array goes nowhere
        else than where it is, and is never copied: `dl_device` and `copy` may not ask for that.

        Raises
        ------
        ExportError
            If the consumer asks for a copy, another device, or a stream of no meaning.
        """
        if copy:
            raise ExportError("its memory is shared, never copied")
        if dl_device is not None and tuple(dl_device) != self._memory.place:
            wanted, place = tuple(dl_device), self._memory.place
            raise ExportError(f"it is on device {place}, and {wanted} is asked for")
        # DLPack: 1 and 2 are the two default streams, and 0 could be either.
        if stream is not None and (stream == 0 or stream < -1):
            raise ExportError(f"stream {stream} has no meaning in DLPack")
        return dlpack.new_capsule(
            self._memory,
            self._memory.address,
            self.shape,
            self.dtype,
            self._memory.place,
            is_versioned=max_version is not None and max_version[0] >= dlpack.VERSION[0],
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array as the interface of CUDA arrays describes it, version 3."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            # The interface wants no address of an array without numbers.
            "data": (self._memory.address if self.size else 0, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }
