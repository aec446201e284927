"""Which occurrences of a read are looked at where it has too many: the rule, in compiled code.

A read with e differences to its place has one of any ``e + 1`` disjoint seeds as a whole there. So
a read of a repeat needs not all of its seeds, but enough of those that occur rarely. The rule is
applied to a read on one strand; it depends on how often seeds occur in the whole reference alone,
and not on the table that lists them:

1. If at most C matches have a whole window of the read, all of them are kept.
2. Otherwise the windows are taken, the rarest first, while they occur at most C times together;
   none are if those do not occur at all.
3. If the read can be cut into more seeds than that, of equal lengths, which are longer than the
   windows and fewer, and occur, at most C times together, these are taken: as many as possible.
4. If neither gives a seed, the read is frequent throughout. It is cut into the fewest seeds of
   equal lengths (one, two, ...) of which one occurs. Of the places of the first one that does, at
   most C are kept that are spread evenly over the reference.

A read of too few windows to bear differences has matches that begin anywhere. They are all kept if
there are at most 32 C of a least length, and if at most 3 C of them are near: on their diagonals
the read differs in at most 4 bases from the reference. So seeds are chosen of reads of young
repeats, which have many such places, and not of those of which only a part is frequent. A match
counts as near if it has one of the parts of the read that have the least length and begin at every
half of it.
The windows of such a read are as many as that length allows, and as long as the read allows.

A match is kept if it has a seed that is taken. With k disjoint seeds, all places with fewer than k
differences are among them; if k windows occur nowhere, there are no such places. The same rule for
devices is in ``kernels/kmer/seed_choice.cuh``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit

MAX_SEEDS: Final = 32
"""The windows of a read that are counted, the first ones: as many as a device's warp has lanes."""

ANYWHERE: Final = 32
"""How many times as many matches are kept if they may begin anywhere."""

NEAR: Final = 3
"""How many times as many of these may be near."""

NEAR_EDITS: Final = 4
"""The most bases in which a read differs from the reference where it is near."""

MAX_OVERLAPPING: Final = 512
"""The windows that are counted if they overlap."""

THINNING_BITS: Final = 32
THINNING_FACTOR: Final = 2654435769
"""A position times this, the golden ratio of ``1 << THINNING_BITS``, is smaller than some number at
places that are spread evenly."""


KEPT_SEEDS: Final = 16
"""The seeds whose places are kept for reads with the same one."""

MAX_KEPT_PLACES: Final = 1 << 12
"""No places are kept where seeds may have more."""

KEPT_AT, KEPT_BASES, KEPT_BITS, KEPT_COUNT, KEPT_NUMBERS = range(5)
"""The columns of `SeedRoom.kept_seeds`."""

COUNTED_SEEDS: Final = 1 << 12
"""The seeds whose occurrences in a long list have been counted, and are known to later reads."""

COUNTED_AT, COUNTED_LEAD, COUNTED_TAIL, COUNTED_COUNT, COUNTED_NUMBERS = range(5)
"""The columns of `SeedRoom.counted_seeds`."""


class SeedRoom(NamedTuple):
    """Memory of one search.

    Attributes
    ----------
    occurrences, taken : ndarray, dtype=int64
        How often each seed of a read occurs, and whether it is taken (1).
    places : ndarray, dtype=int64, shape=(most + 1,)
        Where the one seed begins of which some places are taken: they, and one more at times.
    kept_seeds : ndarray, dtype=int64, shape=(n, KEPT_NUMBERS)
        Of such seeds that were met before: where in the queries they begin, their bases, the bits
        of `thinning_hash`, and how many places are taken. The reads of a satellite share seeds.
    kept_places : ndarray, dtype=int64, shape=(n, most + 1)
        These places.
    counted_seeds : ndarray, dtype=int64, shape=(COUNTED_SEEDS, COUNTED_NUMBERS)
        Where in the queries a k-mer begins that was looked up for a seed, the seed's bases before
        and behind it, and at how many of the k-mer's places the whole seed lies.
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
        How many there are, the bases of each, and from one to the next.
    thinning_below : int
        Only occurrences count whose `thinning_hash` is less; 0 for all.
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
        # Places are written before they are read, and few of this room: zeros would cost more.
        np.empty(most + 1, dtype=np.int64),
        np.zeros((kept, KEPT_NUMBERS), dtype=np.int64),
        np.empty((kept, most + 1), dtype=np.int64),
        np.zeros((COUNTED_SEEDS, COUNTED_NUMBERS), dtype=np.int64),
    )
    room.counted_seeds[:, COUNTED_LEAD] = -1
    return room


@inline
def thinning_hash(position: int) -> int:
    """Return a number below ``1 << THINNING_BITS`` for where in the reference a seed begins."""
    return (position * THINNING_FACTOR) & ((1 << THINNING_BITS) - 1)


@jit
def take_rarest(room: SeedRoom, count: int, most: int) -> int:
    """Take the rarest seeds, of equal ones the first, that occur at most so often together.

    Return how many are taken. Counts that are larger than `most` may be any such number.
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
    """Return how often the seeds that are taken occur together."""
    total = as_int64(0)
    for seed in range(count):
        total += room.occurrences[seed] * room.taken[seed]
    return total


@inline
def disjoint_seeds(seeds: Seeds, room: SeedRoom) -> int:
    """Return how many of the seeds that are taken are disjoint."""
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
        # The fewer bases are between them, the longer they are, and the rarer.
        bases = as_int64(length // max(number, 1))
        return Seeds(number, bases, bases, as_int64(0))
    return Seeds(number, window, step, as_int64(0))


@inline
def parts_of(length: int, min_length: int) -> Seeds:
    """Return the parts of a read of which near matches have one: at each half of a part."""
    step = max(as_int64(min_length // 2), 1)
    return Seeds(max((length - min_length) // step + 1, 0), min_length, step, as_int64(0))


@inline
def seed_count(length: int, window: int, step: int) -> int:
    """Return how many windows of a read are counted."""
    if step == window:
        return min(length // window, MAX_SEEDS)
    return min((length - window) // step + 1, MAX_OVERLAPPING)
