"""The byte tables and the survivors of SSV and MSV are those of pyhmmer."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mummergpu.hmm.filters import FilterThresholds, ProfileFilter
from mummergpu.hmm.profiles import Profile, profile_of, read_profiles
from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.tables import BYTE_LEAVE, LN2, byte_tables, length_tables
from mummergpu.hmm.thresholds import gumbel_tail
from mummergpu.runtime.stats import Stats

pyhmmer = pytest.importorskip("pyhmmer")
DATA = Path(pyhmmer.__file__).parent / "tests" / "data"
FILES = ("RREFam", "PF02826", "KR", "LuxC", "Thioesterase")


def profiles() -> list[Profile]:
    paths = [DATA / "hmms" / "txt" / f"{name}.hmm" for name in FILES]
    if not all(path.is_file() for path in paths):
        pytest.skip("pyhmmer was installed without its tests' data")
    return [profile for path in paths for profile in read_profiles(path)]


def built(nodes: int) -> Profile:
    """Return a profile of random amino acids; pyhmmer calibrates it."""
    alphabet = pyhmmer.easel.Alphabet.amino()
    codes = np.random.default_rng(nodes).integers(0, 20, nodes).astype(np.uint8)
    sequence = pyhmmer.easel.DigitalSequence(alphabet, name="made", sequence=codes)
    builder = pyhmmer.plan7.Builder(alphabet)
    hmm, _, _ = builder.build(sequence, pyhmmer.plan7.Background(alphabet))
    return profile_of(hmm)


def sequences_like(profile: Profile, count: int) -> list[Any]:
    """Return pieces of the profile's consensus among noise, in all codes, short and long."""
    random = np.random.default_rng(profile.nodes)
    consensus = profile.matches.argmax(axis=1).astype(np.uint8)
    found = [random.integers(0, CODES, size).astype(np.uint8) for size in (0, 1, 2, 5000)]
    for _ in range(count):
        parts = []
        for _ in range(random.integers(1, 4)):
            begin = int(random.integers(0, profile.nodes))
            piece = consensus[begin : begin + int(random.integers(1, 60))].copy()
            noise = random.random(piece.size) < random.random()
            piece[noise] = random.integers(0, CODES, int(noise.sum()))
            parts += [piece, random.integers(0, 20, int(random.integers(0, 150))).astype(np.uint8)]
        found.append(np.concatenate(parts))
    return found


def block_of(sequences: list[Any]) -> ProteinBlock:
    offsets = np.cumsum([0, *(sequence.size for sequence in sequences)], dtype=np.int64)
    return ProteinBlock(np.concatenate(sequences), offsets)


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
