"""Names and other texts as arrays for the compiled loops that write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference
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
