"""The compiled loop that compresses a piece of a file into blocks of bgzf.

Section 4.1 of the SAM format specification describes the blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.output.bytes.number_text import TextArray, store
from mummergpu.runtime.jit import jit_without_refcounts, unsigned, widened
from mummergpu.runtime.llvm import intrinsic, ir, types

HEAD_BYTES: Final = 18
TAIL_BYTES: Final = 8

PACKED_BYTES: Final = 1 << 17
"""More than a block can have while it is compressed, whatever it holds."""

FAILED: Final = -1
"""What `compress_blocks` returns if the library does not do what it should."""

# The fields of `struct isal_zstream`, in bytes from its start.
_NEXT_IN, _AVAIL_IN, _NEXT_OUT, _AVAIL_OUT, _TOTAL_OUT = 0, 8, 16, 24, 28
_LEVEL, _LEVEL_SIZE, _LEVEL_BUFFER, _END, _WRAPPER = 40, 44, 48, 56, 60

_HEAD: Final = np.frombuffer(bytes.fromhex("1f8b08040000000000ff060042430200"), dtype="<u8")
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


def _generate_load(typing_context: Any, array: Any, at: Any) -> Any:
    """Load four bytes of an array as an unsigned number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        kind = ir.IntType(32)
        address = builder.bitcast(builder.gep(view.data, [arguments[1]]), kind.as_pointer())
        return builder.load(address, align=1, typ=kind)

    return types.uint32(array, types.int64), generate


_call = cast("Callable[[int, int], int]", intrinsic(_generate_call))
_checksum = cast("Callable[[int, int, int], np.uint32]", intrinsic(_generate_checksum))
_load = cast("Callable[[TextArray, int], int]", intrinsic(_generate_load))


@jit_without_refcounts
def compress_blocks(
    packed: TextArray,
    text: TextArray,
    addresses: npt.NDArray[np.int64],
    stream: TextArray,
    level: int,
    level_bytes: int,
    block_bytes: int,
) -> int:
    """Compress a text into blocks; return how many bytes they have, or `FAILED`.

    Parameters
    ----------
    packed : ndarray, dtype=uint8
        Output; `PACKED_BYTES` after each block may be overwritten.
    text : ndarray, dtype=uint8
        The text.
    addresses : ndarray, dtype=int64, shape=(7,)
        Of `packed`, `text`, `stream`, and the buffer of the level; and of the functions
        ``isal_deflate_init``, ``isal_deflate`` and ``crc32_gzip_refl``.
    stream : ndarray, dtype=uint8
        Room for the state of a compression.
    level, level_bytes : int
        The level, and the bytes of its buffer.
    block_bytes : int
        The bytes of each block before compression; the last one may have fewer.

    Returns
    -------
    int
        The number of bytes, or `FAILED`.
    """
    to, source, state, level_buffer = addresses[0], addresses[1], addresses[2], addresses[3]
    init, deflate, checksum = addresses[4], addresses[5], addresses[6]
    at = 0
    for begin in range(0, text.size, block_bytes):
        size = min(block_bytes, text.size - begin)
        _call(init, state)
        store(stream, _NEXT_IN, np.uint64(source + begin))
        store(stream, _AVAIL_IN, np.uint32(size))
        store(stream, _NEXT_OUT, np.uint64(to + at + HEAD_BYTES))
        store(stream, _AVAIL_OUT, np.uint32(PACKED_BYTES - HEAD_BYTES - TAIL_BYTES))
        store(stream, _LEVEL, np.uint32(level))
        store(stream, _LEVEL_SIZE, np.uint32(level_bytes))
        store(stream, _LEVEL_BUFFER, np.uint64(level_buffer))
        store(stream, _END, np.uint32(1))
        store(stream, _WRAPPER, np.uint16(0))
        is_done = _call(deflate, state) == 0
        count = widened(_load(stream, _TOTAL_OUT))
        if not is_done or _load(stream, _AVAIL_IN) != 0 or _load(stream, _AVAIL_OUT) == 0:
            return FAILED
        if count > size:
            place = at + HEAD_BYTES
            store(packed, place, _STORED)
            store(packed, place + 1, np.uint32(size | (size ^ 0xFFFF) << 16))
            for byte in range(size):
                packed[unsigned(place + _STORED_BYTES + byte)] = text[unsigned(begin + byte)]
            count = size + _STORED_BYTES
        total = HEAD_BYTES + count + TAIL_BYTES
        store(packed, at, _HEAD[0])
        store(packed, at + 8, _HEAD[1])
        store(packed, at + 16, np.uint16(total - 1))
        store(packed, at + HEAD_BYTES + count, _checksum(checksum, source + begin, size))
        store(packed, at + HEAD_BYTES + count + 4, np.uint32(size))
        at += total
    return at
