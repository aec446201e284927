"""The table of a reference's minimizers: where each one begins, and the bases next to it.

Minimizers are put into buckets by the lowest bits of their ranks (`sequence.minimizers`). A bucket
lists the places of its minimizers in ascending order, each with its context (`sequence.contexts`),
which rules out most chance occurrences without the reference. The table is built as that of k-mers
(`kmer_table`): the entries are first put into groups of buckets, and each group is then sorted in
the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_table import CountArray, EntryArray, PositionArray
from mummergpu.index.minimizer_order import (
    PLACE_SHIFT,
    POSITION_SHIFT,
    ListedText,
    OrderedLists,
    order_long_lists,
)
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, jit
from mummergpu.runtime.progress import ProgressShares
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.contexts import context_at
from mummergpu.sequence.minimizers import (
    RankArray,
    find_minimizers,
    minimizers_expected,
    new_workspace,
)

MAX_BASES: Final = 1 << (64 - POSITION_SHIFT)
"""The most bases of a reference."""

SLICE_BASES: Final = 1 << 20
"""The bases of the reference whose minimizers one task finds."""

GROUP_BITS: Final = 10
"""The highest bits of a bucket's number that choose its group."""

GROUPS_OF_TASK: Final = 16
"""The groups that one task sorts."""

MAX_BUCKET_BITS: Final = 28

BYTES_OF_MINIMIZER: Final = 8 + 12
"""The most bytes of a minimizer while a table is built: its entry, and the same in its group."""

TABLE_BYTES_OF_MINIMIZER: Final = 8 + 4
"""The bytes of a minimizer in a table: its entry, and about a bucket."""

FINDING_SHARE: Final = 0.5
GROUPING_SHARE: Final = 0.25
"""The shares of the time that finding and grouping minimizers take; sorting them takes the rest."""


class PlacedMinimizers(NamedTuple):
    """The places and the ranks of minimizers (`sequence.minimizers`), without the margin."""

    places: PositionArray
    ranks: RankArray


class Buckets(NamedTuple):
    """The lowest bits of a rank that are its bucket, and how many of these do not choose its group.

    The group of a minimizer is thus ``(rank & mask) >> shift``.
    """

    mask: int
    shift: int


class GroupedEntries(NamedTuple):
    """The entries of minimizers by group (`MinimizerTable`), and their ranks."""

    entries: EntryArray
    ranks: RankArray


@frozen
class MinimizerTable:
    """The minimizers of a reference."""

    # The bases of a k-mer, and the k-mers of a window.
    kmer_length: int
    window: int
    # Where the entries of each bucket begin, and where those of the last one end. The number of
    # buckets is a power of two, and a minimizer's bucket is its rank modulo that number. (n_buckets
    # + 1,)
    offsets: PositionArray
    # The context of each minimizer in the lower 33 bits; in the next bit 1 if its reverse
    # complement is the lower number of both; and in the upper 30 bits the position at which it
    # begins, 0-based and without the margin. The entries of a bucket ascend by position, unless
    # there are many of them.
    entries: EntryArray
    ordered: OrderedLists  # The buckets of many entries.

    @property
    def byte_count(self) -> int:
        """The size of the table in bytes."""
        ordered = sum(array.nbytes for array in self.ordered)
        return self.offsets.nbytes + self.entries.nbytes + ordered


def bucket_bits_for(bases: int, window: int) -> int:
    """Return the bits of a bucket's number that give about one minimizer per bucket."""
    expected = minimizers_expected(bases, window)
    return min(max(expected.bit_length() - 1, 1), MAX_BUCKET_BITS)


def max_build_bytes(bases: int, window: int, minimizers: int) -> int:
    """Return the most bytes that a table of `minimizers` entries and its construction take."""
    return BYTES_OF_MINIMIZER * minimizers + (4 << bucket_bits_for(bases, window))


def build_minimizer_table(
    codes: CodeArray,
    kmer_length: int,
    window: int,
    map_function: Callable[..., Iterable[object]] = map,
    tell: Callable[[float], None] = lambda share: None,
) -> MinimizerTable:
    """Return the table of a reference, whose codes have margins; it has at most `MAX_BASES`."""
    assert codes.size - 2 * MARGIN <= MAX_BASES
    offsets, entries = _list_minimizers(codes, kmer_length, window, map_function, tell)
    ordered = order_long_lists(ListedText(codes, kmer_length), offsets, entries, map_function)
    return MinimizerTable(kmer_length, window, offsets, entries, ordered)


def count_minimizers(codes: CodeArray, kmer_length: int, window: int) -> int:
    """Return how many entries the table of a reference has, whose codes have margins."""
    behind, workspace = codes.size - MARGIN, new_workspace()
    room = np.empty(SLICE_BASES + 1, dtype=np.int64), np.empty(SLICE_BASES + 1, dtype=np.uint32)
    count = 0
    for first in range(MARGIN, behind, SLICE_BASES):
        count += find_minimizers(
            codes, MARGIN, behind, first, min(first + SLICE_BASES, behind), kmer_length, window,
            workspace, 0, *room,
        )  # fmt: skip
    return count


