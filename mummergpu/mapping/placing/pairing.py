"""Finds which candidates of two mates form proper pairs."""

from __future__ import annotations

from typing import Final, NamedTuple

from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    DEAD,
    UNIT,
    Candidates,
    Scoring,
    circle_of,
    read_length,
)
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import as_int64, inline

LIBRARY_NUMBERS: Final = 6
"""The fields of `Pairing` that each library has of its own, from the least size on."""


class Pairing(NamedTuple):
    """The facts about templates, and the sizes of those of pairs in bases."""

    mates: int  # The reads of a template: 1 or 2; reads 2i and 2i + 1 are mates.
    unpaired: int  # The penalty of mates that are not a proper pair, in points.
    # The least and the largest size that has a penalty; the latter is 0 if no pairs are proper.
    first_size: int
    last_size: int
    penalty_begin: int  # Where the penalty of the least size is.
    # The ranges of sizes of proper pairs, at which mates are looked for.
    range_begin: int
    range_end: int
    # Which mates are reverse-complemented for the search, so that both face each other: a bit each.
    turns: int
    penalties: Int32Array  # The penalty of each size, in units.
    ranges: Int64Array  # The least and the largest size of each range; (n_ranges, 2).
    # The library of each template; empty if all are of the one above; (n_templates,).
    libraries: Int64Array
    # The numbers from `first_size` to `turns` of each library; (n_libraries, LIBRARY_NUMBERS).
    numbers: Int64Array
    circles: Int64Array = NO_CIRCLES  # Those of `Target`.


class Placing(NamedTuple):
    """What templates are placed by, and their candidates."""

    scoring: Scoring
    pairing: Pairing
    table: Candidates


@inline
def pairing_of(pairing: Pairing, template: int) -> Pairing:
    """Return the facts about a template of a block."""
    if pairing.libraries.size == 0:
        return pairing
    own = pairing.numbers[pairing.libraries[template]]
    return Pairing(
        pairing.mates,
        pairing.unpaired,
        own[0],
        own[1],
        own[2],
        own[3],
        own[4],
        own[5],
        pairing.penalties,
        pairing.ranges,
        pairing.libraries,
        pairing.numbers,
        pairing.circles,
    )


NOTHING: Final = -(1 << 40)
"""The score where there is none, in units."""

_EVERYWHERE: Final = 1 << 40
"""More than any diagonal."""


@inline
def first_not_before(table: Candidates, first: int, end: int, strand: int, diagonal: int) -> int:
    """Return the first candidate of a read on a strand whose diagonal is not less, or `end`."""
    diagonals, numbers = table.diagonals, table.numbers
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        here = numbers[middle, column.STRAND]
        if here < strand or (here == strand and diagonals[middle] < diagonal):
            low = middle + 1
        else:
            high = middle
    return low


@inline
def are_facing(table: Candidates, row: int, other: int) -> bool:
    """Return whether candidates of two mates are on different strands of one record."""
    numbers = table.numbers
    if numbers[row, column.RECORD] != numbers[other, column.RECORD]:
        return False
    return bool(numbers[row, column.STRAND] != numbers[other, column.STRAND])


@inline
def nearest_diagonal(table: Candidates, row: int, other: int, circles: Int64Array) -> int:
    """Return the diagonal of a mate on the same record, of a circular one in the nearest copy."""
    diagonal = as_int64(table.diagonals[other])
    circle = circle_of(circles, table.numbers[row, column.RECORD])
    distance = diagonal - as_int64(table.diagonals[row])
    if circle > 0 and 2 * abs(distance) > circle:
        diagonal += -circle if distance > 0 else circle
    return diagonal


