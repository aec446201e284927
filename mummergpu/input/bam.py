"""Reads the reads of BAM, on the strand that was sequenced, without a Python object for each.

BAM is a header and records, each behind its length in bytes (SAM/BAM format specification, section
4.2). Only primary records count: the others repeat reads that have one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.errors import InputError
from mummergpu.input.block_arrays import lengthen
from mummergpu.input.containers import check_end_of_file
from mummergpu.input.files import Input, reading
from mummergpu.input.records import Limits, Records
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray

ByteArray = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]

CHUNK_SIZE: Final = 1 << 20
"""The bytes that are decompressed at once."""

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
NUMBERS: Final = 4

# What `STATUS` says when the parser returns.
MORE: Final = 0
FULL: Final = 1
DAMAGED: Final = 2

_LETTERS: Final = "=ACMGRSVTWYHKDBN"
"""The letters of the sixteen values of half a byte."""

CODE_OF_NIBBLE: Final = np.array(
    ["ACGT".index(letter) if letter in "ACGT" else BREAK for letter in _LETTERS], dtype=np.uint8
)
COMPLEMENT_OF_NIBBLE: Final = np.array(
    [3 - code if code < BREAK else BREAK for code in CODE_OF_NIBBLE.tolist()], dtype=np.uint8
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

    Raises
    ------
    InputError
        If the file lacks its end mark, or its header is damaged.
    """

    def __init__(self, file: Input, limits: Limits, chunk_size: int = CHUNK_SIZE) -> None:
        self._file = file
        self._path = file.path
        self._limits = np.array(limits, dtype=np.int64)
        self._chunk_size = chunk_size
        self._text: ByteArray = np.empty(2 * chunk_size, dtype=np.uint8)
        self._at = self._end = 0
        self._is_at_end = False
        if file.size is not None:
            with reading(file.path):
                # A pipe shows at its end only whether it is whole.
                check_end_of_file(file.file)
        self._reference_count = self._read_header()

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
        padded: CodeArray = np.empty(2 * MARGIN, dtype=np.uint8)
        names: ByteArray = np.empty(0, dtype=np.uint8)
        offsets: Int64Array = np.zeros(1, dtype=np.int64)
        name_offsets: Int64Array = np.zeros(1, dtype=np.int64)
        while numbers[STATUS] != FULL:
            left = self._end - self._at
            # Each byte of a record holds at most two bases.
            lengthen(padded, int(numbers[BASE_COUNT]) + 2 * left + 2 * MARGIN)
            lengthen(names, int(numbers[NAME_BYTE_COUNT]) + left)
            records = int(numbers[RECORD_COUNT]) + left // (FIXED_BYTES + LENGTH_BYTES) + 2
            lengthen(offsets, records)
            lengthen(name_offsets, records)
            numbers[STATUS] = MORE
            self._at = parse_bam(
                self._text,
                self._at,
                self._end,
                self._reference_count,
                self._limits,
                numbers,
                padded[MARGIN:],
                offsets,
                names,
                name_offsets,
            )
            if numbers[STATUS] == DAMAGED:
                raise self._damaged()
            if numbers[STATUS] == MORE and not self._refill():
                if self._at < self._end:
                    raise self._damaged()
                break
        count, bases = int(numbers[RECORD_COUNT]), int(numbers[BASE_COUNT])
        if count == 0:
            return None
        for array, size in (
            (padded, bases + 2 * MARGIN),
            (names, int(numbers[NAME_BYTE_COUNT])),
            (offsets, count + 1),
            (name_offsets, count + 1),
        ):
            array.resize(size, refcheck=False)
        padded[:MARGIN] = padded[MARGIN + bases :] = BREAK
        return Records(padded[MARGIN:-MARGIN], offsets, names, name_offsets, padded)

    def _refill(self) -> bool:
        """Decompress more behind what is not parsed yet; return False at the end of the file."""
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
        """Skip the header; return its number of references."""
        self._skip(len(MAGIC))
        self._skip(self._number())
        references = self._number()
        for _ in range(references):
            # The name, and the length of the reference.
            self._skip(self._number() + 4)
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

    def _skip(self, count: int) -> None:
        while self._end - self._at < count:
            count -= self._end - self._at
            self._at = self._end
            if not self._refill():
                raise self._damaged()
        self._at += count

    def _damaged(self) -> InputError:
        return InputError("the BAM data are truncated or corrupt", self._path)


