"""Lists the other placements of reads, which become secondary alignments if the user wants them."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import (
    BOUND,
    CORE_BEGIN,
    CORE_LENGTH,
    DEAD,
    GAPPED,
    LEFT_SHIFT,
    LEFT_TAKEN,
    MARK,
    RIGHT_SHIFT,
    RIGHT_TAKEN,
    SCORE,
    STATE,
    STRAND,
    UNGAPPED,
    Reads,
    Table,
    Target,
    read_length,
)
from mummergpu.mapping.candidates.key_sort import sort_by_key
from mummergpu.mapping.placing.choice import reported_score
from mummergpu.mapping.placing.refinement import refine
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.scratch import Scratch

PARTS_OF_PLACE: Final = 20
"""Two alignments are at one place unless they differ in one of so many bases of the reference that
the shorter one takes."""

Span = tuple[int, int]
"""A half-open range of the joined reference."""

Secondary = tuple[Int64Array, Int64Array, Int64Array]
"""Where the candidates of each read's secondary alignments begin, and where those of the last read
end; how many of a read's come before its supplementary alignment; and the candidates."""


@inline_without_refcounts
def reference_span(table: Table, row: int) -> Span:
    """Return the bases of the reference that a candidate aligns."""
    numbers = table[3]
    core_begin = table[2][row] + numbers[row, CORE_BEGIN]
    core_end = core_begin + numbers[row, CORE_LENGTH]
    begin = core_begin + numbers[row, LEFT_SHIFT] - numbers[row, LEFT_TAKEN]
    return begin, core_end + numbers[row, RIGHT_SHIFT] + numbers[row, RIGHT_TAKEN]


@inline_without_refcounts
def are_at_one_place(one: Span, other: Span) -> bool:
    """Return whether two alignments on one strand share nearly all bases of the shorter one."""
    shared = min(one[1], other[1]) - max(one[0], other[0])
    shorter = min(one[1] - one[0], other[1] - other[0])
    return shared * PARTS_OF_PLACE > shorter * (PARTS_OF_PLACE - 1)


@inline_without_refcounts
def is_place_listed(table: Table, read: int, row: int, reach: int) -> bool:
    """Return whether an alignment at the place of a candidate is listed already."""
    offsets, counts, diagonals, numbers = table
    span = reference_span(table, row)
    for step in (-1, 1):
        other = row + step
        while offsets[read] <= other < offsets[read] + counts[read]:
            if numbers[other, STRAND] != numbers[row, STRAND]:
                break
            if abs(diagonals[other] - diagonals[row]) > reach:
                break
            if numbers[other, MARK] != 0 and are_at_one_place(span, reference_span(table, other)):
                return True
            other += step
    return False


@inline_without_refcounts
def refine_fully(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    least: int,
    scratch: Scratch,
    table: Table,
    row: int,
) -> None:
    """Score a candidate with gaps, even if that was done as far as the best place needs it."""
    numbers = table[3]
    gapped = numbers[row, GAPPED]
    refine(reads, read, target, costs, least, scratch, table, row)
    numbers[row, GAPPED] |= gapped


@inline_without_refcounts
def collect_others(
    reads: Reads,
    read: int,
    target: Target,
    costs: CostTuple,
    limits: tuple[int, int, int],
    scratch: Scratch,
    sorting: tuple[Int64Array, Int64Array],
    table: Table,
    chosen: tuple[int, int],
) -> int:
    """Collect the placements of a read besides those that are chosen, the best ones first.

    Of several candidates at one place only the best one counts, and of equal ones the first.
    """
    offsets, counts, _, numbers = table
    keys, rows = sorting
    least_score, least, most = limits
    length = read_length(reads, read)
    count = as_int64(0)
    for row in range(offsets[read], offsets[read] + counts[read]):
        is_chosen = row == chosen[0] or row == chosen[1]
        numbers[row, MARK] = 1 if is_chosen else 0
        if is_chosen or numbers[row, STATE] == DEAD:
            continue
        if numbers[row, STATE] == UNGAPPED and numbers[row, BOUND] < least:
            continue
        refine_fully(reads, read, target, costs, least, scratch, table, row)
        if reported_score(table, row, length, costs) >= least_score:
            keys[count], rows[count] = -as_int64(numbers[row, SCORE]), row
            count += 1
    sort_by_key(keys, rows, count)
    # The path of an alignment leaves its diagonal by one gap on each side at most.
    reach = length // PARTS_OF_PLACE + 2 * costs.most_gap
    kept = as_int64(0)
    for place in range(count):
        if kept == most:
            break
        row = rows[place]
        if not is_place_listed(table, read, row, reach):
            numbers[row, MARK] = 1
            rows[kept] = row
            kept += 1
    return kept


@jit_without_refcounts
def list_secondary(
    reads: Reads,
    target: Target,
    costs: CostTuple,
    limits: tuple[int, int],
    scratch: Scratch,
    sorting: tuple[Int64Array, Int64Array],
    table: Table,
    chosen: tuple[Int64Array, Int64Array],
    secondary: Secondary,
) -> None:
    """List the placements of each read besides those that are chosen, the best ones first."""
    least_score, most = limits
    _, rows = sorting
    filled = 0
    for read in range(table[1].size):
        secondary[0][read] = filled
        secondary[1][read] = 0
        if chosen[0][read] < 0:
            continue
        both = chosen[0][read], chosen[1][read]
        bounds = least_score, least_score, most
        count = collect_others(reads, read, target, costs, bounds, scratch, sorting, table, both)
        for place in range(count):
            secondary[2][filled] = rows[place]
            filled += 1
    secondary[0][table[1].size] = filled
