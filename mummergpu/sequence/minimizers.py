"""Minimizers: positions of a sequence chosen only by its bases, the same on both strands.

Each k-mer has a rank, which it shares with its reverse complement. Of the k-mers that begin at
`window` consecutive positions, those with the lowest rank are minimizers. So equal stretches of
``kmer_length + window - 1`` bases have the same minimizers, at any place and on either strand; and
of a random sequence, two positions in ``window + 1`` are minimizers. (Roberts et al.,
Bioinformatics 2004; Schleimer et al., SIGMOD 2003.)

The length of k-mers is odd, so that none is its own reverse complement.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray

RankArray = UInt32Array
PlaceArray = Int64Array
Workspace = tuple[RankArray, RankArray, RankArray, CodeArray]

MAXIMUM_WINDOW: Final = 256
"""The most positions of a window."""

CHUNK: Final = 2048
"""The positions that are processed together: their ranks stay in the nearest cache."""

_BROKEN: Final = (1 << 32) - 1
"""The rank of a k-mer with a break; all other ranks are lower, and more than 0."""

_FIRST_FACTOR: Final = np.uint32(0x7FEB352D)
_SECOND_FACTOR: Final = np.uint32(0x846CA68B)


def new_workspace() -> Workspace:
    """Return scratch memory for `find_minimizers`; one thread uses it at a time."""
    room = CHUNK + 4 * MAXIMUM_WINDOW
    ranks, one, other = (np.empty(room, dtype=np.uint32) for _ in range(3))
    return ranks, one, other, np.empty(room, dtype=np.uint8)


@jit
def find_minimizers(
    codes: CodeArray,
    begin: int,
    end: int,
    first: int,
    behind: int,
    kmer_length: int,
    window: int,
    workspace: Workspace,
    filled: int,
    places: PlaceArray,
    ranks: RankArray,
) -> int:
    """Write the minimizers of a part of a sequence.

    Parameters
    ----------
    codes : ndarray, dtype=uint8
        The codes that contain the sequence.
    begin, end : int
        The sequence, as indices of `codes`: windows lie inside it.
    first, behind : int
        The part: the half-open range of the positions whose minimizers are written.
    kmer_length : int
        The bases of a k-mer: an odd number of at most 15.
    window : int
        The k-mers of a window, 1 to `MAXIMUM_WINDOW`.
    workspace : tuple of ndarray
        Scratch memory (`new_workspace`).
    filled : int
        The number of minimizers written before.
    places : ndarray, dtype=int64
        Output: twice the index in `codes` of each minimizer, in ascending order, plus 1 if the
        reverse complement of the k-mer is the lower number of the two.
    ranks : ndarray, dtype=uint32
        Output: their ranks. Both arrays have room for all positions of the part.

    Returns
    -------
    int
        The number of minimizers written so far.
    """
    own, one, other, is_reverse = workspace
    for part_first in range(first, behind, CHUNK):
        part_behind = min(part_first + CHUNK, behind, end - kmer_length + 1)
        low = max(begin, part_first - window + 1)
        kmers = min(end - kmer_length + 1, part_behind + window - 1) - low
        if kmers < window:
            continue
        write_ranks(codes, low, kmers, kmer_length, own, is_reverse)
        windows = kmers - window + 1
        for place in range(kmers):
            one[as_index(place)] = own[as_index(place)]
        span = 1
        while 2 * span <= window:
            write_lower(one, kmers - 2 * span + 1, span, other)
            one, other = other, one
            span *= 2
        # Two overlapping spans, each of more than half, cover a window. Beyond the first and the
        # last window lie zeros, which are not ranks.
        for place in range(window - 1):
            other[as_index(place)] = np.uint32(0)
            other[as_index(window - 1 + windows + place)] = np.uint32(0)
        for place in range(windows):
            lower = one[as_index(place)]
            last = one[as_index(place + window - span)]
            other[as_index(window - 1 + place)] = lower if lower < last else last
        # A position is a minimizer if its rank is the lowest of some window: the highest of the
        # lowest ranks of all windows that contain it.
        one, other = other, one
        span = 1
        while 2 * span <= window:
            write_higher(one, kmers + window - 2 * span, span, other)
            one, other = other, one
            span *= 2
        for place in range(part_first - low, part_behind - low):
            rank = own[as_index(place)]
            higher = one[as_index(place)]
            last = one[as_index(place + window - span)]
            higher = higher if higher > last else last
            places[as_index(filled)] = 2 * (low + place) + as_int64(is_reverse[as_index(place)])
            ranks[as_index(filled)] = rank
            filled += (higher == rank) & (rank != np.uint32(_BROKEN))
    return filled


@inline
def write_lower(one: RankArray, count: int, span: int, lower: RankArray) -> None:
    """Write the lower of each two ranks that are `span` places apart."""
    for place in range(count):
        rank, other = one[as_index(place)], one[as_index(place + span)]
        lower[as_index(place)] = rank if rank < other else other


@inline
def write_higher(one: RankArray, count: int, span: int, higher: RankArray) -> None:
    """Write the higher of each two ranks that are `span` places apart."""
    for place in range(count):
        rank, other = one[as_index(place)], one[as_index(place + span)]
        higher[as_index(place)] = rank if rank > other else other


@inline
def write_ranks(
    codes: CodeArray,
    first: int,
    count: int,
    kmer_length: int,
    ranks: RankArray,
    is_reverse: CodeArray,
) -> None:
    """Write the ranks of k-mers that begin at `count` positions from `first` on.

    Parameters
    ----------
    ranks : ndarray, dtype=uint32
        Output: the rank of each k-mer; that of a k-mer with a break is the highest number.
    is_reverse : ndarray, dtype=uint8
        Output: 1 if the reverse complement of the k-mer is the lower number of the two, else 0.
    """
    top = 2 * (kmer_length - 1)
    most = (1 << 2 * kmer_length) - 1
    forward, reverse, unbroken = 0, 0, 0
    for index in range(first, first + kmer_length - 1):
        code = as_int64(codes[as_index(index)])
        unbroken = unbroken + 1 if code < BREAK else 0
        forward = forward >> 2 | (code & 3) << top
        reverse = (reverse << 2 | (3 - code & 3)) & most
    for place in range(count):
        code = as_int64(codes[as_index(first + place + kmer_length - 1)])
        unbroken = unbroken + 1 if code < BREAK else 0
        forward = forward >> 2 | (code & 3) << top
        reverse = (reverse << 2 | (3 - code & 3)) & most
        lower = forward if forward < reverse else reverse
        ranks[as_index(place)] = np.uint32(lower if unbroken >= kmer_length else _BROKEN)
        is_reverse[as_index(place)] = np.uint8(forward > reverse)
    for place in range(count):
        kmer = ranks[as_index(place)]
        # The upper 31 bits of a 32-bit hash, so that 0 and the highest number stay free.
        mixed = np.uint32(kmer ^ kmer >> np.uint32(16))
        mixed = np.uint32(mixed * _FIRST_FACTOR)
        mixed = np.uint32(mixed ^ mixed >> np.uint32(15))
        mixed = np.uint32(mixed * _SECOND_FACTOR)
        mixed = np.uint32((mixed ^ mixed >> np.uint32(16)) >> np.uint32(1)) + np.uint32(1)
        ranks[as_index(place)] = kmer if kmer == np.uint32(_BROKEN) else np.uint32(mixed)


def minimizers_expected(bases: int, window: int) -> int:
    """Return how many minimizers a random sequence of `bases` bases has."""
    return 2 * bases // (window + 1) + 1
