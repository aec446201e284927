"""The order of the long lists of a table: by the bases before each position.

A k-mer of a tandem repeat occurs at every copy. Nearly all of these positions have the same bases
before them, and a query in the repeat has them too: an earlier pair then finds the same MEM
(`kmer_sampling`). A search needs none of these positions. In a list that is sorted by the bases
before each position, they lie side by side, and the search skips all of them at once.

An index file holds lists that are sorted by `FILE_ORDERED_BASES`, which is more than most searches
need. Others are sorted when a page is loaded for a search. Most tables have few long lists or none,
and their offsets show where: groups of k-mers with few positions together are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import CountArray, KmerPage, PositionArray
from mummergpu.index.pages import damage_error
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.sequence.extension import FOUR, four_before

MAX_UNSORTED_OCCURRENCES: Final = 1024
"""Lists of at most this many positions stay in ascending order: finding the positions to skip would
take longer than extending them all."""

MAX_ORDERED_BASES: Final = 256
"""No list is sorted by more bases than this; for a longer sampling step none is sorted."""

FILE_ORDERED_BASES: Final = 160
"""Lists of an index file are sorted by this number of bases: how often a seed of a k-mer and up to
this many bases before it occurs is then known without a look at its occurrences."""

DIGIT_BASES: Final = 4
"""The bases that one pass of the sort looks at."""

DIGITS: Final = (BREAK + 1) ** DIGIT_BASES

FEW_POSITIONS: Final = 24
"""The most positions with the same bases before them that are sorted by comparison."""

GROUP_KMERS: Final = 64
"""The k-mers that are looked at together."""

TASKS: Final = 64
"""The most tasks that sort the lists of a page."""


def order_long_lists(
    page: KmerPage, bases: int, map_function: Callable[..., Iterable[object]] = map
) -> KmerPage:
    """Sort the long lists of a page's table in place, by the bases before each position.

    All lists must ascend, or be sorted by fewer bases. The returned page's table says how they are
    sorted; with more `bases` than `MAX_ORDERED_BASES`, or if lists are sorted by as many, it is
    returned as it is. Positions outside the reference, as in a damaged file, raise
    `InputError`.
    """
    table = page.table
    if bases > MAX_ORDERED_BASES or bases <= table.ordered_bases:
        return page
    kmers = table.offsets.size - 1
    group = min(GROUP_KMERS, kmers)
    sizes = np.diff(table.offsets[::group].astype(np.int64))
    longest_ascending = min(MAX_UNSORTED_OCCURRENCES, table.longest_ascending)
    groups = np.flatnonzero(sizes > longest_ascending)
    lists = PositionLists(
        table.offsets,
        table.positions,
        table.bases_beside,
        longest_ascending,
        page.padded_reference,
        page.page.begin,
        page.joined_reference.size - table.sampling.kmer_length - page.page.begin,
        table.sampling.kmer_length,
    )

    def order(numbers: CountArray) -> bool:
        longest = int(sizes[numbers].max())
        return order_lists(
            lists, numbers * group, group, bases, new_order_room(min(longest, table.positions.size))
        )

    if groups.size:
        tasks = np.array_split(groups, min(groups.size, TASKS))
        if not all(list(map_function(order, tasks))):
            raise damage_error(page.page, page.index_path)
    ordered = replace(table, ordered_bases=bases, longest_ascending=longest_ascending)
    return replace(page, table=ordered)


class PositionLists(NamedTuple):
    """The lists of a table, whose positions count from a part of the reference."""

    # The table (`kmer_table.KmerTable`).
    offsets: PositionArray
    positions: PositionArray
    bases_beside: ByteArray
    longest_ascending: int  # The most positions of a list that stays as it is.
    reference: CodeArray  # The codes of the whole reference with margins; (n_bases + 2 * MARGIN,).
    # Where in the reference the part begins, 0-based, the last position at which a whole k-mer of
    # the reference can begin, and the bases of one.
    part_begin: int
    last_position: int
    kmer_length: int


class OrderRoom(NamedTuple):
    """Memory of one task: for the longest list, for a count of each digit, and for groups.

    A group is a part of a list whose positions have the same bases before them: a row with its
    begin, its end, and how many digits these bases are.
    """

    positions: PositionArray
    counts: CountArray
    groups: Int64Array


def new_order_room(longest: int) -> OrderRoom:
    """Return room to sort lists of at most `longest` positions."""
    groups = np.empty((DIGITS * (MAX_ORDERED_BASES // DIGIT_BASES + 1), 3), dtype=np.int64)
    return OrderRoom(np.empty(longest, dtype=np.uint32), np.empty(DIGITS, dtype=np.int64), groups)


@jit
def order_lists(
    lists: PositionLists, first_kmers: CountArray, kmer_count: int, bases: int, room: OrderRoom
) -> bool:
    """Sort the long lists of groups of k-mers; return whether all lie inside table and reference.

    They are sorted by `bases` bases, or by up to three more.
    """
    positions = lists.positions
    for first in first_kmers:
        for kmer in range(first, first + kmer_count):
            begin = as_int64(lists.offsets[kmer])
            end = as_int64(lists.offsets[kmer + 1])
            if end - begin <= lists.longest_ascending:
                continue
            if end > positions.size or end - begin > room.positions.size:
                return False
            for place in range(begin, end):
                if positions[place] > lists.last_position:
                    return False
            order_list(lists, begin, end, (bases + DIGIT_BASES - 1) // DIGIT_BASES, room)
            # The order covers the bases before positions, so the bases after k-mers say more.
            if lists.bases_beside.size > 0:
                behind = MARGIN + lists.part_begin + lists.kmer_length + FOUR
                for place in range(begin, end):
                    at = behind + as_int64(positions[place])
                    lists.bases_beside[place] = np.uint8(four_before(lists.reference, at))
    return True


@jit
def order_list(lists: PositionLists, begin: int, end: int, digits: int, room: OrderRoom) -> None:
    """Sort a list by `digits` digits; positions with the same digits stay in their order.

    From the nearest digit to the farthest: where few positions are alike, few digits are read.
    """
    groups = room.groups
    groups[0, 0], groups[0, 1], groups[0, 2] = begin, end, 0
    waiting = 1
    while waiting > 0:
        waiting -= 1
        first, behind, known = groups[waiting, 0], groups[waiting, 1], groups[waiting, 2]
        if behind - first <= FEW_POSITIONS:
            order_few(lists, first, behind, known, digits)
            continue
        # Copies of a tandem repeat share digit after digit: nothing moves for those.
        while known < digits and share_digit(lists, first, behind, known):
            known += 1
        if known == digits:
            continue
        split_by_digit(lists, first, behind, known, room)
        at = first
        for value in range(DIGITS):
            # The counts were where each digit's positions begin, and are now where they end.
            end_of_digit = first + room.counts[value]
            if end_of_digit - at > 1 and known + 1 < digits:
                groups[waiting, 0], groups[waiting, 1] = at, end_of_digit
                groups[waiting, 2] = known + 1
                waiting += 1
            at = end_of_digit


@inline
def share_digit(lists: PositionLists, begin: int, end: int, digit: int) -> bool:
    """Return whether all positions of a part of a list have the same digit before them."""
    before = lists.part_begin + MARGIN - digit * DIGIT_BASES
    positions, reference = lists.positions, lists.reference
    value = digit_before(reference, before + as_int64(positions[begin]))
    for place in range(begin + 1, end):
        if digit_before(reference, before + as_int64(positions[place])) != value:
            return False
    return True


@inline
def split_by_digit(lists: PositionLists, begin: int, end: int, digit: int, room: OrderRoom) -> None:
    """Sort a part of a list by one digit; `room.counts` then has where each value's places end."""
    positions, reference, counts = lists.positions, lists.reference, room.counts
    before = lists.part_begin + MARGIN - digit * DIGIT_BASES
    counts[:] = 0
    for place in range(begin, end):
        counts[digit_before(reference, before + as_int64(positions[place]))] += 1
    total = 0
    for value in range(DIGITS):
        count = counts[value]
        counts[value] = total
        total += count
    for place in range(begin, end):
        position = positions[place]
        value = digit_before(reference, before + as_int64(position))
        room.positions[counts[value]] = position
        counts[value] += 1
    for place in range(begin, end):
        positions[place] = room.positions[place - begin]


