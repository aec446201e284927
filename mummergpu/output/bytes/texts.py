"""Texts in arrays: wide stores and copies, names, and room for the pieces of a text.

No compiled function checks for the end of the text. The caller makes sure that `OVERSHOOT` bytes
after the end of the written text may be overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, Final, NamedTuple, cast

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, writable
from mummergpu.runtime.llvm import address_of, intrinsic, ir, load_from, types

TextArray = ByteArray
Piece = bytes | ByteArray
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


class QueryColumns(NamedTuple):
    """The queries of a block, or their names alone, one after the other.

    Each begins at its offset and ends at the next one: shape=(n_queries + 1,).
    """

    offsets: Int64Array
    names: TextArray
    name_offsets: Int64Array


class RecordTexts(NamedTuple):
    """Texts one after the other, with `OVERSHOOT` bytes after the last, and where each begins.

    `offsets` has shape=(n_texts + 1,).
    """

    texts: TextArray
    offsets: Int64Array


@inline
def put_text(text: TextArray, at: int, texts: RecordTexts, number: int) -> int:
    """Write one of some texts; return where it ends."""
    begin, end = texts.offsets[as_index(number)], texts.offsets[as_index(number + 1)]
    return copy_padded(text, at, texts.texts, begin, end)


def texts_of(texts: Iterable[bytes]) -> RecordTexts:
    """Return texts as arrays for compiled loops."""
    found = list(texts)
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in found], out=offsets[1:])
    joined = b"".join(found) + bytes(OVERSHOOT)
    return RecordTexts(np.frombuffer(bytearray(joined), dtype=np.uint8), offsets)


def query_columns(block: QueryBlock) -> QueryColumns:
    """Return the queries of a block as arrays for compiled loops."""
    return QueryColumns(
        writable(block.offsets), writable(block.names), writable(block.name_offsets)
    )


def names_and_lengths(reference: Reference) -> Iterator[bytes]:
    """Yield the name and the length of each record, with a tab before, between and after them."""
    for name, length in zip(reference.names, reference.record_lengths.tolist(), strict=True):
        yield b"\t%b\t%d\t" % (name, length)


def check_names(reference: Reference, format_name: str) -> None:
    """Raise InputError if a record of the reference has no name."""
    if b"" in reference.names:
        number = reference.names.index(b"") + 1
        raise InputError(f"{format_name} needs names, and record {number} has none", reference.path)


PIECE_BYTES: Final = 4 << 20
"""The text of a block is made in pieces of at most about this size."""


class PiecePool:
    """Gives arrays for pieces of text; several threads may share one.

    Without reuse, a text takes a third longer to make, because the system clears new memory.
    """

    def __init__(self, piece_bytes: int) -> None:
        self.piece_bytes = piece_bytes
        self._spare_bytes = piece_bytes + OVERSHOOT
        self._spare: list[TextArray] = []

    def room_for(self, size: int) -> TextArray:
        """Return an array for a text of `size` bytes and the overshoot of wide stores."""
        if size > self.piece_bytes:
            return np.empty(size + OVERSHOOT, dtype=np.uint8)
        # Another thread may take the last spare array between a test and the removal.
        with suppress(IndexError):
            return self._spare.pop()
        return np.empty(self._spare_bytes, dtype=np.uint8)

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece of text; nothing may read the piece afterwards.

        The caller calls this once after writing the piece, from any thread.
        """
        if isinstance(piece, bytes):
            return
        if isinstance(piece.base, np.ndarray) and piece.base.size == self._spare_bytes:
            self._spare.append(piece.base)
