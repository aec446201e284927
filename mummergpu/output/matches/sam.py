"""Matches as SAM: a line for each match, and one for each query without a match.

A match is an alignment with ``=`` for its bases and soft clips for the rest of the query, such as
``5S31=4S``. The longest match of a query is its primary alignment, the others are secondary
(`sam_rows`). The tags tell that no base differs (NM), the length of the match (AS), how many
matches the query has on both strands (NH), and the number of this one (HI).

Sequences are on the forward strand of the reference. They are those that are searched: letters in
upper case, N for all that is not a base, and T for U. The qualities of reads are not kept for the
search, so the field for them is ``*``; secondary alignments have no sequence either, as usual,
unless the options ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.piece_pool import PIECE_BYTES, PiecePool
from mummergpu.output.bytes.text_arrays import query_columns, texts_of
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.match_table import strand_rows
from mummergpu.output.matches.sam_choice import NEXT_QUERY
from mummergpu.output.matches.sam_fields import FLAGS, OTHER_BYTES
from mummergpu.output.matches.sam_lines import NO_BASE, write_sam
from mummergpu.output.matches.sam_rows import hit_heap, new_state
from mummergpu.output.records.sam_header import check_queries, sam_header
from mummergpu.output.records.sam_options import SamOptions
from mummergpu.runtime.jit import writable
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns


class SamFormat(BlockFormat):
    """Turns matches into SAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        options: SamOptions,
        command: str,
        query_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        self._header = sam_header(reference, options, command).text
        self._most_hits = options.most_hits
        self._with_bases = options.secondary_bases
        self._query_path = query_path
        lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._lookup = (lookup.starts, lookup.buckets, lookup.bucket_shift)
        self._records = texts_of(
            b"\t%d\t%b\t" % (flag, name) for name in reference.names for flag in FLAGS
        )
        group = options.read_group
        end = b"\n" if group is None else b"\tRG:Z:%b\n" % group.name.encode()
        self._line_end = (texts_of([end])[0], len(end))
        self._most_bytes = OTHER_BYTES + len(end) + int(np.diff(self._records[1]).max(initial=0))
        self._pool = PiecePool(piece_bytes)

    def head(self) -> bytes:
        """Return the header."""
        return self._header

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield the lines of a block's matches in pieces (`BlockFormat.format_block`)."""
        check_queries(block, self._query_path)
        rows = (
            strand_rows(matches, Strand.FORWARD, block),
            strand_rows(matches, Strand.REVERSE, block),
        )
        queries = query_columns(block)
        codes = writable(block.padded_codes)
        heap = hit_heap(matches, self._most_hits)
        name_bytes = int(np.diff(block.name_offsets).max(initial=0))
        row_bytes = self._most_bytes + name_bytes
        state = new_state(NO_BASE)
        while state[NEXT_QUERY] < block.query_count:
            text = self._pool.room_for(max(row_bytes, self._pool.piece_bytes))
            filled = write_sam(
                text,
                state,
                queries,
                codes,
                rows,
                self._lookup,
                self._records,
                heap,
                self._line_end,
                self._with_bases,
                row_bytes,
            )
            yield text[:filled]

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`BlockFormat.take_back`)."""
        self._pool.take_back(piece)
