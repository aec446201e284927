"""Seeds and windows of reads, and the candidates that are dropped, which change nothing."""

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases

from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import (
    BASES_OF_EDIT,
    LONGEST_SECOND_SEED,
    LONGEST_SEED,
    MIN_EDITS,
    SHORTEST_SECOND_SEED,
    SHORTEST_SEED,
    InsertSizes,
    MappingOptions,
    has_enough_windows,
    second_seed_length,
    seed_length,
)
from mummergpu.mapping.seeding import candidate_search
from mummergpu.mapping.seeding.windows import matches_of_windows, shortest_sure_match
from mummergpu.sequence.mems import MemColumns

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
        found = find(*arguments)
        counts.append(int(found[0].counts.sum()))
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
    assert MappingOptions(SEED).prunes and not MappingOptions(SEED, max_secondary=1).prunes


LENGTHS = (*range(20, 400, 7), 1000, 1500)


def longest_match(length, edits):
    """The longest stretch of a read without edits, which replace a base each."""
    return max(after - before - 1 for before, after in pairwise([-1, *sorted(edits), length]))


@pytest.mark.parametrize(
    ("read_length", "expected"),
    [(20, 16), (84, 16), (85, 17), (100, 20), (150, 30), (200, 33), (250, 35), (1500, 39)],
)
def test_the_usual_reads_have_these_seeds(read_length, expected):
    assert seed_length(read_length) == expected


def test_placements_with_the_promised_edits_have_a_seed_wherever_they_are():
    made = random.Random(5)
    for length in LENGTHS:
        seed = seed_length(length)
        edits = max(MIN_EDITS, length // BASES_OF_EDIT)
        spread = [(place + 1) * (length + 1) // (edits + 1) - 1 for place in range(edits)]
        worst = longest_match(length, spread)
        others = [made.sample(range(length), edits) for _ in range(20)]
        # No arrangement has a shorter longest match than edits that are spread evenly.
        assert all(longest_match(length, some) >= worst for some in others)
        if SHORTEST_SEED < seed < LONGEST_SEED:
            assert worst == seed
            one_more = [(place + 1) * (length + 1) // (edits + 2) - 1 for place in range(edits + 1)]
            assert longest_match(length, one_more) < seed
        else:
            assert seed == (SHORTEST_SEED if worst <= SHORTEST_SEED else LONGEST_SEED)


@pytest.mark.parametrize(
    ("first", "expected"), [(12, 12), (16, 12), (18, 12), (21, 14), (30, 20), (64, 20), (10, 10)]
)
def test_the_second_pass_has_shorter_seeds(first, expected):
    found = second_seed_length(first)
    assert found == expected <= first
    assert min(first, SHORTEST_SECOND_SEED) <= found <= LONGEST_SECOND_SEED


def random_matches(seed, read_count):
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 5, read_count)
    total = int(counts.sum())
    return MemColumns(
        np.concatenate(([0], np.cumsum(counts))),
        generator.integers(0, 120, total),
        generator.integers(0, 10_000, total),
        generator.integers(5, 90, total),
    )


def contains_window(start, length, window):
    return any(
        start <= first and first + window <= start + length for first in range(0, 300, window)
    )


@pytest.mark.parametrize("window", [5, 20, 37])
def test_a_match_stays_if_a_window_lies_in_it(window):
    given = random_matches(window, 200)
    kept = matches_of_windows(given, window)
    expected = []
    for read in range(200):
        for row in range(given.offsets[read], given.offsets[read + 1]):
            start, length = int(given.query_starts[row]), int(given.lengths[row])
            if contains_window(start, length, window):
                expected.append((read, start, int(given.reference_starts[row]), length))
    reads = np.repeat(np.arange(200), np.diff(kept.offsets))
    found = zip(reads, kept.query_starts, kept.reference_starts, kept.lengths, strict=True)
    assert [tuple(map(int, row)) for row in found] == expected
    assert 0 < len(expected) < given.lengths.size


def test_long_matches_contain_a_window_wherever_they_begin():
    window = 37
    sure = shortest_sure_match(window)
    assert all(contains_window(start, sure, window) for start in range(window))
    assert not all(contains_window(start, sure - 1, window) for start in range(window))


@pytest.mark.parametrize("read_length", range(30, 501, 7))
def test_windows_are_used_where_one_stays_whole_under_four_edits(read_length):
    length = seed_length(read_length)
    assert has_enough_windows(read_length, length) == (5 * length <= read_length)
    assert read_length < 80 or has_enough_windows(read_length, length)
