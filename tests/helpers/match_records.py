"""SAM and BAM of matches, as the command opens them."""

from __future__ import annotations

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.texts import PIECE_BYTES
from mummergpu.output.matches.match_rows import PIECE_ROWS, MatchRows
from mummergpu.output.options import SamOptions
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam


def match_sam(
    reference: Reference,
    options: SamOptions,
    command: str = "",
    piece_bytes: int = PIECE_BYTES,
    piece_rows: int = PIECE_ROWS,
) -> AlignmentSam:
    source = MatchRows(reference, options, piece_rows)
    head = AlignmentHead(options.read_group, command)
    return AlignmentSam(reference, source, head, "q.fa", piece_bytes)


def match_bam(
    reference: Reference,
    options: SamOptions,
    piece_bytes: int = PIECE_BYTES,
    piece_rows: int = PIECE_ROWS,
) -> AlignmentBam:
    source = MatchRows(reference, options, piece_rows)
    return AlignmentBam(reference, source, AlignmentHead(options.read_group), "q.fa", piece_bytes)
