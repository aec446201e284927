"""BAM: the rows of SAM in binary form (SAM format specification, section 4.2).

What is made here is the content of the file; `compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, Piece
from mummergpu.output.bytes.piece_pool import PiecePool
from mummergpu.output.bytes.text_arrays import QueryColumns, query_columns
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.matches.bam_rows import FIXED_BYTES, NEXT_ROW, fill_records
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.match_table import MOST_ROWS
from mummergpu.output.matches.sam_rows import AlignmentTable, alignment_tables
from mummergpu.output.records.bam_header import binary_header
from mummergpu.output.records.sam_header import check_queries, sam_header
from mummergpu.output.records.sam_options import ReadGroup, SamOptions
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import CodeArray, Strand
from mummergpu.sequence.mems import MemColumns

PIECE_BYTES: Final = 16 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size."""


class BamFormat(BlockFormat):
    """Turns the matches of query blocks into the content of BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        options: SamOptions,
        command: str,
        query_path: str,
        piece_bytes: int = PIECE_BYTES,
        most_rows: int = MOST_ROWS,
    ) -> None:
        header = sam_header(reference, options, command)
        self._head = binary_header(header, reference)
        self._record_ids = writable(header.record_ids)
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._query_path = query_path
        self._most_hits = options.most_hits
        self._with_bases = options.secondary_bases
        self._read_group = _tag_of(options.read_group)
        self._pool = PiecePool(piece_bytes)
        self._most_rows = most_rows

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield whole records of a block's matches in pieces (`BlockFormat.format_block`)."""
        check_queries(block, self._query_path)
        codes, queries = writable(block.padded_codes), query_columns(block)
        longest = FIXED_BYTES + self._read_group.size
        longest += int(np.diff(block.name_offsets).max(initial=0))
        longest += 3 * (int(np.diff(block.offsets).max(initial=0)) + 1) // 2
        room = max(longest, self._pool.piece_bytes)
        for table in alignment_tables(
            block, matches, self._lookup, self._most_hits, self._most_rows
        ):
            yield from self._records_of(table, codes, queries, room)

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`BlockFormat.take_back`)."""
        self._pool.take_back(piece)

    def _records_of(
        self, table: AlignmentTable, codes: CodeArray, queries: QueryColumns, room: int
    ) -> Iterator[TextArray]:
        """Yield the records of a table in pieces for which `room` bytes are enough."""
        state = np.zeros(1, dtype=np.int64)
        while state[NEXT_ROW] < table.count:
            text = self._pool.room_for(room)
            filled = fill_records(
                text,
                state,
                codes,
                queries,
                (table.queries, table.hit_counts, table.hit_numbers),
                (table.positions, table.clips, table.lengths),
                table.records,
                table.flags,
                self._record_ids,
                self._read_group,
                self._with_bases,
            )
            yield text[:filled]


def _tag_of(read_group: ReadGroup | None) -> TextArray:
    """Return the tag that puts a query into a read group; nothing for None."""
    tag = b"" if read_group is None else b"RGZ" + read_group.name.encode() + b"\0"
    return np.frombuffer(bytearray(tag), dtype=np.uint8)
