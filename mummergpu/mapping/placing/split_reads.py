"""Places the part of a read that its alignment clips: split reads have supplementary alignments."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    UNIT,
    Candidates,
    Interval,
    are_apart,
    is_rival,
    read_interval,
)
from mummergpu.mapping.placing.choice import Choices, reported_score
from mummergpu.mapping.placing.mapping_quality import (
    Odds,
    Rivals,
    quality_of,
    repeat_similarity_of,
    weight_of,
)
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.viterbi.recurrence.model import Costs

MIN_CLIPPED: Final = 20
"""The fewest clipped bases for which another alignment is looked for."""


@inline
def best_apart(
    table: Candidates, read: int, length: int, aligned: Interval, costs: Costs, min_score: int
) -> int:
    """Return the best candidate of a read that aligns another part of it."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    best, score = as_int64(-1), as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        here = as_int64(numbers[row, column.SCORE])
        if numbers[row, column.STATE] == DEAD or here <= score:
            continue
        if reported_score(table, row, length, costs) < min_score:
            continue
        if are_apart(aligned, read_interval(table, row, length)):
            best, score = as_int64(row), here
    return best


@inline
def rivals_of_part(
    table: Candidates, read: int, length: int, row: int, weights: Float64Array
) -> Rivals:
    """Return the weights of the other candidates that align the part of the read that one does."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    score = as_int64(numbers[row, column.SCORE])
    total, copies = 0.0, 0.0
    for other in range(offsets[read], offsets[read] + counts[read]):
        if is_rival(table, other, row, length):
            score_fixed = (score - as_int64(numbers[other, column.SCORE])) * UNIT
            total += weight_of(score_fixed, weights)
            copies += repeat_similarity_of(score_fixed, weights)
    return total, copies


class Extra(NamedTuple):
    """The supplementary alignment of each read: its candidate, -1 if it has none; its quality."""

    candidates: Int64Array
    qualities: ByteArray


@jit
def split_reads(
    offsets: Int64Array,
    table: Candidates,
    choices: Choices,
    costs: Costs,
    min_score: int,
    odds: Odds,
    extra: Extra,
) -> None:
    """Choose for each read with a long clip a candidate that covers what is clipped."""
    for read in range(offsets.size - 1):
        extra.candidates[read], extra.qualities[read] = -1, 0
        primary = choices.candidates[read]
        if primary < 0:
            continue
        length = offsets[read + 1] - offsets[read]
        aligned = read_interval(table, primary, length)
        if max(aligned[0], length - aligned[1]) < MIN_CLIPPED:
            continue
        best = best_apart(table, read, length, aligned, costs, min_score)
        if best >= 0:
            rivals = rivals_of_part(table, read, length, best, odds.weights)
            quality = quality_of(rivals, 1.0 + rivals[0], False, length, odds.thresholds)
            extra.candidates[read] = best
            extra.qualities[read] = quality
