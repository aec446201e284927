"""The byte tables and the survivors of SSV and MSV are those of pyhmmer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import BYTE_LEAVE, LN2, byte_tables, length_tables
from mummergpu.hmm.thresholds import gumbel_tail
from mummergpu.runtime.stats import Stats

pyhmmer = pytest.importorskip("pyhmmer")


def passing_msv(profile: Profile, sequences: list[Any], limit: float) -> list[int]:
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
            difference = np.float32(np.float32(nats) - null[codes.size])
            bits = float(np.float32(float(difference) / LN2))
        if not gumbel_tail(bits, statistics.msv_mu, statistics.msv_lambda) > limit:
            passing.append(number)
    return passing


def test_the_bytes_are_those_of_pyhmmer() -> None:
    for profile in (*profiles(), built(1), built(600)):
        tables, theirs = byte_tables(profile), profile.optimized
        registers = max(2, -(-profile.nodes // 16))
        costs = np.asarray(theirs.rbv).reshape(CODES, registers, 16).transpose(0, 2, 1)
        assert np.array_equal(tables.costs, costs.reshape(CODES, -1)[:, : profile.nodes])
        assert (tables.bias, tables.entry, BYTE_LEAVE) == (theirs.bias_b, theirs.tbm, theirs.tec)


def test_the_steps_of_each_length_are_those_of_pyhmmer() -> None:
    move, optimized = length_tables(1 << 17).move, built(1).optimized
    for length in (*range(1, 3000), *range(3000, 100_001, 97), 100_000):
        optimized.L = length
        assert move[length] == optimized.tjb


@pytest.mark.parametrize("limit", [0.02, 1e-6])
def test_the_survivors_of_msv_are_those_of_pyhmmer(limit: float) -> None:
    thresholds = FilterThresholds(F1=limit, F2=1.0, bias_filter=False)
    some = [*profiles(), *map(built, (1, 2, 33, 512, 513, 1100, 4200))]
    for profile in some:
        sequences = sequences_like(profile, 300)
        found = ProfileFilter(profile, thresholds).survivors(block_of(sequences), Stats())
        assert found.tolist() == passing_msv(profile, sequences, limit), profile.name


def test_the_longest_sequences_and_blocks_of_none() -> None:
    profile = built(40)
    codes = np.random.default_rng(3).integers(0, 20, 100_000).astype(np.uint8)
    thresholds = FilterThresholds(F2=1.0, bias_filter=False)
    kept = ProfileFilter(profile, thresholds)
    found = kept.survivors(block_of([codes[:50], codes]), Stats())
    assert found.tolist() == passing_msv(profile, [codes[:50], codes], 0.02)
    assert kept.survivors(block_of([codes[:0]]), Stats()).size == 0


def test_without_filters_all_but_empty_sequences_pass() -> None:
    block = block_of([np.zeros(size, dtype=np.uint8) for size in (3, 0, 1)])
    kept = ProfileFilter(built(5), FilterThresholds.without_filters())
    assert kept.survivors(block, Stats()).tolist() == [0, 2]
