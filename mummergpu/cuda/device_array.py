"""A column in the memory of a GPU, which other libraries take over without a copy."""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from mummergpu.cuda.device import ExportedMemory
from mummergpu.errors import ExportError

Number = TypeVar("Number", bound=np.generic)


class DeviceArray(Generic[Number]):
    """A one-dimensional array in the memory of a GPU.

    It has no arithmetic of its own: ``cupy.asarray(x)``, ``torch.as_tensor(x, device="cuda")``,
    ``numba.cuda.as_cuda_array(x)`` and ``cudf.Series(x)`` return an array of that library in the
    same memory, without a copy. The memory is freed when neither this array nor any of those refers
    to it, whether the index is closed or not.

    All work on it is done when you get it, so no stream has to wait for another.

    Attributes
    ----------
    dtype : dtype
        The type of its numbers.
    shape : tuple of int
        Its length, as a tuple.
    """

    def __init__(self, memory: ExportedMemory, dtype: type[Number], count: int) -> None:
        self.dtype = np.dtype(dtype)
        self.shape = (count,)
        self._memory = memory

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
        where = f"GPU {self._memory.device_number}"
        return f"<mummergpu.DeviceArray of {self.size:,} {self.dtype} on {where}>"

    def __array__(self, dtype: object = None, copy: object = None) -> npt.NDArray[Any]:
        """Refuse to become an array of numpy unasked, which would be a copy to the host."""
        raise ExportError("it is on a device; to_host() copies it to an array of numpy")

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
