"""Functions that store numbers and copy bytes anywhere in a text, with wide stores.

No function checks for the end of the text. The caller makes sure that `OVERSHOOT` bytes after
the end of what is written may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import inline
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types

TextArray = ByteArray
Word = np.unsignedinteger[Any]

OVERSHOOT: Final = 32
"""The most bytes that a function overwrites after the end of its text."""

TAB: Final = np.uint8(ord("\t"))
LINE_END: Final = np.uint8(ord("\n"))
_BLANKS: Final = np.frombuffer(b" " * 8, dtype="<u8")[0]
_STEP: Final = 32


def _generate_store(typing_context: Any, text: Any, at: Any, word: Any) -> Any:
    """Store an unsigned number of any width, lowest byte first, anywhere in a text."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value = arguments[2]
        address = address_of(context, builder, value.type, signature.args[0], *arguments[:2])
        builder.store(value, address, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, word), generate


def _generate_copy(typing_context: Any, text: Any, at: Any, source: Any, begin: Any) -> Any:
    """Copy `_STEP` bytes with one load and one store."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), _STEP)
        target = address_of(context, builder, kind, signature.args[0], *arguments[:2])
        lanes = load_from(context, builder, kind, signature.args[2], *arguments[2:])
        builder.store(lanes, target, align=1)
        return context.get_dummy_value()

    return types.void(text, types.int64, source, types.int64), generate


def _generate_long_copy(
    typing_context: Any, text: Any, at: Any, source: Any, begin: Any, size: Any
) -> Any:
    """Copy any number of bytes with a call of ``memcpy``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8)
        target = address_of(context, builder, byte, signature.args[0], *arguments[:2])
        origin = address_of(context, builder, byte, signature.args[2], *arguments[2:4])
        kinds = [byte.as_pointer(), byte.as_pointer(), ir.IntType(64)]
        copy = builder.module.declare_intrinsic("llvm.memcpy", kinds)
        builder.call(copy, [target, origin, arguments[4], ir.Constant(ir.IntType(1), 0)])
        return context.get_dummy_value()

    return types.void(text, types.int64, source, types.int64, types.int64), generate


store = cast("Callable[[TextArray, int, Word], None]", intrinsic(_generate_store))
_copy_step = cast("Callable[[TextArray, int, TextArray, int], None]", intrinsic(_generate_copy))
_copy_exactly = cast(
    "Callable[[TextArray, int, TextArray, int, int], None]", intrinsic(_generate_long_copy)
)


@inline
def copy_padded(text: TextArray, at: int, source: TextArray, begin: int, end: int) -> int:
    """Copy a range of a source with `OVERSHOOT` bytes after it; return where the copy ends."""
    size = end - begin
    _copy_step(text, at, source, begin)
    if size > _STEP:
        _copy_step(text, at + _STEP, source, begin + _STEP)
        # Few texts need more. A call is shorter than a loop, of which the compiler would prepare
        # much for each query that never runs it.
        if size > 2 * _STEP:
            _copy_exactly(text, at, source, begin, size)
    return at + size


@inline
def copy_text(text: TextArray, at: int, source: TextArray, begin: int, end: int) -> int:
    """Copy a range of a source that may end with it; return where the copy ends."""
    size = end - begin
    if end + OVERSHOOT <= source.size:
        # Most texts are names, which one step copies: it asks for no size, and enters no loop.
        _copy_step(text, at, source, begin)
        if size > _STEP:
            for offset in range(_STEP, size, _STEP):
                _copy_step(text, at + offset, source, begin + offset)
    else:
        _copy_exactly(text, at, source, begin, size)
    return at + size


@inline
def fill_blanks(text: TextArray, at: int, end: int) -> None:
    """Fill a range of the text with blanks."""
    for place in range(at, end, 8):
        store(text, place, _BLANKS)
