"""The tags of reads: fields of a record of SAM, BAM or CRAM beyond the eleven that all have.

They are kept as BAM has them (SAM/BAM format specification, section 4.2.4): two letters, a type and
a value. What a mapper writes itself, and what tells of an earlier alignment, is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
    writable,
)

WRITTEN_TAGS: Final = ("NM", "MD", "AS", "XS", "SA", "XA", "MC", "MQ")
"""The tags that a mapper writes."""

ALIGNMENT_TAGS: Final = tuple("AM BQ CC CG CP H0 H1 H2 HI IH NH PG PQ SM TS UQ".split())
"""The others of the specification that tell of an alignment, or of the program that made it."""

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


class Tags(NamedTuple):
    """The tags of consecutive reads.

    Attributes
    ----------
    content : ndarray, dtype=uint8, shape=(n_bytes,)
        The tags as BAM has them, those of one read after those of the other.
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,) or (0,)
        Where in `content` those of each read begin, and where the last ones end; empty if none are
        kept.
    """

    content: ByteArray
    offsets: Int64Array

    @property
    def are_kept(self) -> bool:
        """Whether there may be any."""
        return self.offsets.size > 0

    def part(self, first: int, end: int) -> Tags:
        """Return those of some of the reads, as views."""
        if not self.are_kept:
            return self
        offsets = self.offsets[first : end + 1]
        return Tags(self.content[offsets[0] : offsets[-1]], offsets - offsets[0])

    def of_reads(self, count: int) -> Tags:
        """Return the same tags of so many reads, with offsets also if none are kept."""
        return self if self.are_kept else Tags(self.content, np.zeros(count + 1, dtype=np.int64))

    def without_groups(self) -> Tags:
        """Return all but the read groups."""
        if not self.are_kept:
            return self
        content, offsets = np.empty_like(self.content), np.zeros_like(self.offsets)
        end = _filter_all(
            writable(self.content), writable(self.offsets), dropped_tags(False), content, offsets
        )
        return Tags(content[:end], offsets)


NO_TAGS: Final = Tags(np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.int64))


def join_tags(parts: Sequence[tuple[Tags, int]]) -> Tags:
    """Join the tags of reads that follow each other: of some reads, and how many they are."""
    if not any(tags.are_kept for tags, _ in parts):
        return NO_TAGS
    own = [tags.of_reads(count) for tags, count in parts]
    starts = np.cumsum([0, *(tags.content.size for tags in own)]).tolist()
    moved = [tags.offsets[1:] + start for tags, start in zip(own, starts, strict=False)]
    offsets = np.concatenate([np.zeros(1, dtype=np.int64), *moved])
    return Tags(np.concatenate([tags.content for tags in own]), offsets)


def dropped_tags(keeps_groups: bool) -> ByteArray:
    """Return which tags are left out: dtype=uint8, shape=(65536,).

    It is 1 at the number that the two letters of a tag are, the first in the lower byte.
    """
    dropped = np.zeros(_KEYS, dtype=np.uint8)
    for tag in (*WRITTEN_TAGS, *ALIGNMENT_TAGS, *(() if keeps_groups else (READ_GROUP,))):
        dropped[ord(tag[0]) | ord(tag[1]) << 8] = 1
    return dropped


def pack_tags(tags: Iterable[tuple[str, Any, str]], dropped: ByteArray) -> bytes:
    """Return the tags of a record of pysam as BAM has them, without what is dropped.

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
            # pysam tells numbers of 32 bits that are not signed as if they were.
            number = value & 0xFFFFFFFF if kind == "I" else value
            packed += struct.pack("<" + _NUMBER_KINDS[kind], number)
    return packed


_NUMBER_KINDS: Final = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "f": "f"}
_ARRAY_KINDS: Final = {own: kind.encode() for kind, own in _NUMBER_KINDS.items()}


@inline
def end_of_tag(content: ByteArray, at: int, end: int) -> int:
    """Return where a tag ends; -1 if it is none, or ends behind the tags of its read."""
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
    """Write the number of the read group of each read; those of none of the groups keep theirs.

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
            # The letters and the type lie before the ID, and a zero behind it.
            size = after - at - 4
            for group in range(ends.size - 1):
                is_same = ends[group + 1] - ends[group] == size
                for place in range(size if is_same else 0):
                    letter = ids[as_index(ends[group] + place)]
                    is_same &= content[as_index(at + 3 + place)] == letter
                if is_same:
                    numbers[read] = group
            break
