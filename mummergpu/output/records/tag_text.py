"""The tags that reads came with, from the form of BAM to that of SAM."""

from __future__ import annotations

from itertools import accumulate
from typing import Final

import numpy as np

from mummergpu.input.records.tags import Tags, end_of_tag
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_text
from mummergpu.output.records.sam_fields import put_signed
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)

_TEXT_BYTES: Final = 5
"""The most bytes of text for each byte of a tag: a byte of an array may become ``,-128``."""

_FLOAT_BYTES: Final = 4
_A, _F, _H, _I, _Z = map(ord, "AfHiZ")
_ARRAY: Final = ord("B")
_TAB, _COLON, _COMMA = map(ord, "\t:,")

_SIZES: Final = np.zeros(128, dtype=np.int64)
_SIGNED: Final = np.zeros(128, dtype=np.int64)
for _kind, _size in zip(b"cCsSiIf", (1, 1, 2, 2, 4, 4, 4), strict=True):
    _SIZES[_kind] = _size
    _SIGNED[_kind] = _kind in b"csi"
"""The bytes of each type of a number, and whether it can be negative."""


def text_tags(tags: Tags) -> Tags:
    """Return tags as SAM has them, each with the tab before it.

    Numbers with a fraction have six digits, as ``%g`` of C and htslib write them.
    """
    if not tags.are_kept:
        return tags
    content, offsets = writable(tags.content), writable(tags.offsets)
    floats = np.empty(content.size // _FLOAT_BYTES + 1, dtype=np.float32)
    count = _list_floats(content, offsets, floats.view(np.uint8))
    shown = [b"%g" % number for number in floats[:count].tolist()]
    ends = np.array([0, *accumulate(map(len, shown))], dtype=np.int64)
    texts = np.frombuffer(bytearray(b"".join(shown) + bytes(OVERSHOOT)), dtype=np.uint8)
    text = np.empty(_TEXT_BYTES * content.size + texts.size + OVERSHOOT, dtype=np.uint8)
    text_offsets = np.zeros_like(offsets)
    size = _write_tags(content, offsets, (texts, ends), text, text_offsets)
    return Tags(text[:size].copy(), text_offsets)


@jit_without_refcounts
def _list_floats(content: TextArray, offsets: Int64Array, floats: ByteArray) -> int:
    """List the bytes of all numbers with a fraction, in their order; return how many there are."""
    count = 0
    at, end = offsets[0], offsets[offsets.size - 1]
    while at < end:
        after = end_of_tag(content, at, end)
        kind, begin = as_int64(content[as_index(at + 2)]), at + 3
        if kind == _ARRAY:
            kind, begin = as_int64(content[as_index(at + 3)]), at + 8
        elif kind != _F:
            begin = after
        if kind == _F:
            for place in range(begin, after):
                floats[as_index(_FLOAT_BYTES * count + place - begin)] = content[as_index(place)]
            count += (after - begin) // _FLOAT_BYTES
        at = after
    return count


@jit_without_refcounts
def _write_tags(
    content: TextArray,
    offsets: Int64Array,
    floats: tuple[TextArray, Int64Array],
    text: TextArray,
    text_offsets: Int64Array,
) -> int:
    """Write all tags; return where the text ends."""
    to, done = 0, 0
    for read in range(offsets.size - 1):
        at, end = offsets[read], offsets[read + 1]
        while at < end:
            after = end_of_tag(content, at, end)
            kind, value = as_int64(content[as_index(at + 2)]), at + 3
            text[as_index(to)] = _TAB
            text[as_index(to + 1)] = content[as_index(at)]
            text[as_index(to + 2)] = content[as_index(at + 1)]
            text[as_index(to + 3)] = text[as_index(to + 5)] = _COLON
            is_number = kind < 128 and _SIZES[as_index(kind)] > 0
            text[as_index(to + 4)] = _I if is_number and kind != _F else kind
            to += 6
            if kind == _A:
                text[as_index(to)] = content[as_index(value)]
                to += 1
            elif kind == _Z or kind == _H:
                to = copy_text(text, to, content, value, after - 1)
            elif kind == _ARRAY:
                kind = as_int64(content[as_index(value)])
                text[as_index(to)] = kind
                to += 1
                for element in range(value + 5, after, _SIZES[as_index(kind)]):
                    text[as_index(to)] = _COMMA
                    to, done = _put_value(text, to + 1, content, element, kind, floats, done)
            else:
                to, done = _put_value(text, to, content, value, kind, floats, done)
            at = after
        text_offsets[read + 1] = to
    return to


@inline_without_refcounts
def _put_value(
    text: TextArray,
    to: int,
    content: TextArray,
    at: int,
    kind: int,
    floats: tuple[TextArray, Int64Array],
    done: int,
) -> tuple[int, int]:
    """Write a number; return where it ends, and how many with a fraction are written now."""
    if kind == _F:
        texts, ends = floats
        to = copy_text(text, to, texts, ends[as_index(done)], ends[as_index(done + 1)])
        return to, done + 1
    size, number = _SIZES[as_index(kind)], 0
    for byte in range(size):
        number |= as_int64(content[as_index(at + byte)]) << (8 * byte)
    if _SIGNED[as_index(kind)] and number >> (8 * size - 1):
        number -= 1 << (8 * size)
    return put_signed(text, to, number), done
