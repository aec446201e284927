"""Alignments of reads as PAF, the table of minimap2: a line for each, with tabs between the fields.

The fields are: name, length, start and end of the read; the strand; name, length, start and end of
the record of the reference; the number of equal bases and that of all columns, gaps included; and
the mapping quality. Starts and ends are 0-based and half-open; those of the read are on its forward
strand. Further fields are the differences (NM:i), the score (AS:i), whether the alignment is
primary or supplementary (tp:A:P) or secondary (tp:A:S), and the alignment without clips (cg:Z). A
read without an alignment has no line. Mates have the same name, as in SAM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.alignments.xa_columns import ToldColumns
from mummergpu.output.alignments.arrays import (
    REVERSE,
    SECONDARY,
    UNMAPPED,
    ReadColumns,
    ReadsWithQualities,
    read_columns,
    row_arrays,
)
from mummergpu.output.alignments.format import AlignmentFormat
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.number_fields import MOST_DIGITS, put_one_number, put_small, put_tab
from mummergpu.output.bytes.piece_pool import PIECE_BYTES, PiecePool
from mummergpu.output.bytes.text_arrays import RecordTexts, names_and_lengths, texts_of
from mummergpu.output.bytes.text_stores import LINE_END, OVERSHOOT, TextArray, copy_padded, store
from mummergpu.output.records.cigars import OPERATION_BYTES, TAKES_REFERENCE, put_cigar
from mummergpu.output.records.sam_fields import put_name, put_signed
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)

_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""

_MINUS: Final = np.uint8(ord("-"))
_PLUS: Final = np.uint8(ord("+"))
_SCORES: Final = np.frombuffer(b"\tNM:i:  ", dtype="<u8")[0]
_SCORE: Final = np.frombuffer(b"\tAS:i:  ", dtype="<u8")[0]
_PRIMARY: Final = np.frombuffer(b"\ttp:A:P\t", dtype="<u8")[0]
_SECONDARY: Final = np.frombuffer(b"\ttp:A:S\t", dtype="<u8")[0]
_ALIGNMENT: Final = np.frombuffer(b"cg:Z:   ", dtype="<u8")[0]
_TAG_BYTES: Final = len("\tNM:i:")

_OTHER_BYTES: Final = 9 * MOST_DIGITS + len("\t" * 12 + "*+NM:i:AS:i:tp:A:Pcg:Z:\n")
"""The most bytes of a line besides the name of the read, the text of the record and the CIGAR."""


@inline_without_refcounts
def _columns_and_clips(cigars: UInt32Array, begin: int, end: int) -> tuple[int, int, int, int]:
    """Return the columns of an alignment and the bases of its record, and the clips at its ends."""
    columns, span, before, after = 0, 0, 0, 0
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        if _CLIPS >> kind & 1:
            # What is clipped before the first column is before, all else after.
            if columns == 0:
                before += length
            else:
                after += length
        else:
            columns += length
            if TAKES_REFERENCE >> kind & 1:
                span += length
    return columns, span, before, after


@jit_without_refcounts
def write_paf(
    text: TextArray,
    first_row: int,
    reads: ReadColumns,
    rows: AlignmentColumns,
    records: RecordTexts,
    next_row: Int64Array,
    row_bytes: int,
) -> int:
    """Write lines from a row on, until the rows end or the text is full; return where they end.

    `next_row` receives the row to go on with.
    """
    at, row = 0, first_row
    room = text.size - OVERSHOOT
    offsets, cigars = rows.cigar_offsets, rows.cigars
    while row < rows.flags.size:
        flag = as_int64(rows.flags[as_index(row)])
        begin, end = offsets[as_index(row)], offsets[as_index(row + 1)]
        if at + row_bytes + OPERATION_BYTES * (end - begin) > room:
            break
        row += 1
        if flag & UNMAPPED:
            continue
        place = row - 1
        read, record = rows.reads[as_index(place)], as_int64(rows.records[as_index(place)])
        columns, span, before, after = _columns_and_clips(cigars, begin, end)
        size = reads.offsets[as_index(read + 1)] - reads.offsets[as_index(read)]
        is_reverse = flag & REVERSE != 0
        at = put_tab(text, put_name(text, at, reads.names, reads.name_offsets, read))
        at = put_tab(text, put_small(text, at, size))
        at = put_tab(text, put_small(text, at, after if is_reverse else before))
        at = put_tab(text, put_small(text, at, size - (before if is_reverse else after)))
        store(text, at, _MINUS if is_reverse else _PLUS)
        first, last = records.offsets[as_index(record)], records.offsets[as_index(record + 1)]
        at = copy_padded(text, at + 1, records.texts, first, last)
        position, distance = rows.positions[as_index(place)], rows.edit_distances[as_index(place)]
        at = put_tab(text, put_one_number(text, at, position))
        at = put_tab(text, put_one_number(text, at, position + span))
        at = put_tab(text, put_small(text, at, max(0, columns - as_int64(distance))))
        at = put_tab(text, put_small(text, at, columns))
        at = put_small(text, at, as_int64(rows.qualities[as_index(place)]))
        store(text, at, _SCORES)
        at = put_small(text, at + _TAG_BYTES, as_int64(distance))
        store(text, at, _SCORE)
        at = put_signed(text, at + _TAG_BYTES, as_int64(rows.scores[as_index(place)]))
        store(text, at, _SECONDARY if flag & SECONDARY else _PRIMARY)
        store(text, at + 8, _ALIGNMENT)
        at += 8 + len("cg:Z:")
        while begin < end and _CLIPS >> (as_int64(cigars[as_index(begin)]) & 15) & 1:
            begin += 1
        while begin < end and _CLIPS >> (as_int64(cigars[as_index(end - 1)]) & 15) & 1:
            end -= 1
        at = put_cigar(text, at, cigars, begin, end, False)
        store(text, at, LINE_END)
        at += 1
    next_row[0] = row
    return at


class AlignmentPafFormat(AlignmentFormat):
    """Turns the alignments of blocks of reads into PAF; several threads may share one."""

    def __init__(self, reference: Reference, piece_bytes: int = PIECE_BYTES) -> None:
        self._records = texts_of(names_and_lengths(reference))
        self._record_bytes = int(np.diff(self._records.offsets).max(initial=0))
        self._pool = PiecePool(piece_bytes)

    def format_block(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[TextArray]:
        """Yield the lines of a block in pieces (`Format.format_block`)."""
        own, rows = read_columns(reads, reads.tags), row_arrays(columns)
        name_bytes = int(np.diff(own.name_offsets).max(initial=0))
        row_bytes = _OTHER_BYTES + self._record_bytes + name_bytes
        longest = int(np.diff(rows.cigar_offsets).max(initial=0))
        room = max(row_bytes + OPERATION_BYTES * longest, self._pool.piece_bytes)
        next_row = np.zeros(1, dtype=np.int64)
        while (first := int(next_row[0])) < rows.row_count:
            text = self._pool.room_for(room)
            if filled := write_paf(text, first, own, rows, self._records, next_row, row_bytes):
                yield text[:filled]

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`Format.take_back`)."""
        self._pool.take_back(piece)
