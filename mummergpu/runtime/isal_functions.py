"""Finds the functions of ISA-L in the library of the package `isal`, for compiled loops.

The package releases the interpreter lock in each call, and takes it again some times in each. With
many threads the lock passes from hand to hand all the time, and they wait. A compiled loop calls
the library for many blocks and does without the lock.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any, Final

from mummergpu.runtime.frozen import frozen

STREAM_BYTES: Final = 1 << 19
"""More than the bytes of the state of a compression (``struct isal_zstream``)."""

LEVEL_BYTES: Final = 1 << 19
"""The bytes of the buffer of a compression; more would not change what a block becomes."""


@frozen
class IsalFunctions:
    """Addresses of functions of ISA-L.

    Attributes
    ----------
    init : int
        ``void isal_deflate_init(struct isal_zstream *)``.
    deflate : int
        ``int isal_deflate(struct isal_zstream *)``.
    crc : int
        ``uint32_t crc32_gzip_refl(uint32_t, const unsigned char *, uint64_t)``.
    """

    init: int
    deflate: int
    crc: int


@cache
def isal_functions() -> IsalFunctions | None:
    """Return the functions of the library; None if it hides them."""
    from isal import igzip_lib

    library_file: Any = igzip_lib.__file__
    try:
        library = ctypes.CDLL(library_file)
        names = (library.isal_deflate_init, library.isal_deflate, library.crc32_gzip_refl)
    except (AttributeError, OSError):
        return None
    addresses = [ctypes.cast(name, ctypes.c_void_p).value for name in names]
    if None in addresses:
        return None
    return IsalFunctions(*(int(address or 0) for address in addresses))
