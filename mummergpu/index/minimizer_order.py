"""The order of the long lists of minimizers: by the bases after each k-mer, and by those before it.

A minimizer of a repeat has an entry for each copy, and all of them continue alike for a while. In a
list that is sorted by the bases after the k-mers, those side by side continue as a query does, and
the next ones differ from it sooner and sooner: so the search meets the longest matches first
(`matching.kmer.ordered_entries`). As matches grow to both sides, each long list is there in both
orders. The entries of each strand of the reference are apart, and "after" and "before" are those of
its forward strand, so that they can be compared without complements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import CountArray, EntryArray, PositionArray
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.contexts import BROKEN, CONTEXT_BASES, equal_sides
from mummergpu.sequence.extension import extend_left, extend_right

POSITION_SHIFT: Final = 34
"""The bits of an entry below its position."""

PLACE_SHIFT: Final = np.uint64(POSITION_SHIFT - 1)
"""The bits of an entry below the bit for the strand of its k-mer."""

MAX_UNSORTED_OCCURRENCES: Final = 256
"""Lists of at most this many entries ascend by position: looking at all of them takes less time
than sorting them."""

ORDERED_BASES: Final = 256
"""The bases that lists are sorted by; entries that agree in all of them ascend by position."""

FEW_ENTRIES: Final = 12
"""The most entries that are sorted by insertion."""

DEPTH: Final = 64
"""The parts of a list that can wait to be sorted: each is smaller than half of the one before."""

RUN_ENTRIES: Final = 4 * ORDERED_BASES
"""The most entries of the first of two runs that are merged."""

TASKS: Final = 64
"""The most tasks that sort lists."""


class OrderedLists(NamedTuple):
    """The long lists of a table, in their second order."""

    # Where each of them begins among the entries of the table, ascending. There it is sorted by
    # strand and by the bases after the k-mers.
    begins: PositionArray
    reverse_begins: PositionArray  # Where the entries of the reverse strand begin, which come last.
    # Where each of them begins in `by_preceding_bases`, and where the last one ends; (n_lists +
    # 1,).
    left_begins: CountArray
    # Their entries by strand and by the bases before the k-mers, the nearest one first.
    by_preceding_bases: EntryArray


class ListedText(NamedTuple):
    """The codes of a reference with margins, and the bases of a k-mer."""

    codes: CodeArray
    kmer_length: int


def order_long_lists(
    text: ListedText,
    offsets: PositionArray,
    entries: EntryArray,
    map_function: Callable[..., Iterable[object]] = map,
) -> OrderedLists:
    """Sort the long lists of a table in place, and return their second order.

    `offsets` and `entries` are those of `minimizer_table.MinimizerTable`.
    """
    long = np.flatnonzero(np.diff(offsets) > MAX_UNSORTED_OCCURRENCES)
    begins = offsets[long]
    left_begins = np.zeros(long.size + 1, dtype=np.int64)
    np.cumsum(offsets[long + 1] - begins, out=left_begins[1:])
    by_preceding_bases = np.empty(left_begins[-1], dtype=np.uint64)
    lists = OrderedLists(begins, np.empty_like(begins), left_begins, by_preceding_bases)

    def order(numbers: CountArray) -> None:
        waiting = np.empty((DEPTH, 2), dtype=np.int64)
        room = np.empty(RUN_ENTRIES, dtype=np.uint64)
        order_lists(text, entries, lists, int(numbers[0]), int(numbers[-1]) + 1, waiting, room)

    if long.size:
        list(map_function(order, np.array_split(np.arange(long.size), min(long.size, TASKS))))
    return lists


@jit
def order_lists(
    text: ListedText,
    entries: EntryArray,
    lists: OrderedLists,
    first: int,
    behind: int,
    waiting: Int64Array,
    room: EntryArray,
) -> None:
    """Sort some lists in both orders."""
    for number in range(first, behind):
        begin, left_begin = as_int64(lists.begins[number]), lists.left_begins[number]
        left_end = lists.left_begins[number + 1]
        forward_count = left_end - left_begin
        for place in range(left_begin, left_end):
            entry = entries[begin + place - left_begin]
            lists.by_preceding_bases[place] = entry
            forward_count -= strand_of(entry)
        lists.reverse_begins[number] = np.uint32(begin + forward_count)
        end = begin + left_end - left_begin
        # The lists of plain repeats are two runs mostly, which a merge sorts sooner.
        if not order_two_runs(text, entries, begin, end, False, room):
            order_entries(text, entries, begin, end, False, waiting)
        if not order_two_runs(text, lists.by_preceding_bases, left_begin, left_end, True, room):
            order_entries(text, lists.by_preceding_bases, left_begin, left_end, True, waiting)


@jit
def order_two_runs(
    text: ListedText,
    entries: EntryArray,
    begin: int,
    end: int,
    by_preceding: bool,
    room: EntryArray,
) -> bool:
    """Sort a part of an array if it is one ascending run, or two, which are merged.

    Descending entries at its beginning are reversed first. So the entries of a repeat of one
    letter, or of a few, make few runs: they continue alike, except those at its ends. Return False
    if there are more runs, or the first does not fit `room`; the beginning may then be reversed.
    """
    first = begin + 1
    while first < end and comes_before(text, entries[first], entries[first - 1], by_preceding):
        first += 1
    low, high = begin, first - 1
    while low < high:
        entries[low], entries[high] = entries[high], entries[low]
        low, high = low + 1, high - 1
    while first < end and comes_before(text, entries[first - 1], entries[first], by_preceding):
        first += 1
    behind = first + 1
    while behind < end and comes_before(text, entries[behind - 1], entries[behind], by_preceding):
        behind += 1
    if first == end:
        return True
    if behind < end or first - begin > room.size:
        return False
    # The first run waits in `room` while entries of the second move to their places before its own.
    count = first - begin
    for number in range(count):
        room[number] = entries[begin + number]
    number, target = as_int64(0), begin
    while number < count:
        if first < end and comes_before(text, entries[first], room[number], by_preceding):
            entries[target] = entries[first]
            first += 1
        else:
            entries[target] = room[number]
            number += 1
        target += 1
    return True


@jit
def order_entries(
    text: ListedText,
    entries: EntryArray,
    begin: int,
    end: int,
    by_preceding: bool,
    waiting: Int64Array,
) -> None:
    """Sort a part of an array of entries, without further memory (quicksort)."""
    parts = as_int64(0)
    while True:
        if end - begin <= FEW_ENTRIES:
            insert_each(text, entries, begin, end, by_preceding)
            if parts == 0:
                return
            parts -= 1
            begin, end = waiting[parts, 0], waiting[parts, 1]
            continue
        # All before `low` come before the pivot or are it, and all after `high` come after it.
        pivot = middle_of_three(
            text, entries[begin], entries[(begin + end) // 2], entries[end - 1], by_preceding
        )
        low, high = begin, end - 1
        while low <= high:
            while comes_before(text, entries[low], pivot, by_preceding):
                low += 1
            while comes_before(text, pivot, entries[high], by_preceding):
                high -= 1
            if low <= high:
                entries[low], entries[high] = entries[high], entries[low]
                low += 1
                high -= 1
        # The larger part waits, so that few parts do.
        if high + 1 - begin > end - low:
            waiting[parts, 0], waiting[parts, 1] = begin, high + 1
            begin = low
        else:
            waiting[parts, 0], waiting[parts, 1] = low, end
            end = high + 1
        parts += 1


@inline
def insert_each(
    text: ListedText, entries: EntryArray, begin: int, end: int, by_preceding: bool
) -> None:
    """Sort a few entries."""
    for place in range(begin + 1, end):
        entry = entries[place]
        target = place
        while target > begin and comes_before(text, entry, entries[target - 1], by_preceding):
            entries[target] = entries[target - 1]
            target -= 1
        entries[target] = entry


@inline
def middle_of_three(
    text: ListedText, one: np.uint64, two: np.uint64, three: np.uint64, by_preceding: bool
) -> np.uint64:
    """Return the one of three entries that is neither the first nor the last."""
    if comes_before(text, two, one, by_preceding):
        one, two = two, one
    if comes_before(text, three, two, by_preceding):
        two = one if comes_before(text, three, one, by_preceding) else three
    return two


@inline
def position_of(entry: np.uint64) -> int:
    """Return where the k-mer of an entry begins in the reference."""
    return as_int64(entry >> np.uint64(POSITION_SHIFT))  # type: ignore[arg-type]


@inline
def strand_of(entry: np.uint64) -> int:
    """Return 1 if the reverse complement of the k-mer of an entry is the lower number, else 0."""
    return as_int64(entry >> PLACE_SHIFT) & 1  # type: ignore[arg-type]


@jit
def comes_before(text: ListedText, one: np.uint64, other: np.uint64, by_preceding: bool) -> bool:
    """Return whether an entry comes before another one: by strand, bases, and position."""
    strand = strand_of(one)
    if strand != strand_of(other):
        return strand == 0
    known = as_int64(0)
    if (one | other) & BROKEN == 0:
        # Contexts are those of the strand of the k-mer, and distinguish most entries.
        is_before_kmer = by_preceding != (strand == 1)
        before, after = equal_sides(one ^ other)
        known = before if is_before_kmer else after
        if known < CONTEXT_BASES:
            shift = np.uint64(2 * known if is_before_kmer else 2 * (known + CONTEXT_BASES))
            base, other_base = one >> shift & np.uint64(3), other >> shift & np.uint64(3)
            return bool(base > other_base if strand == 1 else base < other_base)
    codes, most = text.codes, ORDERED_BASES - known
    at = MARGIN + position_of(one)
    other_at = MARGIN + position_of(other)
    if by_preceding:
        equal = known + extend_left(codes, at - known, codes, other_at - known, most)
        at, other_at = at - 1 - equal, other_at - 1 - equal
    else:
        at, other_at = at + text.kmer_length, other_at + text.kmer_length
        equal = known + extend_right(codes, at + known, codes, other_at + known, most)
        at, other_at = at + equal, other_at + equal
    # Two breaks differ, but nothing that matches reaches beyond them.
    if equal == ORDERED_BASES or codes[as_index(at)] == codes[as_index(other_at)]:
        return bool(one < other)
    return bool(codes[as_index(at)] < codes[as_index(other_at)])
