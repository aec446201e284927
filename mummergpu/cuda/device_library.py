"""The libraries that a device can be used through; `requirements` says which ones are there.

Both call the same driver and find the same matches. PyCUDA is compiled when it is installed;
NVIDIA's ``cuda-bindings``, which the kernels are compiled with in any case, come ready-made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mummergpu.cuda.device import Device

AUTO: Final = "auto"
"""PyCUDA where it is installed, else `CUDA_BINDINGS`."""

PYCUDA: Final = "pycuda"
CUDA_BINDINGS: Final = "cuda-bindings"

DEVICE_LIBRARIES: Final = (PYCUDA, CUDA_BINDINGS)
"""The libraries, by their names for pip."""


def device_opener(library: str) -> Callable[[int], Device]:
    """Return a function that opens a device, by its number, through one of `DEVICE_LIBRARIES`.

    It raises `BackendError` if the device cannot be opened; `ImportError` is raised here if the
    library is not installed.
    """
    if library == PYCUDA:
        from mummergpu.cuda.pycuda_device import PycudaDevice

        return PycudaDevice
    from mummergpu.cuda.bindings_device import BindingsDevice

    return BindingsDevice
