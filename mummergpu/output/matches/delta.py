"""Matches as nucmer's .delta, which show-coords, delta-filter and mummerplot read.

The file names the reference and the queries, and tells that the alignments are of bases. Each query
has a header for every record of the reference that it matches; below it are the matches, in the
order of the output::

    reference.fa queries.fa
    NUCMER
    >chr1 read1 5000 36
    1001 1023 14 36 0 0 0
    0

A match is a line with its first and last base in the record and in the query, 1-based, and the
numbers of errors, of which exact matches have none. If the reverse complement of the query matches,
the last base in the query is before the first. A line with 0 ends the distances between insertions
and deletions, of which there are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, Reference, record_at
from mummergpu.output.bytes.number_text import (
    MOST_DIGITS,
    SMALL,
    digit_words,
    put_number,
    put_small,
)
from mummergpu.output.bytes.text_arrays import PIECE_BYTES, check_names
from mummergpu.output.bytes.text_stores import (
    LINE_END,
    OVERSHOOT,
    TextArray,
    copy_padded,
    copy_text,
    store,
)
from mummergpu.output.matches.match_table import BothStrands, MatchBlock, MatchPieces, match_counts
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)
from mummergpu.sequence.mems import BlockMems

NEXT_QUERY, NEXT_ROW, LAST_RECORD = 0, 1, 2
"""The elements of the state of the writer between two pieces."""

NOT_BEGUN: Final = -1
"""The next row of a query whose rows have not been ordered, and the record before the first."""

_FEW: Final = 32
"""More rows than these are ordered by counting, and so are those of fewer records than these."""

LANES: Final = 8
"""Keys that are compared at once."""

_NO_KEY: Final = (1 << 63) - 1
"""More than any key."""

_DIGIT_BITS: Final = 8
_DIGIT_MASK: Final = (1 << _DIGIT_BITS) - 1
COUNTERS: Final = 1 << _DIGIT_BITS
"""The counters that the ordering of many rows needs."""

_BLANK: Final = np.uint8(ord(" "))
_NO_ERRORS: Final = np.frombuffer(bytearray(b" 0 0 0\n0\n".ljust(OVERSHOOT)), dtype=np.uint8)
_NO_ERRORS_BYTES: Final = len(b" 0 0 0\n0\n")

TEXTS: Final = 2
"""The texts of each record in headers: what comes before the name of a query, and after it."""

OTHER_BYTES: Final = 6 * (MOST_DIGITS + 1) + _NO_ERRORS_BYTES
"""The most bytes of a header and a row besides the name of the query and the text of the record."""


@inline_without_refcounts
def _order_few(keys: Int64Array, spare: Int64Array, count: int) -> None:
    """Order a few keys, no two of which are equal."""
    end = count + LANES
    for place in range(count, end):
        keys[as_index(place)] = _NO_KEY
    # The place of a key is the number of those below it. All are compared, several at once: the
    # processor cannot predict the branches of an order.
    for place in range(count):
        key = keys[as_index(place)]
        below = 0
        for first in range(0, count, LANES):
            for lane in range(LANES):
                below += as_int64(keys[as_index(first + lane)] < key)
        spare[as_index(below)] = key
    for first in range(0, count, LANES):
        for lane in range(LANES):
            keys[as_index(first + lane)] = spare[as_index(first + lane)]


@inline_without_refcounts
def _order_by_digits(
    keys: Int64Array, spare: Int64Array, counters: Int64Array, count: int, shift: int, most: int
) -> None:
    """Order keys by their numbers of records; equal ones keep their order."""
    while most > 0:
        digits = min(COUNTERS, most + 1)
        for digit in range(digits):
            counters[digit] = 0
        for place in range(count):
            counters[(keys[place] >> shift) & _DIGIT_MASK] += 1
        before = 0
        for digit in range(digits):
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
    rows: BothStrands,
    query: int,
    lookup: RecordLookup,
    rooms: tuple[Int64Array, Int64Array, Int64Array],
    row_bits: int,
) -> None:
    """Order the rows of a query by record."""
    keys, spare, counters = rooms
    record_starts = lookup.starts
    count = 0
    for strand in range(2):
        own = rows[strand]
        for row in range(own.offsets[query], own.offsets[query + 1]):
            record = record_at(
                record_starts, lookup.buckets, lookup.bucket_shift, own.reference_starts[row]
            )
            keys[count] = record << row_bits | count
            count += 1
    if count <= LANES or (count <= _FEW and record_starts.size > _FEW):
        _order_few(keys, spare, count)
    else:
        _order_by_digits(keys, spare, counters, count, row_bits, record_starts.size - 1)


@inline_without_refcounts
def _write_header(
    text: TextArray, at: int, block: MatchBlock, query: int, record: int, query_length: int
) -> int:
    """Write the header of a pair of a record and a query; return where it ends."""
    queries, (texts, offsets) = block.queries, block.records
    entry = TEXTS * record
    begin, middle = offsets[as_index(entry)], offsets[as_index(entry + 1)]
    at = copy_padded(text, at, texts, begin, middle)
    begin, end = queries.name_offsets[as_index(query)], queries.name_offsets[as_index(query + 1)]
    at = copy_text(text, at, queries.names, begin, end)
    at = copy_padded(text, at, texts, middle, offsets[as_index(entry + 2)])
    at = put_small(text, at, query_length)
    store(text, at, LINE_END)
    return at + 1


@inline_without_refcounts
def _write_row(text: TextArray, at: int, places: tuple[int, int, int, int], is_short: bool) -> int:
    """Write a match; return where it ends."""
    first, last, query_first, query_last = places
    words = digit_words(first, last, query_first, query_last)
    at = put_number(text, at, first, words[0])
    store(text, at, _BLANK)
    at = put_number(text, at + 1, last, words[1])
    store(text, at, _BLANK)
    if is_short:
        at = put_small(text, at + 1, query_first)
        store(text, at, _BLANK)
        at = put_small(text, at + 1, query_last)
    else:
        at = put_number(text, at + 1, query_first, words[2])
        store(text, at, _BLANK)
        at = put_number(text, at + 1, query_last, words[3])
    return copy_padded(text, at, _NO_ERRORS, 0, _NO_ERRORS_BYTES)


@jit_without_refcounts
def write_delta(
    text: TextArray,
    state: Int64Array,
    block: MatchBlock,
    rooms: tuple[Int64Array, Int64Array, Int64Array],
    row_bits: int,
    row_bytes: int,
) -> int:
    """Write headers and rows from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    query_offsets, record_starts, keys = block.queries.offsets, block.lookup.starts, rooms[0]
    forward, reverse = block.rows
    query, row, last_record = state[NEXT_QUERY], state[NEXT_ROW], state[LAST_RECORD]
    last_start = text.size - OVERSHOOT - row_bytes
    at, mask = 0, (1 << row_bits) - 1
    while query < query_offsets.size - 1:
        if row == NOT_BEGUN:
            row, last_record = 0, NOT_BEGUN
            if record_starts.size > 1:
                _order_rows(block.rows, query, block.lookup, rooms, row_bits)
        begins = forward.offsets[as_index(query)], reverse.offsets[as_index(query)]
        forward_count = forward.offsets[as_index(query + 1)] - begins[0]
        count = forward_count + reverse.offsets[as_index(query + 1)] - begins[1]
        query_length = query_offsets[as_index(query + 1)] - query_offsets[as_index(query)]
        while row < count and at <= last_start:
            place, record = row, 0
            if record_starts.size > 1:
                key = keys[as_index(row)]
                place, record = key & mask, key >> row_bits
            if record != last_record:
                at = _write_header(text, at, block, query, record, query_length)
                last_record = record
            strand = 0 if place < forward_count else 1
            place += begins[0] if strand == 0 else begins[1] - forward_count
            own = reverse if strand == 1 else forward
            first = own.reference_starts[as_index(place)] - record_starts[as_index(record)] + 1
            start, length = own.query_starts[as_index(place)], own.lengths[as_index(place)]
            # A match on the reverse strand is written from its last base on the forward strand.
            query_first = start + 1 if strand == 0 else query_length - start
            query_last = start + length if strand == 0 else query_length - start - length + 1
            places = (first, first + length - 1, query_first, query_last)
            at = _write_row(text, at, places, query_length < SMALL)
            row += 1
        if row < count:
            break
        row = NOT_BEGUN
        query += 1
    state[NEXT_QUERY], state[NEXT_ROW], state[LAST_RECORD] = query, row, last_record
    return at


