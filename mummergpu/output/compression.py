"""Compresses output piece by piece; the compressed pieces, one after the other, are the file."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.errors import LibraryError

BGZF_BLOCK_BYTES: Final = 0xFF00
"""The bytes of a block of bgzf before compression, as in htslib: even if they do not compress, the
block is less than 64 KiB long."""

BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that ends a bgzf file (SAM format specification, section 4.1.2)."""

_BGZF_HEAD: Final = struct.Struct("<4sIBBHBBHH")
_BGZF_TAIL: Final = struct.Struct("<II")
_STORED: Final = struct.Struct("<BHH")

_BGZF_LEVEL: Final = 1
_ZSTD_LEVEL: Final = 3

Piece = bytes | npt.NDArray[np.uint8]


class Compressor(ABC):
    """Compresses pieces of a file; any thread may call `compress`."""

    @abstractmethod
    def compress(self, piece: Piece) -> bytes:
        """Return a piece in compressed form, which does not depend on the other pieces."""

    @abstractmethod
    def end(self) -> bytes:
        """Return what must follow the last piece."""


class BgzfCompressor(Compressor):
    """Compresses into the blocks of bgzf, which `gzip`, `bgzip`, samtools and tabix read.

    Parameters
    ----------
    level : int, default 1
        From 0, the fastest, to 3 (`isal`).
    """

    def __init__(self, level: int = _BGZF_LEVEL) -> None:
        from isal import igzip_lib, isal_zlib

        self._level = level
        self._library: Any = igzip_lib
        self._checksum = isal_zlib.crc32

    def compress(self, piece: Piece) -> bytes:
        """Return the blocks of a piece (`Compressor.compress`)."""
        view = memoryview(cast(bytes, piece))
        return b"".join(
            self._block(view[begin : begin + BGZF_BLOCK_BYTES])
            for begin in range(0, len(view), BGZF_BLOCK_BYTES)
        )

    def end(self) -> bytes:
        """Return the empty block that ends the file."""
        return BGZF_END

    def _block(self, text: memoryview) -> bytes:
        library = self._library
        packed: bytes = library.compress(text, self._level, library.COMP_DEFLATE)
        if len(packed) > len(text):
            packed = _STORED.pack(1, len(text), len(text) ^ 0xFFFF) + bytes(text)
        size = _BGZF_HEAD.size + len(packed) + _BGZF_TAIL.size
        head = _BGZF_HEAD.pack(b"\x1f\x8b\x08\x04", 0, 0, 0xFF, 6, 66, 67, 2, size - 1)
        return head + packed + _BGZF_TAIL.pack(self._checksum(text), len(text))


class ZstdCompressor(Compressor):
    """Compresses every piece into a frame of Zstandard; a file may have many of them.

    Parameters
    ----------
    level : int, default 3
        The level, as that of the program `zstd`.

    Raises
    ------
    LibraryError
        If no library for Zstandard is installed.
    """

    def __init__(self, level: int = _ZSTD_LEVEL) -> None:
        self._level = level
        self._module = _zstd_module()

    def compress(self, piece: Piece) -> bytes:
        """Return a piece as a frame (`Compressor.compress`)."""
        packed: bytes = self._module.compress(memoryview(cast(bytes, piece)), self._level)
        return packed

    def end(self) -> bytes:
        """Return nothing: the last frame ends the file."""
        return b""


def compressor_of(name: str | None) -> Compressor | None:
    """Return the compressor of a name in `targets.COMPRESSIONS`, None for None.

    Parameters
    ----------
    name : str or None
        ``bgzf``, ``zstd``, or None.

    Returns
    -------
    Compressor or None
        A new compressor.

    Raises
    ------
    LibraryError
        If the library for it is not installed.
    """
    if name is None:
        return None
    return BgzfCompressor() if name == "bgzf" else ZstdCompressor()


def _zstd_module() -> Any:
    """Return the module of Python for Zstandard, new in 3.14, or the library of that name."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass
    else:
        return zstd
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise LibraryError("output in .zst", "zstandard", "zstd", str(error)) from error
    return zstandard
