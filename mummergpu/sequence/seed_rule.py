"""The rule, in compiled code, that chooses occurrences of a read with too many of them.

Of any ``e + 1`` disjoint seeds, a read with e differences from its place matches it in at least one
whole seed. So a read of a repeat needs not all of its seeds, but enough rare ones. The rule is
applied to a read on one strand; it depends only on the occurrences of seeds in the whole reference,
and not on the table that lists them:

1. If at most C matches contain a whole window of the read, all of them are kept.
2. Otherwise windows are taken, the rarest first, while they occur at most C times together; none
   are taken if these do not occur at all.
3. If the read can be cut into more seeds than that, of equal lengths, longer than the windows and
   fewer, that occur, but at most C times together, these are taken: as many as possible.
4. If neither gives a seed, the read is frequent throughout. It is cut into the fewest seeds of
   equal lengths (one, two, ...) of which one occurs. Of the places of the first one that does, at
   most C are kept, spread evenly over the reference.

A read with too few windows to bear differences has matches that begin anywhere. They are all kept
if at most 32 C have the minimum length, and if at most 3 C of them are near: on their diagonals the
read differs from the reference in at most 4 bases. So seeds are chosen for reads of young repeats,
which have many such places, and not for reads of which only a part is frequent. To count as near, a
match must contain one of the parts of the read that have the minimum length and begin at every half
of it.
The windows of such a read are as many as that length allows, and as long as the read allows.

A match is kept if it contains a taken seed. With k disjoint seeds, the kept matches include all
places with fewer than k differences; if k windows occur nowhere, there are no such places. The same
rule for devices is in ``kernels/kmer/seed_choice.cuh``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit

MAX_SEEDS: Final = 32
"""The number of first windows of a read that are counted: the lanes of a device's warp."""

ANYWHERE: Final = 32
"""The factor of the kept matches if they may begin anywhere."""

NEAR: Final = 3
"""The factor of the near matches among these."""

NEAR_EDITS: Final = 4
"""The most bases in which a near match of a read differs from the reference."""

MAX_OVERLAPPING: Final = 512
"""The number of windows that are counted if they overlap."""

THINNING_BITS: Final = 32
THINNING_FACTOR: Final = 2654435769
"""The golden ratio of ``1 << THINNING_BITS``: the positions whose product with it is below some
number are spread evenly."""


KEPT_SEEDS: Final = 16
"""The number of seeds whose places are kept for later reads with the same seed."""

MAX_KEPT_PLACES: Final = 1 << 12
"""No places are kept if seeds may have more of them."""

KEPT_AT, KEPT_BASES, KEPT_BITS, KEPT_COUNT, KEPT_NUMBERS = range(5)
"""The columns of `SeedRoom.kept_seeds`."""

COUNTED_SEEDS: Final = 1 << 12
"""The number of seeds whose occurrences in a long list are kept for later reads."""

COUNTED_AT, COUNTED_OFFSET, COUNTED_TAIL, COUNTED_COUNT, COUNTED_NUMBERS = range(5)
"""The columns of `SeedRoom.counted_seeds`."""


class SeedRoom(NamedTuple):
    """Memory of one search.

    Attributes
    ----------
    occurrences, taken : ndarray, dtype=int64
        How often each seed of a read occurs, and whether it is taken (1).
    places : ndarray, dtype=int64, shape=(most + 1,)
        The taken places of a seed of which only some are taken, and sometimes one more.
    kept_seeds : ndarray, dtype=int64, shape=(n, KEPT_NUMBERS)
        Earlier seeds of this kind: where in the queries they begin, their bases, the bits of
        `thinning_hash`, and the number of taken places. The reads of a satellite share seeds.
    kept_places : ndarray, dtype=int64, shape=(n, most + 1)
        The places of `kept_seeds`.
    counted_seeds : ndarray, dtype=int64, shape=(COUNTED_SEEDS, COUNTED_NUMBERS)
        Where in the queries a k-mer begins that was looked up for a seed, the seed's bases before
        and after it, and the number of the k-mer's places at which the whole seed lies.
    """

    occurrences: Int64Array
    taken: Int64Array
    places: Int64Array
    kept_seeds: Int64Array
    kept_places: Int64Array
    counted_seeds: Int64Array


