"""Alignments as PAF, the table of minimap2: a line for each, with tabs between the fields.

The fields are: name, length, start and end of the read; the strand; name, length, start and end of
the record of the reference; the number of equal bases and that of all columns, gaps included; and
the mapping quality. Starts and ends are 0-based and half-open; those of the read are on its forward
strand. Further fields are the differences (NM:i), the score (AS:i), whether the alignment is
primary or supplementary (tp:A:P) or secondary (tp:A:S), the alignment without clips (cg:Z) and, if
it is asked for, its differences with their bases (cs:Z).

A read without an alignment has no line; mates have the same name, as in SAM. The lines of genomes
come in the order of the queries; ``paftools.js call`` wants them sorted by record and start:
``sort -k6,6 -k8,8n``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.number_text import MOST_DIGITS, put_one_number, put_small, put_tab
from mummergpu.output.bytes.texts import (
    LINE_END,
    OVERSHOOT,
    PIECE_BYTES,
    RecordTexts,
    TextArray,
    copy_text,
    names_and_lengths,
    put_text,
    store,
    texts_of,
)
from mummergpu.output.records.rows import (
    END_ROW,
    NEEDED_BYTES,
    NEXT_ROW,
    REVERSE,
    SECONDARY,
    UNMAPPED,
    AlignmentFormat,
    ReadColumns,
    RecordRows,
    RowMaker,
)
from mummergpu.output.records.sam_fields import (
    OPERATION_BYTES,
    TAKES_REFERENCE,
    divergence,
    put_cigar,
    put_parts,
    put_signed,
)
from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import longest_of

_CLIPS: Final = 0b110000
"""A bit for each operation that clips: S and H."""

_MINUS: Final = np.uint8(ord("-"))
_PLUS: Final = np.uint8(ord("+"))
_SCORES: Final = np.frombuffer(b"\tNM:i:  ", dtype="<u8")[0]
_SCORE: Final = np.frombuffer(b"\tAS:i:  ", dtype="<u8")[0]
_PRIMARY: Final = np.frombuffer(b"\ttp:A:P\t", dtype="<u8")[0]
_SECONDARY: Final = np.frombuffer(b"\ttp:A:S\t", dtype="<u8")[0]
_ALIGNMENT: Final = np.frombuffer(b"cg:Z:   ", dtype="<u8")[0]
_DIVERGENCE: Final = np.frombuffer(b"\tde:f:  ", dtype="<u8")[0]
_CHANGES: Final = np.frombuffer(b"\tcs:Z:  ", dtype="<u8")[0]
_TAG_BYTES: Final = len("\tNM:i:")

_OTHER_BYTES: Final = 9 * MOST_DIGITS + len("\t" * 14 + "*+NM:i:AS:i:tp:A:Pcg:Z:de:f:0.0000cs:Z:\n")
"""The most bytes of a line besides the name of the read, the text of the record and the CIGAR."""


@inline
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


class PafBlock(NamedTuple):
    """What the loop needs to write the lines of a block.

    `records` are names and lengths between tabs, `changes` the values of cs, without offsets if
    they are not written. `row_bytes` are the most bytes of a line without its CIGAR and cs.
    """

    reads: ReadColumns
    rows: RecordRows
    records: RecordTexts
    changes: RecordTexts
    no_name: TextArray
    row_bytes: int
    has_divergences: bool


@inline
def _put_name(text: TextArray, at: int, block: PafBlock, read: int) -> int:
    """Write the name of a read or what stands for it; return where it ends."""
    reads = block.reads
    begin, end = reads.name_offsets[as_index(read)], reads.name_offsets[as_index(read + 1)]
    if begin == end:
        return copy_text(text, at, block.no_name, 0, block.no_name.size)
    return copy_text(text, at, reads.names, begin, end)


@inline
def _put_places(text: TextArray, at: int, block: PafBlock, row: int, begin: int, end: int) -> int:
    """Write the fields from the length of the read to the number of columns; return the end.

    `begin` and `end` are those of the CIGAR.
    """
    reads, rows, records = block.reads, block.rows, block.records
    read, record = rows.reads[as_index(row)], as_int64(rows.records[as_index(row)])
    columns, span, before, after = _columns_and_clips(rows.cigars, begin, end)
    size = reads.offsets[as_index(read + 1)] - reads.offsets[as_index(read)]
    is_reverse = rows.flags[as_index(row)] & REVERSE != 0
    at = put_tab(text, put_small(text, at, size))
    at = put_tab(text, put_small(text, at, after if is_reverse else before))
    at = put_tab(text, put_small(text, at, size - (before if is_reverse else after)))
    store(text, at, _MINUS if is_reverse else _PLUS)
    at = put_text(text, at + 1, records, record)
    position, distance = rows.positions[as_index(row)], rows.edit_distances[as_index(row)]
    at = put_tab(text, put_one_number(text, at, position))
    at = put_tab(text, put_one_number(text, at, position + span))
    at = put_tab(text, put_small(text, at, max(0, columns - as_int64(distance))))
    return put_tab(text, put_small(text, at, columns))


@inline
def _put_alignment(text: TextArray, at: int, cigars: UInt32Array, begin: int, end: int) -> int:
    """Write a CIGAR without its clips; return where it ends."""
    store(text, at, _ALIGNMENT)
    while begin < end and _CLIPS >> (as_int64(cigars[as_index(begin)]) & 15) & 1:
        begin += 1
    while begin < end and _CLIPS >> (as_int64(cigars[as_index(end - 1)]) & 15) & 1:
        end -= 1
    return put_cigar(text, at + len("cg:Z:"), cigars, begin, end, False)


@jit
def write_paf(text: TextArray, state: Int64Array, block: PafBlock) -> int:
    """Write lines of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    at, row = 0, state[NEXT_ROW]
    rows, changes = block.rows, block.changes
    room = text.size - OVERSHOOT
    while row < state[END_ROW]:
        flag = as_int64(rows.flags[as_index(row)])
        begin, end = rows.cigar_offsets[as_index(row)], rows.cigar_offsets[as_index(row + 1)]
        needed = block.row_bytes + OPERATION_BYTES * (end - begin)
        if changes.offsets.size > 0:
            needed += changes.offsets[as_index(row + 1)] - changes.offsets[as_index(row)]
        # A row is written whole or not at all: the caller then brings a longer text.
        if at + needed > room:
            state[NEEDED_BYTES] = needed
            break
        row += 1
        if flag & UNMAPPED:
            continue
        place = row - 1
        at = put_tab(text, _put_name(text, at, block, rows.reads[as_index(place)]))
        at = _put_places(text, at, block, place, begin, end)
        at = put_small(text, at, as_int64(rows.qualities[as_index(place)]))
        store(text, at, _SCORES)
        at = put_small(text, at + _TAG_BYTES, as_int64(rows.edit_distances[as_index(place)]))
        store(text, at, _SCORE)
        at = put_signed(text, at + _TAG_BYTES, as_int64(rows.scores[as_index(place)]))
        store(text, at, _SECONDARY if flag & SECONDARY else _PRIMARY)
        at = _put_alignment(text, at + 8, rows.cigars, begin, end)
        if block.has_divergences:
            edits = as_int64(rows.edit_distances[as_index(place)])
            store(text, at, _DIVERGENCE)
            at = put_parts(text, at + _TAG_BYTES, divergence(rows.cigars, begin, end, edits))
        if changes.offsets.size > 0:
            store(text, at, _CHANGES)
            at = put_text(text, at + _TAG_BYTES, changes, place)
        store(text, at, LINE_END)
        at += 1
    state[NEXT_ROW] = row
    return at


class AlignmentPaf(AlignmentFormat):
    """Turns the alignments of blocks into PAF; several threads may share one.

    `no_name` stands for the name of a read without one.
    """

    def __init__(
        self,
        reference: Reference,
        source: RowMaker,
        no_name: bytes = b"*",
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(source, piece_bytes)
        self._records = texts_of(names_and_lengths(reference))
        self._record_bytes = int(np.diff(self._records.offsets).max(initial=0))
        self._no_name = np.frombuffer(bytearray(no_name), dtype=np.uint8)

    def format_block(self, block: Any, alignments: Any) -> Iterator[TextArray]:
        """Yield the lines of a block in pieces (`Format.format_block`)."""
        for written in self._source.written_rows(block, alignments):
            name_bytes = longest_of(written.reads.name_offsets)
            lines = PafBlock(
                *(written.reads, written.rows, self._records, written.changes, self._no_name),
                _OTHER_BYTES + self._record_bytes + name_bytes,
                self._source.fields.divergences,
            )
            for _, _, text in self._pieces(written.row_count, write_paf, lines):
                yield text
