"""The sizes of templates, from the first 5' end of a pair to the other.

They are measured on pairs that are well placed, described by a distribution, and become penalties.
"""

from __future__ import annotations

from math import erfc, floor, log, sqrt
from typing import Final

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.mapping.candidates.candidates import RESCUE_ROWS, Candidates
from mummergpu.mapping.placing.choice import Choices
from mummergpu.mapping.placing.log_odds import UNIT
from mummergpu.mapping.placing.pairing import Pairing, are_facing, template_size
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import jit_without_refcounts

MOST_TOLD: Final = 1e6
"""What a user tells of sizes is less, in bases."""

MIN_PAIRS: Final = 25
"""The fewest pairs from which sizes are estimated."""

MAX_BASES: Final = 10_000
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

WELL_PLACED: Final = 20
"""The least mapping quality of mates whose template's size counts."""

BARELY_PLACED: Final = 1
"""The least one where too few are well placed, as in a reference of nothing but satellites."""


@frozen
class InsertSizes:
    """The distribution of the sizes of templates whose mates face each other.

    Attributes
    ----------
    mean, deviation : float
        The mean and the standard deviation, in bases.
    min_size, max_size : int
        The sizes of a proper pair.
    """

    mean: float
    deviation: float
    min_size: int
    max_size: int

    @classmethod
    def of_user(
        cls,
        mean: float,
        deviation: float,
        max_size: int | None = None,
        min_size: int | None = None,
    ) -> InsertSizes:
        """Return the distribution that a user describes; bounds are 4 deviations from the mean."""
        told = [one for one in (mean, deviation, max_size, min_size) if one is not None]
        if not all(0 < one < MOST_TOLD for one in told):
            text = ", ".join(f"{one:g}" for one in told)
            raise OptionError("insert_size", f"{text} are not numbers of bases")
        if max_size is not None and min_size is not None and max_size < min_size:
            text = f"the largest size, {max_size}, is below the smallest"
            raise OptionError("insert_size", text)
        if min_size is None:
            min_size = max(1, floor(mean - PROPER_DEVIATIONS * deviation + 0.5))
        if max_size is None:
            max_size = floor(mean + PROPER_DEVIATIONS * deviation + 0.5)
        return cls(mean, deviation, min_size, max_size)

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
        first = max(1, min(self.min_size, floor(self.mean - reach)))
        last = max(self.max_size, floor(self.mean + reach))
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
        None if there are fewer than `MIN_PAIRS` of at most `MAX_BASES` bases.
    """
    sizes = sizes[sizes <= MAX_BASES]
    if sizes.size < MIN_PAIRS:
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


def insert_sizes_of(measured: Int64Array) -> InsertSizes | None:
    """Return the distribution of measured templates, of the well placed ones if possible."""
    sizes, qualities = measured
    found = estimate_insert_sizes(sizes[qualities >= WELL_PLACED])
    return estimate_insert_sizes(sizes) if found is None else found


@frozen
class PairSizes:
    """What `InsertSizes` mean for the compiled functions.

    Attributes
    ----------
    sizes : InsertSizes or None
        The distribution; None if no pairs are proper.
    first : int
        The smallest size that has a penalty.
    penalties : ndarray, dtype=int32
        The penalty of each size from `first` on, in units.
    """

    sizes: InsertSizes | None
    first: int
    penalties: Int32Array

    @classmethod
    def of_sizes(cls, sizes: InsertSizes | None, unpaired: int) -> PairSizes:
        """Return the penalties of a distribution."""
        if sizes is None:
            return cls(None, 0, np.zeros(1, dtype=np.int32))
        return cls(sizes, *sizes.penalties(unpaired, UNIT))

    @property
    def proper(self) -> tuple[int, int]:
        """The sizes of proper pairs; zeros if no pair is proper."""
        return (0, 0) if self.sizes is None else (self.sizes.min_size, self.sizes.max_size)

    @property
    def last(self) -> int:
        """The largest size that has a penalty; 0 if no pairs are proper."""
        return 0 if self.sizes is None else self.first + self.penalties.size - 1

    def pairing(self, paired: bool, unpaired: int) -> Pairing:
        """Return what compiled functions know about templates."""
        mates, rescue_rows = (2, RESCUE_ROWS) if paired else (1, 0)
        return Pairing(
            *(mates, rescue_rows, self.first, self.last, unpaired, *self.proper, self.penalties)
        )


@jit_without_refcounts
def measure_templates(
    offsets: Int64Array, choices: Choices, table: Candidates, measured: Int64Array
) -> int:
    """Measure the templates whose mates are placed and face each other; return how many.

    `offsets` says where each read begins; in the order of the pairs, the first row of `measured`
    gets the sizes, and the second the lower quality of both mates.
    """
    count = 0
    for read in range(0, offsets.size - 1, 2):
        row, mate = choices.candidates[read], choices.candidates[read + 1]
        quality = min(choices.qualities[read], choices.qualities[read + 1])
        if row < 0 or mate < 0 or quality < BARELY_PLACED or not are_facing(table, row, mate):
            continue
        length = offsets[read + 1] - offsets[read]
        size = template_size(table, row, length, mate, offsets[read + 2] - offsets[read + 1])
        if size > 0:
            measured[0, count], measured[1, count] = size, quality
            count += 1
    return count
