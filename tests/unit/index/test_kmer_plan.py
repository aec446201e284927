"""The choice of a table by its expected cost."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index.kmer_plan import (
    BYTES_PER_BASE,
    DEVICE_COSTS,
    MAX_REFERENCE_STEP,
    MIN_PASSING_BYTES,
    MIN_TABLE_BYTES,
    PROCESSOR_COSTS,
    SLOWDOWN_FOR_MEMORY,
    SMALLER_IF_WITHIN,
    KmerJob,
    choose_sampling,
    expected_cost,
    max_table_bytes,
    picked_instead,
)
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

PLENTY = 1 << 50
jobs = st.builds(
    KmerJob,
    bases=st.one_of(st.integers(1, 5000), st.integers(1, 1 << 33)),
    minimum_length=st.one_of(st.integers(1, 60), st.integers(1, 1 << 33)),
    query_bases=st.integers(0, 10**11),
    is_kept=st.booleans(),
)
some_costs = st.sampled_from([PROCESSOR_COSTS, DEVICE_COSTS])


@settings(deadline=None, max_examples=40)
@given(job=jobs, costs=some_costs, max_bytes=st.integers(0, 1 << 36))
def test_a_choice_serves_the_length_and_fits_if_any_does(job, costs, max_bytes):
    sampling = choose_sampling(job, max_bytes, costs)  # type: ignore[arg-type]
    assert 1 <= sampling.kmer_length <= MAXIMUM_KMER_LENGTH
    assert sampling.shortest_match <= job.minimum_length
    smallest = choose_sampling(job, 0, costs)  # type: ignore[arg-type]
    size = sampling.table_bytes(job.bases)
    assert size <= max(max_bytes, smallest.table_bytes(job.bases))


def choice_among_all(job, max_bytes, costs, slowdown):
    """The choice if the cost of every table is looked at."""
    every = [
        KmerSampling(length, step)
        for length in range(1, min(job.minimum_length, MAXIMUM_KMER_LENGTH) + 1)
        for step in range(1, min(job.minimum_length - length + 1, MAX_REFERENCE_STEP) + 1)
    ]
    seconds = {one: expected_cost(job, one, costs).seconds for one in every}
    sizes = {one: one.table_bytes(job.bases) for one in every}
    worst = SLOWDOWN_FOR_MEMORY * min(seconds.values())
    most = max(max_bytes, min(sizes[one] for one in every if seconds[one] <= worst))
    fitting = [one for one in every if sizes[one] <= most]
    bound = slowdown * min(seconds[one] for one in fitting)
    return min((one for one in fitting if seconds[one] <= bound), key=sizes.__getitem__)


@settings(deadline=None, max_examples=100)
@given(job=jobs, costs=some_costs, max_bytes=st.integers(0, 1 << 36), slowdown=st.floats(1, 10))
def test_tables_that_are_left_out_would_not_be_chosen(job, costs, max_bytes, slowdown):
    expected = choice_among_all(job, max_bytes, costs, slowdown)
    assert choose_sampling(job, max_bytes, costs, slowdown) == expected


@settings(deadline=None, max_examples=40)
@given(job=jobs, length=st.integers(1, MAXIMUM_KMER_LENGTH), step=st.integers(1, 60))
def test_no_other_table_is_much_cheaper(job, length, step):
    other = KmerSampling(length, step)
    if other.shortest_match > job.minimum_length:
        return
    chosen = expected_cost(job, choose_sampling(job, PLENTY)).seconds
    assert chosen <= SMALLER_IF_WITHIN * expected_cost(job, other).seconds


@settings(deadline=None, max_examples=30)
@given(job=jobs, slowdown=st.floats(1.1, 10))
def test_a_table_that_may_be_slower_is_no_larger(job, slowdown):
    fast = choose_sampling(job, PLENTY)
    small = choose_sampling(job, PLENTY, slowdown=slowdown)
    assert small.table_bytes(job.bases) <= fast.table_bytes(job.bases)
    cost, bound = expected_cost(job, small).seconds, slowdown * expected_cost(job, fast).seconds
    assert cost <= bound or slowdown < SMALLER_IF_WITHIN


def test_one_search_of_a_genome_samples_both_sides():
    genome = KmerJob(100_000_000, 100, 200_000_000)
    sampling = choose_sampling(genome, PLENTY)
    assert sampling.reference_step > 1 and sampling.query_step(100) > 1
    # For many more queries a table with more positions pays, and one in a file is there already.
    many = choose_sampling(replace(genome, query_bases=10**11), PLENTY)
    kept = choose_sampling(replace(genome, is_kept=True), PLENTY)
    assert many.query_step(100) > sampling.query_step(100)
    assert kept.query_step(100) >= sampling.query_step(100)
    # A GPU looks up so fast that building costs most.
    on_device = choose_sampling(genome, PLENTY, DEVICE_COSTS)
    assert on_device.table_bytes(genome.bases) < sampling.table_bytes(genome.bases)


def test_picked_kmers_take_fewer_lookups_and_somewhat_more_memory():
    """As in an index of a human genome."""
    job = KmerJob(3_100_000_000, 20, 10**10, is_kept=True)
    steps = choose_sampling(job, max_table_bytes(job.bases, is_kept=True))
    picked = picked_instead(steps)
    assert steps.reference_step > 1 and picked == replace(steps, is_picked=True)
    assert picked.shortest_match == steps.shortest_match
    assert (picked.kmers_of_window, steps.kmers_of_window) == (1, steps.reference_step)
    for length in (20, 31, 150):
        of_length = replace(job, minimum_length=length)
        assert expected_cost(of_length, picked).search < expected_cost(of_length, steps).search
    assert steps.table_bytes(job.bases) < picked.table_bytes(job.bases)
    # One k-mer is no choice, and the bases of many do not fit a word.
    for other in (KmerSampling(13), KmerSampling(14, 20)):
        assert picked_instead(other) == other


def test_more_steps_cost_more():
    job = KmerJob(10_000_000, 50, 10**9)
    sampling = KmerSampling(12, 3)
    cost = expected_cost(job, sampling)
    assert cost.seconds == cost.table + cost.search
    assert expected_cost(replace(job, query_bases=2 * 10**9), sampling).search == pytest.approx(
        2 * cost.search
    )
    assert expected_cost(replace(job, bases=20_000_000), sampling).table > cost.table
    assert expected_cost(job, KmerSampling(12, 4)).table < cost.table
    assert expected_cost(job, KmerSampling(11, 3)).search > cost.search


def test_the_bounds_of_tables():
    assert max_table_bytes(1000) == MIN_PASSING_BYTES
    assert max_table_bytes(1000, is_kept=True) == MIN_TABLE_BYTES
    assert max_table_bytes(10_000_000, is_kept=True) == BYTES_PER_BASE * 10_000_000
    assert max_table_bytes(100_000_000) == BYTES_PER_BASE * 100_000_000
    human = max_table_bytes(3_100_000_000) / 3_100_000_000
    assert 1.9 <= human < 2
    assert max_table_bytes(20_000_000_000) / 20_000_000_000 == pytest.approx(1.9)
