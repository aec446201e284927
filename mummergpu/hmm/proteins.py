"""Sequences of proteins as digital codes, and the letters that the codes stand for."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array

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

MARKS: Final = tuple(SYMBOLS.index(one) for one in "-*~")
"""The codes that no node of a profile emits."""


@cache
def meanings() -> ByteArray:
    """Return which amino acids each code may stand for, (29, 20), 0 or 1."""
    found = np.zeros((CODES, RESIDUES), dtype=np.uint8)
    found[:RESIDUES] = np.eye(RESIDUES, dtype=np.uint8)
    for letter, meant in DEGENERATE.items():
        found[SYMBOLS.index(letter), [*map(SYMBOLS.index, meant)]] = 1
    return found


class ProteinBlock(NamedTuple):
    """Sequences that are compared with a profile in one go; their names are kept elsewhere."""

    codes: ByteArray  # The codes of all sequences, one after another, nothing between them
    # Where each sequence begins in `codes`, and one more for the end of the last.
    offsets: Int64Array


def are_marks(codes: ByteArray) -> BoolArray:
    """Return which codes are `MARKS`."""
    # A table of all codes would take ten times as long.
    found: BoolArray = codes == MARKS[0]
    for mark in MARKS[1:]:
        found |= codes == mark
    return found


def sequences_of_marks(block: ProteinBlock) -> Int64Array:
    """Return the numbers of the sequences without a residue, which no path through a profile emits.

    HMMER stops at one that its filters let pass. Empty sequences are not among them.
    """
    begins, sizes = block.offsets[:-1], np.diff(block.offsets)
    there = np.flatnonzero(sizes)
    candidates = there[are_marks(block.codes[begins[there]])]
    found = [
        number
        for number in candidates.tolist()
        if are_marks(block.codes[block.offsets[number] : block.offsets[number + 1]]).all()
    ]
    return np.array(found, dtype=np.int64)
