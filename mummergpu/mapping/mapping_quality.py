"""Mapping qualities: how likely it is that another placement than the chosen one is right."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.candidates import (
    CREDIT,
    DEAD,
    SCORE,
    STATE,
    Reads,
    Table,
    read_length,
)
from mummergpu.mapping.evidence import UNIT
from mummergpu.mapping.pairing import LAST_SIZE, UNPAIRED, Pairing, pair_penalty, partner_range
from mummergpu.mapping.ungapped import MOST_GAP
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, widened
from mummergpu.viterbi.model import CostTuple

Float64Array = npt.NDArray[np.float64]

Odds = tuple[Float64Array, Float64Array]
"""What `evidence.weights_of_units` and `evidence.quality_thresholds` return."""

FARTHEST: Final = 60 * 32
"""Placements that are so much worse, in units, weigh nothing."""

PAIRED_DOUBT: Final = 1.7
DOUBT_OF_SHORT: Final = 90.0
UNPAIRED_DOUBT: Final = 12.0
"""How many times likelier an error is than scores say, since the model knows neither variants that
make one copy of a repeat look like another, nor copies that the reference lacks: of a proper pair,
which grows with the inverse of the read's length, and of a placement that no mate supports."""


@inline_without_refcounts
def units_of(table: Table, row: int) -> int:
    """Return the score of a candidate in units, with its credit.

    Parameters
    ----------
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    row : int
        The candidate.

    Returns
    -------
    int
        What counts when placements are compared.
    """
    numbers = table[3]
    return widened(numbers[row, SCORE]) * UNIT + widened(numbers[row, CREDIT])


@inline_without_refcounts
def weight_of(units: int, fractions: Float64Array) -> float:
    """Return the weight of a placement that is so many units worse than the best.

    Parameters
    ----------
    units : int
        By how much it is worse; less than 0 counts as 0.
    fractions : ndarray, dtype=float64, shape=(32,)
        What `evidence.weights_of_units` returns.

    Returns
    -------
    float
        From 0 to 1, which is the weight of the best.
    """
    if units > FARTHEST:
        return 0.0
    units = max(0, units)
    return fractions[units & 31] / np.float64(np.int64(1) << (units >> 5))  # type: ignore[no-any-return]


@inline_without_refcounts
def weight_of_others(
    table: Table, read: int, chosen: int, best: int, fractions: Float64Array
) -> float:
    """Return the weights of all candidates of a read but the chosen one.

    Parameters
    ----------
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    read : int
        The read.
    chosen : int
        Its candidate that is chosen.
    best : int
        The units of the best candidate, whose weight is 1.
    fractions : ndarray, dtype=float64, shape=(32,)
        What `evidence.weights_of_units` returns.

    Returns
    -------
    float
        Their sum.
    """
    total = 0.0
    for row in range(table[0][read], table[0][read] + table[1][read]):
        if table[3][row, STATE] != DEAD and row != chosen:
            total += weight_of(best - units_of(table, row), fractions)
    return total


@jit_without_refcounts
def weigh_pairs(
    read: int,
    reads: Reads,
    costs: CostTuple,
    pairing: Pairing,
    fractions: Float64Array,
    table: Table,
    singles: tuple[int, int],
    chosen: tuple[int, int],
    joint: int,
) -> tuple[float, float, float]:
    """Return the weights of all placements of a pair, and of those unlike the chosen ones.

    Parameters
    ----------
    read : int
        The first mate.
    reads : tuple of ndarray
        The reads (`candidates.Reads`).
    costs : tuple of int
        The scores (`viterbi.model.Costs`).
    pairing : tuple
        The sizes of templates (`pairing.Pairing`).
    fractions : ndarray, dtype=float64, shape=(32,)
        What `evidence.weights_of_units` returns.
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    singles : tuple of int
        The units of each mate's best candidate.
    chosen : tuple of int
        The chosen candidates.
    joint : int
        The units of the chosen pair, whose weight is 1.

    Returns
    -------
    tuple of float
        The sum for all placements; for those that place the first mate elsewhere; and for those
        that place the second mate elsewhere.
    """
    numbers = table[3]
    best, other_best = singles
    sum0 = weight_of_others(table, read, chosen[0], best, fractions)
    sum1 = weight_of_others(table, read + 1, chosen[1], other_best, fractions)
    own0 = weight_of(best - units_of(table, chosen[0]), fractions)
    own1 = weight_of(other_best - units_of(table, chosen[1]), fractions)
    unpaired = weight_of(joint - (best + other_best - pairing[UNPAIRED] * UNIT), fractions)
    total = unpaired * (sum0 + own0) * (sum1 + own1)
    others0 = unpaired * sum0 * (sum1 + own1)
    others1 = unpaired * (sum0 + own0) * sum1
    if pairing[LAST_SIZE] == 0:
        return total, others0, others1
    length, other_length = read_length(reads, read), read_length(reads, read + 1)
    for row in range(table[0][read], table[0][read] + table[1][read]):
        units = units_of(table, row)
        if numbers[row, STATE] == DEAD or joint - units - other_best > FARTHEST:
            continue
        begin, end = partner_range(
            table, row, length, read + 1, other_length, pairing, costs[MOST_GAP]
        )
        for other in range(begin, end):
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if numbers[other, STATE] == DEAD or penalty < 0:
                continue
            weight = weight_of(joint - (units + units_of(table, other) - penalty), fractions)
            total += weight
            others0 += weight if row != chosen[0] else 0.0
            others1 += weight if other != chosen[1] else 0.0
    return total, others0, others1


@inline_without_refcounts
def quality_of(error: float, is_proper: bool, length: int, thresholds: Float64Array) -> int:
    """Return the mapping quality of a placement.

    Parameters
    ----------
    error : float
        The share of other placements in the weight of all.
    is_proper : bool
        Whether the read is one of a proper pair.
    length : int
        The bases of the read.
    thresholds : ndarray, dtype=float64
        What `evidence.quality_thresholds` returns.

    Returns
    -------
    int
        From 0 to `evidence.BEST_QUALITY`.
    """
    if is_proper:
        error *= PAIRED_DOUBT + DOUBT_OF_SHORT / length
    else:
        error *= UNPAIRED_DOUBT
    quality = 0
    while error <= thresholds[quality + 1]:
        quality += 1
    return quality
