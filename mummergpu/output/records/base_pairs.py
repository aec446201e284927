"""Rows with the bases of reads that equal the reference: ``=`` and ``X``, and the tag cs.

Both agree with NM and MD: a letter that stands for several bases is equal to itself, N to nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.records.record_arrays import Records
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.bytes.number_text import MOST_DIGITS, put_small
from mummergpu.output.bytes.texts import OVERSHOOT, RecordTexts, TextArray, store
from mummergpu.output.records.rows import REVERSE, UNMAPPED, ReferenceColumns
from mummergpu.output.records.sam_fields import HARD_CLIP, TAKES_READ, TAKES_REFERENCE, letter_code
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable
from mummergpu.sequence.codes import BREAK, COMPLEMENT_OF_CODE, LETTERS, MARGIN, CodeArray
from mummergpu.sequence.extension import extend_right

_MATCH, _INSERTION, _DELETION, _EQUAL, _DIFFERENT = 0, 1, 2, 7, 8
_ALIGNED: Final = 1 << _MATCH | 1 << _EQUAL | 1 << _DIFFERENT

_SMALL_LETTERS: Final = np.frombuffer(LETTERS.lower(), dtype=np.uint8)
_COLON, _STAR, _PLUS, _MINUS = (np.uint8(ord(mark)) for mark in ":*+-")


class AlignedReads(NamedTuple):
    """The bases of a block of reads and of their reference, for a compiled loop."""

    offsets: Int64Array
    codes: CodeArray
    reference: ReferenceColumns


def aligned_reads(written: Records, reference: Reference) -> AlignedReads:
    """Return the bases that rows align."""
    codes = writable(written.padded_codes)
    return AlignedReads(writable(written.offsets), codes, ReferenceColumns.of(reference))


def with_equal_bases(columns: AlignmentColumns, bases: AlignedReads) -> AlignmentColumns:
    """Return rows with operations for equal bases (=) and different ones (X) in place of M."""
    # A different base cuts an operation into three at most.
    room = columns.cigars.size + 2 * int(columns.edit_distances.sum(dtype=np.int64))
    cigars, offsets = np.empty(room, np.uint32), np.zeros_like(columns.cigar_offsets)
    _cut_operations(columns, bases, cigars, offsets)
    return columns._replace(cigars=cigars[: offsets[-1]].copy(), cigar_offsets=offsets)


def change_texts(columns: AlignmentColumns, bases: AlignedReads) -> RecordTexts:
    """Return the differences of each row as the tag cs has them in its short form."""
    edits = int(columns.edit_distances.sum(dtype=np.int64))
    # A pair takes three bytes, and the equal bases before it have a colon and a number.
    size = (len("*ac:") + MOST_DIGITS) * (edits + columns.cigars.size)
    text, offsets = np.empty(size + OVERSHOOT, np.uint8), np.zeros_like(columns.cigar_offsets)
    _write_changes(columns, bases, text, offsets)
    assert offsets[-1] <= text.size - OVERSHOOT
    return RecordTexts(text, offsets)


@inline
def _pair_at(
    columns: AlignmentColumns, bases: AlignedReads, row: int, at: int, position: int
) -> tuple[int, int, bool]:
    """Return the codes of the reference and of a read that are aligned, and whether they are equal.

    `at` counts the bases of the read on the strand of the reference, and `position` those of all
    records, with the margin.
    """
    theirs = letter_code(bases.reference.codes, position, bases.reference.letters)
    ours = _read_code(columns, bases, row, at)
    return theirs, ours, theirs == ours and theirs != BREAK


@inline
def _read_code(columns: AlignmentColumns, bases: AlignedReads, row: int, at: int) -> int:
    """Return the code of a base of a read on the strand of the reference."""
    read = columns.reads[as_index(row)]
    if columns.flags[as_index(row)] & REVERSE:
        end = bases.offsets[as_index(read + 1)]
        code = as_int64(bases.codes[as_index(MARGIN + end - 1 - at)])
        return as_int64(COMPLEMENT_OF_CODE[as_index(code & 15)])
    return as_int64(bases.codes[as_index(MARGIN + bases.offsets[as_index(read)] + at)])


@inline
def _first_position(columns: AlignmentColumns, bases: AlignedReads, row: int) -> int:
    """Return where a row begins in the joined reference with its margin; 0 if it is not mapped."""
    if columns.flags[as_index(row)] & UNMAPPED:
        return as_int64(0)
    start = bases.reference.starts[as_index(columns.records[as_index(row)])]
    return as_int64(MARGIN + start + columns.positions[as_index(row)])


@jit
def _cut_operations(
    columns: AlignmentColumns, bases: AlignedReads, cigars: UInt32Array, offsets: Int64Array
) -> None:
    """Copy the operations of all rows; those that align bases are cut where = and X change."""
    filled = 0
    for row in range(columns.flags.size):
        at, position = as_int64(0), _first_position(columns, bases, row)
        for place in range(columns.cigar_offsets[row], columns.cigar_offsets[row + 1]):
            operation = as_int64(columns.cigars[place])
            kind, length = operation & 15, operation >> 4
            if _ALIGNED >> kind & 1:
                run, kind_of_run = 0, _EQUAL
                for base in range(length):
                    _, _, is_equal = _pair_at(columns, bases, row, at + base, position + base)
                    now = _EQUAL if is_equal else _DIFFERENT
                    if run > 0 and now != kind_of_run:
                        cigars[filled] = np.uint32(run << 4 | kind_of_run)
                        filled, run = filled + 1, 0
                    kind_of_run, run = now, run + 1
                operation = run << 4 | kind_of_run
            cigars[filled] = np.uint32(operation)
            filled += 1
            # Clipped bases count: reads are whole here.
            if kind == HARD_CLIP or TAKES_READ >> kind & 1:
                at += length
            if TAKES_REFERENCE >> kind & 1:
                position += length
        offsets[row + 1] = filled


@inline
def _put_equal(text: TextArray, at: int, count: int) -> int:
    """Write how many bases are equal, if there are any; return where that ends."""
    if count == 0:
        return at
    store(text, at, _COLON)
    return put_small(text, at + 1, count)


@inline
def _put_pairs(
    text: TextArray,
    end: int,
    equal: int,
    columns: AlignmentColumns,
    bases: AlignedReads,
    row: int,
    at: int,
    position: int,
    length: int,
) -> tuple[int, int]:
    """Write the different bases of an operation; return the end, and the equal bases before it."""
    is_forward = columns.flags[as_index(row)] & REVERSE == 0
    first = MARGIN + bases.offsets[as_index(columns.reads[as_index(row)])] + at
    base = as_int64(0)
    while base < length:
        if is_forward:
            # Most bases are equal. A letter that stands for several is none to this function.
            run = extend_right(
                bases.codes, first + base, bases.reference.codes, position + base, length - base
            )
            equal, base = equal + run, base + run
            if base == length:
                break
        theirs, ours, is_equal = _pair_at(columns, bases, row, at + base, position + base)
        base += 1
        if is_equal:
            equal += 1
            continue
        end, equal = _put_equal(text, end, equal), as_int64(0)
        store(text, end, _STAR)
        text[as_index(end + 1)] = _SMALL_LETTERS[as_index(theirs)]
        text[as_index(end + 2)] = _SMALL_LETTERS[as_index(ours)]
        end += 3
    return end, equal


@jit
def _write_changes(
    columns: AlignmentColumns, bases: AlignedReads, text: TextArray, offsets: Int64Array
) -> None:
    """Write the differences of each row."""
    end = as_int64(0)
    for row in range(columns.flags.size):
        at, position = as_int64(0), _first_position(columns, bases, row)
        # Equal bases are counted until something else follows, also across = and X.
        equal = as_int64(0)
        for place in range(columns.cigar_offsets[row], columns.cigar_offsets[row + 1]):
            operation = as_int64(columns.cigars[place])
            kind, length = operation & 15, operation >> 4
            if _ALIGNED >> kind & 1:
                end, equal = _put_pairs(text, end, equal, columns, bases, row, at, position, length)
            elif kind == _INSERTION or kind == _DELETION:
                end, equal = _put_equal(text, end, equal), as_int64(0)
                store(text, end, _PLUS if kind == _INSERTION else _MINUS)
                for base in range(length):
                    if kind == _INSERTION:
                        code = _read_code(columns, bases, row, at + base)
                    else:
                        codes, letters = bases.reference.codes, bases.reference.letters
                        code = letter_code(codes, position + base, letters)
                    text[as_index(end + 1 + base)] = _SMALL_LETTERS[as_index(code)]
                end += 1 + length
            if kind == HARD_CLIP or TAKES_READ >> kind & 1:
                at += length
            if TAKES_REFERENCE >> kind & 1:
                position += length
        end = _put_equal(text, end, equal)
        offsets[row + 1] = end
