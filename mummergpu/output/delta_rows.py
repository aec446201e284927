"""The compiled loops that write nucmer's .delta: matches of a query, record by record."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.line_rows import Lookup, QueryColumns, RecordTexts
from mummergpu.output.match_table import StrandRows
from mummergpu.output.number_fields import MOST_DIGITS, copy_padded, put_number
from mummergpu.output.number_text import (
    LINE_END,
    OVERSHOOT,
    TextArray,
    copy_text,
    digit_words,
    store,
)
from mummergpu.output.record_lookup import Int64Array, record_at
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned

NEXT_QUERY, NEXT_ROW, LAST_RECORD = 0, 1, 2
"""The elements of the state of the writer between two pieces."""

NOT_BEGUN: Final = -1
"""The next row of a query whose rows have not been ordered, and the record before the first."""

_FEW: Final = 32
"""Rows of at most this number are ordered by insertion."""

_DIGIT_BITS: Final = 8
_DIGIT_MASK: Final = (1 << _DIGIT_BITS) - 1
COUNTERS: Final = 1 << _DIGIT_BITS
"""The counters that the ordering of many rows needs."""

_BLANK: Final = np.uint8(ord(" "))
_NO_ERRORS: Final = np.frombuffer(bytearray(b" 0 0 0\n0\n".ljust(OVERSHOOT)), dtype=np.uint8)
_NO_ERRORS_BYTES: Final = len(b" 0 0 0\n0\n")

OTHER_BYTES: Final = 6 * (MOST_DIGITS + 1) + _NO_ERRORS_BYTES
"""The most bytes of a header and a row besides the name of the query and the text of the record."""


@inline_without_refcounts
def _order_by_insertion(keys: Int64Array, count: int) -> None:
    """Order a few keys.

    Parameters
    ----------
    keys : ndarray, dtype=int64
        The keys; the first `count` of them are sorted in place.
    count : int
        How many there are.
    """
    for place in range(1, count):
        key = keys[place]
        while place > 0 and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key


@inline_without_refcounts
def _order_by_digits(
    keys: Int64Array, spare: Int64Array, counters: Int64Array, count: int, shift: int, most: int
) -> None:
    """Order keys by their numbers of records; equal ones keep their order.

    Parameters
    ----------
    keys : ndarray, dtype=int64
        The keys; the first `count` of them are sorted in place.
    spare : ndarray, dtype=int64
        Room for as many keys.
    counters : ndarray, dtype=int64, shape=(COUNTERS,)
        Room for the numbers of keys with each digit.
    count : int
        How many keys there are.
    shift : int
        The bits of a key below the number of its record.
    most : int
        The largest number of a record.
    """
    while most > 0:
        for digit in range(COUNTERS):
            counters[digit] = 0
        for place in range(count):
            counters[(keys[place] >> shift) & _DIGIT_MASK] += 1
        before = 0
        for digit in range(COUNTERS):
            before, counters[digit] = before + counters[digit], before
        for place in range(count):
            digit = (keys[place] >> shift) & _DIGIT_MASK
            spare[counters[digit]] = keys[place]
            counters[digit] += 1
        for place in range(count):
            keys[place] = spare[place]
        shift += _DIGIT_BITS
        most >>= _DIGIT_BITS


@inline_without_refcounts
def _order_rows(
    rows: tuple[StrandRows, StrandRows],
    query: int,
    lookup: Lookup,
    rooms: tuple[Int64Array, Int64Array, Int64Array],
    row_bits: int,
) -> None:
    """Order the rows of a query by record.

    Parameters
    ----------
    rows : tuple of tuple of ndarray, dtype=int64
        The matches on each strand, as `match_table.strand_rows` returns them.
    query : int
        The number of the query.
    lookup : tuple
        The records of the reference (`line_rows.Lookup`).
    rooms : tuple of ndarray, dtype=int64
        Receives the keys: the number of the record above that of the row in the query, whose
        forward rows come first. Two more rooms, for as many keys and for `COUNTERS` numbers.
    row_bits : int
        The bits of the number of a row.
    """
    keys, spare, counters = rooms
    record_starts, buckets, bucket_shift = lookup
    count = 0
    for strand in range(2):
        offsets, _, positions, _ = rows[strand]
        for row in range(offsets[query], offsets[query + 1]):
            record = record_at(record_starts, buckets, bucket_shift, positions[row])
            keys[count] = record << row_bits | count
            count += 1
    if count <= _FEW:
        _order_by_insertion(keys, count)
    else:
        _order_by_digits(keys, spare, counters, count, row_bits, record_starts.size - 1)


@inline_without_refcounts
def _write_header(
    text: TextArray,
    at: int,
    queries: QueryColumns,
    query: int,
    records: RecordTexts,
    record: int,
    record_length: int,
) -> int:
    """Write the header of a pair of a record and a query; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    queries : tuple of ndarray
        The queries of the block (`line_rows.QueryColumns`).
    query : int
        The number of the query.
    records : tuple of ndarray
        For each record, ``>``, its name and a blank (`line_rows.RecordTexts`).
    record : int
        The number of the record.
    record_length : int
        The bases of the record.

    Returns
    -------
    int
        Where the header ends.
    """
    texts, text_offsets = records
    offsets, names, name_offsets = queries
    begin, end = text_offsets[unsigned(record)], text_offsets[unsigned(record + 1)]
    at = copy_padded(text, at, texts, begin, end)
    begin, end = name_offsets[unsigned(query)], name_offsets[unsigned(query + 1)]
    at = copy_text(text, at, names, begin, end)
    query_length = offsets[unsigned(query + 1)] - offsets[unsigned(query)]
    words = digit_words(record_length, query_length, 0, 0)
    store(text, at, _BLANK)
    at = put_number(text, at + 1, record_length, words[0])
    store(text, at, _BLANK)
    at = put_number(text, at + 1, query_length, words[1])
    store(text, at, LINE_END)
    return at + 1


@inline_without_refcounts
def _write_row(text: TextArray, at: int, places: tuple[int, int, int, int]) -> int:
    """Write a match; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    places : tuple of int
        The first and the last base in the record and in the query, 1-based.

    Returns
    -------
    int
        Where the row ends.
    """
    first, last, query_first, query_last = places
    words = digit_words(first, last, query_first, query_last)
    at = put_number(text, at, first, words[0])
    store(text, at, _BLANK)
    at = put_number(text, at + 1, last, words[1])
    store(text, at, _BLANK)
    at = put_number(text, at + 1, query_first, words[2])
    store(text, at, _BLANK)
    at = put_number(text, at + 1, query_last, words[3])
    return copy_padded(text, at, _NO_ERRORS, 0, _NO_ERRORS_BYTES)


@jit_without_refcounts
def write_delta(
    text: TextArray,
    state: Int64Array,
    queries: QueryColumns,
    rows: tuple[StrandRows, StrandRows],
    lookup: Lookup,
    record_lengths: Int64Array,
    records: RecordTexts,
    rooms: tuple[Int64Array, Int64Array, Int64Array],
    row_bits: int,
    row_bytes: int,
) -> int:
    """Write headers and rows from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    state : ndarray, dtype=int64, shape=(3,)
        The query and its row to go on with, and the record of the last header (`NEXT_QUERY`,
        `NEXT_ROW`, `LAST_RECORD`); updated.
    queries : tuple of ndarray
        The queries of the block (`line_rows.QueryColumns`).
    rows : tuple of tuple of ndarray, dtype=int64
        The matches on each strand, as `match_table.strand_rows` returns them.
    lookup : tuple
        The records of the reference (`line_rows.Lookup`).
    record_lengths : ndarray, dtype=int64, shape=(n_records,)
        The bases of each record.
    records : tuple of ndarray
        For each record, ``>``, its name and a blank (`line_rows.RecordTexts`).
    rooms : tuple of ndarray, dtype=int64
        Room for the order of the rows of a query, for as many numbers more, and for `COUNTERS`
        numbers. With one record there is no need for any.
    row_bits : int
        The bits of the number of a row in its query.
    row_bytes : int
        The most bytes of a header and a row.

    Returns
    -------
    int
        The number of bytes written.
    """
    query_offsets, record_starts, keys = queries[0], lookup[0], rooms[0]
    query, row, last_record = state[NEXT_QUERY], state[NEXT_ROW], state[LAST_RECORD]
    last_start = text.size - OVERSHOOT - row_bytes
    at, mask = 0, (1 << row_bits) - 1
    while query < query_offsets.size - 1:
        if row == NOT_BEGUN:
            row, last_record = 0, NOT_BEGUN
            if record_starts.size > 1:
                _order_rows(rows, query, lookup, rooms, row_bits)
        begins = rows[0][0][unsigned(query)], rows[1][0][unsigned(query)]
        forward_count = rows[0][0][unsigned(query + 1)] - begins[0]
        count = forward_count + rows[1][0][unsigned(query + 1)] - begins[1]
        query_length = query_offsets[unsigned(query + 1)] - query_offsets[unsigned(query)]
        while row < count and at <= last_start:
            place, record = row, 0
            if record_starts.size > 1:
                key = keys[unsigned(row)]
                place, record = key & mask, key >> row_bits
            if record != last_record:
                length = record_lengths[unsigned(record)]
                at = _write_header(text, at, queries, query, records, record, length)
                last_record = record
            strand = 0 if place < forward_count else 1
            place += begins[0] if strand == 0 else begins[1] - forward_count
            _, starts, positions, lengths = rows[strand]
            first = positions[unsigned(place)] - record_starts[unsigned(record)] + 1
            start, length = starts[unsigned(place)], lengths[unsigned(place)]
            # A match on the reverse strand is written from its last base on the forward strand.
            query_first = start + 1 if strand == 0 else query_length - start
            query_last = start + length if strand == 0 else query_length - start - length + 1
            at = _write_row(text, at, (first, first + length - 1, query_first, query_last))
            row += 1
        if row < count:
            break
        row = NOT_BEGUN
        query += 1
    state[NEXT_QUERY], state[NEXT_ROW], state[LAST_RECORD] = query, row, last_record
    return at
