"""SAM and BAM of matches, as the command opens them."""

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.texts import PIECE_BYTES
from mummergpu.output.matches.match_rows import PIECE_ROWS, MatchRows
from mummergpu.output.records.bam import AlignmentBam
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.sam import AlignmentSam
from mummergpu.sequence.codes import MARGIN


def match_sam(reference, options, command="", piece_bytes=PIECE_BYTES, piece_rows=PIECE_ROWS):
    source = MatchRows(reference, options, piece_rows)
    head = AlignmentHead(options.read_group, command)
    return AlignmentSam(reference, source, head, "q.fa", piece_bytes)


def match_bam(reference, options, piece_bytes=PIECE_BYTES, piece_rows=PIECE_ROWS):
    source = MatchRows(reference, options, piece_rows)
    return AlignmentBam(reference, source, AlignmentHead(options.read_group), "q.fa", piece_bytes)


def far_reference(bases):
    """A long record r, of zeros that take no memory as long as nothing reads them."""
    padded = np.zeros(bases + 2 * MARGIN, dtype=np.uint8)
    starts, lengths = np.array([0]), np.array([bases])
    return Reference("r.fa", padded[MARGIN:-MARGIN], starts, lengths, (b"r",), padded)
