"""Compiled functions that write fields of SAM and PAF: names, numbers, CIGARs and MD."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from mummergpu.output.bytes.number_text import MOST_DIGITS, SMALL, number_words, put_small, put_word
from mummergpu.output.bytes.texts import OVERSHOOT, RecordTexts, TextArray, copy_text, store
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, LETTERS, MARGIN, CodeArray
from mummergpu.sequence.extension import extend_right

OPERATION_LETTERS: Final = b"MIDNSHP=X"
"""The letter of each operation of a CIGAR, by its number in BAM."""

TAKES_READ: Final = 0b110010011
"""A bit for each operation that takes bases of the read: M, I, S, = and X."""

TAKES_REFERENCE: Final = 0b110001101
"""A bit for each operation that takes bases of the reference: M, D, N, = and X."""

_SOFT_CLIP: Final = 4
HARD_CLIP: Final = 5

OPERATION_BYTES: Final = 14
"""The most bytes that an operation adds to a CIGAR, nine digits and a letter, or to MD besides the
bases of the reference and two bytes for each base of the read, and some to spare."""

_INSERTION: Final = 1
_DELETION: Final = 2
_ALIGNED: Final = 0b110000001
"""A bit for each operation that aligns bases with bases: M, = and X."""

ReferenceLetters = tuple[Int64Array, CodeArray]
"""Which letters of a reference stand for several bases (`codes.Letters`)."""

_OPERATIONS: Final = np.frombuffer(OPERATION_LETTERS, dtype=np.uint8)


def _operation_words() -> Any:
    """Return the text of each operation with each small length; empty if it has no bases."""
    words = number_words(SMALL, b"", b"\0")
    places = 8 * ((words >> 56) - 1)
    made = words | _OPERATIONS.astype(np.uint64)[:, None] << places
    made[:, 0] = 0
    return made.ravel()


_OPERATION_WORDS: Final = _operation_words()

_LETTERS: Final = np.frombuffer(LETTERS, dtype=np.uint8)
_MINUS: Final = np.uint8(ord("-"))
_CARET: Final = np.uint8(ord("^"))
_STAR: Final = np.uint8(ord("*"))


@inline
def put_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write the name of a read, or a star if it has none; return where it ends."""
    begin, end = name_offsets[as_index(read)], name_offsets[as_index(read + 1)]
    if begin == end:
        store(text, at, _STAR)
        return at + 1
    return copy_text(text, at, names, begin, end)


@inline
def put_signed(text: TextArray, at: int, number: int) -> int:
    """Write a number with a minus if it is negative; return where it ends."""
    if number < 0:
        store(text, at, _MINUS)
        at, number = at + 1, -number
    return put_small(text, at, number)


@inline
def put_cigar(
    text: TextArray, at: int, cigars: UInt32Array, begin: int, end: int, soft: bool
) -> int:
    """Write the operations of a CIGAR that have bases; return where they end."""
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        if soft and kind == HARD_CLIP:
            kind = _SOFT_CLIP
        if length < SMALL:
            at = put_word(text, at, _OPERATION_WORDS[as_index(SMALL * kind + length)])
        else:
            at = put_small(text, at, length)
            text[as_index(at)] = _OPERATIONS[as_index(kind)]
            at += 1
    return at


def cigar_texts(cigars: UInt32Array, offsets: Int64Array) -> RecordTexts:
    """Return the CIGAR of each alignment as text; ``*`` if it has no operation.

    The operations are those of all alignments, as BAM packs them, and `offsets` has where those
    of each begin.
    """
    size = (MOST_DIGITS + 1) * cigars.size + offsets.size + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_cigars(cigars, offsets, text, text_offsets)
    # Wide stores are not among what numba checks.
    assert text_offsets[-1] <= text.size - OVERSHOOT
    return RecordTexts(text, text_offsets)


