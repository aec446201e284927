"""Few settings in which each two factors have been together in all their values.

A fault that needs two flags to be in certain states, whichever they are, shows up in one of
them; what needs three is for the tests that try every setting.
"""

from dataclasses import fields
from functools import cache
from itertools import combinations, product

import pytest

from helpers.trees import layout_id
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy


def pairs_in(row):
    """Return the pairs of values that a row holds."""
    return {(one, row[one], other, row[other]) for one, other in combinations(range(len(row)), 2)}


def all_pairs(levels):
    """Return the pairs of values that factors can have, by how many values each has."""
    return {
        (one, value, other, another)
        for one, other in combinations(range(len(levels)), 2)
        for value, another in product(range(levels[one]), range(levels[other]))
    }


def pairwise_rows(levels):
    """Return rows that hold all pairs together: each time the one with the most new pairs.

    A factor has as many values as its level. A row that later ones made superfluous is left out.
    """
    left, rows = all_pairs(levels), []
    every = [(row, pairs_in(row)) for row in product(*map(range, levels))]
    while left:
        row, pairs = max(every, key=lambda choice: len(choice[1] & left))
        rows.append(row)
        left -= pairs
    for row in rows[:]:
        others = [other for other in rows if other != row]
        if set().union(*map(pairs_in, others)) == all_pairs(levels):
            rows = others
    return rows


def _choice_of(row):
    flags = len(fields(Policy))
    return Policy(*map(bool, row[:flags])), bool(row[flags])


@cache
def pairwise_policies():
    """Return policies, each with whether nodes are wide, that hold all pairs of the eight."""
    return [_choice_of(row) for row in pairwise_rows([2] * 8)]


def pairwise_programs(architectures):
    """Return such choices with architectures, for ``pytest.mark.parametrize``: all pairs."""
    rows = pairwise_rows([2] * 8 + [len(architectures)])
    chosen = [(architectures[row[-1]], _choice_of(row)) for row in rows]
    return [pytest.param(*one, id=f"{one[0]}-{name_of(one[1])}") for one in chosen]


def layouts_to_try(layouts):
    """Return layouts for ``pytest.mark.parametrize``: beside those of few policies all are slow."""
    few = {Layout.of(*choice) for choice in pairwise_policies()}
    assert few & set(layouts)
    return [
        pytest.param(layout, marks=() if layout in few else pytest.mark.slow, id=layout_id(layout))
        for layout in layouts
    ]


def name_of(choice):
    """Return the letters of a policy, and ``W`` for wide nodes."""
    policy, wide = choice
    return policy.code + "W" * wide
