"""The operations of long alignments as text: CIGARs, gaps of .delta, and cs of PAF."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.genomes.columns import GenomeAlignments
from mummergpu.output.bytes.number_text import MOST_DIGITS, put_one_number, put_small
from mummergpu.output.bytes.text_arrays import RecordTexts
from mummergpu.output.bytes.text_stores import LINE_END, OVERSHOOT, TextArray, store
from mummergpu.output.genomes.format import AlignedBases
from mummergpu.output.records.sam_fields import put_cigar
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
)
from mummergpu.sequence.codes import BASES, CodeArray
from mummergpu.sequence.extension import extend_right
from mummergpu.viterbi.recurrence.operations import INSERTION_OPERATION, MATCH_OPERATION

OperationArray = UInt32Array

_MINUS: Final = np.uint8(ord("-"))
_STAR: Final = np.uint8(ord("*"))
_ONE: Final = np.uint8(ord("1"))


def _checked(text: TextArray, offsets: Int64Array) -> RecordTexts:
    """Return texts for which there was room: wide stores are not among what numba checks."""
    assert offsets[-1] <= text.size - OVERSHOOT
    return RecordTexts(text, offsets)


def cigar_texts(cigars: OperationArray, offsets: Int64Array) -> RecordTexts:
    """Return the CIGAR of each alignment as text; ``*`` if it has no operation.

    The operations are those of all alignments, as BAM packs them, and `offsets` tells where those
    of each begin.
    """
    size = (MOST_DIGITS + 1) * cigars.size + offsets.size + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_cigars(cigars, offsets, text, text_offsets)
    return _checked(text, text_offsets)


def distance_texts(cigars: OperationArray, offsets: Int64Array) -> RecordTexts:
    """Return the distances between the gaps of each alignment, as nucmer's .delta has them.

    Each base of a gap has a line: how many columns it is after the one before. The number is
    negative if the base is missing in the reference, and positive if it is missing in the query.
    """
    gap_bases = int((cigars[cigars & 15 != MATCH_OPERATION] >> 4).sum(dtype=np.int64))
    size = (MOST_DIGITS + 2) * cigars.size + len(b"-1\n") * gap_bases + OVERSHOOT
    text = np.empty(size, dtype=np.uint8)
    text_offsets = np.zeros(offsets.size, dtype=np.int64)
    _write_distances(cigars, offsets, text, text_offsets)
    return _checked(text, text_offsets)


@jit
def _write_cigars(
    cigars: OperationArray, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a number and a letter for each operation."""
    at = 0
    for row in range(offsets.size - 1):
        at = put_cigar(text, at, cigars, offsets[row], offsets[row + 1], False)
        if offsets[row] == offsets[row + 1]:
            store(text, at, _STAR)
            at += 1
        text_offsets[row + 1] = at


@jit
def _write_distances(
    cigars: OperationArray, offsets: Int64Array, text: TextArray, text_offsets: Int64Array
) -> None:
    """Write a line for each base of a gap."""
    at = 0
    for row in range(offsets.size - 1):
        columns = 0
        for position in range(offsets[row], offsets[row + 1]):
            operation = as_int64(cigars[position])
            kind, length = operation & 15, operation >> 4
            if kind == MATCH_OPERATION:
                columns += length
                continue
            for base in range(length):
                if kind == INSERTION_OPERATION:
                    store(text, at, _MINUS)
                    at += 1
                if base == 0:
                    at = put_one_number(text, at, columns + 1)
                else:
                    store(text, at, _ONE)
                    at += 1
                store(text, at, LINE_END)
                at += 1
            columns = 0
        text_offsets[row + 1] = at


_MATCH: Final = 0
_INSERTION: Final = 1
_COLON, _PLUS = (np.uint8(ord(mark)) for mark in ":+")
_SMALL_LETTERS: Final = np.frombuffer(BASES.lower(), dtype=np.uint8)

_PAIR_BYTES: Final = len("*ac") + len(":") + MOST_DIGITS
"""The most bytes of a pair of different bases, with the equal bases before it."""
_OPERATION_BYTES: Final = len("+") + len(":") + MOST_DIGITS
"""The most bytes of an operation besides the bases of a gap."""


def change_texts(columns: GenomeAlignments, bases: AlignedBases) -> RecordTexts:
    """Return the differences of each alignment, as the tag cs of PAF has them in its short form.

    Equal bases are counted (``:12``); a pair of different ones follows a star, that of the
    reference first (``*ag``); bases that the reference lacks follow a plus, and those that the
    query lacks a minus. A letter that is no base is ``n``, and differs from every letter.
    """
    size = _PAIR_BYTES * int(columns.mismatches.sum()) + int(columns.gap_bases.sum())
    size += _OPERATION_BYTES * columns.cigars.size
    text = np.empty(size + OVERSHOOT, dtype=np.uint8)
    text_offsets = np.zeros(columns.count + 1, dtype=np.int64)
    _write_changes(columns.cigars, columns.cigar_offsets, bases, text, text_offsets)
    return _checked(text, text_offsets)


@jit
def _write_changes(
    cigars: UInt32Array,
    offsets: Int64Array,
    bases: AlignedBases,
    text: TextArray,
    text_offsets: Int64Array,
) -> None:
    """Write the differences of each alignment."""
    at = 0
    for row in range(offsets.size - 1):
        query, reference = bases.queries[bases.strands[row]], bases.reference
        i, j = bases.query_begins[row], bases.reference_begins[row]
        for position in range(offsets[row], offsets[row + 1]):
            operation = as_int64(cigars[position])
            kind, length = operation & 15, operation >> 4
            if kind == _MATCH:
                at = _put_pairs(text, at, query, i, reference, j, length)
                i += length
                j += length
            elif kind == _INSERTION:
                store(text, at, _PLUS)
                at = _put_letters(text, at + 1, query, i, length)
                i += length
            else:
                store(text, at, _MINUS)
                at = _put_letters(text, at + 1, reference, j, length)
                j += length
        text_offsets[row + 1] = at


@inline
def _put_pairs(
    text: TextArray, at: int, query: CodeArray, i: int, reference: CodeArray, j: int, length: int
) -> int:
    """Write the equal and the different bases of an operation; return where they end."""
    done = 0
    while done < length:
        equal = extend_right(query, i + done, reference, j + done, length - done)
        if equal > 0:
            store(text, at, _COLON)
            at = put_small(text, at + 1, equal)
            done += equal
        if done < length:
            store(text, at, _STAR)
            text[as_index(at + 1)] = _SMALL_LETTERS[as_index(reference[as_index(j + done)])]
            text[as_index(at + 2)] = _SMALL_LETTERS[as_index(query[as_index(i + done)])]
            at += 3
            done += 1
    return at


@inline
def _put_letters(text: TextArray, at: int, codes: CodeArray, begin: int, length: int) -> int:
    """Write bases as small letters; return where they end."""
    for base in range(length):
        text[as_index(at + base)] = _SMALL_LETTERS[as_index(codes[as_index(begin + base)])]
    return at + length
