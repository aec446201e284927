"""The other alignments of a read: supplementary and secondary ones.

The part of a read that its alignment clips may have a place of its own: a supplementary alignment.
Secondary ones, if the user wants them, are all that are good enough, or the alternatives that the
tag XA reports, as bwa mem does: a few that are nearly as good. Each of those belongs to the
alignment of its read, primary or supplementary, with which it shares more bases of the read; they
are listed if they are not too many.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    UNGAPPED,
    UNIT,
    Candidates,
    Interval,
    Scoring,
    are_apart,
    is_rival,
    read_interval,
    read_length,
    shared_bases,
)
from mummergpu.mapping.candidates.key_sort import SortRoom, sort_by_key
from mummergpu.mapping.placing.choice import Choices, reported_score
from mummergpu.mapping.placing.mapping_quality import (
    Odds,
    Rivals,
    quality_of,
    repeat_similarity_of,
    weight_of,
)
from mummergpu.mapping.placing.refinement import refine
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.tiles.band import Scratch

PARTS_OF_PLACE: Final = 20
"""Two alignments are at one place unless they differ in at least one in this many of the reference
bases of the shorter one."""

_MOST_SCORE: Final = 1 << 31
"""More than any score."""

Span = tuple[int, int]
"""A half-open range of the joined reference."""


class Secondary(NamedTuple):
    """The secondary alignments of a block."""

    # Where those of each read begin, and where those of the last read end; (n_reads + 1,).
    offsets: Int64Array
    leading: Int64Array  # How many of a read's come before its supplementary alignment.
    candidates: Int64Array  # Their candidates.


def no_secondary(read_count: int) -> Secondary:
    """Return no secondary alignments, with unfilled offsets."""
    offsets, leading = np.empty(read_count + 1, np.int64), np.empty(read_count, np.int64)
    return Secondary(offsets, leading, np.empty(0, np.int64))


@inline
def reference_span(table: Candidates, row: int) -> Span:
    """Return the bases of the reference that a candidate aligns."""
    numbers = table.numbers
    seed_begin = table.diagonals[row] + numbers[row, column.SEED_BEGIN]
    seed_end = seed_begin + numbers[row, column.SEED_BASES]
    begin = seed_begin + numbers[row, column.LEFT_SHIFT] - numbers[row, column.LEFT_QUERY_BASES]
    return begin, seed_end + numbers[row, column.RIGHT_SHIFT] + numbers[
        row, column.RIGHT_QUERY_BASES
    ]


@inline
def are_at_one_place(one: Span, other: Span) -> bool:
    """Return whether two alignments on one strand share nearly all bases of the shorter one."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return shared * PARTS_OF_PLACE > shorter * (PARTS_OF_PLACE - 1)


@inline
def is_place_listed(table: Candidates, read: int, row: int, reach: int) -> bool:
    """Return whether an alignment at the place of a candidate is listed already."""
    offsets, counts = table.offsets, table.counts
    diagonals, numbers = table.diagonals, table.numbers
    span = reference_span(table, row)
    for step in (-1, 1):
        other = row + step
        while offsets[read] <= other < offsets[read] + counts[read]:
            if numbers[other, column.STRAND] != numbers[row, column.STRAND]:
                break
            if abs(diagonals[other] - diagonals[row]) > reach:
                break
            if numbers[other, column.MARK] != 0 and are_at_one_place(
                span, reference_span(table, other)
            ):
                return True
            other += step
    return False


@inline
def refine_fully(
    scoring: Scoring, read: int, enough: int, scratch: Scratch, table: Candidates, row: int
) -> None:
    """Score a candidate with gaps (`refine`), even if it was scored as far as choices need."""
    numbers = table.numbers
    gapped = numbers[row, column.GAPPED]
    refine(scoring, read, enough, scratch, table, row)
    # A flank whose gap was found before scores no better now, so `refine` does not see it again.
    numbers[row, column.GAPPED] |= gapped


