"""The choice of a table by its cost: which k-mers are listed, how alike they are, what it takes."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index import kmer_index as module
from mummergpu.index import kmer_plan
from mummergpu.index.kmer_index import kmer_likeness
from mummergpu.index.kmer_sampling import MAX_SAMPLING_STEP, KmerSampling
from mummergpu.matching.row_order import LEFT_BITS
from mummergpu.sequence.codes import BREAK, with_margins
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

PLENTY = 1 << 50
jobs = st.builds(
    kmer_plan.KmerJob,
    bases=st.one_of(st.integers(1, 5000), st.integers(1, 1 << 33)),
    minimum_length=st.one_of(st.integers(1, 60), st.integers(1, 1 << 33)),
    query_bases=st.integers(0, 10**11),
    is_kept=st.booleans(),
)
some_costs = st.sampled_from([kmer_plan.PROCESSOR_COSTS, kmer_plan.DEVICE_COSTS])


def choice_among_all(job, max_bytes, costs, slowdown):
    """The choice if the cost of every table is looked at."""
    every = [
        KmerSampling(length, step)
        for length in range(1, min(job.minimum_length, MAXIMUM_KMER_LENGTH) + 1)
        for step in range(1, min(job.minimum_length - length + 1, kmer_plan.MAX_REFERENCE_STEP) + 1)
    ]
    seconds = {one: kmer_plan.expected_cost(job, one, costs).seconds for one in every}
    sizes = {one: one.table_bytes(job.bases) for one in every}
    worst = kmer_plan.SLOWDOWN_FOR_MEMORY * min(seconds.values())
    most = max(max_bytes, min(sizes[one] for one in every if seconds[one] <= worst))
    fitting = [one for one in every if sizes[one] <= most]
    bound = slowdown * min(seconds[one] for one in fitting)
    return min((one for one in fitting if seconds[one] <= bound), key=sizes.__getitem__)


@settings(max_examples=100)
@given(job=jobs, costs=some_costs, max_bytes=st.integers(0, 1 << 36), slowdown=st.floats(1, 10))
def test_tables_that_are_left_out_would_not_be_chosen(job, costs, max_bytes, slowdown):
    expected = choice_among_all(job, max_bytes, costs, slowdown)
    assert kmer_plan.choose_sampling(job, max_bytes, costs, slowdown) == expected


def test_one_search_of_a_genome_samples_both_sides():
    genome = kmer_plan.KmerJob(100_000_000, 100, 200_000_000)
    sampling = kmer_plan.choose_sampling(genome, PLENTY)
    assert sampling.reference_step > 1 and sampling.query_step(100) > 1
    # For many more queries a table with more positions pays, and one in a file is there already.
    many = kmer_plan.choose_sampling(replace(genome, query_bases=10**11), PLENTY)
    kept = kmer_plan.choose_sampling(replace(genome, is_kept=True), PLENTY)
    assert many.query_step(100) > sampling.query_step(100)
    assert kept.query_step(100) >= sampling.query_step(100)
    # A GPU looks up so fast that building costs most.
    on_device = kmer_plan.choose_sampling(genome, PLENTY, kmer_plan.DEVICE_COSTS)
    assert on_device.table_bytes(genome.bases) < sampling.table_bytes(genome.bases)


def test_picked_kmers_take_fewer_lookups_and_somewhat_more_memory():
    """As in an index of a human genome."""
    job = kmer_plan.KmerJob(3_100_000_000, 20, 10**10, is_kept=True)
    steps = kmer_plan.choose_sampling(job, kmer_plan.max_table_bytes(job.bases, is_kept=True))
    picked = kmer_plan.picked_instead(steps)
    assert steps.reference_step > 1 and picked == replace(steps, is_picked=True)
    assert picked.shortest_match == steps.shortest_match
    assert (picked.kmers_of_window, steps.kmers_of_window) == (1, steps.reference_step)
    for length in (20, 31, 150):
        of_length = replace(job, minimum_length=length)
        assert (
            kmer_plan.expected_cost(of_length, picked).search
            < kmer_plan.expected_cost(of_length, steps).search
        )
    assert steps.table_bytes(job.bases) < picked.table_bytes(job.bases)
    # One k-mer is no choice, and the bases of many do not fit a word.
    for other in (KmerSampling(13), KmerSampling(14, 20)):
        assert kmer_plan.picked_instead(other) == other


def test_more_steps_cost_more():
    job = kmer_plan.KmerJob(10_000_000, 50, 10**9)
    sampling = KmerSampling(12, 3)
    cost = kmer_plan.expected_cost(job, sampling)
    assert cost.seconds == cost.table + cost.search
    assert kmer_plan.expected_cost(
        replace(job, query_bases=2 * 10**9), sampling
    ).search == pytest.approx(2 * cost.search)
    assert kmer_plan.expected_cost(replace(job, bases=20_000_000), sampling).table > cost.table
    assert kmer_plan.expected_cost(job, KmerSampling(12, 4)).table < cost.table
    assert kmer_plan.expected_cost(job, KmerSampling(11, 3)).search > cost.search


def test_the_bounds_of_tables():
    assert kmer_plan.max_table_bytes(1000) == kmer_plan.MIN_PASSING_BYTES
    assert kmer_plan.max_table_bytes(1000, is_kept=True) == kmer_plan.MIN_TABLE_BYTES
    assert (
        kmer_plan.max_table_bytes(10_000_000, is_kept=True) == kmer_plan.BYTES_PER_BASE * 10_000_000
    )
    assert kmer_plan.max_table_bytes(100_000_000) == kmer_plan.BYTES_PER_BASE * 100_000_000
    human = kmer_plan.max_table_bytes(3_100_000_000) / 3_100_000_000
    assert 1.9 <= human < 2
    assert kmer_plan.max_table_bytes(20_000_000_000) / 20_000_000_000 == pytest.approx(1.9)


@given(
    kmer_length=st.integers(1, MAXIMUM_KMER_LENGTH),
    reference_step=st.integers(1, 12),
    more=st.integers(0, 60),
)
def test_every_match_contains_a_pair_and_the_next_is_a_period_away(
    kmer_length, reference_step, more
):
    sampling = KmerSampling(kmer_length, reference_step)
    minimum_length = sampling.shortest_match + more
    step = sampling.query_step(minimum_length)
    sampling_step = sampling.sampling_step(minimum_length)
    starts = minimum_length - kmer_length + 1
    assert sampling_step == step * reference_step <= starts
    for in_query, in_reference in product(range(step), range(reference_step)):
        pairs = [
            base
            for base in range(starts + sampling_step)
            if (in_query + base) % step == (in_reference + base) % reference_step == 0
        ]
        assert pairs[0] < starts
        assert {later - base for base, later in pairwise(pairs)} <= {sampling_step}


@given(
    kmer_length=st.integers(1, MAXIMUM_KMER_LENGTH),
    reference_step=st.integers(1, 200),
    more=st.integers(0, 1 << 40),
)
def test_no_larger_step_would_do(kmer_length, reference_step, more):
    sampling = KmerSampling(kmer_length, reference_step)
    minimum_length = sampling.shortest_match + more
    step = sampling.query_step(minimum_length)
    longest = min(minimum_length - kmer_length + 1, MAX_SAMPLING_STEP) // reference_step
    assert gcd(step, reference_step) == 1
    assert all(gcd(larger, reference_step) > 1 for larger in range(step + 1, longest + 1)[:300])


def test_one_step_alone_is_the_whole_period():
    assert KmerSampling(7).query_step(20) == 14 and KmerSampling(7, 14).query_step(20) == 1
    assert KmerSampling(7).query_step(1 << 40) == MAX_SAMPLING_STEP
    # 4 * 4 would fit, but both steps would be even.
    assert KmerSampling(13, 4).query_step(28) == 3
    # Left extensions are shorter than a period, and are ordered by so many bits.
    assert MAX_SAMPLING_STEP <= 1 << LEFT_BITS


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


@settings(max_examples=25)
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


@pytest.mark.parametrize("size", [0, 1, 14, 15])
def test_nothing_is_known_of_too_short_a_sequence(size):
    assert kmer_likeness(with_margins(np.zeros(size, dtype=np.uint8))) == ()


@pytest.mark.parametrize(
    ("costs", "query_bases"),
    [(kmer_plan.PROCESSOR_COSTS, 3 * 10**7), (kmer_plan.DEVICE_COSTS, 10**8)],
)
def test_crowded_kmers_cost_more_and_longer_ones_are_chosen(costs, query_bases):
    job = kmer_plan.KmerJob(20_000_000, 30, query_bases)
    by_chance = tuple(4.0**-length for length in range(1, MAXIMUM_KMER_LENGTH + 1))
    # As human chromosomes have it.
    crowded = tuple(
        max(chance, 65 / 20e6 * 0.72 ** (length - 10)) for length, chance in enumerate(by_chance)
    )
    same, other = replace(job, likeness=by_chance), replace(job, likeness=crowded)
    sampling = KmerSampling(11)
    assert kmer_plan.expected_cost(job, sampling, costs) == kmer_plan.expected_cost(
        same, sampling, costs
    )
    cost = kmer_plan.expected_cost(other, sampling, costs)
    assert cost.table == kmer_plan.expected_cost(job, sampling, costs).table
    assert cost.search > kmer_plan.expected_cost(job, sampling, costs).search
    most = kmer_plan.max_table_bytes(job.bases)
    chosen = [kmer_plan.choose_sampling(one, most, costs).kmer_length for one in (job, other)]
    assert chosen[0] < chosen[1]
