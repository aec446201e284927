"""Base codes in the memory of a device."""

from __future__ import annotations

from typing import Final

from mummergpu.cuda.device import Device, Texture
from mummergpu.cuda.upload import Uploader
from mummergpu.sequence.codes import CodeArray

WORD_BYTES: Final = 8
"""The bytes of a word; kernels read codes in whole words."""

PADDING_BYTES: Final = 2 * WORD_BYTES
"""The zero bytes after the last code; they let a kernel read two words from any position."""


class ResidentCodes:
    """Codes in linear memory with padding after them, and optionally a texture of words.

    The device is current in the calling thread; the constructor waits for the uploader's stream.
    """

    def __init__(self, device: Device, uploader: Uploader, codes: CodeArray, texture: bool) -> None:
        size = -(-codes.size // WORD_BYTES) * WORD_BYTES + PADDING_BYTES
        self._buffer = device.allocate(size)
        self.address = self._buffer.address
        self.size = size
        self._texture: Texture | None = None
        try:
            uploader.stream.fill_zero(
                self.address + size - PADDING_BYTES - WORD_BYTES, 3 * WORD_BYTES
            )
            uploader.copy_in(self.address, codes)
            uploader.stream.synchronize()
            if texture:
                self._texture = device.linear_texture(self.address, size // WORD_BYTES, WORD_BYTES)
        except BaseException:
            self._buffer.free()
            raise

    @property
    def arguments(self) -> tuple[int, int]:
        """The kernel arguments: the address and the texture."""
        return self.address, 0 if self._texture is None else self._texture.handle

    def free(self) -> None:
        """Free the memory."""
        if self._texture is not None:
            self._texture.free()
        self._buffer.free()