@inline
def order_few(lists: PositionLists, begin: int, end: int, known: int, digits: int) -> None:
    """Sort a few positions that share some digits, by comparing them."""
    positions = lists.positions
    for place in range(begin + 1, end):
        position = positions[place]
        at = place
        while at > begin and comes_before(lists, position, positions[at - 1], known, digits):
            positions[at] = positions[at - 1]
            at -= 1
        positions[at] = position


@inline
def comes_before(lists: PositionLists, one: int, other: int, known: int, digits: int) -> bool:
    """Return whether the digits before a position are less than another's, after known ones."""
    first = lists.part_begin + MARGIN - known * DIGIT_BASES
    at, other_at = first + as_int64(one), first + as_int64(other)
    for _ in range(known, digits):
        mine = digit_before(lists.reference, at)
        yours = digit_before(lists.reference, other_at)
        if mine != yours:
            return bool(mine < yours)
        at -= DIGIT_BASES
        other_at -= DIGIT_BASES
    return False


@inline
def digit_before(reference: CodeArray, at: int) -> int:
    """Return the bases before `at` as a number below `DIGITS`, in which the nearest counts most.

    Bases before the sequence count as breaks.
    """
    value = 0
    for distance in range(1, DIGIT_BASES + 1):
        code = BREAK
        if at >= distance:
            code = min(as_int64(reference[at - distance]), BREAK)
        value = value * (BREAK + 1) + code
    return value
