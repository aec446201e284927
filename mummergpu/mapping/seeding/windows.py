"""Keeps the matches that contain a whole window of their read.

The windows of a read lie side by side from its first base. A read with e edits matches its place
in one of any ``e + 1`` windows as a whole, so no placement with fewer edits than windows is lost.
Which matches are kept depends on the matches alone, and not on the k-mers that a search looks up.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import is_near
from mummergpu.sequence.mems import ALL_SEEDS, BlockMems, MemColumns, MemRows
from mummergpu.sequence.seed_rule import (
    ANYWHERE,
    NEAR,
    NEAR_EDITS,
    THINNING_BITS,
    SeedRoom,
    Seeds,
    disjoint_seeds,
    new_seed_room,
    parts_of,
    take_rarest,
    taken_occurrences,
    thinning_hash,
    windows_of,
)


def shortest_sure_match(window: int) -> int:
    """Return the least length with which every match contains a whole window."""
    return 2 * window - 1


def matches_of_windows(matches: MemColumns, window: int) -> MemColumns:
    """Return the matches that contain a whole window."""
    count = matches.lengths.size
    kept = MemColumns(
        np.empty_like(matches.offsets),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
    )
    end = keep_windows(matches, window, kept)
    return MemColumns(
        kept.offsets, kept.query_starts[:end], kept.reference_starts[:end], kept.lengths[:end]
    )


@jit
def keep_windows(matches: MemColumns, window: int, kept: MemColumns) -> int:
    """Copy the matches that contain a whole window; return how many there are."""
    kept.offsets[0] = 0
    end = 0
    for read in range(matches.offsets.size - 1):
        for row in range(matches.offsets[read], matches.offsets[read + 1]):
            start = matches.query_starts[row]
            first = (start + window - 1) // window * window
            if first + window <= start + matches.lengths[row]:
                kept.query_starts[end] = start
                kept.reference_starts[end] = matches.reference_starts[row]
                kept.lengths[end] = matches.lengths[row]
                end += 1
        kept.offsets[read + 1] = end
    return end


NO_CODES: Final = np.zeros(0, dtype=np.uint8)


class ReadCodes(NamedTuple):
    """Where reads begin and the last one ends, not counting margins, and the codes to compare.

    These are the codes of the reads on the strand of their matches, and those of the reference,
    with margins; they are needed if matches without a window count.
    """

    offsets: Int64Array
    codes: CodeArray = NO_CODES
    reference: CodeArray = NO_CODES


class ChosenBy(NamedTuple):
    """The rule for choosing matches of a read that has too many on a strand (`seed_rule`)."""

    # The bases of a window, and from one to the next.
    window: int
    distance: int
    most: int  # The most matches that are all kept.
    any_match: bool = False  # Whether matches without a window count too.


def chosen_matches(matches: MemColumns, reads: ReadCodes, by: ChosenBy) -> MemColumns:
    """Return the matches that a search on the whole reference would have chosen.

    `matches` are all on one strand that contain a window; if `distance` is `window`, all of at
    least `window` bases. Searches on parts of the reference find them, without knowing what is
    rare.
    """
    count = matches.lengths.size
    kept = MemColumns(
        np.empty_like(matches.offsets),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(matches.offsets.size - 1, dtype=np.uint8),
    )
    end = keep_chosen(matches, reads, by, new_seed_room(), kept)
    rows = MemRows(*(column[:end] for column in kept.rows))
    return MemColumns(kept.offsets, *rows, kept.seeds)


def without_frequent_pairs(mems: BlockMems) -> BlockMems:
    """Leave out the matches of pairs with a mate none of whose seeds has all its matches.

    The mapping qualities of such a mate are 0, whatever its matches are, unless its template's size
    counts.
    """
    frequent = [columns.seeds == 0 for columns in mems.values() if columns.seeds.size]
    if not frequent:
        return mems
    kept = np.repeat(~np.any(frequent, axis=0).reshape(-1, 2).any(axis=1), 2)
    return mems if kept.all() else {s: matches_of(one, kept) for s, one in mems.items()}


def matches_of(matches: MemColumns, kept: npt.NDArray[np.bool_]) -> MemColumns:
    """Return the matches of some reads; the others have none."""
    counts = np.diff(matches.offsets)
    rows = np.repeat(kept, counts)
    ends = np.cumsum(np.where(kept, counts, 0), dtype=np.int64)
    offsets = np.concatenate((np.zeros(1, dtype=np.int64), ends))
    return MemColumns(offsets, *MemRows(*(one[rows] for one in matches.rows)), matches.seeds)


@jit
def keep_chosen(
    matches: MemColumns, reads: ReadCodes, by: ChosenBy, room: SeedRoom, kept: MemColumns
) -> int:
    """Copy the matches that are chosen; return how many there are."""
    kept.offsets[0] = 0
    end = as_int64(0)
    for read in range(matches.offsets.size - 1):
        begin, behind = as_int64(matches.offsets[read]), as_int64(matches.offsets[read + 1])
        length = as_int64(reads.offsets[read + 1] - reads.offsets[read])
        with_window = as_int64(0)
        for row in range(begin, behind):
            counts = by.any_match or has_seed(matches, row, by.window, by.distance)
            with_window += 1 if counts else 0
        is_complete = with_window <= by.most * (ANYWHERE if by.any_match else 1)
        if by.any_match and with_window > NEAR * by.most:
            is_complete &= count_near(matches, read, reads, by) <= NEAR * by.most
        # A read with few matches keeps all of them, so that its quality misses nothing.
        seeds, seeds_kept = Seeds(0, by.window, by.distance, as_int64(0)), as_int64(ALL_SEEDS)
        if not is_complete:
            seeds, seeds_kept = choose_of_matches(matches, begin, behind, length, by, room)
        kept.seeds[read] = seeds_kept
        for row in range(begin, behind):
            if is_complete:
                is_kept = by.any_match or has_seed(matches, row, by.window, by.distance)
            else:
                is_kept = has_taken(matches, row, seeds, room)
            if is_kept:
                kept.query_starts[end] = matches.query_starts[row]
                kept.reference_starts[end] = matches.reference_starts[row]
                kept.lengths[end] = matches.lengths[row]
                end += 1
        kept.offsets[read + 1] = end
    return end


@inline
def count_near(matches: MemColumns, read: int, reads: ReadCodes, by: ChosenBy) -> int:
    """Count the matches of a read that have one of its parts and are near."""
    begin = as_int64(reads.offsets[read])
    length = as_int64(reads.offsets[read + 1]) - begin
    parts = parts_of(length, by.window)
    count = as_int64(0)
    for row in range(matches.offsets[read], matches.offsets[read + 1]):
        start, bases = matches.query_starts[row], matches.lengths[row]
        if not has_seed(matches, row, parts.bases, parts.step):
            continue
        at, other_at = MARGIN + begin + start, MARGIN + matches.reference_starts[row]
        behind = length - start - bases
        count += is_near(
            *(reads.codes, at, reads.reference, other_at, bases, start, behind, NEAR_EDITS)
        )
    return count


@inline
def has_seed(matches: MemColumns, row: int, bases: int, step: int) -> bool:
    """Return whether a match wholly contains one of the seeds that begin at every `step` bases."""
    start = matches.query_starts[row]
    first = (start + step - 1) // step * step
    return bool(first + bases <= start + matches.lengths[row])


@inline
def has_taken(matches: MemColumns, row: int, seeds: Seeds, room: SeedRoom) -> bool:
    """Return whether a match has a seed that is taken."""
    start, diagonal = matches.query_starts[row], matches.reference_starts[row]
    diagonal -= start
    seed = as_int64((start + seeds.step - 1) // seeds.step)
    end = start + matches.lengths[row]
    while seed < seeds.number and seed * seeds.step + seeds.bases <= end:
        if room.taken[seed] != 0 and survives_thinning(seeds, diagonal + seed * seeds.step):
            return True
        seed += 1
    return False


@inline
def survives_thinning(seeds: Seeds, position: int) -> bool:
    """Return whether an occurrence of a seed counts."""
    return bool(seeds.thinning_below == 0 or thinning_hash(position) < seeds.thinning_below)


@inline
def count_seeds(matches: MemColumns, begin: int, end: int, seeds: Seeds, room: SeedRoom) -> int:
    """Count the matches that wholly contain each seed; return the sum."""
    for seed in range(seeds.number):
        room.occurrences[seed] = 0
        room.taken[seed] = 1
    total = as_int64(0)
    for row in range(begin, end):
        start = matches.query_starts[row]
        behind = start + matches.lengths[row]
        diagonal = matches.reference_starts[row] - start
        seed = as_int64((start + seeds.step - 1) // seeds.step)
        while seed < seeds.number and seed * seeds.step + seeds.bases <= behind:
            if survives_thinning(seeds, diagonal + seed * seeds.step):
                room.occurrences[seed] += 1
                total += 1
            seed += 1
    return total


@jit
def choose_of_matches(
    matches: MemColumns, begin: int, end: int, length: int, by: ChosenBy, room: SeedRoom
) -> tuple[Seeds, int]:
    """Take seeds of a read that has too many matches, as `matching.kmer.seed_choice` does."""
    windows = windows_of(length, by.window, by.distance, by.any_match)
    number = windows.number
    count_seeds(matches, begin, end, windows, room)
    known = take_rarest(room, number, by.most)
    seeds_kept = disjoint_seeds(windows, room)
    if by.distance != by.window:
        return windows, seeds_kept
    known = known if taken_occurrences(room, number) > 0 else as_int64(0)
    for fewer in range(number - 1, known, -1):
        longer = Seeds(fewer, length // fewer, length // fewer, as_int64(0))
        if 0 < count_seeds(matches, begin, end, longer, room) <= by.most:
            return longer, fewer
    if known > 0:
        count_seeds(matches, begin, end, windows, room)
        take_rarest(room, number, by.most)
        return windows, seeds_kept
    return thinned_matches(matches, begin, end, length, windows, by, room), seeds_kept


@jit
def thinned_matches(
    matches: MemColumns,
    begin: int,
    end: int,
    length: int,
    windows: Seeds,
    by: ChosenBy,
    room: SeedRoom,
) -> Seeds:
    """Take the first of the fewest seeds that occurs, at as many places as possible."""
    for number in range(1, windows.number + 1):
        bases = as_int64(windows.bases if number == windows.number else length // number)
        if count_seeds(matches, begin, end, Seeds(number, bases, bases, as_int64(0)), room) == 0:
            continue
        first = as_int64(0)
        while room.occurrences[first] == 0:
            first += 1
        below = as_int64(1 << THINNING_BITS)
        while below > 1:
            count_seeds(matches, begin, end, Seeds(number, bases, bases, below), room)
            if room.occurrences[first] <= by.most:
                break
            below >>= 1
        for seed in range(number):
            room.taken[seed] = 1 if seed == first else 0
        return Seeds(number, bases, bases, below)
    return Seeds(0, by.window, by.window, as_int64(0))
