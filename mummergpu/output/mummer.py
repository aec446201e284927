"""Matches as MUMmer 3.23 prints them, to the byte.

Each query has a header on every strand that was asked for, also without a match, and a
row for each match below it::

    > read1  Len = 36
           1         1        36
    > read1 Reverse  Len = 36
      chr2                1017        23        14

Numbers are right-aligned in eight columns (more where they need more). A row begins with
the name of the record, padded to the longest name, if the reference has several records
or four columns were asked for. Here, and only here, positions become 1-based.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt

from mummergpu.input.queries import QueryBlock
from mummergpu.input.reference import Reference
from mummergpu.matching.columns import MemColumns
from mummergpu.output.number_text import (
    COLUMN,
    GAP,
    LINE_END,
    OVERSHOOT,
    TextArray,
    copy_text,
    fill_blanks,
    store,
    write_digits,
    write_numbers,
)
from mummergpu.runtime.jit import compiled_borrower, inlined_borrower, unsigned, widened
from mummergpu.sequence.codes import BASES, CodeArray, Strand

NumberArray = npt.NDArray[np.int64]
BucketArray = npt.NDArray[np.int32]
_Scalar = TypeVar("_Scalar", bound=np.generic)
_QueryColumns = tuple[NumberArray, TextArray, NumberArray]
_RecordColumns = tuple[NumberArray, BucketArray, int, TextArray, NumberArray, CodeArray]
_RowColumns = tuple[NumberArray, NumberArray, NumberArray, NumberArray]

PIECE_BYTES: Final = 4 << 20
"""A block's text is handed on in pieces of at most about this size."""

_LETTERS: Final = np.frombuffer(BASES.lower(), dtype=np.uint8)
_REVERSE: Final = np.frombuffer(b" Reverse", dtype="<u8")[0]
_LENGTH: Final = np.frombuffer(b"  Len = ", dtype="<u8")[0]
_HEADER_MARK: Final = np.frombuffer(b"> ", dtype="<u2")[0]
_MOST_DIGITS: Final = 20
_MOST_BUCKETS: Final = 1 << 16
_HEADER_BYTES: Final = 2 + 8 + 8 + _MOST_DIGITS + 1
"""The most bytes of a header, besides the name."""

# What the writer remembers between two pieces.
_QUERY, _STRAND, _ROW = 0, 1, 2
_NO_HEADER_YET: Final = -1


@dataclass(frozen=True)
class TextStyle:
    """The options of MUMmer that change the text and not the matches.

    Attributes
    ----------
    forward_coordinates : bool
        Query positions of reverse matches are those of the forward strand (``-c``): the
        forward position of the first base of the reverse complement's match.
    four_columns : bool
        Rows name the record even if the reference has just one (``-F``).
    show_query_lengths : bool
        Headers end with the length of the query (``-L``).
    show_sequences : bool
        A line with the bases of the match, in lower case, follows each row (``-s``).
    """

    forward_coordinates: bool = False
    four_columns: bool = False
    show_query_lengths: bool = False
    show_sequences: bool = False