class DeltaFormat(MatchPieces):
    """Turns matches into .delta; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        query_paths: Sequence[str],
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        if len(query_paths) > 1:
            raise InputError("a .delta is of one file of queries, not of several", query_paths[1])
        for path in (reference.path, query_paths[0]):
            if len(path.split()) != 1:
                raise InputError("a .delta cannot name a file with a blank in its name", path)
        check_names(reference, "a .delta")
        self._paths = (reference.path, query_paths[0])
        lengths = reference.record_lengths.tolist()
        named = zip(reference.names, lengths, strict=True)
        texts = (text for name, length in named for text in (b">%b " % name, b" %d " % length))
        super().__init__(reference, texts, piece_bytes)
        self._record_count = len(lengths)
        self._max_bytes = OTHER_BYTES + TEXTS * self._longest_record

    def head(self) -> bytes:
        """Return the names of the files and the kind of the alignments."""
        return " ".join(self._paths).encode(errors="surrogateescape") + b"\nNUCMER\n"

    def format_block(self, block: QueryBlock, matches: BlockMems) -> Iterator[TextArray]:
        """Yield the headers and matches of a block in pieces (`Format.format_block`)."""
        counts = match_counts(block, matches)
        name_sizes = np.diff(block.name_offsets)
        if ((name_sizes == 0) & (counts > 0)).any():
            raise InputError("a .delta needs names, and a query has none", self._paths[1])
        arrays = self._match_block(block, matches)
        max_rows = int(counts.max(initial=0))
        room = max_rows + LANES if self._record_count > 1 else 0
        rooms = (
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(COUNTERS, dtype=np.int64),
        )
        row_bytes = self._max_bytes + int(name_sizes.max(initial=0))
        state = np.array([0, NOT_BEGUN, NOT_BEGUN], dtype=np.int64)

        def fill(text: TextArray) -> int:
            return write_delta(text, state, arrays, rooms, max_rows.bit_length(), row_bytes)

        yield from self._pieces(block, state, row_bytes, fill)
