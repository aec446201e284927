"""Compiled loops that write the headers and rows of MUMmer's text."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.input.reference import record_at
from mummergpu.output.bytes.number_text import write_digits, write_numbers
from mummergpu.output.bytes.text_stores import (
    LINE_END,
    OVERSHOOT,
    TextArray,
    copy_text,
    fill_blanks,
    store,
)
from mummergpu.runtime.arrays import BoolArray, Int32Array, Int64Array
from mummergpu.runtime.jit import as_index, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BASES, CodeArray

QueryColumns = tuple[Int64Array, TextArray, Int64Array]
RecordColumns = tuple[Int64Array, Int32Array, int, TextArray, Int64Array, CodeArray]
RowColumns = tuple[Int64Array, Int64Array, Int64Array, Int64Array]

_GAP: Final = np.frombuffer(b"  ", dtype="<u2")[0]
_LETTERS: Final = np.frombuffer(BASES.lower().ljust(256, b"?"), dtype=np.uint8)
_REVERSE: Final = np.frombuffer(b" Reverse", dtype="<u8")[0]
_LENGTH: Final = np.frombuffer(b"  Len = ", dtype="<u8")[0]
_HEADER_MARK: Final = np.frombuffer(b"> ", dtype="<u2")[0]
_MOST_DIGITS: Final = 20
HEADER_BYTES: Final = 2 + 8 + 8 + _MOST_DIGITS + 1
"""The most bytes of a header without the name."""

# The elements of the writer's state between two pieces.
NEXT_QUERY, NEXT_STRAND, NEXT_ROW = 0, 1, 2
NO_HEADER_YET: Final = -1


@inline_without_refcounts
def _write_header(
    text: TextArray,
    at: int,
    queries: QueryColumns,
    query: int,
    reverse: bool,
    show_length: bool,
) -> int:
    """Write a query's header; return where it ends."""
    offsets, names, name_offsets = queries
    begin, end = name_offsets[as_index(query)], name_offsets[as_index(query + 1)]
    store(text, at, _HEADER_MARK)
    at = copy_text(text, at + 2, names, begin, end)
    if reverse:
        store(text, at, _REVERSE)
        at += 8
    if show_length:
        store(text, at, _LENGTH)
        at = write_digits(text, at + 8, offsets[as_index(query + 1)] - offsets[as_index(query)])
    store(text, at, LINE_END)
    return at + 1


@inline_without_refcounts
def _write_row(
    text: TextArray,
    at: int,
    records: RecordColumns,
    name_width: int,
    reference_start: int,
    query_position: int,
    length: int,
) -> int:
    """Write a row, with a record name unless `name_width` is -1; return where it ends."""
    starts, buckets, bucket_shift, names, name_offsets, _ = records
    record = as_index(record_at(starts, buckets, bucket_shift, reference_start))
    if name_width >= 0:
        numbers = at + name_width + 4
        store(text, at, _GAP)
        at = copy_text(text, at + 2, names, name_offsets[record], name_offsets[record + 1])
        fill_blanks(text, at, numbers)
        at = numbers
    return write_numbers(text, at, reference_start - starts[record] + 1, query_position, length)


@inline_without_refcounts
def _write_rows(
    text: TextArray,
    at: int,
    row: int,
    end: int,
    columns: RowColumns,
    records: RecordColumns,
    row_bytes: int,
    name_width: int,
    flipped_length: int,
    show_sequences: bool,
) -> tuple[int, int]:
    """Write the rows of one query until `end`, or until the text is full.

    Returns where the text ends and the first row that is not written.
    """
    _, query_starts, reference_starts, lengths = columns
    codes = records[-1]
    room = text.size - OVERSHOOT
    while row < end:
        length = lengths[as_index(row)]
        if at + row_bytes + (length + 1 if show_sequences else 0) > room:
            break
        position = query_starts[as_index(row)] + 1
        if flipped_length >= 0:
            position = flipped_length + 1 - position
        start = reference_starts[as_index(row)]
        at = _write_row(text, at, records, name_width, start, position, length)
        if show_sequences:
            for base in range(start, start + length):
                text[at] = _LETTERS[codes[base]]
                at += 1
            text[at] = LINE_END
            at += 1
        row += 1
    return at, row


@jit_without_refcounts
def fill_text(
    text: TextArray,
    state: Int64Array,
    strands: BoolArray,
    queries: QueryColumns,
    rows: tuple[RowColumns, RowColumns],
    records: RecordColumns,
    row_bytes: int,
    name_width: int,
    forward_coordinates: bool,
    show_lengths: bool,
    show_sequences: bool,
) -> int:
    """Write headers and rows from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    query_offsets, _, name_offsets = queries
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    at = 0
    while query < query_offsets.size - 1:
        if strands[strand]:
            columns = rows[strand]
            if row == NO_HEADER_YET:
                name_bytes = name_offsets[as_index(query + 1)] - name_offsets[as_index(query)]
                if at + HEADER_BYTES + name_bytes > text.size - OVERSHOOT:
                    break
                at = _write_header(text, at, queries, query, strand == 1, show_lengths)
                row = columns[0][as_index(query)]
            end = columns[0][as_index(query + 1)]
            flipped_length = -1
            if forward_coordinates and strand == 1:
                flipped_length = query_offsets[query + 1] - query_offsets[query]
            at, row = _write_rows(
                text,
                at,
                row,
                end,
                columns,
                records,
                row_bytes,
                name_width,
                flipped_length,
                show_sequences,
            )
            if row < end:
                break
        row = NO_HEADER_YET
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at
