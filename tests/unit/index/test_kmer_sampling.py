"""Which k-mers are listed and looked up: every match must contain a pair."""

from itertools import pairwise
from math import gcd

from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index.kmer_sampling import MAX_SAMPLING_STEP, KmerSampling
from mummergpu.matching.row_order import LEFT_BITS
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH


@settings(deadline=None)
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
    step, sampling_step = (
        sampling.query_step(minimum_length),
        sampling.sampling_step(minimum_length),
    )
    assert sampling_step == step * reference_step <= minimum_length - kmer_length + 1
    starts = minimum_length - kmer_length + 1
    for in_query in range(step):
        for in_reference in range(reference_step):
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
    assert KmerSampling(7).query_step(20) == 14
    assert KmerSampling(7, 14).query_step(20) == 1
    assert KmerSampling(7).query_step(1 << 40) == MAX_SAMPLING_STEP
    # 4 * 4 would fit, but both steps would be even.
    assert KmerSampling(13, 4).query_step(28) == 3
    # Left extensions are shorter than a period, and are ordered by so many bits.
    assert MAX_SAMPLING_STEP <= 1 << LEFT_BITS


def test_a_table_has_a_number_for_each_listed_position_and_each_kmer():
    assert KmerSampling(3).table_bytes(100) == 4 * (100 + 64 + 1)
    assert KmerSampling(3, 7).table_bytes(100) == 4 * (15 + 64 + 1)