@inline
def collect_others(
    scoring: Scoring,
    read: int,
    bounds: tuple[int, int, int],
    scratch: Scratch,
    room: SortRoom,
    table: Candidates,
    chosen: tuple[int, int],
) -> int:
    """Write a read's placements other than the chosen ones to `room.values`; return how many.

    The best ones come first. Of several candidates at one place only the best one counts, and of
    equal ones the first.

    Parameters
    ----------
    bounds : tuple of int
        The least score of an alignment that is reported; the least score that is of interest, which
        is not smaller; and the most candidates that are collected.
    chosen : tuple of int
        The candidates of the primary alignment and of the supplementary one; -1 if there is none.
    """
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    keys, rows, costs = room.keys, room.values, scoring.costs
    min_score, enough, most = bounds
    length = read_length(scoring.reads, read)
    count = as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        is_chosen = row == chosen[0] or row == chosen[1]
        numbers[row, column.MARK] = 1 if is_chosen else 0
        if is_chosen or numbers[row, column.STATE] == DEAD:
            continue
        if numbers[row, column.STATE] == UNGAPPED and numbers[row, column.BOUND] < enough:
            continue
        refine_fully(scoring, read, enough, scratch, table, row)
        if reported_score(table, row, length, costs) >= min_score:
            keys[count], rows[count] = _MOST_SCORE - as_int64(numbers[row, column.SCORE]), row
            count += 1
    sort_by_key(room, count)
    # The path of an alignment leaves its diagonal by one gap on each side at most.
    reach = length // PARTS_OF_PLACE + 2 * costs.max_gap
    # Kept candidates have a mark, as the chosen ones have; no two of these are at one place.
    kept = as_int64(0)
    for place in range(count):
        if kept == most:
            break
        row = rows[place]
        if not is_place_listed(table, read, row, reach):
            numbers[row, column.MARK] = 1
            rows[kept] = row
            kept += 1
    return kept


@jit
def list_secondary(
    scoring: Scoring,
    min_score: int,
    most: int,
    scratch: Scratch,
    room: SortRoom,
    table: Candidates,
    primary: Int64Array,
    extra: Int64Array,
    secondary: Secondary,
) -> None:
    """List each read's placements other than the chosen ones, the best first, `most` at most.

    `primary` and `extra` are the candidates of each read's primary alignment and of its
    supplementary one, or -1. All that is listed comes after the supplementary alignment.
    """
    filled = 0
    for read in range(table.counts.size):
        secondary.offsets[read] = filled
        secondary.leading[read] = 0
        if primary[read] < 0:
            continue
        chosen, bounds = (primary[read], extra[read]), (min_score, min_score, most)
        count = collect_others(scoring, read, bounds, scratch, room, table, chosen)
        for place in range(count):
            secondary.candidates[filled] = room.values[place]
            filled += 1
    secondary.offsets[table.counts.size] = filled


MIN_PERCENT: Final = 80
"""A place is listed if its score is at least this percentage of that of its alignment."""


