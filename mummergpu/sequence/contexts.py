"""The bases next to a k-mer, packed into a number: most chance matches differ in them.

A context has `CONTEXT_BASES` bases before a k-mer and the same number after it, on the strand on
which the k-mer is the lower number. So if two k-mers are equal, or reverse complements of each
other, the contexts show how far the match goes beyond them, without the sequences. A break counts
as an arbitrary base, and a bit of the context marks it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.jit import inline, lowest_bit
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.extension import codes_as_word

CONTEXT_BASES: Final = 8
"""The bases on each side of a k-mer."""

_CODES: Final = np.uint64(0x0303030303030303)
_PAIRS: Final = np.uint64(0x000F000F000F000F)
_FOURS: Final = np.uint64(0x000000FF000000FF)
_EIGHTS: Final = np.uint64(0xFFFF)
_ALL: Final = np.uint64(0xFFFFFFFF)
_BREAKS: Final = np.uint64(0x0404040404040404)

BROKEN: Final = np.uint64(1 << 32)
"""The bit of a context that marks a break."""
_SIDE_BITS: Final = np.uint64(2 * CONTEXT_BASES)


@inline
def context_at(codes: CodeArray, at: int, kmer_length: int, is_turned: bool) -> np.uint64:
    """Return the context of a k-mer.

    Parameters
    ----------
    codes : ndarray, dtype=uint8
        A sequence with margins.
    at : int
        The index of the first base of the k-mer; it includes the margin.
    is_turned : bool
        Whether the reverse complement of the k-mer is the lower number of the two.

    Returns
    -------
    uint64
        The bases before the k-mer in the 16 lowest bits and those after it in the next 16 bits,
        both with the nearest base lowest; then `BROKEN` or 0.
    """
    before = codes_as_word(codes, at - CONTEXT_BASES)
    after = codes_as_word(codes, at + kmer_length)
    broken = BROKEN if (before | after) & _BREAKS else np.uint64(0)
    before &= _CODES
    after &= _CODES
    before = (before << np.uint64(2) | before >> np.uint64(8)) & _PAIRS
    before = (before << np.uint64(4) | before >> np.uint64(16)) & _FOURS
    before = (before << np.uint64(8) | before >> np.uint64(32)) & _EIGHTS
    after = (after | after >> np.uint64(6)) & _PAIRS
    after = (after | after >> np.uint64(12)) & _FOURS
    after = (after | after >> np.uint64(24)) & _EIGHTS
    if is_turned:
        return (after | before << _SIDE_BITS) ^ _ALL | broken
    return before | after << _SIDE_BITS | broken


@inline
def equal_sides(differing: np.uint64) -> tuple[int, int]:
    """Return how many bases next to the k-mer two contexts share, before it and after it.

    Both are 0 to `CONTEXT_BASES`. `differing` are the bits in which the contexts differ; bits above
    the contexts may be set.
    """
    stop = np.uint64(1) << _SIDE_BITS
    before = lowest_bit(differing | stop) >> 1
    after = lowest_bit(differing >> _SIDE_BITS | stop) >> 1
    return min(before, CONTEXT_BASES), after


@inline
def sides_mask(before: int, after: int) -> np.uint64:
    """Return the bits of a context for `before` and `after` bases next to the k-mer."""
    one = np.uint64(1)
    mask = (one << np.uint64(2 * before)) - one
    return mask | ((one << np.uint64(2 * after)) - one) << _SIDE_BITS
