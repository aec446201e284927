"""The table of a reference's k-mers: where in the reference each of them occurs.

For every k-mer the table lists the positions at which it begins, in ascending order, one
list after the other; no k-mer holds a break. It is built in two steps, both in parallel:
k-mers are first put into buckets by their highest bits, then each bucket is sorted by
counting, which touches no more memory at once than the caches hold.
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
"""The positions of one table are numbers of 32 bits."""

MOST_BUCKET_BITS: Final = 10
"""So many bits of a k-mer choose the bucket: each is a place that is written to in turn."""

SLICE_BASES: Final = 1 << 22
"""About how many bases of the reference are put into buckets by one task."""


@dataclass(frozen=True)
class KmerTable:
    """Where the k-mers of a part of a reference begin.

    Attributes
    ----------
    kmer_length : int
        The bases of a k-mer.
    offsets : ndarray, dtype=uint32, shape=(4**kmer_length + 1,)
        Where in `positions` the list of each k-mer begins, and where the last ends. A k-mer
        is a number with its first base in the two lowest bits.
    positions : ndarray, dtype=uint32, shape=(n_kmers,)
        Where k-mers begin, counted from the first base of the part; each list ascends.
    """

    kmer_length: int
    offsets: PositionArray
    positions: PositionArray

    @property
    def byte_count(self) -> int:
        """The bytes of the table."""
        return self.offsets.nbytes + self.positions.nbytes


def table_bytes(bases: int, kmer_length: int) -> int:
    """Return the most bytes that the table of so many bases has."""
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
        `MAXIMUM_TABLE_BASES`. A k-mer may reach after its end.
    kmer_length : int
        The bases of a k-mer, 1 to `extension.MAXIMUM_KMER_LENGTH`.
    map_function : callable
        A kind of map: the tasks of each step are independent.
    scratch_bytes : int
        About how much memory to use besides the table's; the reference is passed over more
        often the less there is.

    Returns
    -------
    KmerTable
        The same, whatever `map_function` and `scratch_bytes`.
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
    # Where each slice writes its first entry of each bucket.
    places = np.cumsum(counts, axis=0) - counts + bounds[:-1]

    def fill(number: int, group: tuple[int, int], base: int, entries: EntryArray) -> None:
        part = slices[number]
        own = places[number] - base
        fill_buckets(codes, *part, MARGIN + begin, kmer_length, shift, *group, own, entries)

    def sort(bucket: int, base: int, entries: EntryArray) -> None:
        part = bounds[bucket : bucket + 2]
        sort_bucket(entries, base, part, bucket << shift, 1 << shift, offsets, positions)

    for group in _groups_of_buckets(bounds, scratch_bytes // 8):
        base = int(bounds[group[0]])
        entries = np.empty(int(bounds[group[1]]) - base, dtype=np.uint64)
        fill_group = partial(fill, group=group, base=base, entries=entries)
        list(map_function(fill_group, range(len(slices))))
        list(map_function(partial(sort, base=base, entries=entries), range(*group)))
    return KmerTable(kmer_length, offsets, positions)


def _groups_of_buckets(bucket_begins: CountArray, most: int) -> list[tuple[int, int]]:
    """Return ranges of buckets that hold at most so many entries, or are one bucket."""
    groups = []
    first = 0
    while first < bucket_begins.size - 1:
        behind = int(np.searchsorted(bucket_begins, bucket_begins[first] + most, side="right")) - 1
        behind = max(behind, first + 1)
        groups.append((first, behind))
        first = behind
    return groups


@inline_without_refcounts
def next_kmer(kmer: np.uint64, code: int, top: np.uint64) -> np.uint64:
    """Return the k-mer that begins a base further, and ends with `code`.

    Parameters
    ----------
    kmer : uint64
        A k-mer, its first base in the two lowest bits.
    code : int
        The code of its next base, 0 to 3.
    top : uint64
        Where the last base of a k-mer stands: twice its bases, less two.

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
    """Count the k-mers that begin at ``codes[begin:end]`` by bucket.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The codes of the whole reference with margins.
    begin, end : int
        The half-open range, as indices of `codes`.
    length : int
        The bases of a k-mer.
    shift : int
        A k-mer shifted by so many bits to the right is its bucket.
    counts : ndarray, dtype=int64, shape=(n_buckets,)
        Output: zeros that become the k-mers of each bucket.
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
    """Put the k-mers of some buckets where they belong, with positions.

    Parameters
    ----------
    codes : ndarray, dtype=uint8, shape=(n_bases + 2 * MARGIN,)
        The codes of the whole reference with margins.
    begin, end : int
        The k-mers that begin in this half-open range, as indices of `codes`.
    origin : int
        The index of `codes` that positions count from.
    length : int
        The bases of a k-mer.
    shift : int
        A k-mer shifted by so many bits to the right is its bucket.
    first, behind : int
        The half-open range of the buckets.
    places : ndarray, dtype=int64, shape=(n_buckets,)
        Where in `entries` the next entry of each bucket goes; moved on.
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
        bucket = np.int64(kmer >> np.uint64(shift))  # signed, as the bounds are
        if unbroken >= length and at - begin >= length - 1 and first <= bucket < behind:
            position = np.uint64(at - (length - 1) - origin)
            entries[places[bucket]] = kmer << np.uint64(32) | position
            places[bucket] += 1


@jit_without_refcounts
def sort_bucket(
    entries: EntryArray,
    base: int,
    bounds: CountArray,
    first_kmer: int,
    kmer_count: int,
    offsets: PositionArray,
    positions: PositionArray,
) -> None:
    """Sort the entries of one bucket by k-mer; write its part of both arrays of the table.

    Parameters
    ----------
    entries : ndarray, dtype=uint64, shape=(n_entries,)
        The entries of some buckets, as `fill_buckets` writes them.
    base : int
        The number of the first of them among the entries of all buckets.
    bounds : ndarray, dtype=int64, shape=(2,)
        Where the bucket begins and ends among the entries of all buckets.
    first_kmer, kmer_count : int
        The k-mers of the bucket.
    offsets : ndarray, dtype=uint32, shape=(4**kmer_length + 1,)
        Output: where in `positions` the lists of these k-mers begin.
    positions : ndarray, dtype=uint32, shape=(n_kmers,)
        Output: where in the part of the reference these k-mers begin, 0-based and ascending.
    """
    for kmer in range(first_kmer, first_kmer + kmer_count):
        offsets[kmer] = 0
    for entry in range(bounds[0] - base, bounds[1] - base):
        offsets[entries[entry] >> np.uint64(32)] += np.uint32(1)
    total = bounds[0]
    for kmer in range(first_kmer, first_kmer + kmer_count):
        total += offsets[kmer]
        offsets[kmer] = total
    # From the last to the first: each k-mer's offset comes down to where its list begins.
    for entry in range(bounds[1] - base - 1, bounds[0] - base - 1, -1):
        word = entries[entry] >> np.uint64(32)
        place = offsets[word] - np.uint32(1)
        offsets[word] = place
        positions[place] = np.uint32(entries[entry] & np.uint64(0xFFFFFFFF))
