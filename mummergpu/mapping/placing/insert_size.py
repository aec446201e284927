"""The sizes of templates, from the first 5' end of a pair to the other.

They are measured on pairs that are well placed, described by a distribution, and become penalties.
Each library, a read group or the reads of a file or a pair of files, has a distribution of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil, erfc, floor, log, sqrt
from typing import Final

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import UNIT, Candidates
from mummergpu.mapping.options import PROPER_DEVIATIONS, InsertSizes
from mummergpu.mapping.placing.choice import Choices
from mummergpu.mapping.placing.pairing import LIBRARY_NUMBERS, Pairing, nearest_diagonal
from mummergpu.runtime.arrays import BoolArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, inline, jit

MIN_PAIRS: Final = 25
"""The fewest pairs from which sizes are estimated."""

MAX_BASES: Final = 10_000
"""Larger sizes do not count (as in bwa mem): mates this far apart, as those of chimeras are, say
nothing about templates, and mates would be looked for in windows as wide."""

OUTLIER_RANGES: Final = 2.0
"""Sizes more than this many interquartile ranges beyond a quartile do not count for mean and
deviation."""

PROPER_RANGES: Final = 3.0
"""A proper pair is within `PROPER_RANGES` interquartile ranges of the quartiles, or within
`PROPER_DEVIATIONS` standard deviations of the mean, whichever is wider (as in bwa mem)."""

SHARE_OF_BELL: Final = 0.01
MOST_BELLS: Final = 8
"""If at least `SHARE_OF_BELL` of the pairs lie close together outside the other bells, they are a
bell of their own; there are at most `MOST_BELLS`, the first included."""

SHARE_OF_BELLS: Final = 0.95
WIDTH_OF_BELLS: Final = 0.5
"""Bells alone describe the sizes if at least `SHARE_OF_BELLS` of the pairs lie in them, and if they
are together less than `WIDTH_OF_BELLS` as wide as a single bell of all sizes."""

BELL_BASES: Final = 16
BELL_SHARE: Final = 0.125
"""Sizes are close together if they differ by less than `BELL_BASES` plus `BELL_SHARE` of the
smallest one."""

DENSITY_OF_BELL: Final = 1.35
"""Sizes in the window of a bell are at least this many times as dense as in it and a window as wide
on either side, taken together. Sizes that lie everywhere, as those of chimeras in a small genome
do, are no bell."""

WIDE_MEAN: Final = 400.0
WIDE_DEVIATIONS: Final = 0.375
WIDE_MAX: Final = 1000
"""If too few pairs are placed well, the mean is the median of the few, or `WIDE_MEAN` if there are
none, and the deviation is `WIDE_DEVIATIONS` of it. Proper pairs have at most `WIDE_MAX` bases
(minimap2: 800), or twice the mean if that is more."""

ENOUGH_PAIRS: Final = 256
"""The well placed pairs of one orientation that suffice to know the sizes of a library."""

PAIR_POINTS: Final = 0.721
"""The points of a natural logarithm of a probability: ``1 / ln 4``, as a point is a factor of 4."""

FARTHEST_DEVIATIONS: Final = 7.0
"""Sizes farther from the mean are as unlikely as mates that are not a pair."""

WELL_PLACED: Final = 20
"""The least mapping quality of mates whose template's size counts."""

BARELY_PLACED: Final = 1
"""The least one where too few are well placed, as in a reference of nothing but satellites."""

ORIENTATIONS: Final = ("fr", "rf", "ff", "rr")
"""How the mates of a library lie to each other: facing each other; back to back; on one strand with
the first mate upstream, or downstream."""

TURNS: Final = (0b00, 0b11, 0b10, 0b01)
"""Which mates of each orientation face each other when they are turned: the bit of each mate."""

SIZE: Final = 0
QUALITY: Final = 1
ORIENTATION: Final = 2
LIBRARY: Final = 3
MEASURED: Final = 4
"""The rows of `measure_templates`."""


