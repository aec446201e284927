"""Marks the diagonals of a window on which a read has a short match.

The words of the read, eight bases each, are listed by a hash. Each word of the window is looked up,
so that a diagonal takes no time unless there is something on it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int16Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline,
    jit,
)
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray

WORD_BASES: Final = 8
"""The bases of a match that is found."""

HASH_BITS: Final = 12
"""The bits of a hash: the table of so many words stays in the first cache."""

MAX_PLACES: Final = 16
"""Where a word has more places in a read, as in a read of a short repeat, all diagonals are marked:
to look at each place of each word of the window would take far longer."""

DIAGONALS_AT_ONCE: Final = 2048
"""How many diagonals are marked at once."""

_WORD_MASK: Final = (1 << 2 * WORD_BASES) - 1
_HASH_FACTOR: Final = 0x9E35
_NONE: Final = -1


class DiagonalMarks(NamedTuple):
    """Memory for the marks of one read.

    Attributes
    ----------
    last : ndarray, dtype=int16, shape=(1 << HASH_BITS,)
        The last place of each hash in the read, or -1.
    before : ndarray, dtype=int16, shape=(max_bases,)
        For each place the one before it with the same hash.
    marked : ndarray, dtype=uint8, shape=(DIAGONALS_AT_ONCE,)
        1 for each diagonal with a match, else 0.
    """

    last: Int16Array
    before: Int16Array
    marked: ByteArray


def new_marks(longest: int) -> DiagonalMarks:
    """Return memory for the marks of reads of up to `longest` bases; no diagonal is marked."""
    return DiagonalMarks(
        np.empty(1 << HASH_BITS, dtype=np.int16),
        np.empty(max(1, longest), dtype=np.int16),
        np.zeros(DIAGONALS_AT_ONCE, dtype=np.uint8),
    )


@inline
def hash_of(word: int) -> int:
    """Return the hash of a word."""
    return (word * _HASH_FACTOR & _WORD_MASK) >> 2 * WORD_BASES - HASH_BITS


@inline
def lengthened(word: int, known: int, code: int) -> tuple[int, int]:
    """Return a word with one more base at its end, and one less at its beginning.

    `known` says how many of its bases, counted back from its end, are no breaks: the word is one
    if `WORD_BASES` are.
    """
    return (word << 2 | code & 3) & _WORD_MASK, 0 if code == BREAK else known + 1


@jit
def list_words(codes: CodeArray, at: int, length: int, marks: DiagonalMarks) -> None:
    """List the words of a read by their hashes, in place of those of another."""
    last, before = marks.last, marks.before
    last[:] = _NONE
    word, known = as_int64(0), as_int64(0)
    for place in range(length):
        word, known = lengthened(word, known, as_int64(codes[at + place]))
        if known >= WORD_BASES:
            here = as_index(hash_of(word))
            first = place + 1 - WORD_BASES
            before[first] = last[here]
            last[here] = first


@jit
def mark_diagonals(
    reference: CodeArray,
    begin: int,
    end: int,
    low: int,
    high: int,
    marks: DiagonalMarks,
) -> None:
    """Mark the diagonals on which the listed read has a match of a word.

    The match lies in the range from `begin` to `end` of the joined reference, the diagonals in that
    from `low` to `high`. Some are marked that have none, since words with the same hash are not
    told apart, and all if a word has many places in the read.
    """
    last, before, marked = marks.last, marks.before, marks.marked
    word, known = as_int64(0), as_int64(0)
    for position in range(begin, end):
        word, known = lengthened(word, known, as_int64(reference[MARGIN + position]))
        if known < WORD_BASES:
            continue
        place, places = as_int64(last[as_index(hash_of(word))]), as_int64(0)
        while place != _NONE:
            diagonal = position + 1 - WORD_BASES - place
            if low <= diagonal < high:
                marked[diagonal - low] = 1
            place = as_int64(before[as_index(place)])
            places += 1
            if places > MAX_PLACES:
                marked[: high - low] = 1
                return
