"""HMMER's correction for composition: a background of two states, one with the profile's residues.

Its Forward score is computed here with doubles, and without a logarithm a residue; HMMER's own, in
float32, differs by what `BiasFilter.scores` tells.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.hmm.proteins import CODES, DEGENERATE, RESIDUES, SYMBOLS, ProteinBlock
from mummergpu.hmm.tables import BACKGROUND
from mummergpu.runtime.arrays import Float32Array, Float64Array, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts

_SCALE: Final = 1e-100
"""Sums below it are scaled up, and counted."""

_MARGIN: Final = 0.007
"""How far HMMER's score may be from ours, in nats, and more for long sequences."""


class BiasFilter:
    """The corrected background of a profile, whose mean composition it takes.

    Attributes
    ----------
    odds : ndarray of float64, shape (29,)
        How much likelier each code is in the profile's composition.
    steps : ndarray of float64, shape (2,)
        The chances to leave the state with that composition, and to stay.
    """

    def __init__(self, composition: Float32Array, nodes: int) -> None:
        odds = np.ones(CODES, dtype=np.float32)
        odds[:RESIDUES] = composition / BACKGROUND
        for letter, meant in DEGENERATE.items():
            codes = [SYMBOLS.index(one) for one in meant]
            odds[SYMBOLS.index(letter)] = composition[codes].sum() / BACKGROUND[codes].sum()
        stay = nodes / 8 / (nodes / 8 + 1)
        self.odds: Float64Array = odds.astype(np.float64)
        self.steps = np.array([1 - stay, stay])

    def scores(
        self, block: ProteinBlock, sequences: Int64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return the scores of some sequences in nats, and how far HMMER's may be from them."""
        same = np.zeros(sequences.size, dtype=np.int64)
        return bias_scores(block, self.odds[np.newaxis], self.steps[np.newaxis], same, sequences)


def bias_scores(
    block: ProteinBlock,
    odds: Float64Array,
    steps: Float64Array,
    profiles: Int64Array,
    sequences: Int64Array,
) -> tuple[Float64Array, Float64Array]:
    """Return what `BiasFilter.scores` does, for pairs; odds and steps have a row a profile."""
    sums = np.empty((2, sequences.size), dtype=np.float64)
    _fill_sums(block, odds, steps, profiles, sequences, sums)
    return scores_of_sums(sums, block.offsets[sequences + 1] - block.offsets[sequences])


def scores_of_sums(sums: Float64Array, sizes: Int64Array) -> tuple[Float64Array, Float64Array]:
    """Return what `BiasFilter.scores` does, from chances, how often each was scaled, and lengths.

    A chance is scaled up by 1e100, or down if the number is negative.
    """
    lengths = sizes.astype(np.float64)
    odds = np.log(sums[0]) + sums[1] * np.log(_SCALE)
    scores = odds + lengths * np.log(lengths / (lengths + 1)) - np.log(lengths + 1)
    # HMMER adds a float32 for each residue.
    rounding = np.spacing(np.abs(odds).astype(np.float32) + np.float32(20)) + 1e-6
    return scores, _MARGIN + lengths * rounding


@jit_without_refcounts
def _fill_sums(
    block: ProteinBlock,
    odds: Float64Array,
    steps: Float64Array,
    profiles: Int64Array,
    sequences: Int64Array,
    sums: Float64Array,
) -> None:
    for candidate in range(sequences.size):
        profile = profiles[candidate]
        leave, remain = steps[profile, 0], steps[profile, 1]
        begin = block.offsets[sequences[candidate]]
        end = block.offsets[sequences[candidate] + 1]
        stay = (end - begin) / (end - begin + 1.0)
        plain, biased = 0.999, 0.001 * odds[profile, block.codes[begin]]
        scaled = 0
        for place in range(begin + 1, end):
            leaving = plain * (1.0 - stay)
            plain = plain * stay + biased * leave
            biased = (leaving + biased * remain) * odds[profile, block.codes[place]]
            total = plain + biased
            if total < 1e-100:
                plain, biased, scaled = plain * 1e100, biased * 1e100, scaled + 1
            elif total > 1e100:
                plain, biased, scaled = plain * 1e-100, biased * 1e-100, scaled - 1
        sums[0, candidate] = plain + biased
        sums[1, candidate] = scaled
