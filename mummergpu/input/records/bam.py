"""Reads the reads of BAM, on the strand that was sequenced, without a Python object for each.

BAM is a header and records, each after its length in bytes (SAM/BAM format specification, section
4.2). Only primary records count: the others repeat reads that have a primary record.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.bytes.files import Input, reading
from mummergpu.input.bytes.formats import check_end_of_file
from mummergpu.input.records.block_arrays import BlockArrays
from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.parser_state import Columns
from mummergpu.input.records.qualities import NO_QUALITY, check_qualities
from mummergpu.input.records.record_arrays import Limits, RecordOptions, Records
from mummergpu.input.records.tags import dropped_tags, filter_tags, group_lines
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import COMPLEMENT_OF_CODE, LETTER_CODE_OF_BYTE, CodeArray, flatten

MAGIC: Final = b"BAM\x01"

# Where the fixed fields of a record lie, counted from its length.
LENGTH_BYTES: Final = 4
REFERENCE: Final = 4
NAME_BYTES: Final = 12
CIGAR_OPERATIONS: Final = 16
FLAG: Final = 18
BASES: Final = 20
MATE_REFERENCE: Final = 24
NAME: Final = 36
FIXED_BYTES: Final = NAME - LENGTH_BYTES

REVERSE: Final = 0x10
NOT_PRIMARY: Final = 0x100 | 0x800

# The numbers that the parser counts on, and how many there are.
RECORD_COUNT: Final = 0
BASE_COUNT: Final = 1
NAME_BYTE_COUNT: Final = 2
STATUS: Final = 3
TAG_BYTE_COUNT: Final = 4
NUMBERS: Final = 5

# What `STATUS` says when the parser returns.
MORE: Final = 0
FULL: Final = 1
DAMAGED: Final = 2

_LETTERS: Final = b"=ACMGRSVTWYHKDBN"
"""The letters of the sixteen values of half a byte."""

CODE_OF_NIBBLE: Final = LETTER_CODE_OF_BYTE[np.frombuffer(_LETTERS, dtype=np.uint8)]
COMPLEMENT_OF_NIBBLE: Final = COMPLEMENT_OF_CODE[CODE_OF_NIBBLE]


class BamReader:
    """Reads the primary records of BAM, block by block, from a file or a pipe.

    The caller closes the file. Kept qualities are in the order in which they were sequenced.
    """

    def __init__(self, file: Input, options: RecordOptions) -> None:
        self._file = file
        self._path = file.path
        self._options = options
        self._text: ByteArray = np.empty(2 * options.chunk_size, dtype=np.uint8)
        self._at = self._end = 0
        self._is_at_end = False
        if file.size is not None:
            with reading(file.path):
                # Only the end of a pipe shows whether it is complete.
                check_end_of_file(file.file)
        self.read_groups: tuple[bytes, ...] = ()
        self._reference_count = self._read_header()
        self._dropped = dropped_tags(options.keeps_groups and bool(self.read_groups))

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the file, counted before decompression."""
        return self._file.source.bytes_read

    def close(self) -> None:
        """Release the memory of the last block."""
        self._text = np.empty(0, dtype=np.uint8)

    def next_block(self) -> Records | None:
        """Return the records of the next block in new arrays, at least one; None after the last."""
        numbers = np.zeros(NUMBERS, dtype=np.int64)
        arrays = BlockArrays(keeps_qualities=self._options.keeps_qualities)
        while numbers[STATUS] != FULL:
            text_bytes = self._end - self._at
            more = text_bytes // (FIXED_BYTES + LENGTH_BYTES) + 1
            arrays.make_room(
                # Each byte of a record holds at most two bases.
                int(numbers[BASE_COUNT]) + 2 * text_bytes,
                int(numbers[RECORD_COUNT]) + more,
                int(numbers[NAME_BYTE_COUNT]) + text_bytes,
                int(numbers[TAG_BYTE_COUNT]) + text_bytes,
            )
            numbers[STATUS] = MORE
            self._at = parse_bam(
                *(self._text, self._at, self._end, self._reference_count),
                *(self._options.limits, self._dropped, numbers, arrays.columns),
            )
            if numbers[STATUS] == DAMAGED:
                raise self._damaged()
            if numbers[STATUS] == MORE and not self._refill():
                if self._at < self._end:
                    raise self._damaged()
                break
        if numbers[RECORD_COUNT] == 0:
            return None
        count, bases, name_bytes = numbers[:STATUS].tolist()
        tag_bytes = int(numbers[TAG_BYTE_COUNT])
        arrays.give_back(bases, count, name_bytes, tag_bytes)
        records = arrays.records(count, bases, name_bytes, tag_bytes)
        if not self._options.keeps_qualities:
            flatten(records.codes)
        else:
            check_qualities(records.qualities, records.offsets, self._path)
        return records

    def _refill(self) -> bool:
        """Decompress more text after the unparsed rest; return False at the end of the file."""
        if self._is_at_end:
            return False
        left = self._end - self._at
        self._text[:left] = self._text[self._at : self._end]
        self._at, self._end = 0, left
        if left + self._options.chunk_size > self._text.size:
            # A record is longer than the buffer.
            longer: ByteArray = np.empty(2 * (left + self._options.chunk_size), dtype=np.uint8)
            longer[:left] = self._text[:left]
            self._text = longer
        count = self._file.text.readinto(self._text[left : left + self._options.chunk_size].data)
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


