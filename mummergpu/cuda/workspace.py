"""Device memory for the work on one block: named buffers that grow and are reused."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device import Buffer, Device, DeviceMemoryError

SMALLEST_BUFFER: Final = 512
"""The size of the smallest buffer in bytes."""

SLACK: Final = 8
"""A buffer is allocated one eighth larger than requested, so that it seldom has to grow."""


class Workspace:
    """Named buffers in the linear memory of a device, of so many bytes together at most."""

    def __init__(self, device: Device, limit: int) -> None:
        self._device = device
        self._limit = limit
        self._buffers: dict[str, Buffer] = {}

    @property
    def size(self) -> int:
        """The total size of all buffers in bytes."""
        return sum(buffer.size for buffer in self._buffers.values())

    def buffer(self, name: str, size: int) -> int:
        """Return the address of a buffer of at least `size` bytes, a multiple of 256.

        Its contents are lost if it has to grow. `DeviceMemoryError` says that the buffers would
        exceed the limit, or that the device has too little free memory.
        """
        buffer = self._buffers.get(name)
        if buffer is not None and buffer.size >= size:
            return buffer.address
        if buffer is not None:
            del self._buffers[name]
            buffer.free()
        left = self._limit - self.size
        if size > left:
            raise DeviceMemoryError(f"{size} bytes for {name}, and {left} are left")
        self._buffers[name] = self._device.allocate(
            max(min(size + size // SLACK, left), min(SMALLEST_BUFFER, left), 1)
        )
        return self._buffers[name].address

    def free(self) -> None:
        """Free all buffers; new ones can be allocated afterwards."""
        while self._buffers:
            self._buffers.popitem()[1].free()
