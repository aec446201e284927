"""Picked k-mers: of those side by side, the one that their bases choose."""

import numpy as np
import pytest

from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.sequence.picked_kmers import MAX_BASES, mark_picked, picked_kmer

SAMPLINGS = [(14, 7), (13, 8), (6, 4), (3, 2), (6, 15), (3, 5), (15, 18), (1, 3), (5, 1)]


@jit
def picked_at(codes, at, kmer_length, kmers):
    """Call `picked_kmer`."""
    return picked_kmer(codes, at, kmer_length, kmers)


def sequence_of(bases, seed=0):
    """Random bases with breaks, a run of one base, and copies of two."""
    random = np.random.default_rng(seed)
    codes = random.integers(0, 4, bases).astype(np.uint8)
    codes[random.integers(0, bases, bases // 200)] = BREAK
    codes[bases // 4 : bases // 3] = 0
    codes[bases // 2 : bases // 2 + 200] = np.tile([0, 1], 100)
    return codes


def listed(padded, first, behind, kmer_length, kmers):
    """The places of picked k-mers of a part."""
    marks = np.zeros(-(-(behind - first) // 64), dtype=np.uint64)
    mark_picked(padded, first, behind, kmer_length, kmers, marks)
    bits = np.unpackbits(marks.view(np.uint8), bitorder="little")
    return (first + np.flatnonzero(bits)).tolist()


@pytest.mark.parametrize(("kmer_length", "kmers"), SAMPLINGS)
def test_those_are_listed_that_are_picked_somewhere(kmer_length, kmers):
    codes = sequence_of(3000)
    padded, span = with_margins(codes), kmer_length + kmers - 1
    picked = []
    for begin in range(MARGIN - 5, padded.size - MARGIN):
        offset = picked_at(padded, begin, kmer_length, kmers)
        has_break = bool((padded[begin : begin + span] == BREAK).any())
        assert (offset == -1) if has_break else 0 <= offset < kmers
        if offset >= 0:
            picked.append(begin + offset)
    # They never step back.
    assert picked == sorted(picked)
    expected = sorted(set(picked))
    behind = MARGIN + codes.size
    assert listed(padded, MARGIN, behind, kmer_length, kmers) == expected
    parts = [
        place
        for first in range(MARGIN, behind, 77)
        for place in listed(padded, first, min(first + 77, behind), kmer_length, kmers)
    ]
    assert parts == expected


def test_the_same_bases_have_the_same_picked_kmer():
    codes = sequence_of(500, 1)
    copies = with_margins(np.concatenate((codes, [BREAK], codes)))
    for kmer_length, kmers in SAMPLINGS:
        assert kmer_length + kmers - 1 <= MAX_BASES
        one, other = (
            [
                picked_at(copies, MARGIN + first + at, kmer_length, kmers)
                for at in range(500 - kmer_length - kmers + 1)
            ]
            for first in (0, 501)
        )
        assert one == other


def test_of_random_bases_few_are_picked():
    random = np.random.default_rng(3)
    padded = with_margins(random.integers(0, 4, 200_000).astype(np.uint8))
    for (kmer_length, kmers), share in (((14, 7), 3 / 15), ((12, 5), 3 / 11), ((5, 5), 2 / 6)):
        found = listed(padded, MARGIN, padded.size - MARGIN, kmer_length, kmers)
        assert len(found) == pytest.approx(share * 200_000, rel=0.03)
