"""Alignments of reads as SAM.

A line has the fields that samtools, GATK and Picard want: the place of the mate, NM, MD, MC, MQ,
AS, XS, the read group, and SA for a read in several parts. Bases and qualities lie on the forward
strand of the reference. A secondary alignment has none of them, and a supplementary one only those
that its CIGAR does not clip.
"""

from __future__ import annotations

from collections.abc import Iterator

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.folded_columns import ToldColumns
from mummergpu.output.alignments.arrays import ReadsWithQualities, block_arrays
from mummergpu.output.alignments.format import AlignmentHead, PiecewiseFormat
from mummergpu.output.alignments.sam_rows import fill_lines
from mummergpu.output.alignments.tag_text import text_tags
from mummergpu.output.bytes.piece_pool import PIECE_BYTES
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.records.sam_header import check_queries
from mummergpu.runtime.arrays import Int64Array


class AlignmentSamFormat(PiecewiseFormat):
    """Turns the alignments of blocks of reads into SAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        head: AlignmentHead,
        read_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, head, b"\tRG:Z:%b", read_path, piece_bytes)

    def head(self) -> bytes:
        """Return the header."""
        return self._header.text

    def format_block(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[TextArray]:
        """Yield the lines of a block in pieces (`AlignmentFormat.format_block`)."""
        check_queries(reads, self._read_path, reads.as_written.offsets)
        arrays = block_arrays(reads, columns, text_tags(reads.tags))

        def fill(text: TextArray, state: Int64Array) -> int:
            return fill_lines(
                text,
                state,
                arrays.reads,
                arrays.rows,
                arrays.others,
                arrays.oriented,
                self._reference,
                self._texts[reads.has_groups],
                self._name_bytes,
            )

        for _, _, text in self._pieces(arrays.rows.row_count, fill):
            yield text
