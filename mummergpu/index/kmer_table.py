"""The table of a reference's k-mers: where in the reference each k-mer occurs.

For every k-mer the table lists the positions at which it begins, in ascending order. The lists
follow each other in one array. No k-mer contains a break. The table is built in two parallel
steps. The first puts k-mers into buckets by their highest bits. The second sorts each bucket
by counting, which touches no more memory at once than the caches hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BREAK, MARGIN, CodeArray
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH

PositionArray = npt.NDArray[np.uint32]
CountArray = npt.NDArray[np.int64]
EntryArray = npt.NDArray[np.uint64]

MAXIMUM_TABLE_BASES: Final = (1 << 32) - 1
"""The most bases that one table covers: its positions are numbers of 32 bits."""

MOST_BUCKET_BITS: Final = 10
"""The most bits of a k-mer that choose its bucket: a task writes to all buckets in turn."""

SLICE_BASES: Final = 1 << 22
"""The bases of the reference that one task puts into buckets."""

TASK_NUMBERS: Final = 1 << 15
"""The numbers of the table that one task writes, unless a single bucket has more: starting a task
takes as long as writing some thousand numbers."""


@dataclass(frozen=True)
class KmerTable:
    """The positions at which the k-mers of a part of a reference begin.

    Attributes
    ----------
    kmer_length : int
        The number of bases of a k-mer.
    offsets : ndarray, dtype=uint32, shape=(4**kmer_length + 1,)
        Where the list of each k-mer begins in `positions`, and where the last list ends. A
        k-mer is a number with its first base in the two lowest bits.
    positions : ndarray, dtype=uint32, shape=(n_kmers,)
        Where k-mers begin, counted from the first base of the part; each list ascends.
    """

    kmer_length: int
    offsets: PositionArray
    positions: PositionArray

    @property
    def byte_count(self) -> int:
        """The size of the table in bytes."""
        return self.offsets.nbytes + self.positions.nbytes


def table_bytes(bases: int, kmer_length: int) -> int:
    """Return the most bytes that the table of `bases` bases takes."""
    return 4 * (bases + (1 << 2 * kmer_length) + 1)


def build_kmer_table(
    codes: CodeArray,
    begin: int,
    end: int,
    kmer_length: int,
    map_function: Callable[..., Iterable[object]] = map,
    scratch_bytes: int = 1 << 30,
) -> KmerTable:
    """Return the table of the k-mers that begin in a part of a reference.

    Parameters
    ----------
    codes : ndarray, dtype=uint8
        The codes of the whole reference, with margins (`codes.with_margins`).
    begin, end : int
        The part, in bases of the reference, 0-based and half-open; at most
        `MAXIMUM_TABLE_BASES`. A k-mer may reach beyond its end.
    kmer_length : int
        The number of bases of a k-mer, 1 to `extension.MAXIMUM_KMER_LENGTH`.
    map_function : callable
        Works like `map`; the tasks of each step are independent.
    scratch_bytes : int
        The approximate memory to use besides the table, in bytes. The less there is, the more
        often the construction passes over the reference.

    Returns
    -------
    KmerTable
        The table; it does not depend on `map_function` and `scratch_bytes`.
    """
    assert end - begin <= MAXIMUM_TABLE_BASES
    assert 1 <= kmer_length <= MAXIMUM_KMER_LENGTH
    shift = max(0, 2 * kmer_length - MOST_BUCKET_BITS)
    bucket_count = 1 << (2 * kmer_length - shift)
    slices = [
        (MARGIN + first, MARGIN + min(first + SLICE_BASES, end))
        for first in range(begin, end, SLICE_BASES)
    ]
    counts = np.zeros((len(slices), bucket_count), dtype=np.int64)

    def count(number: int) -> None:
        count_buckets(codes, *slices[number], kmer_length, shift, counts[number])

    list(map_function(count, range(len(slices))))
    bounds = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    offsets = np.empty((1 << 2 * kmer_length) + 1, dtype=np.uint32)
    positions = np.empty(bounds[-1], dtype=np.uint32)
    offsets[-1] = bounds[-1]
    # The index at which each slice writes its first entry of each bucket.
    places = np.cumsum(counts, axis=0) - counts + bounds[:-1]

    def fill(number: int, group: tuple[int, int], base: int, entries: EntryArray) -> None:
        part = slices[number]
        own = places[number] - base
        fill_buckets(codes, *part, MARGIN + begin, kmer_length, shift, *group, own, entries)

    def sort(buckets: tuple[int, int], base: int, entries: EntryArray) -> None:
        sort_buckets(entries, base, bounds, *buckets, shift, offsets, positions)

    # What a bucket writes: its positions, and the offsets of its k-mers.
    written = bounds + (np.arange(bounds.size) << shift)
    for group in _ranges_of_buckets(bounds, scratch_bytes // 8, 0, bucket_count):
        base = int(bounds[group[0]])
        entries = np.empty(int(bounds[group[1]]) - base, dtype=np.uint64)
        fill_group = partial(fill, group=group, base=base, entries=entries)
        list(map_function(fill_group, range(len(slices))))
        tasks = _ranges_of_buckets(written, TASK_NUMBERS, *group)
        list(map_function(partial(sort, base=base, entries=entries), tasks))
    return KmerTable(kmer_length, offsets, positions)


def _ranges_of_buckets(
    bounds: CountArray, most: int, first: int, behind: int
) -> list[tuple[int, int]]:
    """Cut a range of buckets into ranges with at most `most` numbers, or of a single bucket."""
    ranges = []
    while first < behind:
        end = int(np.searchsorted(bounds, bounds[first] + most, side="right")) - 1
        end = min(max(end, first + 1), behind)
        ranges.append((first, end))
        first = end
    return ranges


@inline_without_refcounts
def next_kmer(kmer: np.uint64, code: int, top: np.uint64) -> np.uint64:
    """Return the k-mer that begins one base later and ends with `code`.

    Parameters
    ----------
    kmer : uint64
        A k-mer, its first base in the two lowest bits.
    code : int
        The code of the base after it, 0 to 3.
    top : uint64
        The bit position of the last base of a k-mer: twice its length, minus two.

    Returns
    -------
    uint64
        The next k-mer.
    """
    return kmer >> np.uint64(2) | np.uint64(code) << top


@jit_without_refcounts
def count_buckets(
    codes: CodeArray, begin: int, end: int, length: int, shift: int, counts: CountArray
) -> None:
    """Count the k-mers of each bucket that begin in ``codes[begin:end]``.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The codes of the whole reference with margins.
    begin, end : int
        The half-open range, as indices of `codes`.
    length : int
        The number of bases of a k-mer.
    shift : int
        A k-mer shifted to the right by this many bits is the number of its bucket.
    counts : ndarray, dtype=int64, shape=(n_buckets,)
        Output: zeros that become the number of k-mers in each bucket.
    """
    top = np.uint64(2 * length - 2)
    kmer = np.uint64(0)
    unbroken = 0
    for at in range(begin, end + length - 1):
        code = codes[at]
        unbroken = 0 if code == BREAK else unbroken + 1
        kmer = next_kmer(kmer, code & 3, top)
        if unbroken >= length and at - begin >= length - 1:
            counts[kmer >> np.uint64(shift)] += 1


@jit_without_refcounts
def fill_buckets(
    codes: CodeArray,
    begin: int,
    end: int,
    origin: int,
    length: int,
    shift: int,
    first: int,
    behind: int,
    places: CountArray,
    entries: EntryArray,
) -> None:
    """Write the k-mers of a range of buckets to their buckets, with their positions.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The codes of the whole reference with margins.
    begin, end : int
        The half-open range in which the k-mers begin, as indices of `codes`.
    origin : int
        The index of `codes` from which positions are counted.
    length : int
        The number of bases of a k-mer.
    shift : int
        A k-mer shifted to the right by this many bits is the number of its bucket.
    first, behind : int
        The half-open range of the buckets.
    places : ndarray, dtype=int64, shape=(n_buckets,)
        The index in `entries` of the next entry of each bucket; advanced.
    entries : ndarray, dtype=uint64, shape=(n_entries,)
        Output: a k-mer in the upper 32 bits, its position in the lower ones.
    """
    top = np.uint64(2 * length - 2)
    kmer = np.uint64(0)
    unbroken = 0
    for at in range(begin, end + length - 1):
        code = codes[at]
        unbroken = 0 if code == BREAK else unbroken + 1
        kmer = next_kmer(kmer, code & 3, top)
        bucket = np.int64(kmer >> np.uint64(shift))  # signed, like the bounds
        if unbroken >= length and at - begin >= length - 1 and first <= bucket < behind:
            position = np.uint64(at - (length - 1) - origin)
            entries[places[bucket]] = kmer << np.uint64(32) | position
            places[bucket] += 1


@jit_without_refcounts
def sort_buckets(
    entries: EntryArray,
    base: int,
    bounds: CountArray,
    first: int,
    behind: int,
    shift: int,
    offsets: PositionArray,
    positions: PositionArray,
) -> None:
    """Sort the entries of each bucket by k-mer, and write them to both arrays of the table.

    Parameters
    ----------
    entries : ndarray, dtype=uint64, shape=(n_entries,)
        The entries of some buckets, as `fill_buckets` writes them.
    base : int
        The index of the first of these entries among the entries of all buckets.
    bounds : ndarray, dtype=int64, shape=(n_buckets + 1,)
        Where each bucket begins among the entries of all buckets, and where the last one ends.
    first, behind : int
        The half-open range of the buckets to sort.
    shift : int
        A k-mer shifted to the right by this many bits is the number of its bucket.
    offsets : ndarray, dtype=uint32, shape=(4**kmer_length + 1,)
        Output: where the lists of these k-mers begin in `positions`.
    positions : ndarray, dtype=uint32, shape=(n_kmers,)
        Output: where these k-mers begin in the part of the reference, 0-based and ascending.
    """
    for bucket in range(first, behind):
        first_kmer, kmer_behind = bucket << shift, (bucket + 1) << shift
        begin, end = bounds[bucket] - base, bounds[bucket + 1] - base
        for kmer in range(first_kmer, kmer_behind):
            offsets[kmer] = 0
        for entry in range(begin, end):
            offsets[entries[entry] >> np.uint64(32)] += np.uint32(1)
        total = bounds[bucket]
        for kmer in range(first_kmer, kmer_behind):
            total += offsets[kmer]
            offsets[kmer] = total
        # Going from the last entry to the first lowers each offset to where its list begins.
        for entry in range(end - 1, begin - 1, -1):
            word = entries[entry] >> np.uint64(32)
            place = offsets[word] - np.uint32(1)
            offsets[word] = place
            positions[place] = np.uint32(entries[entry] & np.uint64(0xFFFFFFFF))
