"""Candidates that do not matter are dropped: what is mapped stays the same without them."""

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases

from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.mapping.seeding import candidate_search

SEED = 13
LENGTH = 70
SIZES = InsertSizes(200.0, 15.0, 140, 260)
COMPLEMENT = bytes.maketrans(b"ACGT", b"TGCA")


def mutated(random, bases, rate):
    letters = bytearray(bases)
    for place in np.flatnonzero(random.random(len(letters)) < rate):
        letters[place] = random.choice(list(b"ACGT"))
    if random.random() < 0.2:
        del letters[20 : 20 + random.integers(1, 4)]
    return bytes(letters)


def genome(random):
    """Copies of one repeat, some alike and some less so, between bases that occur once."""
    repeat = random_bases(random, 200)
    parts = []
    for rate in (0.0, 0.01, 0.02, *np.linspace(0.04, 0.16, 15)):
        copy = mutated(random, repeat, rate)
        if random.random() < 0.5:
            copy = copy[::-1].translate(COMPLEMENT)
        parts += [random_bases(random, 40), copy]
    return b"".join(parts)


def pairs(random, bases, count):
    """The mates of templates; some have clips, or lie where no template is."""
    reads = []
    for _ in range(count):
        size = int(random.integers(150, 250))
        at = int(random.integers(0, len(bases) - size))
        template = bases[at : at + size]
        mates = [template[:LENGTH], template[-LENGTH:][::-1].translate(COMPLEMENT)]
        if random.random() < 0.15:
            other = int(random.integers(0, len(bases) - LENGTH))
            mates[1] = mates[1][: LENGTH // 2] + bases[other : other + LENGTH // 2]
        elif random.random() < 0.15:
            mates[1] = random_bases(random, LENGTH)
        reads += [mutated(random, mate, random.choice([0.0, 0.0, 0.02, 0.06])) for mate in mates]
    return reads


def columns_of(mapped, reference, prunes, paired, patch):
    """The alignments, and how many candidates they were chosen from at first."""
    counts = []
    find = candidate_search.CandidateFinder.find

    def counted(*arguments):
        found = find(*arguments)  # type: ignore[arg-type]
        counts.append(int(found.counts.sum()))
        return found

    options = MappingOptions(SEED)
    with patch.context() as patched:
        patched.setattr(MappingOptions, "prunes", prunes)
        patched.setattr(candidate_search.CandidateFinder, "find", counted)
        mapper = BlockMapper(reference, options)
        sizes = mapper.pair_sizes(SIZES if paired else None)
        columns = mapper.map_block(mapped.block, mapped.mems, sizes)
    return columns, counts[0]


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_alignments_are_the_same_without_the_candidates_that_are_dropped(seed, paired, monkeypatch):
    random = np.random.default_rng(seed)
    bases = genome(random)
    reference = reference_of([bases])
    mapped = Mapped(block_of(pairs(random, bases, 20), paired), reference, SEED)
    kept, few = columns_of(mapped, reference, True, paired, monkeypatch)
    every, many = columns_of(mapped, reference, False, paired, monkeypatch)
    for field in AlignmentColumns._fields:
        ours, others = getattr(kept, field), getattr(every, field)
        assert np.array_equal(ours, others), field
    assert 0 < few < (0.85 if paired else 0.95) * many


def test_all_candidates_are_kept_for_secondary_alignments():
    assert MappingOptions(SEED).prunes
    assert not MappingOptions(SEED, max_secondary=1).prunes