@jit
def _write_cigars(
    cigars: UInt32Array, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a number and a letter for each operation."""
    at = 0
    for row in range(offsets.size - 1):
        at = put_cigar(text, at, cigars, offsets[row], offsets[row + 1], False)
        if offsets[row] == offsets[row + 1]:
            store(text, at, _STAR)
            at += 1
        text_offsets[row + 1] = at


PARTS: Final = 10_000
"""The parts of 1 that a divergence counts."""

_PART_DIGITS: Final = 4


@inline
def divergence(cigars: UInt32Array, begin: int, end: int, edits: int) -> int:
    """Return the share of differences among the columns of an alignment, in `PARTS`.

    Each gap counts as one column and one difference, whatever its length.
    """
    columns, differences = as_int64(0), edits
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        if _ALIGNED >> kind & 1:
            columns += length
        elif kind == _INSERTION or kind == _DELETION:
            columns += 1
            differences -= length - 1
    return (2 * PARTS * differences + columns) // (2 * columns) if columns > 0 else as_int64(0)


@inline
def put_parts(text: TextArray, at: int, parts: int) -> int:
    """Write a share of `PARTS` as a number with four digits after the point; return the end."""
    text[as_index(at)] = np.uint8(ord("0") + parts // PARTS)
    if parts % PARTS == 0:
        return at + 1
    text[as_index(at + 1)] = np.uint8(ord("."))
    rest = parts % PARTS
    for digit in range(_PART_DIGITS):
        text[as_index(at + 1 + _PART_DIGITS - digit)] = np.uint8(ord("0") + rest % 10)
        rest //= 10
    return at + 2 + _PART_DIGITS


@inline
def letter_code(reference: CodeArray, position: int, letters: ReferenceLetters) -> int:
    """Return the code of a letter of the reference (`codes.LETTERS`), which has margins."""
    code = as_int64(reference[as_index(position)])
    if code < BREAK:
        return code
    positions, codes = letters
    first, end = 0, positions.size
    while first < end:
        middle = (first + end) >> 1
        if positions[as_index(middle)] < position - MARGIN:
            first = middle + 1
        else:
            end = middle
    if first < positions.size and positions[as_index(first)] == position - MARGIN:
        return as_int64(codes[as_index(first)])
    return code


@inline
def put_mismatches(
    text: TextArray,
    at: int,
    oriented: CodeArray,
    read_at: int,
    reference: CodeArray,
    position: int,
    cigars: UInt32Array,
    begin: int,
    end: int,
    letters: ReferenceLetters,
) -> int:
    """Write the value of MD; return where it ends. The read begins after its hard clip.

    It has the letters of the reference that differ or are deleted, as of ``samtools calmd``: N
    differs from every letter, and a letter that stands for two or three bases from all others.
    """
    # `run` counts the equal bases since the last letter; insertions do not end it.
    run = 0
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        if _ALIGNED >> kind & 1:
            done = 0
            while True:
                equal = extend_right(
                    oriented, read_at + done, reference, position + done, length - done
                )
                run += equal
                done += equal
                if done >= length:
                    break
                # A letter of several bases, a break to `extend_right`, is equal to itself.
                code = letter_code(reference, position + done, letters)
                if code > BREAK and code == oriented[as_index(read_at + done)]:
                    run += 1
                else:
                    at = put_small(text, at, run)
                    text[as_index(at)] = _LETTERS[as_index(code)]
                    at += 1
                    run = 0
                done += 1
            read_at += length
            position += length
        elif kind == _DELETION:
            at = put_small(text, at, run)
            store(text, at, _CARET)
            for base in range(length):
                code = letter_code(reference, position + base, letters)
                text[as_index(at + 1 + base)] = _LETTERS[as_index(code)]
            at += 1 + length
            run = 0
            position += length
        elif TAKES_READ >> kind & 1:
            read_at += length
        elif kind != HARD_CLIP:
            position += length
    return put_small(text, at, run)
