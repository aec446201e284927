"""The byte tables and the survivors of SSV and MSV are those of pyhmmer."""

import math

import numpy as np
import pytest
from helpers.profiles import block_of, built, profiles, sequences_like

from mummergpu.hmm.byte_filters import LANES, OVERFLOW, filter_by_msv, find_cells, striped_bytes
from mummergpu.hmm.filters import ProfileFilter, gumbel_tail
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.proteins import CODES
from mummergpu.hmm.tables import BYTE_BASE, BYTE_LEAVE, BYTE_SCALE, LN2, byte_tables, length_tables
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
            difference = np.float32(np.float32(nats) - null[codes.size])
            bits = float(np.float32(float(difference) / LN2))
        if not gumbel_tail(bits, statistics.msv_mu, statistics.msv_lambda) > limit:
            passing.append(number)
    return passing


def test_the_bytes_are_those_of_pyhmmer():
    for profile in (*profiles(), built(1), built(600)):
        tables, theirs = byte_tables(profile), profile.optimized
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
    block, striped = block_of(sequences), striped_bytes(byte_tables(profile))
    lengths = length_tables(1 << 17)
    longest = max(codes.size for codes in sequences)
    borders = np.empty(longest * LANES, dtype=np.uint8)
    numbers, left = np.empty((2, len(sequences)), dtype=np.int64)
    least = np.zeros(longest + 1, dtype=np.int64)
    assert find_cells(block, striped, least, borders, numbers, left) == len(sequences)
    row = np.empty(striped.costs.shape[1], dtype=np.uint8)
    limits = np.array([-np.inf, BYTE_SCALE], dtype=np.float32)
    kept = filter_by_msv(block, striped, lengths, limits, row, numbers, left)
    assert kept == len(sequences)
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
    thresholds = FilterThresholds(F2=1.0, bias_filter=False)
    kept = ProfileFilter(profile, thresholds)
    found = kept.survivors(block_of([codes[:50], codes]), Stats())
    assert found.tolist() == passing_msv(profile, [codes[:50], codes], 0.02)
    assert kept.survivors(block_of([codes[:0]]), Stats()).size == 0


def test_without_filters_all_but_empty_sequences_pass():
    block = block_of([np.zeros(size, dtype=np.uint8) for size in (3, 0, 1)])
    kept = ProfileFilter(built(5), FilterThresholds.without_filters())
    assert kept.survivors(block, Stats()).tolist() == [0, 2]
