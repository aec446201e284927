"""The sizes of templates: from the first 5' end of a pair to the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, floor, log, sqrt
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int32Array, Int64Array

LEAST_PAIRS: Final = 25
"""The fewest pairs from which sizes are estimated."""

MOST_BASES: Final = 10_000
"""Larger sizes do not count (as bwa mem has it): mates so far apart, as those of chimeras are, say
nothing about templates, and mates would be looked for in windows as wide."""

OUTLIER_RANGES: Final = 2.0
"""Sizes so many interquartile ranges beyond a quartile do not count for mean and deviation."""

PROPER_RANGES: Final = 3.0
PROPER_DEVIATIONS: Final = 4.0
"""A proper pair is within so many interquartile ranges of the quartiles, or within so many standard
deviations of the mean, whichever is wider (as bwa mem has it)."""

PAIR_POINTS: Final = 0.721
"""The points of the logarithm of a probability: ``1 / ln 4``, as a point is a factor of 4."""

FARTHEST_DEVIATIONS: Final = 7.0
"""Sizes farther from the mean are as unlikely as mates that are not a pair."""


@dataclass(frozen=True)
class InsertSizes:
    """The distribution of the sizes of templates whose mates face each other.

    Attributes
    ----------
    mean, deviation : float
        The mean and the standard deviation, in bases.
    least, most : int
        The sizes of a proper pair.
    """

    mean: float
    deviation: float
    least: int
    most: int

    @classmethod
    def of_user(
        cls, mean: float, deviation: float, most: int | None = None, least: int | None = None
    ) -> InsertSizes:
        """Return the distribution that a user describes; bounds are 4 deviations from the mean."""
        return cls(
            mean,
            deviation,
            max(1, floor(mean - PROPER_DEVIATIONS * deviation + 0.5)) if least is None else least,
            floor(mean + PROPER_DEVIATIONS * deviation + 0.5) if most is None else most,
        )

    def penalties(self, unpaired: int, unit: int) -> tuple[int, Int32Array]:
        """Return what the size of a template takes from the score of a pair.

        Parameters
        ----------
        unpaired : int
            The penalty of mates that are not a proper pair, in points; no size costs more.
        unit : int
            The fractions of a point that the penalties are counted in.

        Returns
        -------
        first : int
            The smallest size that is listed, in bases.
        penalties : ndarray, dtype=int32, shape=(n_sizes,)
            The penalty of each size from `first` on.
        """
        reach = FARTHEST_DEVIATIONS * self.deviation
        first = max(1, min(self.least, floor(self.mean - reach)))
        last = max(self.most, floor(self.mean + reach))
        most = unpaired * unit
        values = np.empty(last + 1 - first, dtype=np.int32)
        for size in range(first, last + 1):
            deviations = abs(size - self.mean) / self.deviation
            share = 2.0 * erfc(deviations / sqrt(2.0))
            points = -PAIR_POINTS * log(share) if share > 0 else unpaired
            values[size - first] = max(0, min(most, floor(points * unit + 0.5)))
        return first, values


def estimate_insert_sizes(sizes: Int64Array) -> InsertSizes | None:
    """Return the distribution of the sizes of well placed pairs.

    Parameters
    ----------
    sizes : ndarray, dtype=int64, shape=(n_pairs,)
        The sizes in bases.

    Returns
    -------
    InsertSizes or None
        None if there are fewer than `LEAST_PAIRS` of at most `MOST_BASES` bases.
    """
    sizes = sizes[sizes <= MOST_BASES]
    if sizes.size < LEAST_PAIRS:
        return None
    ordered = np.sort(sizes)
    low, high = (int(ordered[int(share * sizes.size + 0.499)]) for share in (0.25, 0.75))
    spread = high - low
    least, most = low - OUTLIER_RANGES * spread, high + OUTLIER_RANGES * spread
    kept = ordered[(ordered >= max(1.0, least)) & (ordered <= most)].astype(np.float64)
    mean = float(kept.mean())
    deviation = max(1.0, float(sqrt(float(((kept - mean) ** 2).mean()))))
    proper_least = min(low - PROPER_RANGES * spread, mean - PROPER_DEVIATIONS * deviation)
    proper_most = max(high + PROPER_RANGES * spread, mean + PROPER_DEVIATIONS * deviation)
    return InsertSizes(
        mean, deviation, max(1, floor(proper_least + 0.499)), floor(proper_most + 0.499)
    )
