"""Formats with a line for each match: PAF, BED and TSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.piece_pool import PIECE_BYTES, PiecePool
from mummergpu.output.bytes.text_arrays import query_columns, texts_of
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.line_rows import (
    OTHER_BYTES,
    START_BYTES,
    write_lines,
)
from mummergpu.output.matches.match_table import NEXT_QUERY, NOT_BEGUN, strand_rows
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns


class LineFormat(BlockFormat):
    """A format with a line for each match; several threads may share one."""

    def __init__(
        self,
        kind: int,
        reference: Reference,
        record_texts: Iterable[bytes],
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._kind = kind
        lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._lookup = (lookup.starts, lookup.buckets, lookup.bucket_shift)
        self._records = texts_of(record_texts)
        self._most_bytes = OTHER_BYTES + int(np.diff(self._records[1]).max(initial=0))
        self._pool = PiecePool(piece_bytes)

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield the lines of a block's matches in pieces (`BlockFormat.format_block`)."""
        rows = (
            strand_rows(matches, Strand.FORWARD, block),
            strand_rows(matches, Strand.REVERSE, block),
        )
        queries = query_columns(block)
        name_bytes = int(np.diff(block.name_offsets).max(initial=0))
        start_text = np.empty(name_bytes + START_BYTES, dtype=np.uint8)
        row_bytes = self._most_bytes + name_bytes
        state = np.array([0, 0, NOT_BEGUN], dtype=np.int64)
        while state[NEXT_QUERY] < block.query_count:
            text = self._pool.room_for(max(row_bytes, self._pool.piece_bytes))
            filled = write_lines(
                text,
                state,
                queries,
                rows,
                self._lookup,
                self._records,
                start_text,
                row_bytes,
                self._kind,
            )
            yield text[:filled]

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`BlockFormat.take_back`)."""
        self._pool.take_back(piece)


def names_and_lengths(reference: Reference) -> Iterator[bytes]:
    """Yield the name and the length of each record, with a tab before, between and after them."""
    for name, length in zip(reference.names, reference.record_lengths.tolist(), strict=True):
        yield b"\t%b\t%d\t" % (name, length)
