"""Tables of whole numbers that describe a platform, for the loops in `read_sequencing`.

A declaration gives points and rates. This module turns them into 32-bit thresholds for each of
`BINS` equal parts of a read, so that the loops need no floating-point numbers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int64Array, UInt64Array
from mummergpu.workload.declaration import Reads
from mummergpu.workload.splitmix import threshold

BINS: Final = 256

# The events that can happen at a base. The first four are also the columns of their thresholds.
UNKNOWN, DELETION, INSERTION, SUBSTITUTION, REPETITION, RIGHT = range(6)
QUALITY: Final = 4
"""The column of the mean Phred quality."""

# Indices in the table of lengths.
MINIMUM, MAXIMUM, MEAN, SCALE = range(4)

_DICE_DEVIATION: Final = 37837.227
"""The standard deviation of the sum of four 16-bit random numbers."""


def error_table(reads: Reads) -> UInt64Array:
    """Return the thresholds of the errors and the mean quality, for each part of a read.

    Returns
    -------
    ndarray, dtype=uint64, shape=(BINS, 5)
        The cumulative thresholds of `UNKNOWN`, `DELETION`, `INSERTION` and `SUBSTITUTION`, and
        the mean quality of a correct base, which is 0 for reads without qualities.
    """
    rates = [reads.unknown, reads.deletion, reads.insertion, reads.substitution]
    quality = [(x, round(phred)) for x, phred in reads.quality] or [(0.0, 0), (1.0, 0)]
    table = np.empty((BINS, 5), dtype=np.uint64)
    for part in range(BINS):
        total = 0
        for column, profile in enumerate(rates):
            total += _interpolate([(x, threshold(rate)) for x, rate in profile], part)
            table[part, column] = total
        table[part, QUALITY] = _interpolate(quality, part)
    return table


def _interpolate(points: list[tuple[float, int]], part: int) -> int:
    """Return the rounded height of a curve of straight lines, in the middle of a part."""
    place = (2 * part + 1) << 15
    scaled = [(round(x * (BINS << 16)), height) for x, height in points]
    left, right = next(pair for pair in pairwise(scaled) if place <= pair[1][0])
    run, rise = right[0] - left[0], right[1] - left[1]
    return left[1] + (2 * rise * (place - left[0]) + run) // (2 * run)


def homopolymer_table(reads: Reads) -> UInt64Array:
    """Return the thresholds for calling a run of 1, 2, 3... equal bases with a wrong length.

    There are none for platforms that read base by base.
    """
    return np.array([threshold(rate) for rate in reads.homopolymer], dtype=np.uint64)


def length_table(reads: Reads) -> Int64Array:
    """Return the numbers that read lengths are drawn from.

    Returns
    -------
    ndarray, dtype=int64, shape=(4,)
        `MINIMUM`, `MAXIMUM` and `MEAN` in bases; and `SCALE`, the factor in units of 2**-32
        that turns the sum of four 16-bit random numbers into bases.
    """
    scale = round(reads.length_deviation * 2**32 / _DICE_DEVIATION)
    lengths = [reads.length_minimum, reads.length_maximum, round(reads.length_mean), scale]
    return np.array(lengths, dtype=np.int64)


def template_table(reads: Reads) -> Int64Array:
    """Return the numbers that the lengths of templates are drawn from, as `length_table` does.

    They lie within four standard deviations of their mean, and a template has a whole read.
    """
    mean, deviation = round(reads.template_mean), reads.template_deviation
    least = max(reads.length_maximum, round(mean - 4 * deviation))
    scale = round(deviation * 2**32 / _DICE_DEVIATION)
    return np.array([least, max(least, round(mean + 4 * deviation)), mean, scale], dtype=np.int64)
