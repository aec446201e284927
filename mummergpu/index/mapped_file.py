"""A file in memory, between two stretches of zeros that a wrong address may lead into.

The kernels of the tree search take the addresses that a tree holds as they are; to compare
each with the size of the tree would cost them a twentieth of their time. So a file with trees
is mapped with so much room on both sides that no address of its format leads out of it. The
room takes addresses, and no memory.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

ByteArray = npt.NDArray[np.uint8]

# Numbers of Linux that the module `mmap` lacks, or has just in later versions.
_NO_RESERVE: Final[int] = getattr(mmap, "MAP_NORESERVE", 0x4000)
_FIXED: Final = 0x10
_DONT_NEED: Final = 4
_POPULATE_READ: Final = 22
_FAILED: Final = ctypes.c_void_p(-1).value

_BYTES_AT_ONCE: Final = 1 << 24
"""The system is asked for so much in one call, so that the thread can end in between."""


def map_file(descriptor: int, size: int, room_before: int = 0, room_behind: int = 0) -> ByteArray:
    """Map a file into memory.

    Parameters
    ----------
    descriptor : int
        The open file; it may be closed afterwards.
    size : int
        Its bytes.
    room_before, room_behind : int
        How many bytes before and after the file can be read as well: as zeros.

    Returns
    -------
    ndarray, dtype=uint8, shape=(size,)
        The file. It may be written to, which changes the array and not the file. The memory is
        given back when the last array that shares it is.

    Raises
    ------
    OSError
        If the system refuses.

    Notes
    -----
    Where the system limits a process's addresses (``ulimit -v``), there may be no room for
    the zeros. The file is mapped without them then.
    """
    before = _in_whole_pages(room_before)
    total = before + _in_whole_pages(size) + _in_whole_pages(room_behind)
    try:
        begin = _map(None, total, mmap.PROT_READ, mmap.MAP_ANONYMOUS, -1)
    except OSError:
        if total == _in_whole_pages(size):
            raise
        return map_file(descriptor, size)
    try:
        _map(begin + before, size, mmap.PROT_READ | mmap.PROT_WRITE, _FIXED, descriptor)
    except OSError:
        _library().munmap(begin, total)
        raise
    memory = (ctypes.c_uint8 * size).from_address(begin + before)
    given_back = weakref.finalize(memory, _library().munmap, begin, total)
    # Threads may still read when the process ends.
    given_back.atexit = False
    array: ByteArray = np.ctypeslib.as_array(memory)
    return array


def bring_in(parts: Sequence[ByteArray]) -> None:
    """Have the system map parts of a mapped file, in a thread that need not end.

    It would do so at the first touch of each piece, at ten times the cost.

    Parameters
    ----------
    parts : sequence of ndarray, dtype=uint8
        Arrays that begin on pages of memory.
    """
    threading.Thread(target=_populate, args=(parts,), daemon=True).start()


def give_up(parts: Sequence[ByteArray]) -> None:
    """Let the system take back the memory of parts of a mapped file, until they are read again.

    Parameters
    ----------
    parts : sequence of ndarray, dtype=uint8
        Arrays that begin on pages of memory; nothing may have been written to them, or to
        what lies after them on their last page.
    """
    for part in parts:
        _library().madvise(part.ctypes.data, part.size, _DONT_NEED)


def _populate(parts: Sequence[ByteArray]) -> None:
    """Bring in parts of a mapped file.

    The file stays mapped for as long as they are an argument here. Python's own call would not
    let other threads run meanwhile. Systems before Linux 5.14 refuse, and nothing is lost.
    """
    with suppress(OSError, AttributeError):
        advise: Callable[[int, int, int], int] = _library().madvise
        for part in parts:
            for begin in range(0, part.size, _BYTES_AT_ONCE):
                size = min(_BYTES_AT_ONCE, part.size - begin)
                advise(part.ctypes.data + begin, size, _POPULATE_READ)


def _map(address: int | None, size: int, protection: int, flags: int, descriptor: int) -> int:
    """Map private memory without a claim on memory for copies; return where it begins."""
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
    """Return the system's calls: those of Python have no fixed addresses, and hold the lock."""
    library = ctypes.CDLL(None, use_errno=True)
    pointer, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    library.mmap.argtypes = (pointer, size, number, number, number, ctypes.c_int64)
    library.mmap.restype = pointer
    library.munmap.argtypes = (pointer, size)
    library.madvise.argtypes = (pointer, size, number)
    return library
