"""The order of the long lists of a table: by the bases before each position.

A k-mer of a tandem repeat occurs at every copy. Nearly all of these positions have the same bases
before them, and a query in the repeat has them too: an earlier pair then finds the same MEM
(`kmer_sampling`). A search needs none of these positions. In a list that is sorted by the bases
before each position, they lie side by side, and the search skips all of them at once.

Lists are sorted when a page is loaded for a search, and not in index files, because it depends on
the minimum length how many bases matter. Most tables have few long lists or none, and their
offsets tell where: groups of k-mers with few positions together are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_table import CountArray, PositionArray
from mummergpu.index.pages import damage_error
from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray

LONGEST_ASCENDING: Final = 1024
"""Lists of at most this many positions stay in ascending order: to look for what can be skipped
would take longer than to extend them."""

MAX_ORDERED_BASES: Final = 256
"""No list is sorted by more bases than this; with a longer period none is sorted."""

DIGIT_BASES: Final = 4
"""The bases that one pass of the sort looks at."""

DIGITS: Final = (BREAK + 1) ** DIGIT_BASES

GROUP_KMERS: Final = 64
"""The k-mers that are looked at together."""

TASKS: Final = 64
"""The most tasks that sort the lists of a page."""


def order_long_lists(
    page: KmerPage,
    period: int,
    map_function: Callable[..., Iterable[object]] = map,
) -> KmerPage:
    """Sort the long lists of a page's table in place, by the bases before each position.

    All lists must ascend. The returned page's table says how they are sorted; a page whose period
    exceeds `MAX_ORDERED_BASES` is returned as it is. Positions outside the reference, as in a
    damaged file, raise `InputError`.
    """
    if period > MAX_ORDERED_BASES:
        return page
    table = page.table
    kmers = table.offsets.size - 1
    group = min(GROUP_KMERS, kmers)
    sizes = np.diff(table.offsets[::group].astype(np.int64))
    groups = np.flatnonzero(sizes > LONGEST_ASCENDING)
    lists = PositionLists(
        table.offsets,
        table.positions,
        LONGEST_ASCENDING,
        page.padded_reference,
        page.page.begin,
        page.joined_reference.size - table.sampling.kmer_length - page.page.begin,
    )

    def order(numbers: CountArray) -> bool:
        longest = int(sizes[numbers].max())
        return order_lists(
            lists,
            numbers * group,
            group,
            period,
            np.empty(min(longest, table.positions.size), dtype=np.uint32),
            np.empty(DIGITS, dtype=np.int64),
        )

    if groups.size:
        tasks = np.array_split(groups, min(groups.size, TASKS))
        if not all(list(map_function(order, tasks))):
            raise damage_error(page.page, page.index_path)
    ordered = replace(table, ordered_bases=period, longest_ascending=LONGEST_ASCENDING)
    return replace(page, table=ordered)


class PositionLists(NamedTuple):
    """The lists of a table, whose positions count from a part of the reference.

    Attributes
    ----------
    offsets, positions : ndarray, dtype=uint32
        The table (`kmer_table.KmerTable`).
    longest_ascending : int
        The most positions of a list that stays as it is.
    reference : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The codes of the whole reference with margins.
    part_begin, last_position : int
        Where in the reference the part begins, 0-based, and the last position at which a whole
        k-mer of the reference can begin.
    """

    offsets: PositionArray
    positions: PositionArray
    longest_ascending: int
    reference: CodeArray
    part_begin: int
    last_position: int


@jit_without_refcounts
def order_lists(
    lists: PositionLists,
    first_kmers: CountArray,
    kmer_count: int,
    period: int,
    scratch: PositionArray,
    counts: CountArray,
) -> bool:
    """Sort the long lists of groups of k-mers; return whether all lie inside table and reference.

    `scratch` has room for the longest of them, and `counts` for `DIGITS` numbers.
    """
    positions, reference = lists.positions, lists.reference
    for first in first_kmers:
        for kmer in range(first, first + kmer_count):
            begin = as_int64(lists.offsets[kmer])
            end = as_int64(lists.offsets[kmer + 1])
            if end - begin <= lists.longest_ascending:
                continue
            if end > positions.size or end - begin > scratch.size:
                return False
            for place in range(begin, end):
                if positions[place] > lists.last_position:
                    return False
            # From the farthest bases to the nearest: a later pass keeps the order of equal digits.
            for digit in range((period - 1) // DIGIT_BASES, -1, -1):
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
                    scratch[counts[value]] = position
                    counts[value] += 1
                for place in range(begin, end):
                    positions[place] = scratch[place - begin]
    return True


@inline_without_refcounts
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
