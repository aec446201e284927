"""Alignments of reads as the content of BAM, with the rows of `sam`.

`compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.folded_columns import ToldColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities, block_arrays
from mummergpu.output.alignments.bam_rows import MOST_OPERATIONS, fill_alignments
from mummergpu.output.alignments.format import AlignmentHead, PiecewiseFormat
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.records.bam_header import binary_header
from mummergpu.output.records.sam_header import check_queries
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import writable
from mummergpu.sequence.offsets import longest_of

PIECE_BYTES: Final = 64 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size."""


@dataclass(frozen=True)
class RecordPiece:
    """Records of consecutive rows.

    Attributes
    ----------
    first_row : int
        The first of the rows.
    ends : ndarray, dtype=int64, shape=(n_rows,)
        Where in `text` each record ends.
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        The records, one after the other.
    """

    first_row: int
    ends: Int64Array
    text: TextArray


class AlignmentBamFormat(PiecewiseFormat):
    """Turns the alignments of blocks of reads into BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        head: AlignmentHead,
        read_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, head, b"RGZ%b\0", read_path, piece_bytes)
        self._head = binary_header(self._header, reference)
        self._record_ids = writable(self._header.record_ids)

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[TextArray]:
        """Yield the records of a block in pieces (`AlignmentFormat.format_block`)."""
        for piece in self.records(reads, columns):
            yield piece.text

    def records(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[RecordPiece]:
        """Yield the records of a block in pieces, with the end of each record."""
        check_queries(reads, self._read_path, reads.as_written.offsets)
        arrays = block_arrays(reads, columns, reads.tags)
        if longest_of(arrays.rows.cigar_offsets) > MOST_OPERATIONS:
            message = f"BAM has alignments of at most {MOST_OPERATIONS:,} operations; write SAM"
            raise InputError(message, self._read_path)
        row_ends = np.empty(arrays.rows.row_count, dtype=np.int64)

        def fill(text: TextArray, state: Int64Array) -> int:
            return fill_alignments(
                text,
                state,
                row_ends,
                arrays.reads,
                arrays.rows,
                arrays.others,
                arrays.oriented,
                self._reference,
                self._texts[reads.has_groups],
                self._name_bytes,
                self._record_ids,
            )

        for first, end, text in self._pieces(arrays.rows.row_count, fill):
            yield RecordPiece(first, row_ends[first:end], text)