def size_penalties(sizes: InsertSizes, unpaired: int) -> tuple[int, Int32Array]:
    """Return the smallest size that has a penalty, and the penalty of each size from it on.

    `unpaired` is the penalty of mates that are not a proper pair, in points; no size costs more.
    The penalties are in fixed point (`candidates.UNIT`).
    """
    most = unpaired * UNIT
    bells = [(bell, *_penalised_sizes(bell)) for bell in (sizes, *sizes.others)]
    first = min(least for _, least, _ in bells)
    values = np.full(max(last for *_, last in bells) + 1 - first, most, dtype=np.int32)
    for bell, least, last in bells:
        rarer = -PAIR_POINTS * log(bell.share)
        for size in range(least, last + 1):
            deviations = abs(size - bell.mean) / bell.deviation
            share = 2.0 * erfc(deviations / sqrt(2.0))
            points = rarer - PAIR_POINTS * log(share) if share > 0 else unpaired
            value = max(0, min(most, floor(points * UNIT + 0.5)))
            values[size - first] = min(value, values[size - first])
    return first, values


def _penalised_sizes(bell: InsertSizes) -> tuple[int, int]:
    """Return the least and the largest size of a bell that has a penalty."""
    reach = FARTHEST_DEVIATIONS * bell.deviation
    first = max(1, min(bell.min_size, floor(bell.mean - reach)))
    return first, max(bell.max_size, floor(bell.mean + reach))


def estimate_insert_sizes(sizes: Int64Array) -> InsertSizes | None:
    """Return the distribution of the sizes of well placed pairs.

    It is None if there are fewer than `MIN_PAIRS` of at most `MAX_BASES` bases.
    """
    sizes = sizes[sizes <= MAX_BASES]
    if sizes.size < MIN_PAIRS:
        return None
    ordered = np.sort(sizes)
    low, high = (int(ordered[int(share * sizes.size + 0.499)]) for share in (0.25, 0.75))
    spread = high - low
    least, most = low - OUTLIER_RANGES * spread, high + OUTLIER_RANGES * spread
    kept = ordered[(ordered >= max(1.0, least)) & (ordered <= most)].astype(np.float64)
    mean = float(kept.mean())
    deviation = max(1.0, float(sqrt(float(((kept - mean) ** 2).mean()))))
    proper_least = min(low - PROPER_RANGES * spread, mean - PROPER_DEVIATIONS * deviation)
    proper_most = max(high + PROPER_RANGES * spread, mean + PROPER_DEVIATIONS * deviation)
    return InsertSizes(
        mean, deviation, max(1, floor(proper_least + 0.499)), floor(proper_most + 0.499)
    )


def with_bells(first: InsertSizes, sizes: Int64Array) -> InsertSizes:
    """Return a distribution with its other bells, such as that of dinucleosomes.

    `first` is estimated from some of these sizes. If bells alone have nearly all of them in far
    fewer bases, as where libraries of two sizes are one, they take its place.
    """
    sizes = np.sort(sizes[sizes <= MAX_BASES])
    parts, left = find_bells(sizes, sizes)
    width = sum(bell.max_size - bell.min_size for bell, _ in parts)
    if len(parts) > 1 and left <= (1 - SHARE_OF_BELLS) * sizes.size:
        if width < WIDTH_OF_BELLS * (first.max_size - first.min_size):
            parts.sort(key=lambda part: -part[1])
            return _with_others(parts[0][0], parts[0][1], parts[1:])
    rest = sizes[(sizes < first.min_size) | (sizes > first.max_size)]
    parts, _ = find_bells(rest, sizes)
    return _with_others(first, sizes.size - rest.size, parts)


def _with_others(
    first: InsertSizes, pairs: int, others: list[tuple[InsertSizes, int]]
) -> InsertSizes:
    """Return a bell of `pairs` pairs with other bells."""
    shares = [min(1.0, count / max(1, pairs)) for _, count in others]
    bells = [replace(bell, share=one) for (bell, _), one in zip(others, shares, strict=True)]
    return replace(first, others=tuple(bells))


def find_bells(rest: Int64Array, sizes: Int64Array) -> tuple[list[tuple[InsertSizes, int]], int]:
    """Return bells among sorted sizes, the densest first, with their pairs; and how many are left.

    `sizes` are those of the whole library.
    """
    least = max(MIN_PAIRS, ceil(SHARE_OF_BELL * sizes.size))
    found: list[tuple[InsertSizes, int]] = []
    while rest.size >= least and len(found) + 1 < MOST_BELLS:
        # The most sizes that lie close together, and what is around them.
        ends = np.searchsorted(rest, rest + BELL_BASES + (BELL_SHARE * rest).astype(np.int64))
        counts = ends - np.arange(rest.size)
        begin = int(np.argmax(counts))
        low, high = int(rest[begin]), int(rest[ends[begin] - 1])
        margin = BELL_BASES + int(BELL_SHARE * high)
        around = rest[(rest >= low - margin) & (rest <= high + margin)]
        share = margin / (min(high + margin, MAX_BASES) - max(low - margin, 0))
        bell = estimate_insert_sizes(around)
        if bell is None or counts[begin] < max(least, DENSITY_OF_BELL * share * around.size):
            break
        low, high = min(low, bell.min_size), max(high, bell.max_size)
        is_left = (rest < low) | (rest > high)
        found.append((replace(bell, min_size=low, max_size=high), int((~is_left).sum())))
        rest = rest[is_left]
    return found, rest.size


