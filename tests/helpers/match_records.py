"""SAM and BAM of matches, as the command opens them."""

from mummergpu.output.bytes.texts import PIECE_BYTES
from mummergpu.output.matches.match_rows import PIECE_ROWS, MatchRows
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam


def match_sam(reference, options, command="", piece_bytes=PIECE_BYTES, piece_rows=PIECE_ROWS):
    source = MatchRows(reference, options, piece_rows)
    head = AlignmentHead(options.read_group, command)
    return AlignmentSam(reference, source, head, "q.fa", piece_bytes)


def match_bam(reference, options, piece_bytes=PIECE_BYTES, piece_rows=PIECE_ROWS):
    source = MatchRows(reference, options, piece_rows)
    return AlignmentBam(reference, source, AlignmentHead(options.read_group), "q.fa", piece_bytes)
