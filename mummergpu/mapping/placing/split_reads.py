"""Places the part of a read that its alignment clips: split reads have supplementary alignments."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.candidates.candidates import (
    CORE_BEGIN,
    CORE_LENGTH,
    DEAD,
    LEFT_TAKEN,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    Int32Array,
    Int64Array,
    Table,
)
from mummergpu.mapping.placing.choice import CHOSEN
from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.mapping.placing.mapping_quality import (
    Float64Array,
    Odds,
    Rivals,
    kinship_of,
    quality_of,
    weight_of,
)
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, widened

LEAST_CLIPPED: Final = 20
"""The fewest clipped bases for which another alignment is looked for."""

MOST_SHARED: Final = 2
"""Two alignments of a read are of two parts of it if they share less than one of so many of the
bases of the shorter one."""

Interval = tuple[int, int]
"""A half-open range of the bases of a read."""


@inline_without_refcounts
def read_interval(table: Table, row: int, length: int) -> Interval:
    """Return the part of a read that a candidate aligns, on the read's own strand.

    Parameters
    ----------
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    row : int
        The candidate.
    length : int
        The bases of the read.

    Returns
    -------
    tuple of int
        A half-open range of bases of the read.
    """
    numbers = table[3]
    core_begin = widened(numbers[row, CORE_BEGIN])
    begin = core_begin - widened(numbers[row, LEFT_TAKEN])
    end = core_begin + widened(numbers[row, CORE_LENGTH]) + widened(numbers[row, RIGHT_TAKEN])
    if numbers[row, STRAND] == 0:
        return begin, end
    return length - end, length - begin


@inline_without_refcounts
def are_apart(one: Interval, other: Interval) -> bool:
    """Return whether two parts of a read share little.

    Parameters
    ----------
    one, other : tuple of int
        The half-open ranges.

    Returns
    -------
    bool
        Whether they share less than the share of the shorter one that `MOST_SHARED` says.
    """
    shared = min(one[1], other[1]) - max(one[0], other[0])
    return shared * MOST_SHARED < min(one[1] - one[0], other[1] - other[0])


@inline_without_refcounts
def best_apart(table: Table, read: int, length: int, aligned: Interval, least_score: int) -> int:
    """Return the best candidate of a read that aligns another part of it.

    Parameters
    ----------
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    read, length : int
        The read, and its bases.
    aligned : tuple of int
        The part that is aligned already.
    least_score : int
        The least score of the candidate.

    Returns
    -------
    int
        The candidate, -1 if there is none.
    """
    offsets, counts, _, numbers = table
    best, score = widened(-1), widened(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        here = widened(numbers[row, SCORE])
        if numbers[row, STATE] != DEAD and here >= least_score and here > score:
            if are_apart(aligned, read_interval(table, row, length)):
                best, score = widened(row), here
    return best


@inline_without_refcounts
def rivals_of_part(table: Table, read: int, length: int, row: int, weights: Float64Array) -> Rivals:
    """Return the weights of the other candidates that align the part of the read that one does.

    Parameters
    ----------
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    read, length : int
        The read, and its bases.
    row : int
        The candidate, whose weight is 1.
    weights : ndarray, dtype=float64
        What `evidence.weights_of_units` returns.

    Returns
    -------
    tuple of float
        The sums of their weights and of their kinships (`mapping_quality.Rivals`).
    """
    offsets, counts, _, numbers = table
    own, score = read_interval(table, row, length), widened(numbers[row, SCORE])
    total, copies = 0.0, 0.0
    for other in range(offsets[read], offsets[read] + counts[read]):
        if other != row and numbers[other, STATE] != DEAD:
            if not are_apart(own, read_interval(table, other, length)):
                units = (score - widened(numbers[other, SCORE])) * UNIT
                total += weight_of(units, weights)
                copies += kinship_of(units, weights)
    return total, copies


@jit_without_refcounts
def split_reads(
    offsets: Int64Array,
    table: Table,
    choices: Int32Array,
    least_score: int,
    odds: Odds,
    extra: tuple[Int64Array, npt.NDArray[np.uint8]],
) -> None:
    """Choose for each read with a long clip a candidate that covers what is clipped.

    Parameters
    ----------
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where each read begins.
    table : tuple of ndarray
        The candidates (`candidates.Candidates`).
    choices : ndarray, dtype=int32, shape=(n_reads, choice.CHOICE_NUMBERS)
        What is chosen for each read.
    least_score : int
        The least score of an alignment that is reported.
    odds : tuple of ndarray
        What mapping qualities are computed from (`mapping_quality.Odds`).
    extra : tuple of ndarray, dtype=int64 and uint8, shape=(n_reads,)
        Output: the other candidate, or -1, and its mapping quality.
    """
    rows, qualities = extra
    for read in range(offsets.size - 1):
        rows[read], qualities[read] = -1, 0
        primary = widened(choices[read, CHOSEN])
        if primary < 0:
            continue
        length = offsets[read + 1] - offsets[read]
        aligned = read_interval(table, primary, length)
        if max(aligned[0], length - aligned[1]) < LEAST_CLIPPED:
            continue
        best = best_apart(table, read, length, aligned, least_score)
        if best >= 0:
            rivals = rivals_of_part(table, read, length, best, odds[0])
            rows[read] = best
            qualities[read] = quality_of(rivals, 1.0 + rivals[0], False, length, odds[1])
