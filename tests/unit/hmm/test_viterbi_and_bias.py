"""Viterbi's scores are those of HMMER's own filter, and the bias filter's nearly so."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from helpers.hmmer_library import hmmer_of, some_profiles
from helpers.profiles import block_of, sequences_like

from mummergpu.hmm.bias_filter import BiasFilter
from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.tables import WORD_BASE, WORD_SCALE, word_moves, word_tables
from mummergpu.hmm.thresholds import gumbel_tail
from mummergpu.hmm.word_filter import LANES, OVERFLOW, score_viterbi, striped_words
from mummergpu.runtime.stats import Stats

SIZES = (1, 2, 3, 4, 31, 32, 33, 600, 4200)


def test_viterbi_scores_are_those_of_hmmer(tmp_path: Path) -> None:
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


def test_the_bias_scores_are_those_of_hmmer_but_for_what_they_say(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("limit", [1e-3, 1e-8])
def test_what_passes_hmmers_viterbi_survives(tmp_path: Path, limit: float) -> None:
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
