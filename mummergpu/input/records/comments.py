"""The comments of FASTA and FASTQ headers as tags, as ``bwa mem -C`` and ``minimap2 -y`` copy them.

A comment is the text after the name of a record on its line: tags in SAM's format, such as
``BC:Z:ACGT``, separated by tabs. They become tags in BAM's format.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.record_arrays import NO_SPANS, Records, Spans
from mummergpu.input.records.tags import dropped_tags, end_of_tag
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable

_NUMBER: Final = re.compile(rb"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?")
"""The specification's format of a number with a fraction."""

_LARGEST_SHOWN: Final = 60

_TAB, _BLANK, _TILDE, _COLON, _COMMA = 9, 32, 126, 58, 44
_MINUS, _PLUS, _ZERO = 45, 43, 48
_LEAST_BYTES: Final = len("XX:Z:")
_MOST_DIGITS: Final = 18

_LEAST: Final = np.zeros(128, dtype=np.int64)
_MOST: Final = np.zeros(128, dtype=np.int64)
_SIZES: Final = np.zeros(128, dtype=np.int64)
for _kind, _least, _most, _size in (
    ("c", -(1 << 7), (1 << 7) - 1, 1),
    ("C", 0, (1 << 8) - 1, 1),
    ("s", -(1 << 15), (1 << 15) - 1, 2),
    ("S", 0, (1 << 16) - 1, 2),
    ("i", -(1 << 31), (1 << 31) - 1, 4),
    ("I", 0, (1 << 32) - 1, 4),
    ("f", 0, 0, 4),
):
    _LEAST[ord(_kind)], _MOST[ord(_kind)], _SIZES[ord(_kind)] = _least, _most, _size
"""The numbers of each type of an array, and their bytes."""


