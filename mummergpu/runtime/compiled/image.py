"""Images of machine code: their parts, their loading into memory, and their calls.

An image is a copy of the code and of the constants of one function, linked among themselves, that
runs anywhere in memory once a few addresses are written into it. So a run needs neither numba nor a
linker to call it. `linker.py` makes images.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import pickle
import struct
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from mummergpu.runtime.compiled.signatures import (
    BOOLEAN,
    INTEGER,
    NOTHING,
    UnsuitedValueError,
)

Call = Callable[[list[int]], Any]
"""Calls an image with the numbers of its arguments (`signatures.flatten`)."""

ALLOWED_SYMBOLS: Final = frozenset({"memset", "memcpy", "memmove", "memcmp"})
"""The functions of the C library that images may call: those that a compiler calls unasked."""

UNSUITED: Final = -64
"""What an image returns if an array is read-only or not contiguous; numba has other numbers."""

_READ_AND_EXECUTE: Final = mmap.PROT_READ | mmap.PROT_EXEC
_Entry: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
"""Given the numbers of the arguments, and where to write the result and the exception; calls
through it release the interpreter lock."""

_loaded: Final[list[mmap.mmap]] = []
"""The memory of all loaded images: it stays, as the code may be running."""


class MachineImage(NamedTuple):
    """The machine code of one function, and the places to fill in when it is loaded.

    `content` has code and constants, to be loaded at the beginning of a page of memory; the
    function begins at `entry`. `addresses` say where an address of `content` has to be written, and
    which: its distance from the start; `symbols` where that of a function of the C library, and of
    which.
    """

    content: bytes
    entry: int
    addresses: list[tuple[int, int]]
    symbols: list[tuple[int, str]]


class _Ending(ctypes.Structure):
    """Where a call writes its result, and the place of its exception."""

    _fields_ = (("result", ctypes.c_int64), ("exception", ctypes.c_void_p))


class _Raised(ctypes.Structure):
    """What numba's code knows of an exception that it raises."""

    _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32))


def pack_code(image: MachineImage, result: str) -> bytes:
    """Return an image as bytes."""
    facts = {
        "entry": image.entry,
        "addresses": image.addresses,
        "symbols": image.symbols,
        "result": result,
    }
    return json.dumps(facts).encode() + b"\n" + image.content


def load_code(packed: bytes, number_count: int) -> Call:
    """Load a trusted image into memory; return a caller of it with `number_count` numbers.

    Each number must fit an int64; otherwise `struct.error` is raised before the call, and
    `UnsuitedValueError` if it needs another array. `OSError` if the system does not let memory be
    executed.
    """
    header, content = packed.split(b"\n", 1)
    facts = json.loads(header)
    library = ctypes.CDLL(None, use_errno=True)
    memory = mmap.mmap(-1, len(content), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[:] = content
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place, distance in facts["addresses"]:
        memory[place : place + 8] = struct.pack("<Q", begin + distance)
    for place, name in facts["symbols"]:
        address = ctypes.cast(library[name], ctypes.c_void_p).value
        memory[place : place + 8] = struct.pack("<Q", address)
    _loaded.append(memory)
    size = ctypes.c_size_t(len(content))
    if library.mprotect(ctypes.c_void_p(begin), size, _READ_AND_EXECUTE) != 0:
        raise OSError(ctypes.get_errno(), "memory cannot be executed")
    return _caller(_Entry(begin + facts["entry"]), number_count, facts["result"])


def _caller(entry: Any, number_count: int, result: str) -> Call:
    pack = struct.Struct(f"<{number_count}q").pack
    address = ctypes.addressof
    convert = _OF_NUMBER[result]

    def call(numbers: list[int]) -> Any:
        ending = _Ending()
        at = address(ending)
        if status := entry(pack(*numbers), at, at + 8):
            raise UnsuitedValueError if status == UNSUITED else _exception(ending.exception)
        return convert(ending.result)

    return call


def _is_number(number: int) -> int:
    return number


def _is_true(number: int) -> bool:
    return bool(number & 1)


def _nothing(_number: int) -> None:
    return None


_OF_NUMBER: Final[dict[str, Callable[[int], Any]]] = {
    INTEGER: _is_number,
    BOOLEAN: _is_true,
    NOTHING: _nothing,
}


def _exception(place: int | None) -> BaseException:
    """Return the exception that compiled code has raised."""
    try:
        assert place is not None
        raised = _Raised.from_address(place)
        kind, arguments, *_ = pickle.loads(ctypes.string_at(raised.pickled, raised.size))
        exception: BaseException = kind(*(arguments or ()))
    except Exception:
        return SystemError("compiled code has failed")
    return exception
