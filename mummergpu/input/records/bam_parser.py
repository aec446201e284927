"""Parses the primary records of BAM into arrays.

A record comes after its length in bytes (SAM/BAM format specification, section 4.2).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.records.byte_runs import copy_bytes
from mummergpu.input.records.qualities import NO_QUALITY
from mummergpu.input.records.tags import filter_tags
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt16Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)
from mummergpu.sequence.codes import COMPLEMENT_OF_CODE, LETTER_CODE_OF_BYTE, CodeArray

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
    qualities: ByteArray,
    flags: UInt16Array,
    tags: ByteArray,
    tag_offsets: Int64Array,
    dropped: ByteArray,
) -> int:
    """Append the primary records that are whole to arrays.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        Decompressed BAM after its header.
    at, end : int
        Where in `text` the next record begins, and where the data end.
    reference_count : int
        The number of references that the header names.
    limits : ndarray, dtype=int64, shape=(3,)
        The bases, records and bytes of names at which a block is full (`records.Limits`).
    numbers : ndarray, dtype=int64, shape=(NUMBERS,)
        The numbers of records, bases and bytes of names and tags so far, updated. Output: `STATUS`
        is `FULL` if the block is, `DAMAGED` if a record makes no sense, else `MORE`.
    codes : ndarray, dtype=uint8, shape=(n_codes,)
        Output: the codes of `codes.LETTERS`, on the strand that was sequenced. Has room for two
        more bases for each byte of text.
    offsets : ndarray, dtype=int64, shape=(n_records,)
        Output: where in `codes` each record begins, and where one more would.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        Output: the names, one after the other. Has room for all bytes of text.
    name_offsets : ndarray, dtype=int64, shape=(n_records,)
        Output: where in `names` each name begins, and where one more would.
    qualities : ndarray, dtype=uint8, shape=(n_qualities,)
        Output: the qualities in the order in which they were sequenced, at the indices of their
        bases; has room for as many more as there are bytes of text. With length 0, neither they
        nor the flags and the tags are kept.
    flags : ndarray, dtype=uint16, shape=(n_records,)
        Output: the flag of each record.
    tags : ndarray, dtype=uint8, shape=(n_tag_bytes,)
        Output: the tags, one after the other. Has room for all bytes of text.
    tag_offsets : ndarray, dtype=int64, shape=(n_records,)
        Output: where in `tags` those of each record begin, and where one more would.
    dropped : ndarray, dtype=uint8, shape=(65536,)
        The tags that are left out (`tags.dropped_tags`).

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
        after = sequence + (length + 1) // 2 + length
        at = behind
        if flag & NOT_PRIMARY:
            continue
        decode_bases(text, sequence, length, flag & REVERSE != 0, codes, bases)
        if qualities.size > 0:
            flags[as_index(records)] = flag
            copy_qualities(
                text, sequence + (length + 1) // 2, length, flag & REVERSE != 0, qualities, bases
            )
            tag_bytes = filter_tags(text, after, behind, dropped, tags, numbers[TAG_BYTE_COUNT])
            if tag_bytes < 0:
                numbers[STATUS] = DAMAGED
                break
            numbers[TAG_BYTE_COUNT] = tag_bytes
            tag_offsets[as_index(records + 1)] = tag_bytes
        bases += length
        for index in range(name_size):
            letter = text[as_index(name + index)]
            if letter == 0:
                break
            names[as_index(name_bytes)] = letter
            name_bytes += 1
        records += 1
        offsets[as_index(records)] = bases
        name_offsets[as_index(records)] = name_bytes
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


@inline_without_refcounts
def copy_qualities(
    text: ByteArray, at: int, length: int, is_reverse: bool, qualities: ByteArray, begin: int
) -> None:
    """Copy the qualities of a record.

    Parameters
    ----------
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        The bytes.
    at : int
        Where in `text` they begin. If the first is `NO_QUALITY`, the record has none.
    length : int
        Their number.
    is_reverse : bool
        Whether they are turned round.
    qualities : ndarray, dtype=uint8, shape=(n_qualities,)
        Output.
    begin : int
        Where in `qualities` the first goes.
    """
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
        number |= as_int64(text[as_index(at + index)]) << (8 * index)
    return number - (1 << 32) if size == 4 and number >= 1 << 31 else number
