"""The table of a reference's k-mers: where in the reference each k-mer occurs.

For every k-mer the table lists the positions at which it begins, in ascending order until
`kmer_order` sorts the long lists for a search. Only positions that are multiples of the reference
step count, so a larger step makes a smaller table; or those of picked k-mers (`kmer_sampling`). The
lists follow each other in one array. No k-mer contains a break. The table is built in two parallel
steps. The first puts k-mers into buckets by their highest bits. The second sorts each bucket by
counting, which touches no more memory at once than the caches hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import partial
from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.pages import Page
from mummergpu.input.reference import Reference
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array, UInt64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import inline, jit, lowest_bit
from mummergpu.runtime.progress import ProgressShares
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import MAXIMUM_KMER_LENGTH, digest_before, kmer_at
from mummergpu.sequence.picked_kmers import mark_picked

PositionArray = UInt32Array
CountArray = Int64Array
EntryArray = UInt64Array

MAX_TABLE_BASES: Final = (1 << 32) - 1
"""The most bases that one table covers: its positions are numbers of 32 bits."""

ENTRY_BYTES: Final = 8
"""The bytes of a k-mer and its position while a table is built."""

ENTRY_POSITION_BITS: Final = 32
ENTRY_KMER_BITS: Final = 24
"""The bits of an entry for its position and, above these, for the k-mer's number in its bucket; the
rest are the bases before it."""

MAX_SCRATCH_BYTES: Final = 1 << 28
SCRATCH_BYTES_PER_BASE: Final = 2
"""The bounds of `max_scratch_bytes`."""

MAX_BUCKET_BITS: Final = 10
"""The most bits of a k-mer that choose its bucket: a task writes to all buckets in turn."""

SLICE_BASES: Final = 1 << 22
"""The bases of the reference that one task puts into buckets."""

WORD_BITS: Final = 64
"""The bits of a word of `KmerSlice.picked`."""

TASK_NUMBERS: Final = 1 << 15
"""The numbers of the table that one task writes, unless a single bucket has more: starting a task
takes as long as writing some thousand numbers."""

COUNTING_SHARE: Final = 0.1
FILLING_SHARE: Final = 0.3
"""The shares of the time that counting and filling buckets take; sorting them takes the rest."""

NOT_KNOWN: Final = np.empty(0, dtype=np.uint8)
"""The `KmerTable.bases_beside` of a table without them."""


@frozen
class KmerTable:
    """The positions at which the k-mers of a part of a reference begin."""

    sampling: KmerSampling
    # Where the list of each k-mer begins in `positions`, and where the last list ends. A k-mer is a
    # number with its first base in the two lowest bits. (4**kmer_length + 1,)
    offsets: PositionArray
    # Where k-mers begin, counted from the first base of the part. Lists of at most
    # `longest_ascending` positions ascend.
    positions: PositionArray
    # How many bases before each position longer lists are sorted by (`kmer_order`), the nearest
    # one counting most; 0 if these lists ascend too.
    ordered_bases: int = 0
    longest_ascending: int = MAX_TABLE_BASES  # The most positions of a list that ascends for sure.
    # A byte of the bases next to each position, by which a search rejects most positions without
    # the reference: of those before it in a list that ascends (`digest_before`), and the four after
    # its k-mer in a list that is sorted by the bases before (`four_before`). Empty if not known.
    bases_beside: ByteArray = field(default_factory=lambda: NOT_KNOWN)

    @property
    def byte_count(self) -> int:
        """The size of the table in bytes."""
        return self.offsets.nbytes + self.positions.nbytes + self.bases_beside.nbytes


class KmerSlice(NamedTuple):
    """The k-mers of a slice of a reference, and how they are put into buckets."""

    codes: CodeArray  # The codes of the whole reference with margins; (n_bases + 2 * MARGIN,).
    # The slice, as indices of `codes`, and the bases from one k-mer to the next.
    begin: int
    end: int
    step: int
    # A bit for each position of the slice, set where a picked k-mer begins; or empty where those at
    # a step count.
    picked: UInt64Array
    kmer_length: int  # The bases of a k-mer.
    shift: int  # A k-mer shifted to the right by this many bits is the number of its bucket.
    with_bases_beside: bool  # Whether the table will have the bases before each position.


def max_scratch_bytes(bases: int) -> int:
    """Return the bytes that building a table takes besides the table, if memory is plentiful.

    A table of all positions of a large reference then takes four passes over it.
    """
    return max(MAX_SCRATCH_BYTES, SCRATCH_BYTES_PER_BASE * bases)


def build_kmer_table(
    codes: CodeArray,
    begin: int,
    end: int,
    sampling: KmerSampling,
    map_function: Callable[..., Iterable[object]] = map,
    scratch_bytes: int = 1 << 30,
    tell: Callable[[float], None] = lambda share: None,
    with_bases_beside: bool = False,
) -> KmerTable:
    """Return the table of the k-mers that begin in a part of a reference with margins.

    A k-mer may reach beyond the end of the part. The less scratch memory there is, the more often
    the construction passes over the reference; the table does not depend on that. Any thread calls
    `tell` with the share that is done, 0 to 1. The `KmerTable.bases_beside` are optional.
    """
    assert end - begin <= MAX_TABLE_BASES
    kmer_length = sampling.kmer_length
    assert 1 <= kmer_length <= MAXIMUM_KMER_LENGTH
    shift = bucket_shift(kmer_length)
    slices = slices_of(codes, begin, end, sampling, with_bases_beside)
    shares = ProgressShares(tell)
    counted = shares.part(COUNTING_SHARE, len(slices))
    counts = bucket_counts(slices, kmer_length, map_function, counted)
    bucket_count = counts.shape[1]
    bounds = np.concatenate(([0], np.cumsum(counts.sum(axis=0))))
    offsets = np.empty((1 << 2 * kmer_length) + 1, dtype=np.uint32)
    positions = np.empty(bounds[-1], dtype=np.uint32)
    bases_beside = np.empty(bounds[-1], dtype=np.uint8) if with_bases_beside else NOT_KNOWN
    offsets[-1] = bounds[-1]
    # The index at which each slice writes its first entry of each bucket.
    places = np.cumsum(counts, axis=0) - counts + bounds[:-1]

    def fill(
        number: int,
        group: tuple[int, int],
        base: int,
        entries: EntryArray,
        filled: Callable[[], None],
    ) -> None:
        own = places[number] - base
        fill_buckets(slices[number], MARGIN + begin, *group, own, entries)
        filled()

    def sort(
        buckets: tuple[int, int], base: int, entries: EntryArray, is_sorted: Callable[[], None]
    ) -> None:
        sort_buckets(entries, base, bounds, *buckets, shift, offsets, positions, bases_beside)
        is_sorted()

    # What a bucket writes: its positions, and the offsets of its k-mers.
    written = bounds + (np.arange(bounds.size) << shift)
    for group in _ranges_of_buckets(bounds, scratch_bytes // ENTRY_BYTES, 0, bucket_count):
        base = int(bounds[group[0]])
        entries = np.empty(int(bounds[group[1]]) - base, dtype=np.uint64)
        share = entries.size / max(1, int(bounds[-1]))
        filled = shares.part(FILLING_SHARE * share, len(slices))
        fill_group = partial(fill, group=group, base=base, entries=entries, filled=filled)
        list(map_function(fill_group, range(len(slices))))
        tasks = _ranges_of_buckets(written, TASK_NUMBERS, *group)
        is_sorted = shares.part((1 - COUNTING_SHARE - FILLING_SHARE) * share, len(tasks))
        list(map_function(partial(sort, base=base, entries=entries, is_sorted=is_sorted), tasks))
    return KmerTable(sampling, offsets, positions, bases_beside=bases_beside)


def bucket_shift(kmer_length: int) -> int:
    """Return by how many bits a k-mer is shifted to become the number of its bucket."""
    return max(0, 2 * kmer_length - MAX_BUCKET_BITS)


def slices_of(
    codes: CodeArray, begin: int, end: int, sampling: KmerSampling, with_bases_beside: bool = False
) -> list[KmerSlice]:
    """Return the slices of a part of a reference with margins; picked k-mers are still to mark."""
    step = sampling.reference_step
    return [
        KmerSlice(
            codes,
            MARGIN + (first if sampling.is_picked else -(-first // step) * step),
            MARGIN + min(first + SLICE_BASES, end),
            step,
            np.zeros((SLICE_BASES if sampling.is_picked else 0) // WORD_BITS, dtype=np.uint64),
            sampling.kmer_length,
            bucket_shift(sampling.kmer_length),
            with_bases_beside,
        )
        for first in range(begin, end, SLICE_BASES)
    ]


def bucket_counts(
    slices: Sequence[KmerSlice],
    kmer_length: int,
    map_function: Callable[..., Iterable[object]] = map,
    counted: Callable[[], None] = lambda: None,
) -> CountArray:
    """Return the listed k-mers of each slice in each bucket; picked ones are marked."""
    buckets = 1 << (2 * kmer_length - bucket_shift(kmer_length))
    counts = np.zeros((len(slices), buckets), dtype=np.int64)

    def count(number: int) -> None:
        part = slices[number]
        if part.picked.size:
            mark_picked(part.codes, part.begin, part.end, kmer_length, part.step, part.picked)
        count_buckets(part, counts[number])
        counted()

    list(map_function(count, range(len(slices))))
    return counts


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


@jit
def count_buckets(part: KmerSlice, counts: CountArray) -> None:
    """Add the k-mers of a slice to the counts of their buckets."""
    if part.picked.size == 0:
        for at in range(part.begin, part.end, part.step):
            count_kmer(part, at, counts)
    for word in range(part.picked.size):
        left = part.picked[word]
        while left != 0:
            count_kmer(part, part.begin + word * WORD_BITS + lowest_bit(left), counts)
            left &= left - np.uint64(1)


@inline
def count_kmer(part: KmerSlice, at: int, counts: CountArray) -> None:
    """Add a k-mer to the count of its bucket."""
    kmer = kmer_at(part.codes, at, part.kmer_length)
    if kmer >= 0:
        counts[np.uint64(kmer) >> np.uint64(part.shift)] += 1


@jit
def fill_buckets(
    part: KmerSlice, origin: int, first: int, behind: int, places: CountArray, entries: EntryArray
) -> None:
    """Write the k-mers of some buckets to `entries`, with their positions.

    An entry is a position in its lower 32 bits, counted from the index `origin` of the codes, the
    number of its k-mer in the bucket, and the bases before it. `places` holds the index of each
    bucket's next entry, and is advanced.
    """
    if part.picked.size == 0:
        for at in range(part.begin, part.end, part.step):
            fill_kmer(part, at, origin, first, behind, places, entries)
    for word in range(part.picked.size):
        left = part.picked[word]
        while left != 0:
            at = part.begin + word * WORD_BITS + lowest_bit(left)
            fill_kmer(part, at, origin, first, behind, places, entries)
            left &= left - np.uint64(1)


@inline
def fill_kmer(
    part: KmerSlice,
    at: int,
    origin: int,
    first: int,
    behind: int,
    places: CountArray,
    entries: EntryArray,
) -> None:
    """Write a k-mer to `entries` if it is of one of these buckets (`fill_buckets`)."""
    in_bucket = (np.uint64(1) << np.uint64(part.shift)) - np.uint64(1)
    kmer = kmer_at(part.codes, at, part.kmer_length)
    bucket = kmer >> part.shift  # negative if the k-mer contains a break
    if kmer >= 0 and first <= bucket < behind:
        number = np.uint64(kmer) & in_bucket
        if part.with_bases_beside:
            number |= digest_before(part.codes, at) << np.uint64(ENTRY_KMER_BITS)
        number <<= np.uint64(ENTRY_POSITION_BITS)
        entries[places[bucket]] = number | np.uint64(at - origin)
        places[bucket] += 1


@jit
def sort_buckets(
    entries: EntryArray,
    base: int,
    bounds: CountArray,
    first: int,
    behind: int,
    shift: int,
    offsets: PositionArray,
    positions: PositionArray,
    bases_beside: ByteArray,
) -> None:
    """Sort the entries of some buckets by k-mer, and write them to the arrays of the table.

    `bounds` counts entries of all buckets, and `entries` begins with number `base` of these. The
    bases before positions are not written if their array is empty.
    """
    kmer_bits = np.uint64((1 << ENTRY_KMER_BITS) - 1)
    for bucket in range(first, behind):
        first_kmer, kmer_behind = bucket << shift, (bucket + 1) << shift
        begin, end = bounds[bucket] - base, bounds[bucket + 1] - base
        for kmer in range(first_kmer, kmer_behind):
            offsets[kmer] = 0
        kmer_zero = np.uint64(first_kmer)
        for entry in range(begin, end):
            number = entries[entry] >> np.uint64(ENTRY_POSITION_BITS)
            offsets[kmer_zero + (number & kmer_bits)] += np.uint32(1)
        total = bounds[bucket]
        for kmer in range(first_kmer, kmer_behind):
            total += offsets[kmer]
            offsets[kmer] = total
        # A loop that writes no bases takes a sixth less time.
        if bases_beside.size > 0:
            place_entries(entries, begin, end, kmer_zero, True, offsets, positions, bases_beside)
        else:
            place_entries(entries, begin, end, kmer_zero, False, offsets, positions, bases_beside)


@inline
def place_entries(
    entries: EntryArray,
    begin: int,
    end: int,
    first_kmer: np.uint64,
    with_bases_beside: bool,
    offsets: PositionArray,
    positions: PositionArray,
    bases_beside: ByteArray,
) -> None:
    """Write the entries of a bucket to the lists of their k-mers, whose ends are the offsets."""
    kmer_bits = np.uint64((1 << ENTRY_KMER_BITS) - 1)
    # Going from the last entry to the first lowers each offset to where its list begins.
    for entry in range(end - 1, begin - 1, -1):
        number = entries[entry] >> np.uint64(ENTRY_POSITION_BITS)
        word = first_kmer + (number & kmer_bits if with_bases_beside else number)
        place = offsets[word] - np.uint32(1)
        offsets[word] = place
        positions[place] = np.uint32(entries[entry] & np.uint64(0xFFFFFFFF))
        if with_bases_beside:
            bases_beside[place] = np.uint8(number >> np.uint64(ENTRY_KMER_BITS))


@frozen
class KmerPage:
    """A part of a reference and its table of k-mers: the input of a k-mer search."""

    # The position of the part in the joined reference. The page owns all of the part, because
    # matches are extended in the whole reference.
    page: Page
    table: KmerTable
    # The codes of the whole reference with margins (`codes.with_margins`), shared.
    padded_reference: CodeArray
    # The index file that the page is from, or ``""`` if it was built in memory.
    index_path: str = ""
    # The bases of a window; None for a search that finds all matches. Only matches that contain a
    # whole window of their query matter. Windows lie side by side from the query's first base, and
    # have at least `KmerSampling.shortest_match` bases. Of each window a search looks up as many
    # k-mers as the reference step, one of which is listed, or the one picked k-mer; it lists the
    # matches of a query in no certain order.
    window_bases: int | None = None
    # The bases from one window to the next, if they do not lie side by side.
    window_distance: int | None = None
    # The most matches of a query on a strand, with a window if windows matter, that are all found.
    # Of a query with more, those with a seed that `seed_rule` takes are found, in no certain order.
    # None to find all. It is for a page that has the whole reference.
    max_matches: int | None = None
    # Only matches that are unique in the reference matter: a search may leave out matches that lie
    # in others, and all but two of several with the same bases.
    only_unique: bool = False

    @property
    def joined_reference(self) -> CodeArray:
        """The codes of the whole reference, without the margins."""
        return self.padded_reference[MARGIN:-MARGIN]

    @property
    def is_for_mapping(self) -> bool:
        """Whether a search finds the matches that a mapper wants (`seed_search`), not all."""
        return self.window_bases is not None or self.max_matches is not None

    @property
    def kmer_offsets(self) -> range:
        """The bases of a window before each k-mer that is looked up; 0 without windows.

        With picked k-mers, those before the span of which one is looked up.
        """
        if self.window_bases is None:
            return range(1)
        sampling = self.table.sampling
        assert self.window_bases >= sampling.shortest_match
        last = self.window_bases - sampling.lookup_bases
        return range(last - sampling.kmers_of_window + 1, last + 1)

    def query_step(self, minimum_length: int) -> int:
        """Return the bases from one k-mer that is looked up to the next (`KmerSampling`)."""
        if self.window_bases is not None:
            return self.window_distance or self.window_bases
        return self.table.sampling.query_step(minimum_length)

    def sampling_step(self, minimum_length: int) -> int:
        """Return the bases from one pair of a match to the next (`KmerSampling`)."""
        if self.window_bases is not None:
            return self.window_distance or self.window_bases
        return self.table.sampling.sampling_step(minimum_length)


def build_kmer_page(
    reference: Reference,
    page: Page,
    sampling: KmerSampling,
    scratch_bytes: int,
    stats: Stats,
    map_function: Callable[..., Iterable[object]] = map,
    tell: Callable[[float], None] = lambda share: None,
    with_bases_beside: bool = False,
) -> KmerPage:
    """Build the table of a page; `tell` receives the share that is done from any thread."""
    padded = reference.padded_codes
    with stats.stage("table_construction"):
        table = build_kmer_table(
            *(padded, page.begin, page.owned_end, sampling, map_function, scratch_bytes, tell),
            with_bases_beside,
        )
    return KmerPage(page, table, padded)
