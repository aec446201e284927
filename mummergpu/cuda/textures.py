"""Texture objects through NVIDIA's ``cuda-bindings``, whatever library the device works through.

PyCUDA has none. They work in the context that is current, and read memory of any library.
"""

from __future__ import annotations

from typing import Any, Final

from cuda.bindings import driver

from mummergpu.cuda.device import AnyArray
from mummergpu.cuda.driver_calls import call, call_for_memory

_FORMATS: Final = {
    1: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8, 1),
    8: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, 2),
    16: (driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT32, 4),
}
"""The channel format and the number of channels, by the bytes of a texel."""

READ_AS_INTEGER: Final = 1
"""CU_TRSF_READ_AS_INTEGER."""

_TEXTURE: Final = "a texture"
"""What the memory is for, if there is too little."""


def new_texture(resource: Any) -> Any:
    """Return a texture object that reads integers by unscaled coordinates, unfiltered."""
    description = driver.CUDA_TEXTURE_DESC()
    description.flags = READ_AS_INTEGER
    description.filterMode = driver.CUfilter_mode.CU_TR_FILTER_MODE_POINT
    description.addressMode = [driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP] * 3
    return call_for_memory(_TEXTURE, driver.cuTexObjectCreate, resource, description, None)


class LinearTexture:
    """A texture of linear memory, which it does not own."""

    def __init__(self, address: int, texels: int, texel_bytes: int) -> None:
        resource = driver.CUDA_RESOURCE_DESC()
        resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_LINEAR
        resource.res.linear.devPtr = driver.CUdeviceptr(address)
        resource.res.linear.format, resource.res.linear.numChannels = _FORMATS[texel_bytes]
        resource.res.linear.sizeInBytes = texels * texel_bytes
        self._texture = new_texture(resource)
        self.handle = int(self._texture)
        self.size = 0

    def free(self) -> None:
        """Destroy the object."""
        call(driver.cuTexObjectDestroy, self._texture)


class ArrayTexture:
    """A texture of a two-dimensional array, which it creates and fills row after row.

    A texel has 1, 8 or 16 bytes.
    """

    def __init__(self, data: AnyArray, width: int, texel_bytes: int) -> None:
        rows = data.nbytes // (width * texel_bytes)
        shape = driver.CUDA_ARRAY_DESCRIPTOR()
        shape.Width = width
        shape.Height = rows
        shape.Format, shape.NumChannels = _FORMATS[texel_bytes]
        self._array = call_for_memory(_TEXTURE, driver.cuArrayCreate, shape)
        try:
            self._fill(data, width * texel_bytes, rows)
            resource = driver.CUDA_RESOURCE_DESC()
            resource.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
            resource.res.array.hArray = self._array
            self._texture = new_texture(resource)
        except BaseException:
            call(driver.cuArrayDestroy, self._array)
            raise
        self.handle = int(self._texture)
        self.size = data.nbytes

    def _fill(self, data: AnyArray, row_bytes: int, rows: int) -> None:
        copy = driver.CUDA_MEMCPY2D()
        copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
        copy.srcHost = data.ctypes.data
        copy.srcPitch = row_bytes
        copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
        copy.dstArray = self._array
        copy.WidthInBytes = row_bytes
        copy.Height = rows
        call_for_memory(_TEXTURE, driver.cuMemcpy2D, copy)

    def free(self) -> None:
        """Destroy the object and its array."""
        call(driver.cuTexObjectDestroy, self._texture)
        call(driver.cuArrayDestroy, self._array)
