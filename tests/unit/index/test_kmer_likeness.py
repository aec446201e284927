"""The estimate of how alike the k-mers of a reference are, beside a count of all of them."""

from collections import Counter
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index import kmer_index as module
from mummergpu.index.kmer_index import kmer_likeness
from mummergpu.index.kmer_plan import (
    DEVICE_COSTS,
    PROCESSOR_COSTS,
    KmerJob,
    choose_sampling,
    expected_cost,
    max_table_bytes,
)
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.sequence.codes import BREAK, with_margins
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

Codes = npt.NDArray[np.uint8]


def counted(codes, length):
    """The share of equal ones among the pairs of windows, by their last bases."""
    longest = MAXIMUM_KMER_LENGTH
    windows = [
        codes[at : at + longest].tobytes()[longest - length :]
        for at in range(codes.size - longest + 1)
        if not (codes[at : at + longest] == BREAK).any()
    ]
    counts = Counter(windows)
    pairs = len(windows) * (len(windows) - 1)
    return sum(count * (count - 1) for count in counts.values()) / pairs


def genome(seed, bases, repeats, weights=(0.25,) * 4):
    """A random sequence with copies of one part of it."""
    random = np.random.default_rng(seed)
    codes = random.choice(4, bases, p=weights).astype(np.uint8)
    for _ in range(repeats):
        at = int(random.integers(0, bases - 300))
        codes[at : at + 300] = codes[:300]
    return codes


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 4), min_size=16, max_size=400), st.integers(1, 4))
def test_a_short_sequence_is_counted_whole(letters, times):
    codes = np.array(letters * times, dtype=np.uint8)
    codes[codes == 4] = BREAK
    found = kmer_likeness(with_margins(codes))
    windows = np.lib.stride_tricks.sliding_window_view(codes, MAXIMUM_KMER_LENGTH)
    if (windows != BREAK).all(axis=1).sum() < 2:
        assert found == ()
        return
    expected = [counted(codes, length) for length in range(1, MAXIMUM_KMER_LENGTH + 1)]
    assert found == pytest.approx(expected)


def test_a_sample_is_near_the_count(monkeypatch):
    codes = genome(3, 60_000, 60, (0.35, 0.15, 0.15, 0.35))
    whole = kmer_likeness(with_margins(codes))
    monkeypatch.setattr(module, "SAMPLE", 12_000)
    found = kmer_likeness(with_margins(codes))
    assert len(found) == len(whole) == MAXIMUM_KMER_LENGTH
    assert found == pytest.approx(whole, rel=0.25)


def test_a_random_sequence_is_alike_by_chance():
    found = kmer_likeness(with_margins(genome(4, 100_000, 0)))
    assert found[:8] == pytest.approx([4.0**-length for length in range(1, 9)], rel=0.05)


@pytest.mark.parametrize("size", [0, 1, 14, 15])
def test_nothing_is_known_of_too_short_a_sequence(size):
    assert kmer_likeness(with_margins(np.zeros(size, dtype=np.uint8))) == ()


@pytest.mark.parametrize(
    ("costs", "query_bases"), [(PROCESSOR_COSTS, 3 * 10**7), (DEVICE_COSTS, 10**8)]
)
def test_crowded_kmers_cost_more_and_longer_ones_are_chosen(costs, query_bases):
    job = KmerJob(20_000_000, 30, query_bases)
    by_chance = tuple(4.0**-length for length in range(1, MAXIMUM_KMER_LENGTH + 1))
    # As human chromosomes have it.
    crowded = tuple(
        max(chance, 65 / 20e6 * 0.72 ** (length - 10)) for length, chance in enumerate(by_chance)
    )
    same, other = replace(job, likeness=by_chance), replace(job, likeness=crowded)
    sampling = KmerSampling(11)
    assert expected_cost(job, sampling, costs) == expected_cost(same, sampling, costs)
    cost = expected_cost(other, sampling, costs)
    assert cost.table == expected_cost(job, sampling, costs).table
    assert cost.search > expected_cost(job, sampling, costs).search
    most = max_table_bytes(job.bases)
    chosen = [choose_sampling(one, most, costs).kmer_length for one in (job, other)]
    assert chosen[0] < chosen[1]
