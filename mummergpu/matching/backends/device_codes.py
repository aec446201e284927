"""Base codes in the memory of a device."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device import Device, Stream, Texture
from mummergpu.sequence.codes import CodeArray

WORD_BYTES: Final = 8
"""Codes on the device are read in words of so many."""

PADDING_BYTES: Final = 2 * WORD_BYTES
"""After the last code, so that two words can be read from any position on."""


class ResidentCodes:
    """Codes in linear memory with padding after them, and a texture of words if asked for.

    Parameters
    ----------
    device : Device
        Where they go; the calling thread's.
    stream : Stream
        Copies them, and is waited for.
    codes : ndarray, dtype=uint8
        The codes.
    texture : bool
        Whether they are read through a texture.
    """

    def __init__(self, device: Device, stream: Stream, codes: CodeArray, texture: bool) -> None:
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        self._buffer = device.allocate(size)
        self.address = self._buffer.address
        self.size = size
        self._texture: Texture | None = None
        try:
            stream.fill_zero(self.address + size - PADDING_BYTES - WORD_BYTES, 3 * WORD_BYTES)
            stream.copy_in(self.address, codes)
            stream.synchronize()
            if texture:
                self._texture = device.linear_texture(self.address, size // WORD_BYTES, WORD_BYTES)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def arguments(self) -> tuple[int, int]:
        """The address and the texture, as the kernels take them."""
        return self.address, 0 if self._texture is None else self._texture.handle

    def free(self) -> None:
        """Give the memory back."""
        if self._texture is not None:
            self._texture.free()
        self._buffer.free()
