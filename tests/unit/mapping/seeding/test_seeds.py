"""What the lengths of seeds promise: placements with few edits have a match of that length."""

import random
from itertools import pairwise

import pytest

from mummergpu.mapping.options import (
    BASES_OF_EDIT,
    LONGEST_SECOND_SEED,
    LONGEST_SEED,
    MIN_EDITS,
    SHORTEST_SECOND_SEED,
    SHORTEST_SEED,
    second_seed_length,
    seed_length,
)

LENGTHS = (*range(20, 400, 7), 1000, 1500)


def longest_match(length, edits):
    """The longest stretch of a read without edits, which replace a base each."""
    ends = [-1, *sorted(edits), length]
    return max(after - before - 1 for before, after in pairwise(ends))


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