@jit
def parse_bam(
    text: ByteArray,
    at: int,
    end: int,
    reference_count: int,
    limits: Limits,
    dropped: ByteArray,
    numbers: Int64Array,
    columns: Columns,
) -> int:
    """Append the complete primary records to arrays; return where the first other record begins.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        Decompressed BAM after its header; the next record begins at `at`, and the data end at
        `end`.
    dropped : ndarray, dtype=uint8, shape=(65536,)
        The tags that are left out (`tags.dropped_tags`).
    numbers : ndarray, dtype=int64, shape=(NUMBERS,)
        The numbers of records, bases and bytes of names and tags so far, updated. Output: `STATUS`
        is `FULL` if the block is, `DAMAGED` if a record makes no sense, else `MORE`.
    """
    records, bases, name_bytes = (
        numbers[RECORD_COUNT],
        numbers[BASE_COUNT],
        numbers[NAME_BYTE_COUNT],
    )
    while numbers[STATUS] == MORE and at + LENGTH_BYTES <= end:
        size = number_at(text, at, 4)
        if size < FIXED_BYTES:
            numbers[STATUS] = DAMAGED
            break
        behind = at + LENGTH_BYTES + size
        if behind > end:  # The rest of the record comes with the next text.
            break
        name = at + NAME
        name_size = number_at(text, at + NAME_BYTES, 1)
        flag = number_at(text, at + FLAG, 2)
        length = number_at(text, at + BASES, 4)
        sequence = name + name_size + 4 * number_at(text, at + CIGAR_OPERATIONS, 2)
        if (
            name_size < 1
            or length < 0
            # A quality for each base follows the bases, two of which take a byte.
            or sequence + (length + 1) // 2 + length > behind
            or not -1 <= number_at(text, at + REFERENCE, 4) < reference_count
            or not -1 <= number_at(text, at + MATE_REFERENCE, 4) < reference_count
        ):
            numbers[STATUS] = DAMAGED
            break
        after = sequence + (length + 1) // 2 + length
        at = behind
        if flag & NOT_PRIMARY:
            continue
        decode_bases(text, sequence, length, flag & REVERSE != 0, columns.codes, bases)
        if columns.qualities.size > 0:
            columns.flags[as_index(records)] = flag
            quality = sequence + (length + 1) // 2
            copy_qualities(text, quality, length, flag & REVERSE != 0, columns.qualities, bases)
            tag_bytes = filter_tags(
                text, after, behind, dropped, columns.tags, numbers[TAG_BYTE_COUNT]
            )
            if tag_bytes < 0:
                numbers[STATUS] = DAMAGED
                break
            numbers[TAG_BYTE_COUNT] = tag_bytes
            columns.tag_offsets[as_index(records + 1)] = tag_bytes
        bases += length
        # A name ends at the first zero, even if a damaged one continues after it.
        for index in range(name_size):
            letter = text[as_index(name + index)]
            if letter == 0:
                break
            columns.names[as_index(name_bytes)] = letter
            name_bytes += 1
        records += 1
        columns.offsets[as_index(records)] = bases
        columns.name_offsets[as_index(records)] = name_bytes
        is_full = bases >= limits.bases or records >= limits.records
        if is_full or name_bytes >= limits.name_bytes:
            numbers[STATUS] = FULL
    numbers[RECORD_COUNT], numbers[BASE_COUNT], numbers[NAME_BYTE_COUNT] = (
        records,
        bases,
        name_bytes,
    )
    return at


@inline
def decode_bases(
    text: ByteArray, sequence: int, length: int, is_reverse: bool, codes: CodeArray, begin: int
) -> None:
    """Write the codes of a sequence, two per byte; reverse-complemented if it was turned."""
    pairs = length >> 1
    last = begin + length - 1
    for pair in range(pairs):
        byte = text[as_index(sequence + pair)]
        if is_reverse:
            codes[as_index(last - 2 * pair)] = COMPLEMENT_OF_NIBBLE[byte >> 4]
            codes[as_index(last - 2 * pair - 1)] = COMPLEMENT_OF_NIBBLE[byte & 15]
        else:
            codes[as_index(begin + 2 * pair)] = CODE_OF_NIBBLE[byte >> 4]
            codes[as_index(begin + 2 * pair + 1)] = CODE_OF_NIBBLE[byte & 15]
    if length & 1:
        byte = text[as_index(sequence + pairs)]
        if is_reverse:
            codes[as_index(begin)] = COMPLEMENT_OF_NIBBLE[byte >> 4]
        else:
            codes[as_index(last)] = CODE_OF_NIBBLE[byte >> 4]


@inline
def copy_qualities(
    text: ByteArray, at: int, length: int, is_reverse: bool, qualities: ByteArray, begin: int
) -> None:
    """Copy the qualities of a record; there are none if the first is `NO_QUALITY`."""
    if length > 0 and text[as_index(at)] == NO_QUALITY:
        for index in range(length):
            qualities[as_index(begin + index)] = NO_QUALITY
        return
    if is_reverse:
        last = begin + length - 1
        for index in range(length):
            qualities[as_index(last - index)] = text[as_index(at + index)]
    else:
        copy_bytes(text, at, qualities, begin, length)


@inline
def number_at(text: ByteArray, at: int, size: int) -> int:
    """Return a little-endian number of 1, 2 or 4 bytes; with four it is signed."""
    number = 0
    for index in range(size):
        number |= as_int64(text[as_index(at + index)]) << (8 * index)
    return number - (1 << 32) if size == 4 and number >= 1 << 31 else number
