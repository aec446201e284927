"""Compiled functions that write fields of a record of BAM (SAM format, section 4.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray, copy_text, store
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, inline_without_refcounts

Place = tuple[int, int]
"""A record, by its number in the header, and a 0-based position in it; -1 for what is not known."""

NAME_AT: Final = 36
"""Where the name begins, counted from the length of the record."""

_NO_NAME: Final = np.frombuffer(b"*\0", dtype="<u2")[0]


@inline_without_refcounts
def bin_of(begin: int, end: int) -> int:
    """Return the smallest bin that has a half-open range of a record."""
    last = end - 1
    shift, first = 14, 4681
    while shift < 29:
        if begin >> shift == last >> shift:
            return first + (begin >> shift)
        shift += 3
        first = (first - 1) >> 3
    return 0


@inline_without_refcounts
def write_tag(text: TextArray, at: int, tag: int, number: int) -> int:
    """Write a tag with a number in as few bytes as hold it; return where it ends."""
    if number < 1 << 8:
        kind, size = ord("C"), 1
    elif number < 1 << 16:
        kind, size = ord("S"), 2
    else:
        kind, size = ord("I"), 4
    store(text, at, np.uint64(tag | kind << 16 | number << 24))
    return at + 3 + size


@inline_without_refcounts
def write_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write a read's name and the zero that ends it; return where that ends."""
    begin, end = name_offsets[as_index(read)], name_offsets[as_index(read + 1)]
    if begin == end:
        store(text, at, _NO_NAME)
        return at + 2
    at = copy_text(text, at, names, begin, end)
    text[as_index(at)] = 0
    return at + 1


@inline_without_refcounts
def write_fixed_fields(
    text: TextArray,
    at: int,
    place: Place,
    size: int,
    name_bytes: int,
    quality: int,
    flag: int,
    operations: int,
    bases: int,
    mate_place: Place,
    template_length: int,
) -> None:
    """Write the fields of a record before its name, except for the length of the record."""
    bin_number = bin_of(place[1], place[1] + size) & 0xFFFF
    store(text, at + 4, np.uint32(place[0]))
    store(text, at + 8, np.uint32(place[1]))
    store(text, at + 12, np.uint32(name_bytes | quality << 8 | bin_number << 16))
    store(text, at + 16, np.uint32(operations | flag << 16))
    store(text, at + 20, np.uint32(bases))
    store(text, at + 24, np.uint32(mate_place[0]))
    store(text, at + 28, np.uint32(mate_place[1]))
    store(text, at + 32, np.uint32(template_length))
