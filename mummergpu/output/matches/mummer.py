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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.matching.block_text import RowFormat
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.number_text import COLUMN
from mummergpu.output.bytes.piece_pool import PIECE_BYTES, PiecePool
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.mummer_rows import (
    HEADER_BYTES,
    NEXT_QUERY,
    NO_HEADER_YET,
    RowColumns,
    fill_text,
)
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns

_GAP_BYTES: Final = 2
"""The blanks before and after the name of a record."""


@dataclass(frozen=True)
class TextStyle:
    """The options of MUMmer that change the text but not the matches.

    Attributes
    ----------
    forward_coordinates : bool
        Query positions of reverse matches are given on the forward strand (``-c``): the
        forward position of the first base of the match on the reverse complement.
    four_columns : bool
        Rows name the record even if the reference has just one (``-F``).
    show_query_lengths : bool
        Headers end with the length of the query (``-L``).
    show_sequences : bool
        A line with the bases of the match, in lower case, follows each row (``-s``).
    three_columns_for : str
        The program that skips rows with the name of a record, so that the reference must have just
        one; empty if none does.
    """

    forward_coordinates: bool = False
    four_columns: bool = False
    show_query_lengths: bool = False
    show_sequences: bool = False
    three_columns_for: str = ""


class MummerFormatter(BlockFormat):
    """Turns the matches of query blocks into text; several threads may share one."""

    def __init__(
        self, reference: Reference, style: TextStyle, piece_bytes: int = PIECE_BYTES
    ) -> None:
        names = reference.names
        if style.three_columns_for and len(names) > 1:
            raise OptionError(
                f"--for {style.three_columns_for}",
                f"the reference has {len(names):,} records, so rows would begin with their names, "
                f"and {style.three_columns_for} skips such rows; 'prenuc' of MUMmer joins records",
            )
        self._style = style
        self._pool = PiecePool(piece_bytes)
        self._has_names = style.four_columns or len(names) > 1
        self._name_width = max(map(len, names)) if self._has_names else 0
        self._reference_width = _width_of(reference.codes.size + 1)
        codes = reference.codes if style.show_sequences else np.empty(0, dtype=np.uint8)
        self._records = (
            *record_lookup(reference.record_starts, reference.codes.size),
            _text_of(b"".join(names) + bytes(OVERSHOOT)),
            np.concatenate(([0], np.cumsum([len(name) for name in names], dtype=np.int64))),
            writable(codes),
        )

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield the text of a block's matches in pieces (`BlockFormat.format_block`).

        In each query, forward comes before reverse; a block without queries yields nothing.
        """
        lengths = np.diff(block.offsets)
        query_width = _width_of(int(lengths.max(initial=0)) + 1)
        row_bytes = self._reference_width + 2 * query_width + 5
        if self._has_names:
            row_bytes += 2 * _GAP_BYTES + self._name_width
        longest, total = self._bounds(block, matches, row_bytes)
        strands = np.array([strand in matches for strand in Strand], dtype=np.bool_)
        rows = (_columns_of(matches.get(Strand.FORWARD)), _columns_of(matches.get(Strand.REVERSE)))
        queries = (writable(block.offsets), writable(block.names), writable(block.name_offsets))
        state = np.array([0, 0, NO_HEADER_YET], dtype=np.int64)
        while state[NEXT_QUERY] < block.query_count:
            text = self._pool.room_for(min(total, max(longest, self._pool.piece_bytes)))
            filled = fill_text(
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

    def row_format(self, with_columns: bool = False) -> RowFormat | None:
        """Return what a backend must know to make the same text; None if it cannot."""
        if self._style.show_sequences:
            return None
        starts, buckets, bucket_shift, names, name_offsets, _ = self._records
        return RowFormat(
            starts,
            buckets,
            bucket_shift,
            names[: name_offsets[-1]],
            name_offsets,
            self._name_width + 2 * _GAP_BYTES if self._has_names else 0,
            self._style.forward_coordinates,
            self._style.show_query_lengths,
            self._pool.piece_bytes,
            lambda size: self._pool.room_for(size)[:size],
            with_columns,
        )

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece, also of one from `row_format` (`BlockFormat.take_back`)."""
        self._pool.take_back(piece)

    def _bounds(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns], row_bytes: int
    ) -> tuple[int, int]:
        """Return upper limits for the bytes of one header or row, and of the whole block."""
        name_lengths = np.diff(block.name_offsets)
        longest = max(HEADER_BYTES + int(name_lengths.max(initial=0)), row_bytes)
        total = len(matches) * (block.names.size + HEADER_BYTES * block.query_count)
        for columns in matches.values():
            total += columns.count * row_bytes
            if self._style.show_sequences:
                longest = max(longest, row_bytes + 1 + int(columns.lengths.max(initial=0)))
                total += int(columns.lengths.sum()) + columns.count
        return longest, total


def _width_of(largest: int) -> int:
    return max(COLUMN, len(str(largest)))


def _text_of(text: bytes) -> TextArray:
    return np.frombuffer(bytearray(text), dtype=np.uint8)


def _columns_of(columns: MemColumns | None) -> RowColumns:
    if columns is None:
        none = np.empty(0, dtype=np.int64)
        return none, none, none, none
    return (
        writable(columns.offsets),
        writable(columns.query_starts),
        writable(columns.reference_starts),
        writable(columns.lengths),
    )
