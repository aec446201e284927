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

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_lookup
from mummergpu.output.bytes.compression import Piece
from mummergpu.output.bytes.piece_pool import PIECE_BYTES, PiecePool
from mummergpu.output.bytes.text_arrays import query_columns, texts_of
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.matches.block_format import BlockFormat
from mummergpu.output.matches.delta_rows import (
    COUNTERS,
    LANES,
    NEXT_QUERY,
    NOT_BEGUN,
    OTHER_BYTES,
    TEXTS,
    write_delta,
)
from mummergpu.output.matches.match_table import match_counts, strand_rows
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns


class DeltaFormat(BlockFormat):
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
        if b"" in reference.names:
            number = reference.names.index(b"") + 1
            raise InputError(f"a .delta needs names, and record {number} has none", reference.path)
        self._paths = (reference.path, query_paths[0])
        lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._lookup = (lookup.starts, lookup.buckets, lookup.bucket_shift)
        lengths = reference.record_lengths.tolist()
        named = zip(reference.names, lengths, strict=True)
        self._records = texts_of(
            text for name, length in named for text in (b">%b " % name, b" %d " % length)
        )
        self._record_count = len(lengths)
        self._most_bytes = OTHER_BYTES + TEXTS * int(np.diff(self._records[1]).max(initial=0))
        self._pool = PiecePool(piece_bytes)

    def head(self) -> bytes:
        """Return the names of the files and the kind of the alignments."""
        return " ".join(self._paths).encode(errors="surrogateescape") + b"\nNUCMER\n"

    def format_block(
        self, block: QueryBlock, matches: Mapping[Strand, MemColumns]
    ) -> Iterator[TextArray]:
        """Yield the headers and matches of a block in pieces (`BlockFormat.format_block`)."""
        counts = match_counts(block, matches)
        name_sizes = np.diff(block.name_offsets)
        if ((name_sizes == 0) & (counts > 0)).any():
            raise InputError("a .delta needs names, and a query has none", self._paths[1])
        rows = (
            strand_rows(matches, Strand.FORWARD, block),
            strand_rows(matches, Strand.REVERSE, block),
        )
        queries = query_columns(block)
        most_rows = int(counts.max(initial=0))
        room = most_rows + LANES if self._record_count > 1 else 0
        rooms = (
            np.empty(room, dtype=np.int64),
            np.empty(room, dtype=np.int64),
            np.empty(COUNTERS, dtype=np.int64),
        )
        row_bytes = self._most_bytes + int(name_sizes.max(initial=0))
        state = np.array([0, NOT_BEGUN, NOT_BEGUN], dtype=np.int64)
        while state[NEXT_QUERY] < block.query_count:
            text = self._pool.room_for(max(row_bytes, self._pool.piece_bytes))
            filled = write_delta(
                text,
                state,
                queries,
                rows,
                self._lookup,
                self._records,
                rooms,
                most_rows.bit_length(),
                row_bytes,
            )
            yield text[:filled]

    def take_back(self, piece: Piece) -> None:
        """Reuse the memory of a piece (`BlockFormat.take_back`)."""
        self._pool.take_back(piece)
