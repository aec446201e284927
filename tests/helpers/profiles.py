"""Profiles and sequences like them, for the tests of the filters."""

from functools import cache

import numpy as np
import pytest

from helpers.hmmer import data_folder
from mummergpu.hmm.profiles import profile_of, read_profiles
from mummergpu.hmm.proteins import CODES, ProteinBlock

FILES = ("RREFam", "PF02826", "KR", "LuxC", "Thioesterase")


def profiles():
    """Return the profiles of proteins in pyhmmer's own tests."""
    paths = [data_folder() / f"hmms/txt/{name}.hmm" for name in FILES]
    return [profile for path in paths for profile in read_profiles(path)]


@cache
def built(nodes):
    """Return a profile of random amino acids; pyhmmer calibrates it."""
    pyhmmer = pytest.importorskip("pyhmmer")
    alphabet = pyhmmer.easel.Alphabet.amino()
    codes = np.random.default_rng(nodes).integers(0, 20, nodes).astype(np.uint8)
    sequence = pyhmmer.easel.DigitalSequence(alphabet, name="made", sequence=codes)
    builder = pyhmmer.plan7.Builder(alphabet)
    hmm, _, _ = builder.build(sequence, pyhmmer.plan7.Background(alphabet))
    return profile_of(hmm)


def sequences_like(profile, count):
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


def repeats(profile, count, seed=7):
    """Sequences of several copies of a profile's consensus, with changes."""
    random = np.random.default_rng(seed)
    consensus = profile.matches.argmax(axis=1).astype(np.uint8)
    found = []
    for _ in range(count):
        parts = []
        for _ in range(random.integers(1, 5)):
            begin = int(random.integers(0, max(1, profile.nodes // 3)))
            piece = consensus[begin : profile.nodes - int(random.integers(0, 20))].copy()
            noise = random.random(piece.size) < random.choice([0.2, 0.5, 0.65])
            piece[noise] = random.integers(0, CODES, int(noise.sum()))
            size = int(random.choice([0, 1, 5, 40]))
            parts += [piece, random.integers(0, 20, size).astype(np.uint8)]
        found.append(np.concatenate([np.array([3], dtype=np.uint8), *parts]))
    return found


def block_of(sequences):
    offsets = np.cumsum([0, *(sequence.size for sequence in sequences)], dtype=np.int64)
    return ProteinBlock(np.concatenate(sequences), offsets)
