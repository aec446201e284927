"""Text of matches, byte for byte as MUMmer 3.23 prints it.

Each query has a header for every searched strand, even without a match. Below the header is
one row for each match::

    > read1  Len = 36
           1         1        36
    > read1 Reverse  Len = 36
      chr2                1017        23        14

Numbers are right-aligned in eight columns, or more if they have more digits. If the reference
has several records, or the options ask for four columns, a row begins with the name of the
record, padded to the longest name. Positions become 1-based only here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_at
from mummergpu.matching.backends.interface import RowFormat
from mummergpu.output.bytes.number_text import COLUMN, MOST_DIGITS, put_one_number, write_numbers
from mummergpu.output.bytes.texts import (
    LINE_END,
    OVERSHOOT,
    PIECE_BYTES,
    TextArray,
    copy_text,
    fill_blanks,
    store,
)
from mummergpu.output.matches.match_table import (
    NEXT_QUERY,
    NEXT_ROW,
    NEXT_STRAND,
    NOT_BEGUN,
    MatchBlock,
    MatchPieces,
)
from mummergpu.output.options import TextStyle
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit, writable
from mummergpu.sequence.codes import BASES, CodeArray
from mummergpu.sequence.mems import BlockMems, MemColumns
from mummergpu.sequence.strand import Strand

_GAP: Final = np.frombuffer(b"  ", dtype="<u2")[0]
_LETTERS: Final = np.frombuffer(BASES.lower().ljust(256, b"?"), dtype=np.uint8)
_REVERSE: Final = np.frombuffer(b" Reverse", dtype="<u8")[0]
_LENGTH: Final = np.frombuffer(b"  Len = ", dtype="<u8")[0]
_HEADER_MARK: Final = np.frombuffer(b"> ", dtype="<u2")[0]
HEADER_BYTES: Final = 2 + 8 + 8 + MOST_DIGITS + 1
"""The most bytes of a header without the name."""


class TextBlock(NamedTuple):
    """What the loop needs to write the text of a block.

    The records of `matches` have their names alone. `strands` says which were searched: those have
    headers. `reference` has its codes if matches show their bases; `row_bytes` are the most bytes
    of a row without them. `name_width` is -1 for rows without the name of a record.
    """

    matches: MatchBlock
    strands: BoolArray
    reference: CodeArray
    row_bytes: int
    name_width: int
    forward_coordinates: bool
    show_lengths: bool
    show_sequences: bool


@inline
def _write_header(text: TextArray, at: int, block: TextBlock, query: int, reverse: bool) -> int:
    """Write a query's header; return where it ends."""
    offsets, names, name_offsets = block.matches.queries
    begin, end = name_offsets[as_index(query)], name_offsets[as_index(query + 1)]
    store(text, at, _HEADER_MARK)
    at = copy_text(text, at + 2, names, begin, end)
    if reverse:
        store(text, at, _REVERSE)
        at += 8
    if block.show_lengths:
        store(text, at, _LENGTH)
        at = put_one_number(text, at + 8, offsets[as_index(query + 1)] - offsets[as_index(query)])
    store(text, at, LINE_END)
    return at + 1


@inline
def _write_row(
    text: TextArray, at: int, block: TextBlock, position: int, query_position: int, length: int
) -> int:
    """Write a row; return where it ends.

    `position` is 0-based in the joined reference, `query_position` as it is printed.
    """
    lookup, records = block.matches.lookup, block.matches.records
    record = as_index(record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position))
    if block.name_width >= 0:
        numbers = at + block.name_width + 4
        store(text, at, _GAP)
        begin, end = records.offsets[record], records.offsets[record + 1]
        at = copy_text(text, at + 2, records.texts, begin, end)
        fill_blanks(text, at, numbers)
        at = numbers
    return write_numbers(text, at, position - lookup.starts[record] + 1, query_position, length)


@inline
def _write_rows(
    text: TextArray,
    at: int,
    block: TextBlock,
    own: MemColumns,
    row: int,
    end: int,
    flipped_length: int,
) -> tuple[int, int]:
    """Write the rows of one query until `end`, or until the text is full.

    Returns where the text ends and the first row that is not written. `flipped_length` is the
    length of a query whose positions count on its other strand; -1 for the others.
    """
    room = text.size - OVERSHOOT
    while row < end:
        length = own.lengths[as_index(row)]
        if at + block.row_bytes + (length + 1 if block.show_sequences else 0) > room:
            break
        position = own.query_starts[as_index(row)] + 1
        if flipped_length >= 0:
            position = flipped_length + 1 - position
        start = own.reference_starts[as_index(row)]
        at = _write_row(text, at, block, start, position, length)
        if block.show_sequences:
            for base in range(start, start + length):
                text[at] = _LETTERS[block.reference[base]]
                at += 1
            text[at] = LINE_END
            at += 1
        row += 1
    return at, row


