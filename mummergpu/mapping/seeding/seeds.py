"""How long the matches are that mapping begins with."""

from __future__ import annotations

from typing import Final

SHORTEST_SEED: Final = 16
LONGEST_SEED: Final = 64
"""The bounds of `seed_length`."""

MIN_EDITS: Final = 4
BASES_OF_EDIT: Final = 40
"""The first pass finds all placements with at most so many edits, or one for so many bases of a
read if that is more; unless the bounds forbid it."""


def seed_length(read_length: int) -> int:
    """Return the length in bases of the shortest matches that most reads are mapped with.

    A read of n bases with e edits has a match of at least ``(n - e) / (e + 1)`` bases with its
    place.
    """
    edits = max(MIN_EDITS, read_length // BASES_OF_EDIT)
    length = -(-(read_length - edits) // (edits + 1))
    return min(max(length, SHORTEST_SEED), LONGEST_SEED)


def has_enough_windows(read_length: int, length: int) -> bool:
    """Return whether the matches that contain whole windows of a read tell all of its placements.

    They do if one window (`windows`) stays whole with as many edits as `MIN_EDITS`. If not, matches
    count wherever they begin, which find more.
    """
    return read_length // length > MIN_EDITS


LONGEST_SECOND_SEED: Final = 20
SHORTEST_SECOND_SEED: Final = 12
"""The bounds of `second_seed_length`."""


def second_seed_length(first: int) -> int:
    """Return the length of the matches that reads are mapped with which were placed badly.

    With 20 bases, all placements of a read of 150 bases with up to 6 edits are found.
    """
    return min(max(2 * first // 3, SHORTEST_SECOND_SEED), LONGEST_SECOND_SEED, first)