def sizes_of_library(
    measured: Int64Array, orientation: str | None = None, later: Int64Array | None = None
) -> InsertSizes:
    """Return the distribution of measured templates, of the well placed ones if possible.

    Both arrays are from `measure_templates`; the pairs of `later` lie farther in, and may be those
    of another bell. `orientation` is None for that of most of these.
    """
    few = np.zeros(0, dtype=np.int64)
    for quality in (WELL_PLACED, BARELY_PLACED):
        counts = [
            int((measured[SIZE, _are_of(measured, quality, kind)] <= MAX_BASES).sum())
            for kind in ORIENTATIONS
        ]
        # Of equally many, the orientation whose mates face each other.
        name = orientation or ORIENTATIONS[int(np.argmax(counts))]
        sizes = measured[SIZE, _are_of(measured, quality, name)]
        if (found := estimate_insert_sizes(sizes)) is not None:
            if later is not None:
                sizes = np.concatenate((sizes, later[SIZE, _are_of(later, quality, name)]))
            return replace(with_bells(found, sizes), orientation=name)
        few = few if few.size else sizes[sizes <= MAX_BASES]
    mean = max(1.0, float(np.median(few))) if few.size else WIDE_MEAN
    most = max(WIDE_MAX, int(2 * mean))
    return InsertSizes(
        *(mean, WIDE_DEVIATIONS * mean, 1, most), orientation=orientation or "fr", is_wide=True
    )


def _are_of(measured: Int64Array, quality: int, orientation: str) -> BoolArray:
    """Return which templates have at least this mapping quality, and this orientation."""
    kind = ORIENTATIONS.index(orientation)
    wanted: BoolArray = (measured[QUALITY] >= quality) & (measured[ORIENTATION] == kind)
    return wanted


def is_enough(measured: Int64Array) -> bool:
    """Return whether there are enough pairs to know the sizes of a library."""
    counts = np.bincount(measured[ORIENTATION, measured[QUALITY] >= WELL_PLACED])
    return bool(counts.max(initial=0) >= ENOUGH_PAIRS)


@frozen
class Libraries:
    """The sizes of the templates of each library.

    Attributes
    ----------
    sizes : tuple of InsertSizes or None
        Those of all reads; or of each read group, and after these of each file or pair of files,
        for reads without one. None if no pairs are proper.
    groups : tuple of bytes
        The IDs of the read groups.
    """

    sizes: tuple[InsertSizes | None, ...]
    groups: tuple[bytes, ...] = ()