def _list_minimizers(
    codes: CodeArray,
    kmer_length: int,
    window: int,
    map_function: Callable[..., Iterable[object]],
    tell: Callable[[float], None],
) -> tuple[PositionArray, EntryArray]:
    """Return where the entries of each bucket begin, and the entries, which ascend in a bucket."""
    bases = codes.size - 2 * MARGIN
    bits = bucket_bits_for(bases, window)
    shift = max(0, bits - GROUP_BITS)
    group_count = 1 << (bits - shift)
    buckets = Buckets((1 << bits) - 1, shift)
    slices = range(MARGIN, MARGIN + bases, SLICE_BASES)
    shares = ProgressShares(tell)
    scratch = ThreadArray(np.int64), ThreadArray(np.uint32)
    counts = np.zeros((len(slices), group_count), dtype=np.int64)
    found: list[PlacedMinimizers | None] = [None] * len(slices)
    is_found = shares.part(FINDING_SHARE, len(slices))

    def find(number: int) -> None:
        room = scratch[0].of_size(SLICE_BASES + 1), scratch[1].of_size(SLICE_BASES + 1)
        first = slices[number]
        count = find_minimizers(
            codes, MARGIN, MARGIN + bases, first, min(first + SLICE_BASES, MARGIN + bases),
            kmer_length, window, new_workspace(), 0, *room,
        )  # fmt: skip
        minimizers = PlacedMinimizers(
            np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.uint32)
        )
        keep_minimizers(*room, buckets, minimizers, counts[number])
        found[number] = minimizers
        is_found()

    list(map_function(find, range(len(slices))))
    bounds = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    # Where each slice writes its first minimizer of each group.
    begins = np.cumsum(counts, axis=0) - counts + bounds[:-1]
    grouped = GroupedEntries(
        np.empty(bounds[-1], dtype=np.uint64), np.empty(bounds[-1], dtype=np.uint32)
    )
    is_grouped = shares.part(GROUPING_SHARE, len(slices))

    def group(number: int) -> None:
        minimizers = found[number]
        assert minimizers is not None
        group_minimizers(codes, kmer_length, minimizers, buckets, begins[number], grouped)
        found[number] = None
        is_grouped()

    list(map_function(group, range(len(slices))))
    offsets = np.empty(buckets.mask + 2, dtype=np.uint32)
    offsets[-1] = bounds[-1]
    entries = np.empty(bounds[-1], dtype=np.uint64)
    first_groups = range(0, group_count, GROUPS_OF_TASK)
    is_sorted = shares.part(1 - FINDING_SHARE - GROUPING_SHARE, len(first_groups))

    def sort(first: int) -> None:
        behind = min(first + GROUPS_OF_TASK, group_count)
        sort_groups(grouped, bounds, first, behind, buckets, offsets, entries)
        is_sorted()

    list(map_function(sort, first_groups))
    return offsets, entries


@jit
def keep_minimizers(
    places: CountArray,
    ranks: RankArray,
    buckets: Buckets,
    kept: PlacedMinimizers,
    counts: CountArray,
) -> None:
    """Copy what `find_minimizers` has written, without margins, and count those of each group."""
    for number in range(kept.places.size):
        rank = as_int64(ranks[as_index(number)])
        # A place is twice a position, plus one bit.
        kept.places[as_index(number)] = np.uint32(places[as_index(number)] - 2 * MARGIN)
        kept.ranks[as_index(number)] = np.uint32(rank)
        counts[as_index((rank & buckets.mask) >> buckets.shift)] += 1


@jit
def group_minimizers(
    codes: CodeArray,
    kmer_length: int,
    minimizers: PlacedMinimizers,
    buckets: Buckets,
    begins: CountArray,
    grouped: GroupedEntries,
) -> None:
    """Write the entries of a slice's minimizers to their groups.

    `begins` holds where the slice writes its next minimizer of each group, and is advanced.
    """
    for number in range(minimizers.places.size):
        place = as_int64(minimizers.places[as_index(number)])
        rank = minimizers.ranks[as_index(number)]
        group = as_index((as_int64(rank) & buckets.mask) >> buckets.shift)
        # The entry has the context, so most k-mers are distinguished without the reference.
        context = context_at(codes, MARGIN + (place >> 1), kmer_length, place & 1 == 1)
        target = begins[group]
        begins[group] = target + 1
        grouped.entries[as_index(target)] = np.uint64(place) << PLACE_SHIFT | context
        grouped.ranks[as_index(target)] = rank


@jit
def sort_groups(
    grouped: GroupedEntries,
    bounds: CountArray,
    first_group: int,
    group_behind: int,
    buckets: Buckets,
    offsets: PositionArray,
    entries: EntryArray,
) -> None:
    """Sort the entries of some groups by bucket, and write them to both arrays of the table."""
    ranks, mask = grouped.ranks, buckets.mask
    for group in range(first_group, group_behind):
        first, behind = group << buckets.shift, (group + 1) << buckets.shift
        begin, end = bounds[group], bounds[group + 1]
        for bucket in range(first, behind):
            offsets[as_index(bucket)] = 0
        for number in range(begin, end):
            offsets[as_index(as_int64(ranks[as_index(number)]) & mask)] += np.uint32(1)
        total = begin
        for bucket in range(first, behind):
            total += as_int64(offsets[as_index(bucket)])
            offsets[as_index(bucket)] = np.uint32(total)
        # Going from the last entry to the first lowers each offset to where its bucket begins.
        for number in range(end - 1, begin - 1, -1):
            bucket = as_index(as_int64(ranks[as_index(number)]) & mask)
            place = offsets[bucket] - np.uint32(1)
            offsets[bucket] = place
            entries[as_index(place)] = grouped.entries[as_index(number)]
