"""Layouts in groups by the textures that they use, as in section 4 of the paper."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np

from mummergpu.index.tree.policy import Policy
from mummergpu.runtime.frozen import frozen
from mummergpu.studies.analysis.effects import Pair, PolicyEffect
from mummergpu.studies.analysis.timings import Timings, letters_of, policy_order, ranking_of

TEXTURES: Final = "QRT"

CLUSTERS: Final = tuple(
    "".join(letters) for count in range(4) for letters in combinations(TEXTURES, count)
)
"""The letters of the textures in use: the eight groups, from none to all three."""


@frozen
class TextureCluster:
    """The layouts that use the same textures.

    Attributes
    ----------
    textures : str
        The letters of the textures; empty if there are none.
    policies : tuple of Policy
        The layouts, the fastest first.
    ratios : tuple of float
        How many times as long each takes as the fastest layout of all.
    """

    textures: str
    policies: tuple[Policy, ...]
    ratios: tuple[float, ...]

    @property
    def median(self) -> float:
        """The median of the ratios."""
        return float(np.median(self.ratios))


@frozen
class Bar:
    """One bar of a figure of the paper: what switching a policy on does to one layout.

    Attributes
    ----------
    textures : str
        The letters of the textures that the layout uses besides.
    label : str
        The letters of its other policies; ``control`` if there are none.
    pair : Pair
        The two layouts and the change.
    """

    textures: str
    label: str
    pair: Pair


def texture_clusters(timings: Timings, stage: str) -> tuple[TextureCluster, ...]:
    """Return the layouts that were measured, in groups by their textures; no group is empty."""
    ranking = ranking_of(timings, stage)
    found = []
    for textures in CLUSTERS:
        rows = [
            row for row, policy in enumerate(ranking.policies) if textures_of(policy) == textures
        ]
        if rows:
            ratios = tuple(float(ranking.ratios[row]) for row in rows)
            found.append(TextureCluster(textures, tuple(ranking.policies[r] for r in rows), ratios))
    return tuple(found)


def textures_of(policy: Policy) -> str:
    """Return the letters of the textures that a policy uses."""
    return "".join(letter for letter in letters_of(policy) if letter in TEXTURES)


def texture_name(textures: str) -> str:
    """Return the letters of a group's textures, or ``none``."""
    return textures or "none"


def bars_of(effect: PolicyEffect, leave_out: str = "r") -> tuple[Bar, ...]:
    """Return the pairs of an effect in the order of the paper's figures.

    They are in groups by textures, and in a group from few letters to many. Layouts with a letter
    of `leave_out` get no bar: the paper's figures leave out those with the two-dimensional
    reference (section 4.1).
    """
    bars = []
    for pair in sorted(effect.pairs, key=lambda one: policy_order(one.off)):
        letters = letters_of(pair.off)
        if not set(letters) & set(leave_out):
            rest = "".join(letter for letter in letters if letter not in TEXTURES)
            bars.append(Bar(textures_of(pair.off), rest or "control", pair))
    return tuple(sorted(bars, key=lambda bar: CLUSTERS.index(bar.textures)))