@inline
def template_size(
    table: Candidates, row: int, length: int, other: int, other_length: int, circles: Int64Array
) -> int:
    """Return the size of the template of mates on different strands, from one 5' end to the other.

    Clipped bases count. It is negative if the 5' end on the reverse strand lies before the other.
    """
    diagonals, numbers = table.diagonals, table.numbers
    diagonal = nearest_diagonal(table, row, other, circles)
    if numbers[row, column.STRAND] == 0:
        begin = diagonals[row] + numbers[row, column.LEFT_SHIFT]
        end = diagonal + numbers[other, column.RIGHT_SHIFT] + other_length
    else:
        begin = diagonal + numbers[other, column.LEFT_SHIFT]
        end = diagonals[row] + numbers[row, column.RIGHT_SHIFT] + length
    return as_int64(end - begin)


@inline
def is_proper_pair(
    table: Candidates, row: int, length: int, mate: int, mate_length: int, pairing: Pairing
) -> bool:
    """Return whether mates are a proper pair; one that is not mapped has the row -1."""
    if row < 0 or mate < 0 or not are_facing(table, row, mate):
        return False
    size = template_size(table, row, length, mate, mate_length, pairing.circles)
    is_proper = False
    for number in range(pairing.range_begin, pairing.range_end):
        is_proper |= pairing.ranges[number, 0] <= size <= pairing.ranges[number, 1]
    return is_proper


@inline
def pair_penalty(
    table: Candidates, row: int, length: int, other: int, other_length: int, pairing: Pairing
) -> int:
    """Return the penalty of mates on different strands as a proper pair, in units; -1 if none."""
    if table.numbers[row, column.RECORD] != table.numbers[other, column.RECORD]:
        return -1
    size = template_size(table, row, length, other, other_length, pairing.circles)
    if size < pairing.first_size or size > pairing.last_size:
        return -1
    return as_int64(pairing.penalties[pairing.penalty_begin + size - pairing.first_size])


@inline
def mate_diagonals(
    table: Candidates, row: int, length: int, other_length: int, smallest: int, largest: int
) -> tuple[int, int]:
    """Return the first and the last diagonal of a mate without gaps in templates of some sizes."""
    diagonal = table.diagonals[row]
    if table.numbers[row, column.STRAND] == 0:
        return diagonal + smallest - other_length, diagonal + largest - other_length
    return diagonal + length - largest, diagonal + length - smallest


@inline
def partner_range(
    table: Candidates, row: int, read: int, other_read: int, scoring: Scoring, pairing: Pairing
) -> tuple[int, int]:
    """Return the half-open range of the mate's candidates that may form a proper pair with one."""
    length, other_length = read_length(scoring.reads, read), read_length(scoring.reads, other_read)
    low, high = mate_diagonals(
        table, row, length, other_length, pairing.first_size, pairing.last_size
    )
    # Gaps move ends off their diagonals: the range allows for the longest gap, in both mates
    # together. The size itself is compared later.
    gap = scoring.costs.max_gap
    if circle_of(pairing.circles, table.numbers[row, column.RECORD]) > 0:
        # A mate may lie on the other side of the origin: all are compared.
        low, high = -_EVERYWHERE, _EVERYWHERE
    strand = 1 - table.numbers[row, column.STRAND]
    first = table.offsets[other_read]
    end = first + table.counts[other_read]
    begin = first_not_before(table, first, end, strand, low - gap)
    return begin, first_not_before(table, begin, end, strand, high + gap + 1)


@inline
def best_partner(placing: Placing, row: int, read: int, other_read: int, field: int) -> int:
    """Return the most that a partner adds to a candidate in a proper pair, or `NOTHING`; in units.

    `field` is the score of the partner that counts: `column.SCORE` or `column.BOUND`.
    """
    scoring, pairing, table = placing
    numbers = table.numbers
    length, other_length = read_length(scoring.reads, read), read_length(scoring.reads, other_read)
    begin, end = partner_range(table, row, read, other_read, scoring, pairing)
    best = as_int64(NOTHING)
    for other in range(begin, end):
        if numbers[other, column.STATE] != DEAD:
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if penalty >= 0:
                best = max(best, as_int64(numbers[other, field]) * UNIT - penalty)
    return best
