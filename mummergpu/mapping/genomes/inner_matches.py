"""Drops the matches inside a repeat of which one sequence has more copies than the other."""

from __future__ import annotations

from typing import Final

from mummergpu.mapping.genomes.anchors import NONE, Anchors, lists_for
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline_without_refcounts

GroupRoom = tuple[ByteArray, Int64Array, Int64Array]
"""Memory for each match: what is known of it, the next one of its list, and the first of each list
(`list_count` says how many lists there are)."""

DROPPED: Final = 0
_KEPT: Final = 1
_DOUBTED: Final = 2
"""What is known of a match: a doubted one lies in a repeat with another one as long as itself."""


@inline_without_refcounts
def drop_inner_matches(matches: Anchors, begin: int, size: int, room: GroupRoom) -> None:
    """Drop the matches that lie inside a repeat and begin where another one does.

    If one sequence has more copies of a short unit than the other, only the first and the last of
    the matches between them say something.
    """
    query_starts, reference_starts, lengths = matches
    known, following, lists = room
    mask = lists_for(size) - 1
    for place in range(mask + 1):
        lists[place] = NONE
    # A list has the matches whose starts in the reference end with the same bits, in their order.
    for row in range(size - 1, -1, -1):
        known[row] = _KEPT
        place = reference_starts[begin + row] & mask
        following[row] = lists[place]
        lists[place] = row
    for row in range(size - 1):
        if known[row] == DROPPED:
            continue
        one = begin + row
        query_end = query_starts[one] + lengths[one]
        reference_end = reference_starts[one] + lengths[one]
        other = row + 1
        while (
            other < size
            and query_starts[begin + other] == query_starts[one]
            and reference_starts[begin + other] <= reference_end
            and known[row] != DROPPED
        ):
            overlap = reference_end - reference_starts[begin + other]
            _drop_one(lengths, begin, row, other, overlap, known)
            other += 1
        other = following[row]
        while other != NONE and query_starts[begin + other] <= query_end and known[row] != DROPPED:
            same = reference_starts[begin + other] == reference_starts[one]
            if same and query_starts[begin + other] > query_starts[one]:
                overlap = query_end - query_starts[begin + other]
                _drop_one(lengths, begin, row, other, overlap, known)
            other = following[other]


@inline_without_refcounts
def _drop_one(
    lengths: Int64Array,
    begin: int,
    row: int,
    other: int,
    overlap: int,
    known: ByteArray,
) -> None:
    """Drop the shorter one of two matches that overlap in a repeat.

    If they are as long as each other, the earlier one goes if it is the second of three.
    """
    length, other_length = lengths[begin + row], lengths[begin + other]
    if known[other] == DROPPED or overlap < min(length, other_length) // 2:
        return
    if other_length < length:
        known[other] = DROPPED
    elif length < other_length or known[row] == _DOUBTED:
        known[row] = DROPPED
    else:
        known[other] = _DOUBTED