class MummerFormatter:
    """Turns the matches of query blocks into text; may be shared by threads.

    Parameters
    ----------
    reference : Reference
        What the matches' reference positions refer to.
    style : TextStyle
        How headers and rows look.
    piece_bytes : int
        The most bytes of a piece, unless one row or header is longer.
    """

    def __init__(
        self, reference: Reference, style: TextStyle, piece_bytes: int = PIECE_BYTES
    ) -> None:
        names = reference.names
        self._style = style
        self._piece_bytes = piece_bytes
        self._spare_bytes = piece_bytes + OVERSHOOT
        self._spare: list[TextArray] = []
        self._has_names = style.four_columns or len(names) > 1
        self._name_width = max(map(len, names)) if self._has_names else 0
        self._reference_width = _width_of(reference.codes.size + 1)
        codes = reference.codes if style.show_sequences else np.empty(0, dtype=np.uint8)
        self._records = (
            _plain(reference.record_starts),
            *_buckets_of(reference.record_starts, reference.codes.size),
            _text_of(b"".join(names) + bytes(OVERSHOOT)),
            np.concatenate(([0], np.cumsum([len(name) for name in names], dtype=np.int64))),
            _plain(codes),
        )

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield the text of a block's matches, in pieces of bounded size.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        matches : mapping of Strand to MemColumns
            The matches on each strand that was asked for, with a row of offsets for every
            query of the block.

        Yields
        ------
        ndarray, dtype=uint8, shape=(n_bytes,)
            Text to be written as it is, forward before reverse in each query. None for
            a block without queries. It stays as it is until `take_back` gets it.
        """
        lengths = np.diff(block.offsets)
        query_width = _width_of(int(lengths.max(initial=0)) + 1)
        row_bytes = self._reference_width + 2 * query_width + 5
        if self._has_names:
            row_bytes += 4 + self._name_width
        longest, total = self._bounds(block, matches, row_bytes)
        strands = np.array([strand in matches for strand in Strand], dtype=np.bool_)
        rows = (_columns_of(matches.get(Strand.FORWARD)), _columns_of(matches.get(Strand.REVERSE)))
        queries = (_plain(block.offsets), _plain(block.names), _plain(block.name_offsets))
        state = np.array([0, 0, _NO_HEADER_YET], dtype=np.int64)
        while state[_QUERY] < block.query_count:
            text = self._room_for(min(total, max(longest, self._piece_bytes)))
            filled = _fill(
                text,
                state,
                strands,
                queries,
                rows,
                self._records,
                row_bytes,
                self._name_width if self._has_names else -1,
                self._style.forward_coordinates,
                self._style.show_query_lengths,
                self._style.show_sequences,
            )
            total -= filled
            yield text[:filled]

    def take_back(self, piece: TextArray) -> None:
        """Use a piece of `format_block` again; nobody may look at it any more.

        Whoever has written a piece may call this once, from any thread. The system clears new
        memory, with which the text takes a third longer to make.

        Parameters
        ----------
        piece : ndarray, dtype=uint8
            As it was yielded.
        """
        if isinstance(piece.base, np.ndarray) and piece.base.size == self._spare_bytes:
            self._spare.append(piece.base)

    def _room_for(self, size: int) -> TextArray:
        """Return an array with room for a text and what the wide moves overshoot."""
        if size > self._piece_bytes:
            return np.empty(size + OVERSHOOT, dtype=np.uint8)
        # Another thread may take the last one between a test and the removal.
        with suppress(IndexError):
            return self._spare.pop()
        return np.empty(self._spare_bytes, dtype=np.uint8)

    def _bounds(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns], row_bytes: int
    ) -> tuple[int, int]:
        """Return the most bytes of one header or row, and of the whole block."""
        name_lengths = np.diff(block.name_offsets)
        longest = max(_HEADER_BYTES + int(name_lengths.max(initial=0)), row_bytes)
        total = len(matches) * (block.names.size + _HEADER_BYTES * block.query_count)
        for columns in matches.values():
            total += columns.count * row_bytes
            if self._style.show_sequences:
                longest = max(longest, row_bytes + 1 + int(columns.lengths.max(initial=0)))
                total += int(columns.lengths.sum()) + columns.count
        return longest, total


def _width_of(largest: int) -> int:
    return max(COLUMN, len(str(largest)))


def _buckets_of(record_starts: NumberArray, size: int) -> tuple[BucketArray, int]:
    """Return the last record that starts at or before each bucket of positions.

    A bucket has a power of two of positions; that power is returned too. Few buckets have a
    border in them, so that the record of a position is mostly found without a search.
    """
    count = record_starts.size
    buckets = max(count, min(16 * count, _MOST_BUCKETS)) if count > 1 else 1
    shift = (size // buckets).bit_length()
    edges = np.arange((size >> shift) + 2, dtype=np.int64) << shift
    return (np.searchsorted(record_starts, edges, side="right") - 1).astype(np.int32), shift


def _text_of(text: bytes) -> TextArray:
    return np.frombuffer(bytearray(text), dtype=np.uint8)


def _plain(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return the array, copied if it is not writable: numba would compile once more."""
    return np.require(array, requirements=["C", "W"])


def _columns_of(columns: MemColumns | None) -> _RowColumns:
    if columns is None:
        none = np.empty(0, dtype=np.int64)
        return none, none, none, none
    return (
        _plain(columns.offsets),
        _plain(columns.query_starts),
        _plain(columns.reference_starts),
        _plain(columns.lengths),
    )