@jit_without_refcounts
def parse_bam(
    text: ByteArray,
    at: int,
    end: int,
    reference_count: int,
    limits: Int64Array,
    numbers: Int64Array,
    codes: CodeArray,
    offsets: Int64Array,
    names: ByteArray,
    name_offsets: Int64Array,
) -> int:
    """Append the primary records that are whole to arrays.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        Decompressed BAM behind its header.
    at, end : int
        Where in `text` the next record begins, and where the data end.
    reference_count : int
        The number of references that the header names.
    limits : ndarray, dtype=int64, shape=(3,)
        The bases, records and bytes of names at which a block is full (`records.Limits`).
    numbers : ndarray, dtype=int64, shape=(NUMBERS,)
        The numbers of records, bases and bytes of names so far, updated. Output: `STATUS` is `FULL`
        if the block is, `DAMAGED` if a record makes no sense, else `MORE`.
    codes : ndarray, dtype=uint8, shape=(n_codes,)
        Output: the base codes, on the strand that was sequenced. Has room for two more bases for
        each byte of text.
    offsets : ndarray, dtype=int64, shape=(n_records,)
        Output: where in `codes` each record begins, and where one more would.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        Output: the names, one after the other. Has room for all bytes of text.
    name_offsets : ndarray, dtype=int64, shape=(n_records,)
        Output: where in `names` each name begins, and where one more would.

    Returns
    -------
    int
        Where in `text` the first record begins that was not taken.
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
        if behind > end:
            break
        name = at + NAME
        name_size = number_at(text, at + NAME_BYTES, 1)
        flag = number_at(text, at + FLAG, 2)
        length = number_at(text, at + BASES, 4)
        sequence = name + name_size + 4 * number_at(text, at + CIGAR_OPERATIONS, 2)
        if (
            name_size < 1
            or length < 0
            # Behind the bases, two in a byte, there is a quality for each.
            or sequence + (length + 1) // 2 + length > behind
            or not -1 <= number_at(text, at + REFERENCE, 4) < reference_count
            or not -1 <= number_at(text, at + MATE_REFERENCE, 4) < reference_count
        ):
            numbers[STATUS] = DAMAGED
            break
        at = behind
        if flag & NOT_PRIMARY:
            continue
        decode_bases(text, sequence, length, flag & REVERSE != 0, codes, bases)
        bases += length
        for index in range(name_size):
            letter = text[unsigned(name + index)]
            if letter == 0:
                break
            names[unsigned(name_bytes)] = letter
            name_bytes += 1
        records += 1
        offsets[unsigned(records)] = bases
        name_offsets[unsigned(records)] = name_bytes
        if bases >= limits[0] or records >= limits[1] or name_bytes >= limits[2]:
            numbers[STATUS] = FULL
    numbers[RECORD_COUNT], numbers[BASE_COUNT], numbers[NAME_BYTE_COUNT] = (
        records,
        bases,
        name_bytes,
    )
    return at


@inline_without_refcounts
def decode_bases(
    text: ByteArray, sequence: int, length: int, is_reverse: bool, codes: CodeArray, begin: int
) -> None:
    """Write the codes of a sequence, two of which lie in a byte.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        The bytes.
    sequence : int
        Where in `text` the sequence begins.
    length : int
        The number of its bases.
    is_reverse : bool
        Whether the reverse complement was sequenced.
    codes : ndarray, dtype=uint8, shape=(n_codes,)
        Output.
    begin : int
        Where in `codes` the first base goes.
    """
    pairs = length >> 1
    last = begin + length - 1
    for pair in range(pairs):
        byte = text[unsigned(sequence + pair)]
        if is_reverse:
            codes[unsigned(last - 2 * pair)] = COMPLEMENT_OF_NIBBLE[byte >> 4]
            codes[unsigned(last - 2 * pair - 1)] = COMPLEMENT_OF_NIBBLE[byte & 15]
        else:
            codes[unsigned(begin + 2 * pair)] = CODE_OF_NIBBLE[byte >> 4]
            codes[unsigned(begin + 2 * pair + 1)] = CODE_OF_NIBBLE[byte & 15]
    if length & 1:
        byte = text[unsigned(sequence + pairs)]
        if is_reverse:
            codes[unsigned(begin)] = COMPLEMENT_OF_NIBBLE[byte >> 4]
        else:
            codes[unsigned(last)] = CODE_OF_NIBBLE[byte >> 4]


@inline_without_refcounts
def number_at(text: ByteArray, at: int, size: int) -> int:
    """Return a little-endian number.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        The bytes.
    at : int
        Where it begins.
    size : int
        Its bytes: 1, 2 or 4. With four it is signed.

    Returns
    -------
    int
        The number.
    """
    number = 0
    for index in range(size):
        number |= widened(text[unsigned(at + index)]) << (8 * index)
    return number - (1 << 32) if size == 4 and number >= 1 << 31 else number
