"""Compiled functions for what SAM and BAM both say of an alignment: SA, and its strand and size."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns
from mummergpu.output.alignments.alternatives import alternative_bytes, put_record
from mummergpu.output.alignments.arrays import (
    REVERSE,
    SECONDARY,
    OtherArrays,
    ReadArrays,
    rows_of_read,
    spans_of,
)
from mummergpu.output.bytes.number_fields import put_one_number, put_small
from mummergpu.output.bytes.text_arrays import RecordTexts
from mummergpu.output.bytes.text_stores import TextArray, copy_padded, copy_text, store
from mummergpu.output.records.cigars import OPERATION_BYTES, put_cigar
from mummergpu.runtime.arrays import UInt16Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import MARGIN, CodeArray, reverse_complement_lanes
from mummergpu.sequence.codes import STEP as LANES

SA_BYTES: Final = 40
"""The most bytes of an alignment in SA besides the name of the record and the CIGAR."""

FIXED_BYTES: Final = 512
"""More than the bytes of a row besides names, CIGARs, bases, qualities, MD, SA and read group."""

_COMMA: Final = np.uint8(ord(","))
_SEMICOLON: Final = np.uint8(ord(";"))
_FORWARD_STRAND: Final = np.frombuffer(b",+, ", dtype="<u4")[0]
_REVERSE_STRAND: Final = np.frombuffer(b",-, ", dtype="<u4")[0]
"""The first three bytes count; what follows overwrites the fourth."""


@inline_without_refcounts
def orient(oriented: CodeArray, codes: CodeArray, begin: int, end: int, is_reverse: bool) -> None:
    """Copy a read, as it lies on the forward strand of the reference."""
    if is_reverse:
        for done in range(0, end - begin, LANES):
            reverse_complement_lanes(codes, MARGIN + end - done - LANES, oriented, MARGIN + done)
    else:
        copy_padded(oriented, MARGIN, codes, MARGIN + begin, MARGIN + end)


@inline_without_refcounts
def put_signed(text: TextArray, at: int, number: int) -> int:
    """Write a number with a minus if it is negative; return where it ends."""
    text[as_index(at)] = np.uint8(ord("-"))
    if number < 0:
        return put_small(text, at + 1, -number)
    return put_small(text, at, number)


@inline_without_refcounts
def has_other_parts(flags: UInt16Array, row: int, first: int, end: int) -> bool:
    """Return whether SA has something to tell: other rows of the read that are not secondary."""
    if flags[as_index(row)] & SECONDARY:
        return False
    for other in range(first, end):
        if other != row and flags[as_index(other)] & SECONDARY == 0:
            return True
    return False


@inline_without_refcounts
def put_other_parts(
    text: TextArray,
    at: int,
    rows: AlignmentColumns,
    names: RecordTexts,
    row: int,
    first: int,
    end: int,
) -> int:
    """Write the value of SA; return where it ends.

    All clips are called soft, as usual: so the CIGAR tells where in the whole read a part lies.
    """
    flags, records, positions, qualities = rows.flags, rows.records, rows.positions, rows.qualities
    offsets, cigars, distances = rows.cigar_offsets, rows.cigars, rows.edit_distances
    for other in range(first, end):
        flag = as_int64(flags[as_index(other)])
        if other == row or flag & SECONDARY:
            continue
        at = put_record(text, at, names, as_int64(records[as_index(other)]))
        store(text, at, _COMMA)
        at = put_one_number(text, at + 1, positions[as_index(other)] + 1)
        store(text, at, _REVERSE_STRAND if flag & REVERSE else _FORWARD_STRAND)
        at = put_cigar(
            text, at + 3, cigars, offsets[as_index(other)], offsets[as_index(other + 1)], True
        )
        store(text, at, _COMMA)
        at = put_small(text, at + 1, as_int64(qualities[as_index(other)]))
        store(text, at, _COMMA)
        at = put_small(text, at + 1, as_int64(distances[as_index(other)]))
        store(text, at, _SEMICOLON)
        at += 1
    return at


@inline_without_refcounts
def put_own_tags(text: TextArray, at: int, reads: ReadArrays, read: int) -> int:
    """Write the tags that a read came with; return where they end."""
    tags, offsets = reads[6], reads[7]
    if offsets.size == 0:
        return at
    return copy_text(text, at, tags, offsets[as_index(read)], offsets[as_index(read + 1)])


@inline_without_refcounts
def measure_row(
    reads: ReadArrays, rows: AlignmentColumns, others: OtherArrays, row: int, name_bytes: int
) -> tuple[int, int, tuple[int, int], tuple[int, int]]:
    """Return what a row takes of texts, reference and read, and the rows of the same read."""
    offsets, name_offsets = reads[0], reads[2]
    read, mate = rows.reads[as_index(row)], rows.mate_rows[as_index(row)]
    cigar_offsets = rows.cigar_offsets
    begin, end = cigar_offsets[as_index(row)], cigar_offsets[as_index(row + 1)]
    span, before, after = spans_of(rows.cigars, begin, end)
    parts = rows_of_read(rows.reads, rows.flags, row)
    operations = cigar_offsets[as_index(parts[1])] - cigar_offsets[as_index(parts[0])]
    operations += end - begin
    if mate != NO_ROW:
        operations += cigar_offsets[as_index(mate + 1)] - cigar_offsets[as_index(mate)]
    bases = offsets[as_index(read + 1)] - offsets[as_index(read)]
    name = name_offsets[as_index(read + 1)] - name_offsets[as_index(read)]
    needed: int = FIXED_BYTES + name + 4 * bases + span + OPERATION_BYTES * operations
    needed += (parts[1] - parts[0] + 1) * (name_bytes + SA_BYTES)
    needed += alternative_bytes(others, row, name_bytes)
    tag_offsets = reads[7]
    if tag_offsets.size > 0:
        needed += tag_offsets[as_index(read + 1)] - tag_offsets[as_index(read)]
    return needed, span, (before, after), parts
