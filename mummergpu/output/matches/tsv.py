"""Matches as a table: a line of column names, then a line for each match, with tabs between fields.

The columns are those of `COLUMNS`. Starts and ends are 0-based and half-open, as in BED: the bases
of a match are ``sequence[start:end]``. Those of the query are on its forward strand, also if its
reverse complement matches (strand ``-``). A query without a match has no line.
"""

from __future__ import annotations

from typing import Final

from mummergpu.input.reference import Reference
from mummergpu.output.bytes.piece_pool import PIECE_BYTES
from mummergpu.output.matches.line_format import LineFormat, names_and_lengths
from mummergpu.output.matches.line_rows import TSV

COLUMNS: Final = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("reference", "reference_length", "reference_start", "reference_end", "length"),
)
"""The names of the columns."""


class TsvFormat(LineFormat):
    """Turns matches into a table; several threads may share one."""

    def __init__(self, reference: Reference, piece_bytes: int = PIECE_BYTES) -> None:
        super().__init__(TSV, reference, names_and_lengths(reference), piece_bytes)

    def head(self) -> bytes:
        """Return the line of column names."""
        return "\t".join(COLUMNS).encode() + b"\n"
