"""The scores and the survivors of each filter are those of HMMER, but for what they say."""

import math
import platform
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.hmmer_library import hmmer_of, some_profiles
from helpers.profile_scores import gumbel_tail
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.hmm import word_filter
from mummergpu.hmm.bias_filter import BiasFilter, bias_scores
from mummergpu.hmm.byte_filters import LANES, OVERFLOW, filter_by_msv, find_cells, striped_bytes
from mummergpu.hmm.filters import ForwardFilter, ProfileFilter, pass_scores
from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.forward_filter import chances_of, margins, nats_of_sums, row_cells, score_forward
from mummergpu.hmm.options import FilterThresholds, FinishingOptions
from mummergpu.hmm.profiles import Statistics
from mummergpu.hmm.proteins import CODES, MARKS
from mummergpu.hmm.stage_counts import FILTERS, VITERBI, Reached
from mummergpu.hmm.tables import (
    BYTE_BASE,
    BYTE_LEAVE,
    BYTE_SCALE,
    LN2,
    WORD_BASE,
    WORD_SCALE,
    filter_tables,
    length_tables,
    word_moves,
)
from mummergpu.hmm.word_filter import score_viterbi, striped_words
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinsInMemory
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.stats import Stats

pyhmmer = pytest.importorskip("pyhmmer")


def passing_msv(profile, sequences, limit):
    """Return the sequences that pyhmmer's MSV filter lets pass."""
    optimized, statistics = profile.optimized.copy(), profile.statistics
    null = length_tables(1 << 17).null
    passing = []
    for number, codes in enumerate(sequences):
        if not codes.size:
            continue
        optimized.L = codes.size
        digital = pyhmmer.easel.DigitalSequence(profile.hmm.alphabet, sequence=codes)
        nats = optimized.msv_filter(digital)
        bits = math.inf
        if nats != math.inf:
            bits = float(np.float32(float(np.float32(np.float32(nats) - null[codes.size])) / LN2))
        if not gumbel_tail(bits, statistics.msv_mu, statistics.msv_lambda) > limit:
            passing.append(number)
    return passing


def test_the_least_scores_that_pass():
    random = np.random.default_rng(1)
    for limit in (0.02, 1e-3, 0.3, 0.999, 5e-9, 4.9e-9, 1e-30, 1e-300, 0.0, -1.0, 1.0, 2.0):
        for mu, rate in random.uniform((-30, 0.01), (30, 2), (100, 2)).tolist():
            statistics = Statistics(mu, rate, mu / 2, rate * 2, 0.0, 1.0)
            scores = pass_scores(statistics, FilterThresholds(F1=limit, F2=limit / 2))
            tails = (limit, mu, rate), (limit / 2, mu, rate), (limit / 2, mu / 2, rate * 2)
            for score, (most, own_mu, own_rate) in zip(scores, tails, strict=True):
                lower = float(np.nextafter(score, np.float32(-np.inf)))
                if most >= 1 or most < 0:
                    assert score == -np.inf if most >= 1 else np.isnan(score)
                    continue
                assert not gumbel_tail(float(score), own_mu, own_rate) > most
                assert gumbel_tail(lower, own_mu, own_rate) > most
    assert pass_scores(Statistics(0, 0, 0, -1, 0, 1), FilterThresholds()) == (-np.inf,) * 3


