"""How likely two positions of a reference have the same k-mer, estimated from a sample.

Genomes have far more equal k-mers than random sequences: they have repeats, runs of few letters,
and more of some bases than of others. Two positions of human chromosomes have the same 12-mer
fifty times as often.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, jit_without_refcounts
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH, kmer_at

SAMPLE: Final = 1 << 17
"""The positions that are compared. It takes some milliseconds."""

KmerArray = Int64Array


@jit_without_refcounts
def sample_kmers(padded_codes: CodeArray, count: int, kmers: KmerArray) -> int:
    """Collect k-mers without breaks at `kmers.size` evenly spread positions; return how many."""
    found = 0
    for number in range(kmers.size):
        kmer = kmer_at(padded_codes, MARGIN + number * count // kmers.size, MAXIMUM_KMER_LENGTH)
        if kmer >= 0:
            kmers[found] = kmer
            found += 1
    return found


@jit_without_refcounts
def count_equal_pairs(kmers: KmerArray, shift: int) -> int:
    """Return how many ordered pairs of sorted k-mers are equal but for `shift` lowest bits."""
    pairs, run = as_int64(0), as_int64(0)
    for number in range(1, kmers.size):
        is_equal = kmers[number] >> shift == kmers[number - 1] >> shift
        # Each element makes a pair, in both orders, with those of its run before it.
        run = run + 1 if is_equal else as_int64(0)
        pairs += 2 * run
    return pairs


def kmer_likeness(padded_codes: CodeArray) -> tuple[float, ...]:
    """Return how likely two positions have the same k-mer, for k from 1 to `MAXIMUM_KMER_LENGTH`.

    The result is empty if hardly any k-mer is without a break.
    """
    bases = padded_codes.size - 2 * MARGIN
    kmers = np.empty(min(SAMPLE, bases), dtype=np.int64)
    kmers = np.sort(kmers[: sample_kmers(padded_codes, bases, kmers)])
    if kmers.size < 2:
        return ()
    # The last bases of a sampled k-mer are its highest bits.
    shifts = range(2 * (MAXIMUM_KMER_LENGTH - 1), -1, -2)
    pairs = kmers.size * (kmers.size - 1)
    return tuple(count_equal_pairs(kmers, shift) / pairs for shift in shifts)
