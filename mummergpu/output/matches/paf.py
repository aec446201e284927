"""Matches as PAF, the table of minimap2: a line for each match, with tabs between the fields.

The fields are: name, length, start and end of the query; the strand; name, length, start and end of
the record of the reference; the number of equal bases and that of all bases, which both are the
length of the match; and 255, which stands for a mapping quality that is not known. The last field
is the alignment, such as ``cg:Z:40=``. Starts and ends are 0-based and half-open; those of the
query are on its forward strand. A query without a match has no line.
"""

from __future__ import annotations

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.piece_pool import PIECE_BYTES
from mummergpu.output.matches.line_format import LineFormat, names_and_lengths
from mummergpu.output.matches.line_rows import PAF


class PafFormat(LineFormat):
    """Turns matches into PAF; several threads may share one."""

    def __init__(self, reference: Reference, piece_bytes: int = PIECE_BYTES) -> None:
        super().__init__(PAF, reference, names_and_lengths(reference), piece_bytes)
