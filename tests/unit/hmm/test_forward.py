"""Our sums over all paths are as near to HMMER's as they say, and drop what HMMER drops."""

import math
from dataclasses import replace

import numpy as np
import pytest
from helpers.hmmer_library import hmmer_of, some_profiles
from helpers.profiles import block_of, built, sequences_like

from mummergpu.hmm.filters import ForwardFilter, ProfileFilter
from mummergpu.hmm.forward_filter import chances_of, margins, nats_of_sums, row_cells, score_forward
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.proteins import MARKS
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.stats import Stats

SIZES = (1, 2, 3, 15, 16, 17, 33, 600, 4200)


def sequences_of(profile, count):
    """Return sequences with residues, the last two of them long and like the whole profile."""
    found = [one for one in sequences_like(profile, count) if not np.isin(one, MARKS).all()]
    whole = profile.matches.argmax(axis=1).astype(np.uint8)
    repeated = np.tile(whole, max(2, 3000 // whole.size))
    random = np.random.default_rng(7)
    return [*found, repeated, random.integers(0, 20, 100_000).astype(np.uint8)]


@pytest.mark.parametrize("flushes", [False, True])
def test_forward_scores_are_those_of_hmmer_but_for_what_they_say(flushes, tmp_path):
    cases, farthest = 0, 0.0
    for profile in some_profiles(SIZES):
        hmmer = hmmer_of(profile, tmp_path)
        sequences = sequences_of(profile, 200 if profile.nodes < 4000 else 20)
        chances = chances_of([profile])
        sums = np.empty((2, len(sequences)))
        numbers = np.arange(len(sequences))
        arguments = block_of(sequences), chances, row_cells(chances), 0 * numbers, numbers
        if flushes:
            with flushed_floats():
                score_forward(*arguments, sums)
        else:
            score_forward(*arguments, sums)
        scores = nats_of_sums(sums)
        limits = margins(np.array([one.size for one in sequences]))
        for codes, ours, limit in zip(sequences, scores.tolist(), limits.tolist(), strict=True):
            away = abs(ours - hmmer.forward(codes))
            assert away <= limit / 2, (profile.name, codes.size)
            farthest = max(farthest, away)
        cases += scores.size
    assert cases > 3000 and farthest > 0


def test_what_forward_drops_is_what_hmmer_drops(tmp_path):
    dropped = kept = wrongly_kept = 0
    for profile in some_profiles(SIZES):
        hmmer = hmmer_of(profile, tmp_path)
        sequences = sequences_of(profile, 200 if profile.nodes < 4000 else 20)
        statistics = profile.statistics
        for limit in (1e-3, 1e-5):
            thresholds = FilterThresholds(F3=limit, bias_filter=False)
            own = ProfileFilter(profile, thresholds)
            numbers = np.arange(len(sequences))
            found = own.pass_forward(block_of(sequences), numbers, Stats()).tolist()
            for number, codes in enumerate(sequences):
                size = codes.size
                null = size * math.log(size / (size + 1)) + math.log(1 / (size + 1))
                bits = (hmmer.forward(codes) - null) / math.log(2)
                above = max(0.0, bits - statistics.forward_tau)
                passes = math.exp(-statistics.forward_lambda * above) <= limit
                assert number in found or not passes, (profile.name, size)
                dropped += number not in found
                kept += passes
                wrongly_kept += number in found and not passes
    assert dropped > 500 and kept > 500 and wrongly_kept < kept / 50


def test_profiles_at_once_have_the_scores_of_each_alone():
    several = [built(nodes) for nodes in (33, 1, 600, 16)]
    sequences = block_of(sequences_of(several[2], 30))
    count = sequences.offsets.size - 1
    random = np.random.default_rng(4)
    profiles, numbers = random.integers(0, 4, 300), random.integers(0, count, 300)
    together, alone = np.empty((2, 2, 300))
    chances = chances_of(several)
    score_forward(sequences, chances, row_cells(chances), profiles, numbers, together)
    for number, one in enumerate(several):
        own = profiles == number
        scores = np.empty((2, int(own.sum())))
        chances = chances_of([one])
        same = np.zeros(scores.shape[1], dtype=np.int64)
        score_forward(sequences, chances, row_cells(chances), same, numbers[own], scores)
        alone[:, own] = scores
    assert together.tolist() == alone.tolist()
    # One of them has no composition and lets all pass, whatever the others do.
    bare = replace(several[1], composition=None)
    filters = [ProfileFilter(one, FilterThresholds()) for one in (several[0], bare, *several[2:])]
    passing = ForwardFilter(filters).passing(sequences, profiles, numbers, Stats())
    for number, own_filter in enumerate(filters):
        own = profiles == number
        kept = own_filter.pass_forward(sequences, numbers[own], Stats())
        assert kept.tolist() == numbers[own][passing[own]].tolist()
    assert passing[profiles == 1].all() and not passing.all()


def test_forward_drops_nothing_if_hmmer_does_not():
    profile = built(33)
    sequences = block_of(sequences_of(profile, 20))
    numbers = np.arange(sequences.offsets.size - 1)
    for thresholds in (FilterThresholds.without_filters(), FilterThresholds(F3=1.0)):
        found = ProfileFilter(profile, thresholds).pass_forward(sequences, numbers, Stats())
        assert found.tolist() == numbers.tolist()
    # Without a composition HMMER's own score decides, which is none.
    bare = ProfileFilter(replace(profile, composition=None), FilterThresholds())
    assert bare.pass_forward(sequences, numbers, Stats()).tolist() == numbers.tolist()


def test_a_sum_that_is_no_number_passes():
    profile = built(16)
    marks = block_of([np.full(40, MARKS[1], dtype=np.uint8)])
    own = ProfileFilter(profile, FilterThresholds(bias_filter=False))
    assert own.pass_forward(marks, np.array([0]), Stats()).tolist() == [0]