@inline
def min_score_beside(table: Candidates, row: int, length: int, costs: Costs) -> int:
    """Return the least score of an alternative to a candidate."""
    score = reported_score(table, row, length, costs)
    return as_int64((score * MIN_PERCENT + 99) // 100)


@inline
def alignment_competed_with(
    table: Candidates,
    row: int,
    length: int,
    costs: Costs,
    chosen: tuple[int, int],
    enough: tuple[int, int],
) -> int:
    """Return to which alignment a candidate is an alternative: 0 primary, 1 supplementary, 2 none.

    `chosen` are the candidates of both (-1 if there is none), `enough` the least scores of an
    alternative to them.
    """
    owner = as_int64(0)
    if chosen[1] >= 0:
        part = read_interval(table, row, length)
        own = read_interval(table, chosen[0], length)
        other = read_interval(table, chosen[1], length)
        if shared_bases(part, other) > shared_bases(part, own):
            owner = as_int64(1)
    min_score = enough[0] if owner == 0 else enough[1]
    return owner if reported_score(table, row, length, costs) >= min_score else as_int64(2)


@inline
def exceeds_limit(
    table: Candidates, read: int, length: int, costs: Costs, chosen: int, bounds: tuple[int, int]
) -> bool:
    """Return whether a read surely has more alternatives than a number, by scores without gaps.

    `bounds` are the least score of an alternative, and the number.
    """
    offsets, counts = table.offsets, table.counts
    diagonals, numbers = table.diagonals, table.numbers
    # No alignment is at the places of two candidates that are so far apart.
    apart = 2 * (length + 2 * costs.max_gap)
    last, strand, count = as_int64(0), as_int64(-1), as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        if numbers[row, column.STRAND] == numbers[chosen, column.STRAND]:
            if abs(diagonals[row] - diagonals[chosen]) <= apart:
                continue
        # A gap adds to the score, but that may be the bonus of an end that it reaches.
        least = as_int64(numbers[row, column.SCORE]) - 2 * costs.end_bonus
        if numbers[row, column.STATE] == DEAD or least < bounds[0]:
            continue
        if numbers[row, column.STRAND] != strand or diagonals[row] - last > apart:
            last, strand = diagonals[row], as_int64(numbers[row, column.STRAND])
            count += 1
            if count > bounds[1]:
                return True
    return False


@jit
def list_alternatives(
    scoring: Scoring,
    min_score: int,
    most: int,
    scratch: Scratch,
    room: SortRoom,
    table: Candidates,
    primary: Int64Array,
    extra: Int64Array,
    secondary: Secondary,
) -> None:
    """List each read's placements that are nearly as good as the chosen ones.

    The arguments are those of `list_secondary`; but if an alignment has more than `most`
    alternatives, none of them is listed. Those of the primary alignment come before the
    supplementary one.
    """
    costs, owners, rows = scoring.costs, room.keys, room.values
    filled = 0
    for read in range(table.counts.size):
        secondary.offsets[read] = filled
        secondary.leading[read] = 0
        if primary[read] < 0:
            continue
        length = read_length(scoring.reads, read)
        enough = as_int64(min_score_beside(table, primary[read], length, costs))
        enough_extra = enough
        if extra[read] >= 0:
            enough_extra = min_score_beside(table, extra[read], length, costs)
        # A worse place is never listed, nor is it the better one at the place of another.
        bounds = min_score, max(min_score, min(enough, enough_extra)), table.diagonals.size
        chosen = primary[read], extra[read]
        if extra[read] < 0 and exceeds_limit(
            table, read, length, costs, primary[read], (bounds[1], most)
        ):
            continue
        count = collect_others(scoring, read, bounds, scratch, room, table, chosen)
        of_primary, of_extra = as_int64(0), as_int64(0)
        # The keys have been sorted by, so their memory is free.
        for place in range(count):
            owner = alignment_competed_with(
                table, rows[place], length, costs, chosen, (enough, enough_extra)
            )
            owners[place] = owner
            of_primary += owner == 0
            of_extra += owner == 1
        for owner in range(2):
            if (of_primary if owner == 0 else of_extra) > most:
                continue
            for place in range(count):
                if owners[place] == owner:
                    secondary.candidates[filled] = rows[place]
                    filled += 1
            if owner == 0:
                secondary.leading[read] = of_primary
    secondary.offsets[table.counts.size] = filled


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
    """Return the weights of the other candidates that align the same part of the read as one."""
    offsets, counts, numbers = table.offsets, table.counts, table.numbers
    score = as_int64(numbers[row, column.SCORE])
    total, copies = 0.0, 0.0
    for other in range(offsets[read], offsets[read] + counts[read]):
        if is_rival(table, other, row, length):
            worse = (score - as_int64(numbers[other, column.SCORE])) * UNIT
            total += weight_of(worse, weights)
            copies += repeat_similarity_of(worse, weights)
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
    """Choose for each read with a long clip a candidate that covers the clipped bases."""
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
