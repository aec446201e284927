"""Compresses a piece of a file into blocks of bgzf, with the functions of ISA-L.

Section 4.1 of the SAM format specification describes the blocks. The package `isal` releases the
interpreter lock in each call, and takes it again some times in each, so that many threads wait. A
compiled loop calls the library for many blocks and does without the lock.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import numpy as np

from mummergpu.output.bytes.texts import TextArray, store
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.runtime.llvm import address_of, intrinsic, ir, types

STREAM_BYTES: Final = 1 << 19
"""More than the bytes of the state of a compression (``struct isal_zstream``)."""

LEVEL_BYTES: Final = 1 << 19
"""The bytes of the buffer of a compression; more would not change what a block becomes."""


@cache
def isal_functions() -> tuple[int, ...] | None:
    """Return the addresses of three functions of ISA-L; None if the library hides them.

    They are ``void isal_deflate_init(struct isal_zstream *)``,
    ``int isal_deflate(struct isal_zstream *)`` and
    ``uint32_t crc32_gzip_refl(uint32_t, const unsigned char *, uint64_t)``.
    """
    from isal import igzip_lib

    library_file: Any = igzip_lib.__file__
    try:
        library = ctypes.CDLL(library_file)
        functions = (library.isal_deflate_init, library.isal_deflate, library.crc32_gzip_refl)
    except (AttributeError, OSError):
        return None
    return tuple(ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)


HEAD_BYTES: Final = 18
TAIL_BYTES: Final = 8

PACKED_BYTES: Final = 1 << 17
"""More than a block can have while it is compressed, whatever it holds."""

STREAM_STARTS_BYTES: Final = 1 << 20
"""The room besides that of a stream in which `compress_blocks` chooses where the stream begins."""

FAILED: Final = -1
"""What `compress_blocks` returns if the library does not do what it should."""

# The fields of `struct isal_zstream`, in bytes from its start.
_NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT, _TOTAL_OUT = 0, 8, 16, 24, 28
_LEVEL, _LEVEL_SIZE, _LEVEL_BUFFER, _END, _WRAPPER = 40, 44, 48, 56, 60

_HEAD: Final = np.frombuffer(bytes.fromhex("1f8b08040000000000ff060042430200"), dtype="<u8")
# What `_stream_start` must know of the library.
_GRANULE_BITS: Final = 16
_HASH_MASK: Final = 0x1FFF
_WINDOW: Final = 1 << 15
_HASHED_BYTES: Final = 4
_CRC32C: Final = 0x82F6_3B78

_STORED: Final = np.uint8(1)
_STORED_BYTES: Final = 5


def _generate_call(typing_context: Any, function: Any, argument: Any) -> Any:
    """Call ``int f(void *)`` at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64)])
        address = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.sext(builder.call(address, [arguments[1]]), ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


def _generate_checksum(typing_context: Any, function: Any, text: Any, size: Any) -> Any:
    """Call ``uint32_t f(uint32_t, const void *, uint64_t)`` at an address, the first number 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = [ir.IntType(32), ir.IntType(64), ir.IntType(64)]
        kind = ir.FunctionType(ir.IntType(32), words)
        address = builder.inttoptr(arguments[0], kind.as_pointer())
        return builder.call(address, [ir.Constant(ir.IntType(32), 0), *arguments[1:]])

    return types.uint32(types.int64, types.int64, types.int64), generate


def _generate_load(typing_context: Any, address: Any) -> Any:
    """Load four bytes at an address as an unsigned number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.inttoptr(arguments[0], ir.IntType(32).as_pointer())
        return builder.load(place, align=1)

    return types.uint32(types.int64), generate


def _generate_copy(typing_context: Any, to: Any, source: Any, size: Any) -> Any:
    """Copy bytes between two addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        copy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
        places = [builder.inttoptr(one, byte) for one in arguments[:2]]
        builder.call(copy, [*places, arguments[2], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _generate_address(typing_context: Any, array: Any) -> Any:
    """Return where an array begins in memory."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = ir.Constant(ir.IntType(64), 0)
        byte = address_of(context, builder, ir.IntType(8), signature.args[0], arguments[0], at)
        return builder.ptrtoint(byte, ir.IntType(64))

    return types.int64(array), generate


_call = cast("Callable[[int, int], int]", intrinsic(_generate_call))
_checksum = cast("Callable[[int, int, int], np.uint32]", intrinsic(_generate_checksum))
_address = cast("Callable[[TextArray], int]", intrinsic(_generate_address))
_load = cast("Callable[[int], int]", intrinsic(_generate_load))
_copy = cast("Callable[[int, int, int], None]", intrinsic(_generate_copy))


@inline
def _hash_of(word: int) -> int:
    """Return the CRC-32C of four bytes, not inverted, cut to the bits of a small table."""
    for _ in range(8 * _HASHED_BYTES):
        word = word >> 1 ^ _CRC32C * (word & 1)
    return word & _HASH_MASK


@inline
def _mask_of_hashes(size: int) -> int:
    """Return the bits of a hash that the library uses for a block: fewer for a short one."""
    values = 1
    while values <= 2 * size:
        values *= 2
    return min(values - 1, _HASH_MASK)


@inline
def _stream_start(source: int, size: int, address: int) -> int:
    """Return where in its room a stream must begin for its address to have no effect.

    `source` is the address of a block of `size` bytes.

    ISA-L 2.32 looks for matches with a table of hashes. It hashes the bits of the stream's address
    from `_GRANULE_BITS` on, by mistake, in place of the third four bytes of a block, and says at
    this hash that these bytes were seen. That has an effect only if bytes have this hash which the
    library would compare: those at the first places, and at the same places of the next window,
    since distances are cut to the size of a window. One block in 100,000 becomes another one.
    """
    mask = _mask_of_hashes(size)
    for start in range(0, STREAM_STARTS_BYTES, 1 << _GRANULE_BITS):
        hash_of_start = _hash_of(address + start >> _GRANULE_BITS & 0xFFFF_FFFF) & mask
        is_free = True
        for window in range(0, size, _WINDOW):
            for place in range(window, min(window + 3, size - _HASHED_BYTES + 1)):
                if _hash_of(as_int64(_load(source + place))) & mask == hash_of_start:
                    is_free = False
        if is_free:
            return start
    return 0


@jit
def compress_blocks(
    packed: TextArray,
    parts: tuple[TextArray, TextArray],
    functions: Int64Array,
    rooms: tuple[TextArray, TextArray, TextArray],
    level: int,
    block_bytes: int,
) -> int:
    """Compress a text in two parts into blocks; return how many bytes they have, or `FAILED`.

    `functions` are those of `isal_functions`, and `rooms` that of the stream, that of the level,
    and that of a block with bytes of both parts.
    """
    stream, level_room, joined = rooms
    to, state, level_buffer = _address(packed), _address(stream), _address(level_room)
    init, deflate, checksum = functions[0], functions[1], functions[2]
    first = parts[0].size
    total_size = first + parts[1].size
    at = 0
    for begin in range(0, total_size, block_bytes):
        size = min(block_bytes, total_size - begin)
        if begin + size <= first:
            source = _address(parts[0]) + begin
        else:
            source = _address(parts[1]) + begin - first
        if begin < first < begin + size:
            source = _address(joined)
            _copy(source, _address(parts[0]) + begin, first - begin)
            _copy(source + first - begin, _address(parts[1]), begin + size - first)
        # Each block is a stream of its own: readers begin at any of them.
        start = _stream_start(source, size, state)
        _call(init, state + start)
        store(stream, start + _NEXT_IN, np.uint64(source))
        store(stream, start + _AVAIL_IN, np.uint32(size))
        store(stream, start + _NEXT_OUT, np.uint64(to + at + HEAD_BYTES))
        store(stream, start + _AVAIL_OUT, np.uint32(PACKED_BYTES - HEAD_BYTES - TAIL_BYTES))
        store(stream, start + _LEVEL, np.uint32(level))
        store(stream, start + _LEVEL_SIZE, np.uint32(level_room.size))
        store(stream, start + _LEVEL_BUFFER, np.uint64(level_buffer))
        store(stream, start + _END, np.uint32(1))
        store(stream, start + _WRAPPER, np.uint16(0))
        is_done = _call(deflate, state + start) == 0
        count = as_int64(_load(state + start + _TOTAL_OUT))
        has_rest = _load(state + start + _AVAIL_IN) != 0
        has_room = _load(state + start + _AVAIL_OUT) != 0
        if not is_done or has_rest or not has_room:
            return FAILED
        if count > size:
            # What does not get smaller is stored: no block may be larger than BGZF allows.
            place = at + HEAD_BYTES
            store(packed, place, _STORED)
            store(packed, place + 1, np.uint32(size | (size ^ 0xFFFF) << 16))
            _copy(to + place + _STORED_BYTES, source, size)
            count = size + _STORED_BYTES
        total = HEAD_BYTES + count + TAIL_BYTES
        store(packed, at, _HEAD[0])
        store(packed, at + 8, _HEAD[1])
        store(packed, at + 16, np.uint16(total - 1))
        store(packed, at + HEAD_BYTES + count, _checksum(checksum, source, size))
        store(packed, at + HEAD_BYTES + count + 4, np.uint32(size))
        at += total
    return at
