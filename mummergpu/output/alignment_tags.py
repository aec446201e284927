"""Compiled functions for the texts that SAM and BAM both have: CIGARs, MD and SA."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.columns import NO_ROW
from mummergpu.output.alignment_arrays import (
    HARD_CLIP,
    OPERATION_LETTERS,
    REVERSE,
    SECONDARY,
    TAKES_READ,
    ReadArrays,
    RowArrays,
    rows_of_read,
    spans_of,
)
from mummergpu.output.line_rows import RecordTexts
from mummergpu.output.number_fields import copy_padded, put_number, put_small
from mummergpu.output.number_text import TextArray, digit_words, store
from mummergpu.runtime.jit import inline_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import BASES, MARGIN, CodeArray, reverse_complement_lanes
from mummergpu.sequence.codes import STEP as LANES
from mummergpu.sequence.extension import extend_right

OPERATION_BYTES: Final = 14
"""The most bytes that an operation adds to a CIGAR, nine digits and a letter, or to MD besides the
bases of the reference and two bytes for each base of the read, and some to spare."""

SA_BYTES: Final = 40
"""The most bytes of an alignment in SA besides the name of the record and the CIGAR."""

FIXED_BYTES: Final = 512
"""More than the bytes of a row besides names, CIGARs, bases, qualities, MD, SA and read group."""

NAME_END: Final = 1
"""The bytes after the name of a record in its text: a tab."""

_DELETION: Final = 2
_ALIGNED: Final = 0b110000001
"""A bit for each operation that aligns bases with bases: M, = and X."""

_OPERATIONS: Final = np.frombuffer(OPERATION_LETTERS, dtype=np.uint8)
_SOFT_OPERATIONS: Final = np.frombuffer(OPERATION_LETTERS.replace(b"H", b"S"), dtype=np.uint8)
_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)
_CARET: Final = np.uint8(ord("^"))
_COMMA: Final = np.uint8(ord(","))
_SEMICOLON: Final = np.uint8(ord(";"))
_STRANDS: Final = np.frombuffer(b",+,,-,", dtype=np.uint8)


@inline_without_refcounts
def orient(oriented: CodeArray, codes: CodeArray, begin: int, end: int, is_reverse: bool) -> None:
    """Copy a read, as it lies on the forward strand of the reference.

    Parameters
    ----------
    oriented : ndarray, dtype=uint8
        Receives the codes from `MARGIN` on; the margin after them is not cleared.
    codes : ndarray, dtype=uint8
        The codes of all reads, with margins.
    begin, end : int
        Where the read begins and ends, without the margin.
    is_reverse : bool
        Whether to copy its reverse complement.
    """
    if is_reverse:
        for done in range(0, end - begin, LANES):
            reverse_complement_lanes(codes, MARGIN + end - done - LANES, oriented, MARGIN + done)
    else:
        copy_padded(oriented, MARGIN, codes, MARGIN + begin, MARGIN + end)


@inline_without_refcounts
def put_cigar(
    text: TextArray, at: int, cigars: npt.NDArray[np.uint32], begin: int, end: int, soft: bool
) -> int:
    """Write a CIGAR; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    cigars : ndarray, dtype=uint32
        The operations of all rows.
    begin, end : int
        The half-open range of the operations.
    soft : bool
        Whether to call hard clips soft.

    Returns
    -------
    int
        Where the CIGAR ends.
    """
    for place in range(begin, end):
        operation = widened(cigars[unsigned(place)])
        at = put_small(text, at, operation >> 4)
        kind = unsigned(operation & 15)
        text[unsigned(at)] = _SOFT_OPERATIONS[kind] if soft else _OPERATIONS[kind]
        at += 1
    return at


@inline_without_refcounts
def put_signed(text: TextArray, at: int, number: int) -> int:
    """Write a number with a minus if it is negative; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    number : int
        Of at most `number_fields.MOST_DIGITS` digits.

    Returns
    -------
    int
        Where the digits end.
    """
    text[unsigned(at)] = np.uint8(ord("-"))
    if number < 0:
        return put_small(text, at + 1, -number)
    return put_small(text, at, number)


@inline_without_refcounts
def put_mismatches(
    text: TextArray,
    at: int,
    oriented: CodeArray,
    read_at: int,
    reference: CodeArray,
    position: int,
    cigars: npt.NDArray[np.uint32],
    begin: int,
    end: int,
) -> int:
    """Write the value of MD; return where it ends.

    It tells the bases of the reference that differ or are deleted, as ``samtools calmd`` does. A
    letter that is no base differs from every letter.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    oriented : ndarray, dtype=uint8
        The read, as it lies on the forward strand of the reference.
    read_at : int
        Where in `oriented` the bases are that the first operation consumes, or clips.
    reference : ndarray, dtype=uint8
        The codes of the reference with margins.
    position : int
        Where in `reference` the alignment begins; it includes the margin.
    cigars : ndarray, dtype=uint32
        The operations of all rows.
    begin, end : int
        The half-open range of the operations.

    Returns
    -------
    int
        Where the value ends.
    """
    run = 0
    for place in range(begin, end):
        operation = widened(cigars[unsigned(place)])
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
                at = put_small(text, at, run)
                text[unsigned(at)] = _LETTERS[unsigned(reference[unsigned(position + done)])]
                at += 1
                run = 0
                done += 1
            read_at += length
            position += length
        elif kind == _DELETION:
            at = put_small(text, at, run)
            store(text, at, _CARET)
            for base in range(length):
                code = reference[unsigned(position + base)]
                text[unsigned(at + 1 + base)] = _LETTERS[unsigned(code)]
            at += 1 + length
            run = 0
            position += length
        elif TAKES_READ >> kind & 1 or kind == HARD_CLIP:
            read_at += length
        else:
            position += length
    return put_small(text, at, run)


@inline_without_refcounts
def has_other_parts(flags: npt.NDArray[np.uint16], row: int, first: int, end: int) -> bool:
    """Return whether SA has something to tell: other rows of the read that are not secondary.

    Parameters
    ----------
    flags : ndarray, dtype=uint16
        The flags of all rows.
    row : int
        The row.
    first, end : int
        The rows of its read (`alignment_arrays.rows_of_read`).

    Returns
    -------
    bool
        False for a secondary row.
    """
    if flags[unsigned(row)] & SECONDARY:
        return False
    for other in range(first, end):
        if other != row and flags[unsigned(other)] & SECONDARY == 0:
            return True
    return False


@inline_without_refcounts
def put_other_parts(
    text: TextArray,
    at: int,
    rows: RowArrays,
    names: RecordTexts,
    name_end: int,
    row: int,
    first: int,
    end: int,
) -> int:
    """Write the value of SA; return where it ends.

    All clips are called soft, as usual: so the CIGAR tells where in the whole read a part lies.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `number_text.OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    names : tuple of ndarray
        The names of the records (`line_rows.RecordTexts`).
    name_end : int
        The bytes after the name in each text of `names`.
    row : int
        The row.
    first, end : int
        The rows of its read (`alignment_arrays.rows_of_read`).

    Returns
    -------
    int
        Where the value ends.
    """
    _, flags, records, positions, qualities, offsets, cigars, _, _, _, _, distances = rows
    texts, text_offsets = names
    for other in range(first, end):
        flag = widened(flags[unsigned(other)])
        if other == row or flag & SECONDARY:
            continue
        record = widened(records[unsigned(other)])
        name, next_name = text_offsets[unsigned(record)], text_offsets[unsigned(record + 1)]
        at = copy_padded(text, at, texts, name, next_name - name_end)
        store(text, at, _COMMA)
        position = positions[unsigned(other)] + 1
        at = put_number(text, at + 1, position, digit_words(position, 0, 0, 0)[0])
        is_reverse = flag & REVERSE != 0
        for letter in range(3):
            text[unsigned(at + letter)] = _STRANDS[unsigned(3 * is_reverse + letter)]
        at = put_cigar(
            text, at + 3, cigars, offsets[unsigned(other)], offsets[unsigned(other + 1)], True
        )
        store(text, at, _COMMA)
        at = put_small(text, at + 1, widened(qualities[unsigned(other)]))
        store(text, at, _COMMA)
        at = put_small(text, at + 1, widened(distances[unsigned(other)]))
        store(text, at, _SEMICOLON)
        at += 1
    return at


@inline_without_refcounts
def measure_row(
    reads: ReadArrays, rows: RowArrays, row: int, name_bytes: int
) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
    """Return what a row takes of texts, reference and read, and the rows of the same read.

    Parameters
    ----------
    reads : tuple of ndarray
        The reads (`alignment_arrays.ReadArrays`).
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    row : int
        The row.
    name_bytes : int
        The bytes of the longest name of a record.

    Returns
    -------
    needed : int
        The most bytes of the row in text or in binary, without its read group.
    span : int
        The bases of the reference that it takes.
    clips : tuple of int
        The bases of the read that are clipped hard, before and after the others.
    parts : tuple of int
        The rows of its read (`alignment_arrays.rows_of_read`).
    """
    offsets, _, name_offsets, _, _ = reads
    read, cigar_offsets, mate = rows[0][unsigned(row)], rows[5], rows[8][unsigned(row)]
    begin, end = cigar_offsets[unsigned(row)], cigar_offsets[unsigned(row + 1)]
    span, before, after = spans_of(rows[6], begin, end)
    parts = rows_of_read(rows[0], rows[1], row)
    operations = cigar_offsets[unsigned(parts[1])] - cigar_offsets[unsigned(parts[0])]
    operations += end - begin
    if mate != NO_ROW:
        operations += cigar_offsets[unsigned(mate + 1)] - cigar_offsets[unsigned(mate)]
    bases = offsets[unsigned(read + 1)] - offsets[unsigned(read)]
    name = name_offsets[unsigned(read + 1)] - name_offsets[unsigned(read)]
    needed: int = FIXED_BYTES + name + 4 * bases + span + OPERATION_BYTES * operations
    needed += (parts[1] - parts[0] + 1) * (name_bytes + SA_BYTES)
    return needed, span, (before, after), parts
