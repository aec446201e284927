"""Names and other texts as arrays for the compiled loops that write them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import writable

QueryColumns = tuple[Int64Array, TextArray, Int64Array]
"""Where each query begins in the block and the last one ends, the names one after the other, and
where each name begins and the last one ends."""

RecordTexts = tuple[TextArray, Int64Array]
"""What a line says of each record of the reference, one text after the other, with `OVERSHOOT`
bytes after the last; and where each begins and the last one ends."""


def texts_of(texts: Iterable[bytes]) -> RecordTexts:
    """Return texts as arrays for compiled loops."""
    found = list(texts)
    offsets = np.zeros(len(found) + 1, dtype=np.int64)
    np.cumsum([len(text) for text in found], out=offsets[1:])
    joined = b"".join(found) + bytes(OVERSHOOT)
    return np.frombuffer(bytearray(joined), dtype=np.uint8), offsets


def query_columns(block: QueryBlock) -> QueryColumns:
    """Return the queries of a block as arrays for compiled loops."""
    return writable(block.offsets), writable(block.names), writable(block.name_offsets)