class Seeds(NamedTuple):
    """Seeds of a query on one strand.

    Attributes
    ----------
    number, bases, step : int
        The number of seeds, the bases of each, and the distance from one to the next.
    thinning_below : int
        Only occurrences with a lower `thinning_hash` count; 0 for all.
    """

    number: int
    bases: int
    step: int
    thinning_below: int


def new_seed_room(most: int = 0) -> SeedRoom:
    """Return room for the seeds of a read, and for `most` places of one that occurs too often."""
    size = max(MAX_SEEDS, MAX_OVERLAPPING)
    kept = KEPT_SEEDS if 0 < most <= MAX_KEPT_PLACES else 0
    room = SeedRoom(
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        # Not zeros, which would cost time: places are written before they are read.
        np.empty(most + 1, dtype=np.int64),
        np.zeros((kept, KEPT_NUMBERS), dtype=np.int64),
        np.empty((kept, most + 1), dtype=np.int64),
        np.zeros((COUNTED_SEEDS, COUNTED_NUMBERS), dtype=np.int64),
    )
    forget_queries(room)
    return room


def forget_queries(room: SeedRoom) -> None:
    """Forget the seeds of earlier queries, before room is used for others."""
    room.kept_seeds[:] = 0
    room.counted_seeds[:, COUNTED_OFFSET] = -1


@inline
def thinning_hash(position: int) -> int:
    """Return a number below ``1 << THINNING_BITS`` for a seed's position in the reference."""
    return (position * THINNING_FACTOR) & ((1 << THINNING_BITS) - 1)


@jit
def take_rarest(room: SeedRoom, count: int, most: int) -> int:
    """Take the rarest seeds, of equal ones the first, that occur at most `most` times together.

    Return the number taken. For counts above `most`, any number above `most` will do.
    """
    occurrences, taken = room.occurrences, room.taken
    known = 0
    for seed in range(count):
        total = 0
        for other in range(count):
            is_before = occurrences[other] < occurrences[seed]
            if is_before or (occurrences[other] == occurrences[seed] and other <= seed):
                total += occurrences[other]
        taken[seed] = 1 if total <= most else 0
        known += taken[seed]
    return known


@inline
def taken_occurrences(room: SeedRoom, count: int) -> int:
    """Return the total number of occurrences of the taken seeds."""
    total = as_int64(0)
    for seed in range(count):
        total += room.occurrences[seed] * room.taken[seed]
    return total


@inline
def disjoint_seeds(seeds: Seeds, room: SeedRoom) -> int:
    """Return the number of disjoint seeds among those taken."""
    count, free_from = as_int64(0), as_int64(0)
    for seed in range(seeds.number):
        if room.taken[seed] != 0 and seed * seeds.step >= free_from:
            count += 1
            free_from = seed * seeds.step + seeds.bases
    return count


@inline
def windows_of(length: int, window: int, step: int, any_match: bool) -> Seeds:
    """Return the windows of a read of which the rarest are taken."""
    number = seed_count(length, window, step)
    if any_match:
        # Without gaps between them, windows are longer, and rarer.
        bases = as_int64(length // max(number, 1))
        return Seeds(number, bases, bases, as_int64(0))
    return Seeds(number, window, step, as_int64(0))


@inline
def parts_of(length: int, min_length: int) -> Seeds:
    """Return the parts of a read of which near matches contain one; they begin at every half."""
    step = max(as_int64(min_length // 2), 1)
    return Seeds(max((length - min_length) // step + 1, 0), min_length, step, as_int64(0))


@inline
def seed_count(length: int, window: int, step: int) -> int:
    """Return the number of windows of a read that are counted."""
    if step == window:
        return min(length // window, MAX_SEEDS)
    return min((length - window) // step + 1, MAX_OVERLAPPING)
