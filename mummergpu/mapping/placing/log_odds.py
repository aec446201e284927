"""What scores and base qualities say about the placement of a read.

A point of a score is a factor of 4 in the odds of a placement, so five points, which a base that
differs costs, are 30 on Phred's scale: about what a base of average quality says.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Float64Array, Int32Array
from mummergpu.viterbi.recurrence.model import Costs

UNIT: Final = 64
"""The fractions of a point in which the scores of pairs are counted."""

FARTHEST: Final = 30 * UNIT
"""Placements that are so much worse, in units, weigh nothing."""

PHRED_OF_POINT: Final = 20 * float(np.log10(2.0))
"""A factor of 4 on Phred's scale."""

PHRED_OF_BASE: Final = 10 * float(np.log10(3.0))
"""An error makes one of three bases."""

HIGHEST_PHRED: Final = 33.0
"""A base that differs says no more than this: the read may truly differ from the reference."""

BEST_QUALITY: Final = 60
"""The best mapping quality."""


def credits_of_qualities(costs: Costs, has_qualities: bool) -> Int32Array:
    """Return how much less than its cost a base that differs says, for each base quality."""
    phred = np.minimum(np.arange(256) + PHRED_OF_BASE, HIGHEST_PHRED)
    points = costs.match + costs.mismatch - phred / PHRED_OF_POINT
    credits = np.rint(points * UNIT).astype(np.int32)
    credits[94:] = 0
    return credits if has_qualities else np.zeros(256, dtype=np.int32)


def likelihoods_of_scores() -> Float64Array:
    """Return the odds of placements that are so many units worse than another."""
    return np.asarray(2.0 ** (-np.arange(FARTHEST + 1) / (UNIT // 2)))


def quality_thresholds() -> Float64Array:
    """Return the largest probability of an error that each mapping quality allows."""
    errors = np.asarray(10.0 ** (-np.arange(BEST_QUALITY + 2) / 10))
    errors[-1] = -1.0
    return errors
