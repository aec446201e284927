"""Arrays for the compiled loops that write texts: names, and room for the pieces of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import writable


class QueryColumns(NamedTuple):
    """The queries of a block.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each query begins in the block, and where the last one ends.
    names : ndarray, dtype=uint8
        The names, one after the other.
    name_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each name begins, and where the last one ends.
    """

    offsets: Int64Array
    names: TextArray
    name_offsets: Int64Array


class RecordTexts(NamedTuple):
    """What a line says of each record of the reference.

    Attributes
    ----------
    texts : ndarray, dtype=uint8
        One after the other, with `OVERSHOOT` bytes after the last.
    offsets : ndarray, dtype=int64, shape=(n_texts + 1,)
        Where each begins, and where the last one ends.
    """

    texts: TextArray
    offsets: Int64Array


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
    """Refuse a reference with a record that has no name.

    Raises
    ------
    InputError
        If there is one.
    """
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
