"""Reads the reads of BAM, on the strand that was sequenced, without a Python object for each.

BAM is a header and records, each after its length in bytes (SAM/BAM format specification, section
4.2). Only primary records count: the others repeat reads that have one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.containers import check_end_of_file
from mummergpu.input.bytes.files import Input, reading
from mummergpu.input.records.bam_parser import (
    BASE_COUNT,
    DAMAGED,
    FIXED_BYTES,
    FULL,
    LENGTH_BYTES,
    MORE,
    NAME_BYTE_COUNT,
    NUMBERS,
    RECORD_COUNT,
    STATUS,
    TAG_BYTE_COUNT,
    parse_bam,
)
from mummergpu.input.records.block_arrays import lengthen
from mummergpu.input.records.qualities import check_qualities
from mummergpu.input.records.read_groups import group_lines
from mummergpu.input.records.record_arrays import Limits, Records
from mummergpu.input.records.tags import NO_TAGS, Tags, dropped_tags
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray, flatten

CHUNK_SIZE: Final = 1 << 20
"""The bytes that are decompressed at once."""

MAGIC: Final = b"BAM\x01"


class _BamArrays:
    """The arrays of a block, which grow while it is read; resized in place, not copied."""

    def __init__(self) -> None:
        self.padded: CodeArray = np.empty(2 * MARGIN, dtype=np.uint8)
        self.names: ByteArray = np.empty(0, dtype=np.uint8)
        self.offsets: Int64Array = np.zeros(1, dtype=np.int64)
        self.name_offsets: Int64Array = np.zeros(1, dtype=np.int64)
        self.qualities: ByteArray = np.empty(0, dtype=np.uint8)
        self.flags: UInt16Array = np.empty(0, dtype=np.uint16)
        self.tags: ByteArray = np.empty(0, dtype=np.uint8)
        self.tag_offsets: Int64Array = np.zeros(1, dtype=np.int64)

    def make_room(self, numbers: Int64Array, text_bytes: int, keeps_qualities: bool) -> None:
        """Make room for the records that a text may have, after those that are there."""
        bases, records = int(numbers[BASE_COUNT]), int(numbers[RECORD_COUNT])
        records += text_bytes // (FIXED_BYTES + LENGTH_BYTES) + 2
        # Each byte of a record holds at most two bases.
        lengthen(self.padded, bases + 2 * text_bytes + 2 * MARGIN)
        lengthen(self.names, int(numbers[NAME_BYTE_COUNT]) + text_bytes)
        lengthen(self.offsets, records)
        lengthen(self.name_offsets, records)
        if keeps_qualities:
            lengthen(self.qualities, bases + text_bytes)
            lengthen(self.flags, records)
            lengthen(self.tags, int(numbers[TAG_BYTE_COUNT]) + text_bytes)
            lengthen(self.tag_offsets, records)

    def as_records(self, numbers: Int64Array, keeps_qualities: bool) -> Records:
        """Return the records, in arrays that have no more room than they need."""
        count, bases = int(numbers[RECORD_COUNT]), int(numbers[BASE_COUNT])
        self.padded.resize(bases + 2 * MARGIN, refcheck=False)
        self.names.resize(int(numbers[NAME_BYTE_COUNT]), refcheck=False)
        self.offsets.resize(count + 1, refcheck=False)
        self.name_offsets.resize(count + 1, refcheck=False)
        self.padded[:MARGIN] = self.padded[MARGIN + bases :] = BREAK
        if keeps_qualities:
            self.qualities.resize(bases, refcheck=False)
            self.flags.resize(count, refcheck=False)
            self.tags.resize(int(numbers[TAG_BYTE_COUNT]), refcheck=False)
            self.tag_offsets.resize(count + 1, refcheck=False)
        return Records(
            self.padded[MARGIN:-MARGIN],
            self.offsets,
            self.names,
            self.name_offsets,
            self.padded,
            self.qualities,
            self.flags,
            Tags(self.tags, self.tag_offsets) if self.tags.size else NO_TAGS,
        )


class BamReader:
    """Reads the primary records of BAM, block by block, from a file or a pipe.

    Parameters
    ----------
    file : Input
        The open file; the caller closes it.
    limits : Limits
        The limits at which a block is full.
    chunk_size : int, default CHUNK_SIZE
        The number of bytes decompressed at once.
    keeps_qualities : bool, default False
        Keep the base qualities, in the order in which they were sequenced, the letters that stand
        for several bases, the flags and the tags.
    keeps_groups : bool, default False
        Keep the read groups of a file whose header has any.

    Attributes
    ----------
    read_groups : tuple of bytes
        The lines of the header about read groups.

    Raises
    ------
    InputError
        If the file lacks its end mark, or its header is damaged.
    """

    def __init__(
        self,
        file: Input,
        limits: Limits,
        chunk_size: int = CHUNK_SIZE,
        keeps_qualities: bool = False,
        keeps_groups: bool = False,
    ) -> None:
        self._file = file
        self._path = file.path
        self._limits = np.array(limits, dtype=np.int64)
        self._chunk_size = chunk_size
        self._keeps_qualities = keeps_qualities
        self._text: ByteArray = np.empty(2 * chunk_size, dtype=np.uint8)
        self._at = self._end = 0
        self._is_at_end = False
        if file.size is not None:
            with reading(file.path):
                # A pipe shows at its end only whether it is whole.
                check_end_of_file(file.file)
        self.read_groups: tuple[bytes, ...] = ()
        self._reference_count = self._read_header()
        self._dropped = dropped_tags(keeps_groups and bool(self.read_groups))

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the file, counted before decompression."""
        return self._file.source.bytes_read

    def close(self) -> None:
        """Release the memory of the last block."""
        self._text = np.empty(0, dtype=np.uint8)

    def next_block(self) -> Records | None:
        """Return the records of the next block, None after the last.

        Returns
        -------
        Records or None
            At least one record, in arrays that belong to the caller.

        Raises
        ------
        InputError
            If the file is truncated or corrupt.
        """
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        arrays = _BamArrays()
        while numbers[STATUS] != FULL:
            arrays.make_room(numbers, self._end - self._at, self._keeps_qualities)
            numbers[STATUS] = MORE
            self._at = parse_bam(
                self._text,
                self._at,
                self._end,
                self._reference_count,
                self._limits,
                numbers,
                arrays.padded[MARGIN:],
                arrays.offsets,
                arrays.names,
                arrays.name_offsets,
                arrays.qualities,
                arrays.flags,
                arrays.tags,
                arrays.tag_offsets,
                self._dropped,
            )
            if numbers[STATUS] == DAMAGED:
                raise self._damaged()
            if numbers[STATUS] == MORE and not self._refill():
                if self._at < self._end:
                    raise self._damaged()
                break
        if numbers[RECORD_COUNT] == 0:
            return None
        records = arrays.as_records(numbers, self._keeps_qualities)
        if not self._keeps_qualities:
            flatten(records.codes)
        else:
            check_qualities(records.qualities, records.offsets, self._path)
        return records

    def _refill(self) -> bool:
        """Decompress more after what is not parsed yet; return False at the end of the file."""
        if self._is_at_end:
            return False
        left = self._end - self._at
        self._text[:left] = self._text[self._at : self._end]
        self._at, self._end = 0, left
        if left + self._chunk_size > self._text.size:
            # A record is longer than the buffer.
            longer: ByteArray = np.empty(2 * (left + self._chunk_size), dtype=np.uint8)
            longer[:left] = self._text[:left]
            self._text = longer
        count = self._file.text.readinto(self._text[left : left + self._chunk_size].data)
        self._end += count
        self._is_at_end = count == 0
        return not self._is_at_end

    def _read_header(self) -> int:
        """Read the header; return its number of references."""
        self._text_of(len(MAGIC))
        self.read_groups = group_lines(self._text_of(self._number()))
        references = self._number()
        for _ in range(references):
            # The name, and the length of the reference.
            self._text_of(self._number() + 4)
        return references

    def _number(self) -> int:
        """Return the next number of 32 bits, which must not be negative."""
        while self._end - self._at < 4:
            if not self._refill():
                raise self._damaged()
        value = int.from_bytes(self._text[self._at : self._at + 4].tobytes(), "little", signed=True)
        if value < 0:
            raise self._damaged()
        self._at += 4
        return value

    def _text_of(self, count: int) -> bytes:
        """Return the next bytes."""
        pieces = []
        while self._end - self._at < count:
            pieces.append(self._text[self._at : self._end].tobytes())
            count -= self._end - self._at
            self._at = self._end
            if not self._refill():
                raise self._damaged()
        pieces.append(self._text[self._at : self._at + count].tobytes())
        self._at += count
        return b"".join(pieces)

    def _damaged(self) -> InputError:
        return InputError("the BAM data are truncated or corrupt", self._path)