def tags_of_comments(records: Records, path: str) -> Records:
    """Return records whose comments, kept in the names so far, have become tags.

    A read group in a comment has no header line, so it is left out with the other tags that a
    mapper writes.

    Raises
    ------
    InputError
        If a comment is not made of tags.
    """
    lines = Spans(writable(records.names), writable(records.name_offsets))
    size = lines.content.size
    names = Spans(np.empty_like(lines.content), np.zeros_like(lines.offsets))
    # An element of an array takes two bytes of text or more, and four of a tag.
    tags = Spans(np.empty(4 * size + 8, dtype=np.uint8), np.zeros_like(lines.offsets))
    floats = _Floats(np.empty((size // 2 + 1, 3), dtype=np.int64), np.zeros(1, dtype=np.int64))
    wrong = _split_lines(lines, dropped_tags(False), names, tags, floats)
    if wrong >= 0:
        raise _no_tags(records, wrong, path)
    for place, begin, end in floats.spans[: floats.number[0]].tolist():
        text = lines.content[begin:end].tobytes()
        if not _NUMBER.fullmatch(text):
            # An empty number at the end of a line begins where the next line does.
            read = int(np.searchsorted(records.name_offsets, begin)) - 1
            raise _no_tags(records, read, path)
        with np.errstate(over="ignore"):
            tags.content[place : place + 4] = np.array([float(text)], dtype="<f4").view(np.uint8)
    size = int(tags.offsets[-1])
    return records._replace(
        names=names.content[: names.offsets[-1]],
        name_offsets=names.offsets,
        tags=Spans(tags.content[:size].copy(), tags.offsets) if size else NO_SPANS,
    )


def _no_tags(records: Records, read: int, path: str) -> InputError:
    begin, end = records.name_offsets[read : read + 2].tolist()
    line = records.names[begin:end].tobytes().decode(errors="replace")
    name, *comment = line.split(maxsplit=1)
    shown = "".join(comment)[:_LARGEST_SHOWN].replace("\t", "\\t")
    return InputError(
        f"the comment '{shown}' is not made of tags of SAM, such as BC:Z:ACGT, with tabs between "
        "them, each tag once: map without comments",
        path,
        record=name,
    )


class _Floats(NamedTuple):
    """The numbers with a fraction, which Python reads.

    Attributes
    ----------
    spans : ndarray, dtype=int64, shape=(n_floats, 3)
        Where among the tags each has its place, and where its text begins and ends.
    number : ndarray, dtype=int64, shape=(1,)
        How many there are.
    """

    spans: Int64Array
    number: Int64Array


@jit
def _split_lines(
    lines: Spans, dropped: ByteArray, names: Spans, tags: Spans, floats: _Floats
) -> int:
    """Separate the names from the comments, and convert the tags that are not dropped.

    Return the first record whose comment is not made of tags; -1 if there is none.
    """
    text = lines.content
    name_end, to = 0, 0
    for read in range(lines.offsets.size - 1):
        at, end = lines.offsets[read], lines.offsets[read + 1]
        begin = at
        while at < end and text[as_index(at)] > _BLANK:
            at += 1
        copy_bytes(text, begin, names.content, name_end, at - begin)
        name_end += at - begin
        names.offsets[read + 1] = name_end
        while at < end and (text[as_index(at)] == _BLANK or text[as_index(at)] == _TAB):
            at += 1
        first = to
        while at < end:
            field = at
            while at < end and text[as_index(at)] != _TAB:
                at += 1
            # Notes about a tag are discarded if the tag is dropped.
            float_count = floats.number[0]
            after = _put_tag(text, field, at, tags.content, to, floats)
            if after < 0 or _has_tag(tags.content, first, to):
                return read
            key = as_int64(text[as_index(field)]) | as_int64(text[as_index(field + 1)]) << 8
            if dropped[as_index(key)]:
                floats.number[0] = float_count
            else:
                to = after
            at += 1
            if at == end:  # A tab, and no tag after it.
                return read
        tags.offsets[read + 1] = to
    return -1


@inline
def _has_tag(tags: ByteArray, at: int, last: int) -> bool:
    """Return whether a tag is among those of its read before it, which begin at `at`."""
    while at < last:
        same = tags[as_index(at)] == tags[as_index(last)]
        if same and tags[as_index(at + 1)] == tags[as_index(last + 1)]:
            return True
        at = end_of_tag(tags, at, last)
    return False


@inline
def _is_letter(byte: int) -> bool:
    """Return whether a byte is one of A to Z, or a to z."""
    return 97 <= byte | 32 <= 122


@inline
def _is_digit(byte: int) -> bool:
    """Return whether a byte is one of 0 to 9."""
    return _ZERO <= byte < _ZERO + 10


@inline
def _whole_number(text: ByteArray, at: int, end: int) -> tuple[bool, int]:
    """Return whether a text is a number without a fraction, and the number."""
    is_negative = at < end and text[as_index(at)] == _MINUS
    if is_negative or (at < end and text[as_index(at)] == _PLUS):
        at += 1
    is_number, number = 0 < end - at < _MOST_DIGITS, 0
    for place in range(at, end):
        byte = as_int64(text[as_index(place)])
        is_number &= _is_digit(byte)
        number = 10 * number + byte - _ZERO
    return is_number, -number if is_negative else number


@inline
def _put_number(tags: ByteArray, to: int, number: int, size: int) -> None:
    """Write a number in `size` bytes, the lowest first."""
    for byte in range(size):
        tags[as_index(to + byte)] = number >> 8 * byte & 0xFF


@inline
def _kind_of(number: int) -> int:
    """Return the type of the smallest number that holds another one; 0 if none does."""
    for kind in (ord("C"), ord("c"), ord("S"), ord("s"), ord("I"), ord("i")):
        if _LEAST[kind] <= number <= _MOST[kind]:
            return kind
    return 0


@inline
def _put_text(text: ByteArray, at: int, end: int, tags: ByteArray, to: int, is_hex: bool) -> int:
    """Write a text or the digits of bytes; return where the value ends, -1 if it is neither."""
    if is_hex and (end - at) & 1:
        return -1
    for place in range(at, end):
        byte = as_int64(text[as_index(place)])
        if byte < _BLANK or byte > _TILDE:
            return -1
        if is_hex and not (_is_digit(byte) or 65 <= byte <= 70):
            return -1
    copy_bytes(text, at, tags, to, end - at)
    tags[as_index(to + end - at)] = 0
    return to + end - at + 1


@inline
def _put_array(
    text: ByteArray, at: int, end: int, tags: ByteArray, to: int, floats: _Floats
) -> int:
    """Write an array; return where the value ends, -1 if it is none."""
    kind = as_int64(text[as_index(at)]) & 127 if at < end else 0
    size = _SIZES[as_index(kind)]
    if size == 0 or text[as_index(at)] > 127:
        return -1
    tags[as_index(to)] = kind
    count_at, to, count = to + 1, to + 5, 0
    at += 1
    while at < end:
        if text[as_index(at)] != _COMMA:
            return -1
        begin = at + 1
        at = begin
        while at < end and text[as_index(at)] != _COMMA:
            at += 1
        if at == begin:
            return -1
        if kind == ord("f"):
            _note_float(floats, to, begin, at)
        else:
            is_number, number = _whole_number(text, begin, at)
            if not is_number or not _LEAST[as_index(kind)] <= number <= _MOST[as_index(kind)]:
                return -1
            _put_number(tags, to, number, size)
        to += size
        count += 1
    _put_number(tags, count_at, count, 4)
    return to


@inline
def _note_float(floats: _Floats, to: int, begin: int, end: int) -> None:
    """Note where a number with a fraction has its place, and where its text begins and ends."""
    count, spans = floats.number[0], floats.spans
    spans[count, 0], spans[count, 1], spans[count, 2] = to, begin, end
    floats.number[0] = count + 1


@inline
def _put_tag(text: ByteArray, at: int, end: int, tags: ByteArray, to: int, floats: _Floats) -> int:
    """Write a tag, given as text; return where it ends, -1 if the text is none."""
    if end - at < _LEAST_BYTES or not _is_letter(as_int64(text[as_index(at)])):
        return -1
    second = as_int64(text[as_index(at + 1)])
    if not (_is_letter(second) or _is_digit(second)):
        return -1
    if text[as_index(at + 2)] != _COLON or text[as_index(at + 4)] != _COLON:
        return -1
    kind, value = as_int64(text[as_index(at + 3)]), at + _LEAST_BYTES
    tags[as_index(to)], tags[as_index(to + 1)] = text[as_index(at)], second
    tags[as_index(to + 2)] = kind
    to += 3
    if kind == ord("Z") or kind == ord("H"):
        return _put_text(text, value, end, tags, to, kind == ord("H"))
    if kind == ord("B"):
        return _put_array(text, value, end, tags, to, floats)
    # Floats are parsed later in Python, which rounds correctly, once all places are known.
    if kind == ord("f"):
        _note_float(floats, to, value, end)
        return to + 4
    if kind == ord("A"):
        if end - value != 1:
            return -1
        tags[as_index(to)] = text[as_index(value)]
        return to + 1 if _BLANK < as_int64(text[as_index(value)]) <= _TILDE else -1
    is_number, number = _whole_number(text, value, end)
    own = _kind_of(number)
    if kind != ord("i") or not is_number or own == 0:
        return -1
    # BAM stores an integer in the smallest type that holds it.
    tags[as_index(to - 1)] = own
    size = as_int64(_SIZES[as_index(own)])
    _put_number(tags, to, number, size)
    return to + size
