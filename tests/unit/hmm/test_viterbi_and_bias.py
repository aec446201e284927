"""Viterbi's scores are those of HMMER's own filter, and the bias filter's nearly so."""

import math

import numpy as np
import pytest
from helpers.hmmer_library import hmmer_of, some_profiles
from helpers.profiles import block_of, built, sequences_like

from mummergpu.hmm.bias_filter import BiasFilter, bias_scores
from mummergpu.hmm.filters import ProfileFilter, gumbel_tail
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.tables import WORD_BASE, WORD_SCALE, word_moves, word_tables
from mummergpu.hmm.word_filter import LANES, OVERFLOW, score_viterbi, striped_words
from mummergpu.runtime.stats import Stats

SIZES = (1, 2, 3, 4, 31, 32, 33, 600, 4200)


def test_viterbi_scores_are_those_of_hmmer(tmp_path):
    moves, overflows, cases = word_moves(1 << 17), 0, 0
    for profile in some_profiles(SIZES):
        hmmer = hmmer_of(profile, tmp_path)
        sequences = [codes for codes in sequences_like(profile, 450) if codes.size]
        cases += len(sequences)
        words = striped_words(word_tables(profile))
        left = np.empty(len(sequences), dtype=np.int64)
        cells = np.empty(3 * words.registers * LANES, dtype=np.int16)
        numbers = np.arange(left.size)
        score_viterbi(block_of(sequences), words, moves, cells, numbers, left)
        overflows += int((left == OVERFLOW).sum())
        for codes, found in zip(sequences, left.tolist(), strict=True):
            nats = np.float32(found + moves[codes.size] - WORD_BASE) / WORD_SCALE - np.float32(3)
            ours = math.inf if found == OVERFLOW else float(nats)
            assert ours == hmmer.viterbi(codes), (profile.name, codes.size)
    assert overflows and cases > 10_000


def test_the_bias_scores_are_those_of_hmmer_but_for_what_they_say(tmp_path):
    for profile in some_profiles(SIZES):
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
        short = np.array([codes.size < 1000 for codes in sequences])
        assert (margins[short] < 0.02).all()


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
    for profile in some_profiles(SIZES):
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