@frozen
class PairSizes:
    """The sizes of libraries, as compiled functions take them."""

    libraries: Libraries  # The distributions.
    # Of each library, in the order of the fields of `Pairing`: the least and the largest size with
    # a penalty; where the penalties begin; which ranges of proper sizes it has; which mates are
    # turned; (n_libraries, LIBRARY_NUMBERS).
    numbers: Int64Array
    penalties: Int32Array  # The penalty of each size from the least on, in units, of each library.
    # The least and the largest size of each range of proper pairs; (n_ranges, 2).
    ranges: Int64Array
    unpaired: int  # The penalty of mates that are not a proper pair, in points.

    @classmethod
    def of_libraries(cls, libraries: Libraries, unpaired: int) -> PairSizes:
        """Return the penalties of distributions."""
        rows, penalties, ranges = [], [np.zeros(1, dtype=np.int32)], np.zeros((1, 2), np.int64)
        begin = 1
        for sizes in libraries.sizes:
            if sizes is None:
                rows.append([0] * LIBRARY_NUMBERS)
                continue
            first, own = size_penalties(sizes, unpaired)
            behind = len(ranges)
            ranges = np.concatenate((ranges, np.array(sizes.proper, dtype=np.int64)))
            turns = TURNS[ORIENTATIONS.index(sizes.orientation)]
            rows.append([first, first + own.size - 1, begin, behind, len(ranges), turns])
            penalties.append(own)
            begin += own.size
        numbers = np.array(rows, dtype=np.int64)
        return cls(libraries, numbers, np.concatenate(penalties), ranges, unpaired)

    @classmethod
    def of_sizes(cls, sizes: InsertSizes | None, unpaired: int) -> PairSizes:
        """Return the penalties of one distribution."""
        return cls.of_libraries(Libraries((sizes,)), unpaired)

    def libraries_of(self, block: ReadBlock) -> Int64Array:
        """Return the numbers of the libraries of the templates of a block; one if all are alike."""
        if len(self.numbers) == 1 or not block.paired:
            return np.zeros(1, dtype=np.int64)
        found = block.libraries(self.libraries.groups)
        return found[:1] if (found[:1] == found).all() else found

    def pairing(self, paired: bool, libraries: Int64Array | None = None) -> Pairing:
        """Return the facts about templates of these libraries for compiled functions."""
        own = np.zeros(1, dtype=np.int64) if libraries is None else libraries
        mixed = own if own.size > 1 else own[:0]
        first, last, begin, range_begin, range_end, turns = self.numbers[own[0]].tolist()
        return Pairing(
            *(2 if paired else 1, self.unpaired, first, last, begin, range_begin, range_end),
            turns if paired else 0,
            *(self.penalties, self.ranges, mixed, self.numbers),
        )

    def reverse_complemented(self, blocks: Iterator[ReadBlock]) -> Iterator[ReadBlock]:
        """Yield blocks whose mates face each other; those that do not are reverse-complemented."""
        turns = self.numbers[:, -1]
        if not turns.any():
            yield from blocks
            return
        for block in blocks:
            own = turns[self.libraries_of(block)] if block.paired else turns[:1] * 0
            mates = (own[:, None] >> np.arange(2)) & 1
            yield block.with_mates_reversed(mates) if own.any() else block


@inline
def outer_ends(table: Candidates, row: int, length: int) -> tuple[int, int]:
    """Return where a read begins and ends in the reference, with clipped bases."""
    diagonal = as_int64(table.diagonals[row])
    numbers = table.numbers
    return diagonal + numbers[row, column.LEFT_SHIFT], diagonal + numbers[
        row, column.RIGHT_SHIFT
    ] + length


@jit
def measure_templates(
    offsets: Int64Array,
    choices: Choices,
    table: Candidates,
    circles: Int64Array,
    measured: Int64Array,
) -> int:
    """Measure the templates whose mates are placed on one record; return how many.

    `offsets` says where each read begins; in the order of the pairs, the rows of `measured` get the
    size, the lower quality of both mates, the orientation, and the number of the template.
    `circles` are those of `Target`.
    """
    numbers = table.numbers
    count = 0
    for read in range(0, offsets.size - 1, 2):
        row, mate = choices.candidates[read], choices.candidates[read + 1]
        quality = min(choices.qualities[read], choices.qualities[read + 1])
        if row < 0 or mate < 0 or quality < BARELY_PLACED:
            continue
        if numbers[row, column.RECORD] != numbers[mate, column.RECORD]:
            continue
        length, mate_length = (
            offsets[read + 1] - offsets[read],
            offsets[read + 2] - offsets[read + 1],
        )
        # Where both mates begin and end in the reference; a mate of a circular record is taken to
        # lie where it is nearest.
        begin, end = outer_ends(table, row, length)
        other = behind = nearest_diagonal(table, row, mate, circles)
        other = other + numbers[mate, column.LEFT_SHIFT]
        behind = behind + numbers[mate, column.RIGHT_SHIFT] + mate_length
        # Orientations are FR, RF, FF and RR, as `ORIENTATIONS` numbers them.
        is_forward = numbers[row, column.STRAND] == 0
        if numbers[row, column.STRAND] != numbers[mate, column.STRAND]:
            orientation = 0
            size = behind - begin if is_forward else end - other
            if size <= 0:
                orientation = 1
                size = end - other if is_forward else behind - begin
        else:
            is_first = begin <= other
            orientation = 2 if is_first == is_forward else 3
            size = behind - begin if is_first else end - other
        if size > 0:
            measured[0, count], measured[1, count] = size, quality
            measured[2, count], measured[3, count] = orientation, read // 2
            count += 1
    return count
