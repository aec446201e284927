"""The few policies that are tried with each change hold each pair of what they may be."""

from dataclasses import astuple
from itertools import combinations

import pytest
from helpers.pairwise import layouts_to_try, name_of, pairs_in, pairwise_policies, pairwise_rows
from helpers.trees import LAYOUTS, WIDE_LAYOUTS

FACTORS = 8


def test_policies_and_formats_meet_in_all_pairs():
    choices = pairwise_policies()
    rows = [(*astuple(policy), wide) for policy, wide in choices]
    for one, other in combinations(range(FACTORS), 2):
        met = {(row[one], row[other]) for row in rows}
        assert met == {(False, False), (False, True), (True, False), (True, True)}, (one, other)
    assert len(choices) < 10, "few of 256"
    names = [name_of(choice) for choice in choices]
    assert len(set(names)) == len(names)


def test_a_pair_that_is_left_out_would_be_noticed():
    rows = pairwise_rows([2] * FACTORS)
    needed = set().union(*map(pairs_in, rows))
    assert len(needed) == 4 * FACTORS * (FACTORS - 1) // 2
    # No row stands there for nothing.
    for left_out in rows:
        others = [pairs_in(row) for row in rows if row != left_out]
        assert set().union(*others) < needed


@pytest.mark.parametrize("levels", [(2, 3), (3, 2, 4), (2, 2, 2, 3)])
def test_factors_may_have_several_values(levels):
    rows = pairwise_rows(levels)
    for one, other in combinations(range(len(levels)), 2):
        assert len({(row[one], row[other]) for row in rows}) == levels[one] * levels[other]
    assert all(0 <= value < most for row in rows for value, most in zip(row, levels, strict=True))


def test_each_pair_of_layouts_is_among_the_few():
    few = [param.values[0] for param in layouts_to_try(LAYOUTS + WIDE_LAYOUTS) if not param.marks]
    rows = [astuple(layout) for layout in few]
    assert len(rows) < 10
    for one, other in combinations(range(5), 2):
        assert len({(row[one], row[other]) for row in rows}) == 4
    assert len(layouts_to_try(LAYOUTS + WIDE_LAYOUTS)) == 32
