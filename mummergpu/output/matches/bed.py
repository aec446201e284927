"""Matches as BED: a line for each match, with its place on the reference.

The fields are: the name of the record, start and end in it, 0-based and half-open; the name of the
query; the score, which is the length of the match but at most 1000, the most that BED allows; and
the strand of the query. There are tabs between them. A query without a match has no line.
"""

from __future__ import annotations

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.output.bytes.piece_pool import PIECE_BYTES
from mummergpu.output.matches.line_format import LineFormat
from mummergpu.output.matches.line_rows import BED


class BedFormat(LineFormat):
    """Turns matches into BED; several threads may share one."""

    def __init__(self, reference: Reference, piece_bytes: int = PIECE_BYTES) -> None:
        if b"" in reference.names:
            number = reference.names.index(b"") + 1
            raise InputError(f"BED needs names, and record {number} has none", reference.path)
        super().__init__(BED, reference, (b"%b\t" % name for name in reference.names), piece_bytes)