def test_the_bytes_are_those_of_pyhmmer():
    for profile in (*profiles(), built(1), built(600)):
        tables, theirs = filter_tables(profile).bytes, profile.optimized
        registers = max(2, -(-profile.nodes // 16))
        costs = np.asarray(theirs.rbv).reshape(CODES, registers, 16).transpose(0, 2, 1)
        assert np.array_equal(tables.costs, costs.reshape(CODES, -1)[:, : profile.nodes])
        assert (tables.bias, tables.entry, BYTE_LEAVE) == (theirs.bias_b, theirs.tbm, theirs.tec)


def test_the_steps_of_each_length_are_those_of_pyhmmer():
    move, optimized = length_tables(1 << 17).move, built(1).optimized
    for length in (*range(1, 3000), *range(3000, 100_001, 97), 100_000):
        optimized.L = length
        assert move[length] == optimized.tjb


def msv_bytes(profile, sequences):
    """Return the bytes with which MSV leaves the profile, and the steps there."""
    block, striped = block_of(sequences), striped_bytes(filter_tables(profile).bytes)
    lengths = length_tables(1 << 17)
    longest = max(codes.size for codes in sequences)
    borders = np.empty(longest * LANES, dtype=np.uint8)
    numbers, left = np.empty((2, len(sequences)), dtype=np.int64)
    least = np.zeros(longest + 1, dtype=np.int64)
    assert find_cells(block, striped, least, borders, numbers, left) == len(sequences)
    row = np.empty(striped.costs.shape[1], dtype=np.uint8)
    limits = np.array([-np.inf, BYTE_SCALE], dtype=np.float32)
    assert filter_by_msv(block, striped, lengths, limits, row, numbers, left) == len(sequences)
    return left, lengths.move[[codes.size for codes in sequences]]


def test_the_scores_of_ssv_and_msv_are_those_of_pyhmmer():
    some = [*profiles(), *map(built, (1, 2, 31, 32, 33, 512, 513, 4200))]
    counts = {"SSV": 0, "MSV": 0, "overflow": 0}
    for profile in some:
        optimized = profile.optimized
        sequences = [codes for codes in sequences_like(profile, 500) if codes.size]
        left, moves = msv_bytes(profile, sequences)
        nats = (left - moves - BYTE_BASE).astype(np.float32) / BYTE_SCALE - np.float32(3)
        nats[left == OVERFLOW] = np.inf
        for codes, ours in zip(sequences, nats.tolist(), strict=True):
            optimized.L = codes.size
            digital = pyhmmer.easel.DigitalSequence(profile.hmm.alphabet, sequence=codes)
            assert ours == optimized.msv_filter(digital), (profile.name, codes.size)
            by_ssv = optimized.ssv_filter(digital)
            is_undecided = by_ssv is None or math.isnan(by_ssv)
            assert is_undecided or by_ssv == ours
            counts["MSV" if is_undecided else "SSV"] += 1
            counts["overflow"] += ours == math.inf
    assert counts["SSV"] + counts["MSV"] > 10_000 and min(counts.values()) > 100


@pytest.mark.parametrize("limit", [0.02, 1e-6])
def test_the_survivors_of_msv_are_those_of_pyhmmer(limit):
    thresholds = FilterThresholds(F1=limit, F2=1.0, bias_filter=False)
    some = [*profiles(), *map(built, (1, 2, 33, 512, 513, 1100, 4200))]
    for profile in some:
        sequences = sequences_like(profile, 300)
        found = ProfileFilter(profile, thresholds).survivors(block_of(sequences), Stats())
        assert found.tolist() == passing_msv(profile, sequences, limit), profile.name


def test_the_longest_sequences_and_blocks_of_none():
    profile = built(40)
    codes = np.random.default_rng(3).integers(0, 20, 100_000).astype(np.uint8)
    kept = ProfileFilter(profile, FilterThresholds(F2=1.0, bias_filter=False))
    found = kept.survivors(block_of([codes[:50], codes]), Stats())
    assert found.tolist() == passing_msv(profile, [codes[:50], codes], 0.02)
    assert kept.survivors(block_of([codes[:0]]), Stats()).size == 0


def test_without_filters_all_but_empty_sequences_pass():
    block = block_of([np.zeros(size, dtype=np.uint8) for size in (3, 0, 1)])
    kept = ProfileFilter(built(5), FilterThresholds.without_filters())
    assert kept.survivors(block, Stats()).tolist() == [0, 2]


VITERBI_SIZES = (1, 2, 3, 4, 31, 32, 33, 600, 4200)


def test_viterbi_scores_are_those_of_hmmer(tmp_path):
    moves, overflows, cases = word_moves(1 << 17), 0, 0
    for profile in some_profiles(VITERBI_SIZES):
        hmmer = hmmer_of(profile, tmp_path)
        sequences = [codes for codes in sequences_like(profile, 450) if codes.size]
        cases += len(sequences)
        words = striped_words(filter_tables(profile).words)
        left = np.empty(len(sequences), dtype=np.int64)
        cells = word_filter.row_cells(words)
        score_viterbi(block_of(sequences), words, moves, cells, np.arange(left.size), left)
        overflows += int((left == word_filter.OVERFLOW).sum())
        for codes, found in zip(sequences, left.tolist(), strict=True):
            nats = np.float32(found + moves[codes.size] - WORD_BASE) / WORD_SCALE - np.float32(3)
            ours = math.inf if found == word_filter.OVERFLOW else float(nats)
            assert ours == hmmer.viterbi(codes), (profile.name, codes.size)
    assert overflows and cases > 10_000


def test_the_bias_scores_are_those_of_hmmer_but_for_what_they_say(tmp_path):
    for profile in some_profiles(VITERBI_SIZES):
        if profile.composition is None:
            continue
        hmmer = hmmer_of(profile, tmp_path)
        sequences = [codes for codes in sequences_like(profile, 200) if codes.size]
        sequences.append(np.random.default_rng(1).integers(0, 20, 100_000).astype(np.uint8))
        numbers = np.arange(len(sequences))
        bias = BiasFilter(profile.composition, profile.nodes)
        ours, margins = bias.scores(block_of(sequences), numbers)
        theirs = np.array([hmmer.bias(codes) for codes in sequences])
        assert (np.abs(ours - theirs) <= margins).all(), profile.name
        assert (margins[np.array([codes.size < 1000 for codes in sequences])] < 0.02).all()


def log_of_chances(bias, codes):
    """Return what the two states have after a sequence, one residue after the other."""
    leave, remain = np.log(bias.steps)
    stay, move = math.log(codes.size / (codes.size + 1)), -math.log(codes.size + 1)
    odds = np.log(bias.odds)
    plain, biased = math.log(0.999), math.log(0.001) + odds[codes[0]]
    for code in codes[1:]:
        plain, biased = (
            np.logaddexp(plain + stay, biased + leave),
            np.logaddexp(plain + move, biased + remain) + odds[code],
        )
    return float(np.logaddexp(plain, biased))


def test_bias_scores_of_pairs_side_by_side():
    """Those of several profiles, of short sequences beside long ones, and of sums to be scaled."""
    random = np.random.default_rng(5)
    filters = [BiasFilter(one.composition, one.nodes) for one in map(built, (3, 90, 600))]
    likely = [int(one.odds[:20].argmax()) for one in filters]
    sizes = [1, 2, 31, 32, 33, 34, 4000, 1, 64, 65, 66, 5, 12000]
    sequences = [random.integers(0, 20, size).astype(np.uint8) for size in sizes]
    sequences += [np.full(3000, code, dtype=np.uint8) for code in likely]
    block = block_of(sequences)
    odds, steps = (np.array([getattr(one, of) for one in filters]) for of in ("odds", "steps"))
    profiles, numbers = (part.ravel() for part in np.indices((3, len(sequences))))
    order = random.permutation(numbers.size)
    profiles, numbers = profiles[order], numbers[order]
    scores, margins = bias_scores(block, odds, steps, profiles, numbers)
    scaled = 0
    for profile, number, score, margin in zip(profiles, numbers, scores, margins, strict=True):
        alone = filters[profile].scores(block, np.array([number]))
        assert (score, margin) == (alone[0][0], alone[1][0])
        length = sequences[number].size
        expected = log_of_chances(filters[profile], sequences[number])
        scaled += expected > 230.3
        null = length * math.log(length / (length + 1)) - math.log(length + 1)
        assert score == pytest.approx(expected + null, rel=1e-9, abs=1e-9)
    assert scaled >= 3
    empty = np.zeros(0, dtype=np.int64)
    assert bias_scores(block, odds, steps, empty, empty)[0].size == 0


@pytest.mark.parametrize("limit", [1e-3, 1e-8])
def test_what_passes_hmmers_viterbi_survives(tmp_path, limit):
    thresholds = FilterThresholds(F1=0.999, F2=limit)
    for profile in some_profiles(VITERBI_SIZES):
        if profile.composition is None:
            continue
        hmmer, statistics = hmmer_of(profile, tmp_path), profile.statistics
        sequences = sequences_like(profile, 100)
        kept = set(ProfileFilter(profile, thresholds).survivors(block_of(sequences), Stats()))
        msv = ProfileFilter(profile, FilterThresholds(F1=0.999, F2=1.0)).survivors(
            block_of(sequences), Stats()
        )
        for number in msv.tolist():
            codes = sequences[number]
            bits = (hmmer.viterbi(codes) - hmmer.bias(codes)) / math.log(2)
            tail = gumbel_tail(bits, statistics.viterbi_mu, statistics.viterbi_lambda)
            assert tail > limit or number in kept, (profile.name, number)


FORWARD_SIZES = (1, 2, 3, 15, 16, 17, 33, 600, 4200)


def sequences_of(profile, count):
    """Return sequences with residues, the last two of them long and like the whole profile."""
    found = [one for one in sequences_like(profile, count) if not np.isin(one, MARKS).all()]
    whole = profile.matches.argmax(axis=1).astype(np.uint8)
    repeated = np.tile(whole, max(2, 3000 // whole.size))
    return [*found, repeated, np.random.default_rng(7).integers(0, 20, 100_000).astype(np.uint8)]


@pytest.mark.parametrize("flushes", [False, True])
def test_forward_scores_are_those_of_hmmer_but_for_what_they_say(flushes, tmp_path):
    cases, farthest = 0, 0.0
    for profile in some_profiles(FORWARD_SIZES):
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


def kept_by(own, block, numbers):
    """Return the sequences that Forward's filter keeps."""
    reached = Reached.of_all(numbers, VITERBI)
    return own.pass_forward(block, reached, Stats()).passing(FILTERS)


def test_what_forward_drops_is_what_hmmer_drops(tmp_path):
    dropped = kept = wrongly_kept = 0
    for profile in some_profiles(FORWARD_SIZES):
        hmmer = hmmer_of(profile, tmp_path)
        sequences = sequences_of(profile, 200 if profile.nodes < 4000 else 20)
        statistics = profile.statistics
        for limit in (1e-3, 1e-5):
            own = ProfileFilter(profile, FilterThresholds(F3=limit, bias_filter=False))
            numbers = np.arange(len(sequences))
            found = kept_by(own, block_of(sequences), numbers).tolist()
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
    passing, _ = ForwardFilter(filters).passing(sequences, profiles, numbers, Stats())
    for number, own_filter in enumerate(filters):
        own = profiles == number
        kept = kept_by(own_filter, sequences, numbers[own])
        assert kept.tolist() == numbers[own][passing[own]].tolist()
    assert passing[profiles == 1].all() and not passing.all()


def test_forward_drops_nothing_if_hmmer_does_not():
    profile = built(33)
    sequences = block_of(sequences_of(profile, 20))
    numbers = np.arange(sequences.offsets.size - 1)
    for thresholds in (FilterThresholds.without_filters(), FilterThresholds(F3=1.0)):
        found = kept_by(ProfileFilter(profile, thresholds), sequences, numbers)
        assert found.tolist() == numbers.tolist()
    # Without a composition HMMER's own score decides, which is none.
    bare = ProfileFilter(replace(profile, composition=None), FilterThresholds())
    assert kept_by(bare, sequences, numbers).tolist() == numbers.tolist()


def test_a_sum_that_is_no_number_passes():
    profile = built(16)
    marks = block_of([np.full(40, MARKS[1], dtype=np.uint8)])
    own = ProfileFilter(profile, FilterThresholds(bias_filter=False))
    assert kept_by(own, marks, np.array([0])).tolist() == [0]


class _Pipeline:
    """Notes what the half of the least normal number is while something is compared."""

    def __init__(self):
        self.halves = []

    def search_hmm(self, *_):
        self.halves.append(float(np.finfo(np.float32).tiny * np.array([0.5], np.float32)[0]))

    def clear(self):
        """Forget nothing."""

    scan_seq = search_hmm


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="elsewhere nothing is flushed"
)
def test_denormal_numbers_are_zero_while_pyhmmer_compares():
    profile = profiles()[0]
    finisher = Finisher(FinishingOptions(), profile.hmm.alphabet, None)
    pipeline = finisher._of_thread.pipeline = _Pipeline()
    (proteins,) = ProteinsInMemory([("one", "A" * 9)], ProteinRules()).blocks()
    finisher.search(profile, proteins, np.array([0]))
    finisher.scan(proteins, 0, [profile])
    assert pipeline.halves == [0.0, 0.0]
    pipeline.search_hmm()
    assert pipeline.halves[-1] > 0