@jit
def fill_text(text: TextArray, state: Int64Array, block: TextBlock) -> int:
    """Write headers and rows from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    query_offsets, name_offsets = block.matches.queries.offsets, block.matches.queries.name_offsets
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    at = 0
    while query < query_offsets.size - 1:
        if block.strands[strand]:
            own = block.matches.rows[strand]
            if row == NOT_BEGUN:
                name_bytes = name_offsets[as_index(query + 1)] - name_offsets[as_index(query)]
                if at + HEADER_BYTES + name_bytes > text.size - OVERSHOOT:
                    break
                at = _write_header(text, at, block, query, strand == 1)
                row = own.offsets[as_index(query)]
            end = own.offsets[as_index(query + 1)]
            flipped_length = -1
            if block.forward_coordinates and strand == 1:
                flipped_length = query_offsets[query + 1] - query_offsets[query]
            at, row = _write_rows(text, at, block, own, row, end, flipped_length)
            if row < end:
                break
        row = NOT_BEGUN
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at


_GAP_BYTES: Final = 2
"""The blanks before and after the name of a record."""


class MummerFormatter(MatchPieces):
    """Turns the matches of query blocks into text; several threads may share one."""

    def __init__(
        self, reference: Reference, style: TextStyle, piece_bytes: int = PIECE_BYTES
    ) -> None:
        names = reference.names
        if style.three_columns_for and len(names) > 1:
            raise OptionError(
                f"for_program={style.three_columns_for}",
                f"the reference has {len(names):,} records, so rows would begin with their names, "
                f"and {style.three_columns_for} skips such rows; 'prenuc' of MUMmer joins records",
            )
        super().__init__(reference, names, piece_bytes)
        self._style = style
        self._has_names = style.four_columns or len(names) > 1
        self._name_width = max(map(len, names)) if self._has_names else 0
        self._reference_width = _width_of(reference.codes.size + 1)
        codes = reference.codes if style.show_sequences else np.empty(0, dtype=np.uint8)
        self._codes = writable(codes)

    def format_block(self, block: QueryBlock, matches: BlockMems) -> Iterator[TextArray]:
        """Yield the text of a block's matches in pieces (`Format.format_block`).

        In each query, forward comes before reverse; a block without queries yields nothing.
        """
        lengths = np.diff(block.offsets)
        query_width = _width_of(int(lengths.max(initial=0)) + 1)
        row_bytes = self._reference_width + 2 * query_width + 5
        if self._has_names:
            row_bytes += 2 * _GAP_BYTES + self._name_width
        longest = self._most_bytes(block, matches, row_bytes)
        strands = np.array([strand in matches for strand in Strand], dtype=np.bool_)
        arrays = TextBlock(
            self._match_block(block, matches),
            strands,
            self._codes,
            row_bytes,
            self._name_width if self._has_names else -1,
            self._style.forward_coordinates,
            self._style.show_query_lengths,
            self._style.show_sequences,
        )
        state = np.array([0, 0, NOT_BEGUN], dtype=np.int64)
        yield from self._pieces(block, state, longest, lambda text: fill_text(text, state, arrays))

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return the format for a backend that makes the same text; None if it cannot."""
        if self._style.show_sequences:
            return None
        names, name_offsets = self._records
        return RowFormat(
            *self._lookup,
            names[: name_offsets[-1]],
            name_offsets,
            self._name_width + 2 * _GAP_BYTES if self._has_names else 0,
            self._style.forward_coordinates,
            self._style.show_query_lengths,
            self._pool.piece_bytes,
            lambda size: self._pool.room_for(size)[:size],
            with_columns,
        )

    def _most_bytes(self, block: QueryBlock, matches: BlockMems, row_bytes: int) -> int:
        """Return an upper limit for the bytes of one header or row."""
        names = np.diff(block.name_offsets)
        longest = max(HEADER_BYTES + int(names.max(initial=0)), row_bytes)
        if self._style.show_sequences:
            lengths = [int(columns.lengths.max(initial=0)) for columns in matches.values()]
            longest = max(longest, row_bytes + 1 + max(lengths, default=0))
        return longest


def _width_of(largest: int) -> int:
    return max(COLUMN, len(str(largest)))
