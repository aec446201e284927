"""Sequences of proteins as digital codes, and the letters that the codes stand for."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.runtime.arrays import ByteArray, Int64Array

SYMBOLS: Final = "ACDEFGHIKLMNPQRSTVWY-BJZOUX*~"
"""The letter of each code, in the order of Easel, HMMER's library."""

RESIDUES: Final = 20
"""The codes below this one are amino acids; then come a gap, letters for several, and marks."""

CODES: Final = len(SYMBOLS)

DEGENERATE: Final = {
    **{"B": "DN", "J": "IL", "Z": "EQ", "O": "K", "U": "C"},
    "X": SYMBOLS[:RESIDUES],
}
"""The amino acids that a letter may stand for, in the order of their codes."""

LONGEST_PROTEIN: Final = 100_000
"""The residues of the longest sequence that HMMER compares."""


class ProteinBlock(NamedTuple):
    """Sequences that are compared with a profile in one go; their names travel beside it.

    Attributes
    ----------
    codes : ndarray of uint8
        The codes of all sequences, one after another, nothing between them.
    offsets : ndarray of int64
        Where each sequence begins in `codes`, and one more for the end of the last.
    """

    codes: ByteArray
    offsets: Int64Array
