"""Compiled functions that write fields of SAM and PAF."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.bytes.number_fields import put_small
from mummergpu.output.bytes.text_stores import TextArray, copy_text, store
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, inline_without_refcounts

_STAR: Final = np.uint8(ord("*"))


@inline_without_refcounts
def put_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write the name of a read, or a star if it has none; return where it ends."""
    begin, end = name_offsets[as_index(read)], name_offsets[as_index(read + 1)]
    if begin == end:
        store(text, at, _STAR)
        return at + 1
    return copy_text(text, at, names, begin, end)


@inline_without_refcounts
def put_signed(text: TextArray, at: int, number: int) -> int:
    """Write a number with a minus if it is negative; return where it ends."""
    text[as_index(at)] = np.uint8(ord("-"))
    if number < 0:
        return put_small(text, at + 1, -number)
    return put_small(text, at, number)
