"""What mates say about each other: which candidates of two reads form proper pairs."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import (
    DEAD,
    LEFT_SHIFT,
    RECORD,
    RIGHT_SHIFT,
    STATE,
    STRAND,
    Reads,
    Table,
    read_length,
)
from mummergpu.mapping.placing.evidence import UNIT
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.jit import as_int64, inline_without_refcounts
from mummergpu.viterbi.recurrence.model import CostTuple

Pairing = tuple[int, int, int, int, int, Int32Array]
"""What is known about the sizes of templates; its elements follow."""

FIRST_SIZE: Final = 0
LAST_SIZE: Final = 1
"""The least and the largest size that has a penalty; the latter is 0 if no pairs are proper."""

UNPAIRED: Final = 2
"""The penalty of mates that are not a proper pair, in points."""

LEAST_SIZE: Final = 3
MOST_SIZE: Final = 4
"""The sizes at which mates are looked for."""

PENALTIES: Final = 5
"""The penalty of each size from the first on, in units."""

NOTHING: Final = -(1 << 40)
"""The score of what there is not, in units."""


@inline_without_refcounts
def first_not_before(table: Table, first: int, end: int, strand: int, diagonal: int) -> int:
    """Return the first candidate of a read on a strand whose diagonal is not less."""
    diagonals, numbers = table[2], table[3]
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        here = numbers[middle, STRAND]
        if here < strand or (here == strand and diagonals[middle] < diagonal):
            low = middle + 1
        else:
            high = middle
    return low


@inline_without_refcounts
def are_facing(table: Table, row: int, other: int) -> bool:
    """Return whether two candidates are on different strands of one record."""
    numbers = table[3]
    if numbers[row, RECORD] != numbers[other, RECORD]:
        return False
    return bool(numbers[row, STRAND] != numbers[other, STRAND])


@inline_without_refcounts
def template_size(table: Table, row: int, length: int, other: int, other_length: int) -> int:
    """Return the size of the template of two mates, from one 5' end to the other.

    Clipped bases count.
    """
    diagonals, numbers = table[2], table[3]
    if numbers[row, STRAND] == 0:
        begin = diagonals[row] + numbers[row, LEFT_SHIFT]
        end = diagonals[other] + numbers[other, RIGHT_SHIFT] + other_length
    else:
        begin = diagonals[other] + numbers[other, LEFT_SHIFT]
        end = diagonals[row] + numbers[row, RIGHT_SHIFT] + length
    return as_int64(end - begin)


@inline_without_refcounts
def is_proper_pair(
    table: Table, row: int, length: int, mate: int, mate_length: int, least: int, most: int
) -> bool:
    """Return whether two mates are on one record, face each other, and are so far apart."""
    if row < 0 or mate < 0 or not are_facing(table, row, mate):
        return False
    return least <= template_size(table, row, length, mate, mate_length) <= most


@inline_without_refcounts
def pair_penalty(
    table: Table, row: int, length: int, other: int, other_length: int, pairing: Pairing
) -> int:
    """Return the penalty of two candidates as a proper pair in units, -1 if they are none."""
    if table[3][row, RECORD] != table[3][other, RECORD]:
        return -1
    size = template_size(table, row, length, other, other_length)
    if size < pairing[FIRST_SIZE] or size > pairing[LAST_SIZE]:
        return -1
    return as_int64(pairing[PENALTIES][size - pairing[FIRST_SIZE]])


@inline_without_refcounts
def mate_diagonals(
    table: Table, row: int, length: int, other_length: int, least: int, most: int
) -> tuple[int, int]:
    """Return the first and the last diagonal of a mate without gaps, if sizes are bounded."""
    diagonal = table[2][row]
    if table[3][row, STRAND] == 0:
        return diagonal + least - other_length, diagonal + most - other_length
    return diagonal + length - most, diagonal + length - least


@inline_without_refcounts
def partner_range(
    table: Table,
    row: int,
    length: int,
    other_read: int,
    other_length: int,
    pairing: Pairing,
    most_gap: int,
) -> tuple[int, int]:
    """Return the candidates of the mate that may form a proper pair with a candidate."""
    low, high = mate_diagonals(
        table, row, length, other_length, pairing[FIRST_SIZE], pairing[LAST_SIZE]
    )
    strand = 1 - table[3][row, STRAND]
    first = table[0][other_read]
    end = first + table[1][other_read]
    begin = first_not_before(table, first, end, strand, low - most_gap)
    return begin, first_not_before(table, begin, end, strand, high + most_gap + 1)


@inline_without_refcounts
def best_partner(
    table: Table,
    row: int,
    reads: Reads,
    read: int,
    other_read: int,
    pairing: Pairing,
    costs: CostTuple,
    field: int,
) -> int:
    """Return the most that a partner adds to a candidate in a proper pair, in units."""
    numbers = table[3]
    length, other_length = read_length(reads, read), read_length(reads, other_read)
    begin, end = partner_range(
        table, row, length, other_read, other_length, pairing, costs.most_gap
    )
    most = as_int64(NOTHING)
    for other in range(begin, end):
        if numbers[other, STATE] != DEAD:
            penalty = pair_penalty(table, row, length, other, other_length, pairing)
            if penalty >= 0:
                most = max(most, as_int64(numbers[other, field]) * UNIT - penalty)
    return most
