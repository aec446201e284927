"""Maps a file into memory between two ranges of zeros, which catch wrong addresses.

The kernels of the tree search do not check the addresses in a tree: comparing each address
with the size of the tree would cost them a twentieth of their time. A file with trees is
therefore mapped with enough zeros on both sides that every address of its format leads to the
file or to zeros. The zeros take address space but no memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np

from mummergpu.index.format import ALIGNMENT
from mummergpu.runtime.arrays import ByteArray

# Constants that the module `mmap` lacks, or has only in later versions. Those without a system in
# their name are the same on Linux and macOS.
_IS_LINUX: Final = sys.platform == "linux"
_NO_RESERVE: Final[int] = getattr(mmap, "MAP_NORESERVE", 0x4000 if _IS_LINUX else 0x40)
_FIXED: Final = 0x10
_READ_WRITE: Final = mmap.PROT_READ | mmap.PROT_WRITE
_DONT_NEED: Final = 4
_WILL_NEED: Final = 3
_POPULATE_READ_OF_LINUX: Final = 22
_BRING_IN: Final = _POPULATE_READ_OF_LINUX if _IS_LINUX else _WILL_NEED
_FAILED: Final = ctypes.c_void_p(-1).value

_HUGE_PAGE: Final = 1 << 21

_BYTES_AT_ONCE: Final = 1 << 24
"""The bytes that one call asks the system for; between two calls the thread can end."""


def map_file(descriptor: int, size: int, room_before: int = 0, room_behind: int = 0) -> ByteArray:
    """Map a file into memory, with room for zeros before and after it, in bytes.

    A write changes the array and not the file. The memory is released together with the last array
    that shares it. `OSError` is raised if the system refuses: where it limits the address space of
    a process (``ulimit -v``), the zeros may not fit although the file would.
    """
    if not room_before and not room_behind:
        begin, total = _map(None, size, _READ_WRITE, 0, descriptor), _in_whole_pages(size)
        return _array_at(begin, size, begin, total)
    total = room_before + _HUGE_PAGE + _in_whole_pages(size) + _in_whole_pages(room_behind)
    begin = _map(None, total, mmap.PROT_READ, mmap.MAP_ANONYMOUS, -1)
    # As the system places files by itself: it maps them in huge pages then, where it can.
    file_begin = -(-(begin + room_before) // _HUGE_PAGE) * _HUGE_PAGE
    try:
        _map(file_begin, size, _READ_WRITE, _FIXED, descriptor)
    except OSError:
        _library().munmap(begin, total)
        raise
    return _array_at(file_begin, size, begin, total)


def _array_at(address: int, size: int, begin: int, total: int) -> ByteArray:
    """Return mapped memory as an array; the whole mapping is released with it."""
    memory = (ctypes.c_uint8 * size).from_address(address)
    given_back = weakref.finalize(memory, _library().munmap, begin, total)
    # Threads may still read when the process ends.
    given_back.atexit = False
    array: ByteArray = np.ctypeslib.as_array(memory)
    return array


def bring_in(parts: Sequence[ByteArray]) -> None:
    """Load parts of a mapped file, in a thread that the process does not wait for.

    Without this the system loads each piece at its first touch, at ten times the cost.
    """
    threading.Thread(target=_populate, args=(parts,), daemon=True).start()


def give_up(parts: Sequence[ByteArray]) -> None:
    """Let the system take back the memory of parts of a mapped file until the next read.

    Parts begin at multiples of `format.ALIGNMENT`. All that was written to them, or to the rest of
    their last page, is lost, so that the next read finds the contents of the file. On systems with
    larger pages, or other than Linux, nothing is done.
    """
    if not _IS_LINUX or mmap.PAGESIZE > ALIGNMENT:
        # A page could belong to two arrays; and macOS may take back some pages and not others.
        return
    for part in parts:
        _library().madvise(part.ctypes.data, part.size, _DONT_NEED)


def _populate(parts: Sequence[ByteArray]) -> None:
    """Load parts of a mapped file.

    The argument keeps the file mapped. Python's own `madvise` would not let other threads run
    during the call. Linux before 5.14 refuses the call, which does no harm.
    """
    with suppress(OSError, AttributeError):
        advise: Callable[[int, int, int], int] = _library().madvise
        for part in parts:
            end = part.ctypes.data + part.size
            first = part.ctypes.data // mmap.PAGESIZE * mmap.PAGESIZE
            for begin in range(first, end, _BYTES_AT_ONCE):
                advise(begin, min(_BYTES_AT_ONCE, end - begin), _BRING_IN)


def _map(address: int | None, size: int, protection: int, flags: int, descriptor: int) -> int:
    """Map private memory, without reserving memory for copies; return its address."""
    flags |= mmap.MAP_PRIVATE | _NO_RESERVE
    begin: int = _library().mmap(address, size, protection, flags, descriptor, 0)
    if begin == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return begin


def _in_whole_pages(size: int) -> int:
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE


@cache
def _library() -> Any:
    """Return the C library: the calls of Python fix no addresses and hold Python's lock."""
    library = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_int64)
    library.mmap.restype = pointer
    library.munmap.argtypes = (pointer, size)
    library.madvise.argtypes = (pointer, size, number)
    return library