@inlined_borrower
def _write_header(
    text: TextArray,
    at: int,
    queries: _QueryColumns,
    query: int,
    reverse: bool,
    show_length: bool,
) -> int:
    """Write a query's header; return where it ends."""
    offsets, names, name_offsets = queries
    begin, end = name_offsets[unsigned(query)], name_offsets[unsigned(query + 1)]
    store(text, at, _HEADER_MARK)
    at = copy_text(text, at + 2, names, begin, end)
    if reverse:
        store(text, at, _REVERSE)
        at += 8
    if show_length:
        store(text, at, _LENGTH)
        at = write_digits(text, at + 8, offsets[unsigned(query + 1)] - offsets[unsigned(query)])
    store(text, at, LINE_END)
    return at + 1


@inlined_borrower
def _record_at(records: _RecordColumns, position: int) -> int:
    """Return the last record that starts at or before a position."""
    starts, buckets, bucket_shift = records[:3]
    bucket = position >> bucket_shift
    first = widened(buckets[unsigned(bucket)])
    last = widened(buckets[unsigned(bucket + 1)])
    while first < last:
        middle = (first + last + 1) >> 1
        if starts[unsigned(middle)] <= position:
            first = middle
        else:
            last = middle - 1
    return first


@inlined_borrower
def _write_row(
    text: TextArray,
    at: int,
    records: _RecordColumns,
    name_width: int,
    reference_start: int,
    query_position: int,
    length: int,
) -> int:
    """Write a row, with a record name unless `name_width` is -1; return where it ends."""
    starts, _, _, names, name_offsets, _ = records
    record = unsigned(_record_at(records, reference_start))
    if name_width >= 0:
        numbers = at + name_width + 4
        store(text, at, GAP)
        at = copy_text(text, at + 2, names, name_offsets[record], name_offsets[record + 1])
        fill_blanks(text, at, numbers)
        at = numbers
    return write_numbers(text, at, reference_start - starts[record] + 1, query_position, length)


@inlined_borrower
def _write_rows(
    text: TextArray,
    at: int,
    row: int,
    end: int,
    columns: _RowColumns,
    records: _RecordColumns,
    row_bytes: int,
    name_width: int,
    flipped_length: int,
    show_sequences: bool,
) -> tuple[int, int]:
    """Write the rows of one query until `end` or until there is no room for the next.

    Returns where the text ends and the first row that is not written.
    """
    _, query_starts, reference_starts, lengths = columns
    codes = records[-1]
    room = text.size - OVERSHOOT
    while row < end:
        length = lengths[unsigned(row)]
        if at + row_bytes + (length + 1 if show_sequences else 0) > room:
            break
        position = query_starts[unsigned(row)] + 1
        if flipped_length >= 0:
            position = flipped_length + 1 - position
        start = reference_starts[unsigned(row)]
        at = _write_row(text, at, records, name_width, start, position, length)
        if show_sequences:
            for base in range(start, start + length):
                text[at] = _LETTERS[codes[base]]
                at += 1
            text[at] = LINE_END
            at += 1
        row += 1
    return at, row


@compiled_borrower
def _fill(
    text: TextArray,
    state: NumberArray,
    strands: npt.NDArray[np.bool_],
    queries: _QueryColumns,
    rows: tuple[_RowColumns, _RowColumns],
    records: _RecordColumns,
    row_bytes: int,
    name_width: int,
    forward_coordinates: bool,
    show_lengths: bool,
    show_sequences: bool,
) -> int:
    """Write headers and rows from where `state` says, until the block or the room ends.

    Returns the number of bytes written; `state` is moved on.
    """
    query_offsets, _, name_offsets = queries
    query, strand, row = state[_QUERY], state[_STRAND], state[_ROW]
    at = 0
    while query < query_offsets.size - 1:
        if strands[strand]:
            columns = rows[strand]
            if row == _NO_HEADER_YET:
                name_bytes = name_offsets[unsigned(query + 1)] - name_offsets[unsigned(query)]
                if at + _HEADER_BYTES + name_bytes > text.size - OVERSHOOT:
                    break
                at = _write_header(text, at, queries, query, strand == 1, show_lengths)
                row = columns[0][unsigned(query)]
            end = columns[0][unsigned(query + 1)]
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
        row = _NO_HEADER_YET
        strand = 1 - strand
        query += 1 - strand
    state[_QUERY], state[_STRAND], state[_ROW] = query, strand, row
    return at
