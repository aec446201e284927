"""How long k-mers are, how far samples lie apart, and the tables of several parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index import kmer_page
from mummergpu.index.kmer_page import (
    LEAST_TABLE_BYTES,
    MAXIMUM_STEP,
    TABLE_BYTES_PER_BASE,
    build_kmer_page,
    choose_kmer_length,
    sampling_step,
)
from mummergpu.index.kmer_table import build_kmer_table
from mummergpu.index.pages import plan_pages
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.cpu import LEFT_BITS
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

lengths = st.one_of(st.integers(1, 60), st.integers(1, 1 << 33))
sizes = st.one_of(st.integers(1, 5000), st.integers(1, 1 << 33))


@settings(deadline=None)
@given(minimum_length=lengths, bases=sizes)
def test_kmers_are_no_longer_than_a_match_and_their_offsets_fit(
    minimum_length: int, bases: int
) -> None:
    length = choose_kmer_length(minimum_length, bases)
    assert 1 <= length <= min(minimum_length, MAXIMUM_KMER_LENGTH)
    offsets = 4 * 4**length
    assert offsets <= max(TABLE_BYTES_PER_BASE * bases, LEAST_TABLE_BYTES)


@settings(deadline=None)
@given(minimum_length=lengths, bases=sizes, more=sizes)
def test_larger_references_have_no_shorter_kmers(
    minimum_length: int, bases: int, more: int
) -> None:
    shorter = choose_kmer_length(minimum_length, bases)
    assert choose_kmer_length(minimum_length, bases + more) >= shorter


@pytest.mark.parametrize(
    ("minimum_length", "bases", "expected"),
    [
        # All starts are samples where a match is hardly longer than its k-mer has to be.
        (1, 1000, 1),
        (2, 1 << 30, 2),
        (8, 4_000_000, 8),
        # Nearly no places by chance, and longer ones would just cost steps.
        (100, 100, 7),
        (12, 20_000, 8),
        # One base more would cost a smaller step than it saves places.
        (15, 300_000_000, 14),
        (16, 300_000_000, 15),
        # Offsets take no more than a mebibyte, or 24 bytes a base.
        (1000, 20_000, 9),
        (100, 3_000_000, 12),
        (20, 3_000_000, 12),
        # Numbers of 32 bits.
        (30, 3_100_000_000, 15),
    ],
)
def test_known_choices(
    minimum_length: int, bases: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kmer_page, "TABLE_BYTES_PER_BASE", 24)
    monkeypatch.setattr(kmer_page, "LEAST_TABLE_BYTES", 1 << 20)
    assert choose_kmer_length(minimum_length, bases) == expected


@settings(deadline=None)
@given(kmer_length=st.integers(1, MAXIMUM_KMER_LENGTH), more=st.integers(0, 100))
def test_every_match_holds_a_whole_sample(kmer_length: int, more: int) -> None:
    minimum_length = kmer_length + more
    step = sampling_step(minimum_length, kmer_length)
    samples = set(range(0, 3 * minimum_length, step))
    for begin in range(minimum_length + 1):
        last = begin + minimum_length - kmer_length
        assert samples & set(range(begin, last + 1)), begin
    # A wider step would miss the match that begins behind a sample.
    assert step == more + 1


def test_samples_are_never_too_far_apart() -> None:
    assert sampling_step(MAXIMUM_STEP + 6, 7) == MAXIMUM_STEP
    assert sampling_step(MAXIMUM_STEP + 7, 7) == MAXIMUM_STEP
    assert sampling_step(1 << 40, 1) == MAXIMUM_STEP
    assert sampling_step(MAXIMUM_STEP + 5, 7) == MAXIMUM_STEP - 1
    # Left extensions are shorter than a step, and are ordered by so many bits.
    assert MAXIMUM_STEP <= 1 << LEFT_BITS


def test_each_page_gets_a_table_of_its_own_and_all_share_the_reference() -> None:
    codes = np.random.default_rng(1).integers(0, 5, 1000).astype(np.uint8)
    reference = Reference("made.fa", codes, np.array([0]), np.array([1000]), (b"r",))
    pages = plan_pages(1000, 300, 0)
    stats = Stats()
    found = [build_kmer_page(reference, page, 4, 1 << 20, stats) for page in pages]
    for one in found:
        expected = build_kmer_table(one.padded_reference, one.page.begin, one.page.owned_end, 4)
        assert np.array_equal(one.table.offsets, expected.offsets)
        assert np.array_equal(one.table.positions, expected.positions)
        assert one.padded_reference is found[0].padded_reference
        assert np.array_equal(one.joined_reference, codes)
    assert stats.stages["table_construction"].count == len(pages)
