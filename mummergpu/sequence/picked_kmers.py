"""Picked k-mers: of some consecutive k-mers, the one that their bases choose.

Equal stretches of bases pick the same k-mer. So if a table lists the picked k-mers of a reference,
one lookup finds the occurrences of the whole stretch, instead of one lookup per k-mer. The choice
is that of mod-minimizers: of all shorter words of the bases, the one of the lowest rank is taken,
and its start, modulo the number of k-mers, is that of the picked k-mer. With words as long as
k-mers, this is the minimizer; there are more shorter words, so that fewer k-mers of a sequence are
picked: of 7 consecutive 14-mers one in 5, instead of one in 4 by words as long. Picks never step
back from one position to the next, as the lengths of words and k-mers are the same modulo the
number of k-mers. (Groot Koerkamp and Pibiri, WABI 2024.)

Devices pick the same k-mers (``kernels/kmer/picked_kmers.cuh``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import UInt64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.sequence.extension import BREAKS, codes_as_word, packed

MAX_BASES: Final = 32
"""The most bases of a stretch from which a k-mer is picked: those of a 64-bit word."""

SHORTEST_WORD: Final = 4
"""The fewest bases of a word: with fewer, too many words have the lowest rank."""

RANK_SALT: Final = 0x2A5B4C36
RANK_FACTOR: Final = 0x9E3779B1
"""The constants that mix a word, as a number: words of a single base get no low rank."""

_RANK_BITS: Final = np.uint64(0xFFFFFFC0)
"""The bits of a rank above the number of its word: of equal ranks, that of the first is lowest."""


@inline
def word_length(kmer_length: int, kmers: int) -> int:
    """Return the length of the words by which one of `kmers` k-mers is picked."""
    if kmer_length <= SHORTEST_WORD:
        return kmer_length
    return SHORTEST_WORD + (kmer_length - SHORTEST_WORD) % kmers


@inline
def word_rank(bases: np.uint64, word: int, mask: np.uint64) -> np.uint64:
    """Return the rank of a word of up to 32 bases, with its number in the lowest bits."""
    number = np.uint64(word)
    mixed = ((bases >> (number + number) & mask) ^ np.uint64(RANK_SALT)) * np.uint64(RANK_FACTOR)
    return mixed & _RANK_BITS | number


@inline
def number_of_word(rank: np.uint64) -> int:
    """Return the number of the word that has a rank."""
    return np.int64(rank & ~_RANK_BITS)  # type: ignore[return-value]


@inline
def lowest_rank(bases: np.uint64, words: int, mask: np.uint64) -> np.uint64:
    """Return the lowest rank of the first words of some bases."""
    lowest = word_rank(bases, 0, mask)
    for word in range(1, words):
        rank = word_rank(bases, word, mask)
        lowest = rank if rank < lowest else lowest
    return lowest


@inline
def word_mask(length: int) -> np.uint64:
    """Return the bits of a word of `length` bases."""
    return (np.uint64(1) << np.uint64(2 * length)) - np.uint64(1)


@inline
def picked_kmer(codes: CodeArray, at: int, kmer_length: int, kmers: int) -> int:
    """Return the 0-based number of the k-mer picked from those that begin at `at` and after it.

    It is -1 if a break is among their bases. The sequence has margins, which `at` includes.
    """
    count = kmer_length + kmers - 1
    bases = np.uint64(0)
    for first in range(0, count, 8):
        eight = codes_as_word(codes, at + first)
        if count - first < 8:
            eight &= (np.uint64(1) << np.uint64(8 * (count - first))) - np.uint64(1)
        if eight & BREAKS:
            return -1
        bases |= packed(eight) << np.uint64(2 * first)
    length = word_length(kmer_length, kmers)
    rank = lowest_rank(bases, count - length + 1, word_mask(length))
    return number_of_word(rank) % kmers


@jit
def mark_picked(
    codes: CodeArray, first: int, behind: int, kmer_length: int, kmers: int, marks: UInt64Array
) -> None:
    """Mark where the picked k-mers of a part of a sequence begin, with a bit per position.

    The part is a half-open range of indices of the codes. All other bits stay as they are.
    """
    count, length = kmer_length + kmers - 1, word_length(kmer_length, kmers)
    words, mask = count - length + 1, word_mask(length)
    last_word, last_base = words - 1, np.uint64(2 * (count - 1))
    turns = last_word // kmers
    bases, unbroken = np.uint64(0), as_int64(0)
    # The word of the lowest rank, and where it begins.
    lowest, lowest_at = np.uint64(0), as_int64(-1)
    # A k-mer of the part may be picked from a stretch that begins before the part. Before the
    # first stretch, bases are only read.
    first_begin = first - kmers + 1
    for begin in range(first_begin - count + 1, behind):
        code = as_int64(codes[as_index(begin + count - 1)])
        unbroken = unbroken + 1 if code < BREAK else as_int64(0)
        bases = bases >> np.uint64(2) | np.uint64(code & 3) << last_base
        if unbroken < count or begin < first_begin:
            continue
        if lowest_at < begin:
            lowest = lowest_rank(bases, words, mask)
            lowest_at = begin + number_of_word(lowest)
        else:
            rank = word_rank(bases, last_word, mask)
            if rank & _RANK_BITS < lowest & _RANK_BITS:
                lowest, lowest_at = rank, begin + last_word
        # Without branches, which would be mispredicted half of the time.
        offset = lowest_at - begin
        for _ in range(turns):
            offset -= kmers if offset >= kmers else as_int64(0)
        at = begin + offset - first
        if at >= 0 and begin + offset < behind:
            marks[as_index(at >> 6)] |= np.uint64(1) << np.uint64(at & 63)
