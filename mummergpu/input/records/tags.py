"""The tags of reads, fields of SAM, BAM or CRAM beyond the eleven that all have; and read groups.

They are kept in BAM's format (SAM/BAM format specification, section 4.2.4): two letters, a type and
a value. Tags that a mapper writes itself, or that describe an earlier alignment, are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.record_arrays import Spans
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable

WRITTEN_TAGS: Final = ("NM", "MD", "AS", "XS", "SA", "XA", "MC", "MQ")
"""The tags that a mapper writes."""

ALIGNMENT_TAGS: Final = tuple("AM BQ CC CG CP H0 H1 H2 HI IH NH PG PQ SM TS UQ".split())
"""Other tags of the specification that describe an alignment, or the program that made it."""

READ_GROUP: Final = "RG"

_R, _G = READ_GROUP.encode()
_KEYS: Final = 1 << 16
_FIXED_SIZES: Final = np.zeros(128, dtype=np.int64)
for _kind, _size in zip(b"AcCsSiIf", (1, 1, 1, 2, 2, 4, 4, 4), strict=True):
    _FIXED_SIZES[_kind] = _size
_TEXT: Final = ord("Z")
_HEX: Final = ord("H")
_ARRAY: Final = ord("B")
_CHARACTER: Final = ord("A")


def without_groups(tags: Spans) -> Spans:
    """Return all tags but the read groups."""
    if not tags.are_kept:
        return tags
    content, offsets = np.empty_like(tags.content), np.zeros_like(tags.offsets)
    own = writable(tags.content), writable(tags.offsets)
    end = _filter_all(*own, dropped_tags(False), content, offsets)
    return Spans(content[:end], offsets)


def dropped_tags(keeps_groups: bool) -> ByteArray:
    """Return which tags are left out: 1 at the number of two letters, the first one lowest."""
    dropped = np.zeros(_KEYS, dtype=np.uint8)
    for tag in (*WRITTEN_TAGS, *ALIGNMENT_TAGS, *(() if keeps_groups else (READ_GROUP,))):
        dropped[ord(tag[0]) | ord(tag[1]) << 8] = 1
    return dropped


def pack_tags(tags: Iterable[tuple[str, Any, str]], dropped: ByteArray) -> bytes:
    """Return the tags of a pysam record in BAM's format, without those that are dropped.

    A tag has its letters, its value and its type; the value of an array is an `array.array`.
    """
    packed = b""
    for tag, value, kind in tags:
        if dropped[ord(tag[0]) | ord(tag[1]) << 8]:
            continue
        packed += tag.encode() + kind.encode()
        if kind in "ZH":
            packed += value.encode() + b"\0"
        elif kind == "A":
            packed += value.encode()
        elif kind == "B":
            packed += _ARRAY_KINDS[value.typecode] + struct.pack("<I", len(value))
            packed += struct.pack(f"<{len(value)}{value.typecode}", *value)
        else:
            # pysam returns unsigned numbers of 32 bits as signed ones.
            number = value & 0xFFFFFFFF if kind == "I" else value
            packed += struct.pack("<" + _NUMBER_KINDS[kind], number)
    return packed


_NUMBER_KINDS: Final = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "f": "f"}
_ARRAY_KINDS: Final = {own: kind.encode() for kind, own in _NUMBER_KINDS.items()}


@inline
def end_of_tag(content: ByteArray, at: int, end: int) -> int:
    """Return where a tag ends; -1 if it is invalid, or ends after the tags of its read."""
    if end - at < 4:
        return -1
    kind = as_int64(content[as_index(at + 2)])
    after = at + 3
    if kind == _TEXT or kind == _HEX:
        while after < end and content[as_index(after)] != 0:
            after += 1
        after += 1
    elif kind == _ARRAY:
        if end - at < 8:
            return -1
        size = _FIXED_SIZES[as_index(content[as_index(after)] & 127)]
        count = 0
        for byte in range(4):
            count |= as_int64(content[as_index(after + 1 + byte)]) << (8 * byte)
        is_number = size > 0 and content[as_index(after)] != _CHARACTER
        after = after + 5 + size * count if is_number else end + 1
    elif kind < 128 and _FIXED_SIZES[as_index(kind)] > 0:
        after += _FIXED_SIZES[as_index(kind)]
    else:
        return -1
    return after if after <= end else -1


@inline
def filter_tags(
    content: ByteArray, at: int, end: int, dropped: ByteArray, kept: ByteArray, to: int
) -> int:
    """Copy the tags of a read that are not dropped; return where the copy ends.

    It is -1 if the tags, which lie from `at` to `end`, are damaged.
    """
    while at < end:
        after = end_of_tag(content, at, end)
        if after < 0:
            return -1
        key = as_int64(content[as_index(at)]) | as_int64(content[as_index(at + 1)]) << 8
        if not dropped[as_index(key)]:
            copy_bytes(content, at, kept, to, after - at)
            to += after - at
        at = after
    return to


@jit
def _filter_all(
    content: ByteArray,
    offsets: Int64Array,
    dropped: ByteArray,
    kept: ByteArray,
    kept_offsets: Int64Array,
) -> int:
    """Copy the tags of all reads that are not left out; return where the copy ends."""
    end = 0
    for read in range(offsets.size - 1):
        end = filter_tags(content, offsets[read], offsets[read + 1], dropped, kept, end)
        kept_offsets[read + 1] = end
    return end


@jit
def number_groups(
    content: ByteArray,
    offsets: Int64Array,
    groups: tuple[ByteArray, Int64Array],
    numbers: Int64Array,
) -> None:
    """Write the number of the read group of each read; reads of no known group keep theirs.

    `offsets` says where the tags of each read begin; the IDs of the groups have offsets too.
    """
    ids, ends = groups
    for read in range(numbers.size):
        at, end = offsets[read], offsets[read + 1]
        while 0 <= at < end:
            after = end_of_tag(content, at, end)
            if content[as_index(at)] != _R or content[as_index(at + 1)] != _G:
                at = after
                continue
            # The letters and the type precede the ID, and a zero follows it.
            size = after - at - 4
            for group in range(ends.size - 1):
                is_same = ends[group + 1] - ends[group] == size
                for place in range(size if is_same else 0):
                    letter = ids[as_index(ends[group] + place)]
                    is_same &= content[as_index(at + 3 + place)] == letter
                if is_same:
                    numbers[read] = group
            break


def group_lines(header: bytes) -> tuple[bytes, ...]:
    """Return the lines of a header that describe read groups, without line ends."""
    lines = header.rstrip(b"\0").split(b"\n")
    return tuple(line.rstrip(b"\r") for line in lines if line.startswith(b"@RG\t"))


class ReadGroups:
    """The read groups of all files of a run."""

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}

    @property
    def lines(self) -> tuple[bytes, ...]:
        """The distinct lines of the headers, without line ends, in the order of files."""
        return tuple(self._lines.values())

    def add(self, lines: tuple[bytes, ...], path: str, is_late: bool = False) -> None:
        """Add the lines of a file's header; `is_late` if the output already has its header.

        Refuse another group of the same name, and a new one that is too late.
        """
        for line in lines:
            name = id_of_group(line)
            known = self._lines.get(name)
            shown = name.decode(errors="backslashreplace")
            if known is None and is_late:
                raise InputError(
                    f"the header of the output lacks the read group '{shown}', since it was "
                    "written before this was read: map files, not pipes, or name one read group",
                    path,
                )
            if known is not None and known != line:
                raise InputError(
                    f"the read group '{shown}' is another one than that of a file before, and has "
                    "the same ID: rename it (see samtools addreplacerg), or name one read group",
                    path,
                )
            self._lines[name] = line


def id_of_group(line: bytes) -> bytes:
    """Return the ID of a read group."""
    fields = line.split(b"\t")
    return next((field[3:] for field in fields if field.startswith(b"ID:")), b"")
