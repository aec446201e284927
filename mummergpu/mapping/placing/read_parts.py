"""The parts of a read that its candidates align, and which of them compete.

A read of two places has a candidate for each part. They do not compete: only candidates of the same
part make each other doubtful, as with bwa mem's mask level.
"""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.candidates.candidates import DEAD, STATE, STRAND, Candidates, aligned_part
from mummergpu.runtime.jit import as_int64, inline

SHARED_PARTS: Final = 2
"""Two alignments of a read are of two parts of it if they share less than one of so many of the
bases of the shorter one."""

Interval = tuple[int, int]
"""A half-open range of the bases of a read."""


@inline
def read_interval(table: Candidates, row: int, length: int) -> Interval:
    """Return the part of a read that a candidate aligns, on the read's own strand."""
    begin, end = aligned_part(table, row)
    if table.numbers[row, STRAND] == 0:
        return begin, end
    return length - end, length - begin


@inline
def shared_bases(one: Interval, other: Interval) -> int:
    """Return how many bases of a read two parts of it share."""
    return as_int64(min(one[1], other[1]) - max(one[0], other[0]))


@inline
def are_apart(one: Interval, other: Interval) -> bool:
    """Return whether two parts of a read share little."""
    return shared_bases(one, other) * SHARED_PARTS < min(one[1] - one[0], other[1] - other[0])


@inline
def is_rival(table: Candidates, row: int, chosen: int, length: int) -> bool:
    """Return whether a candidate competes with the chosen one of its read."""
    if row == chosen or table.numbers[row, STATE] == DEAD:
        return False
    return not are_apart(read_interval(table, chosen, length), read_interval(table, row, length))
