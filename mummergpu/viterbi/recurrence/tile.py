"""The part of a read or query, and the part of the reference, that are aligned with each other."""

from __future__ import annotations

from typing import NamedTuple

from mummergpu.runtime.jit import as_int64, inline


class Tile(NamedTuple):
    """A matrix that begins at a corner, from where both sequences are read outwards.

    Compiled code makes it with `tile_at`: with integers other than those of 64 bits it would be
    another type, for which all its users would be compiled again.
    """

    read_at: int  # The index of the base of the read, or of the query, that is next to the corner
    length: int  # The bases of the read
    reference_at: int  # The index of the base of the reference that is next to the corner
    reference_length: int  # The bases of the reference
    # 1 if the tile lies to the right of its corner, -1 if to the left: then the bases are
    # ``read_at``, ``read_at - 1`` and so on.
    direction: int


@inline
def tile_at(
    read_at: int, length: int, reference_at: int, reference_length: int, direction: int
) -> Tile:
    """Return a tile, from integers of any type."""
    return Tile(
        as_int64(read_at),
        as_int64(length),
        as_int64(reference_at),
        as_int64(reference_length),
        as_int64(direction),
    )


@inline
def rest_of(tile: Tile, used: int, reference_used: int) -> Tile:
    """Return the rest of a tile beyond some bases of each sequence."""
    return tile_at(
        tile.read_at + tile.direction * used,
        tile.length - used,
        tile.reference_at + tile.direction * reference_used,
        tile.reference_length - reference_used,
        tile.direction,
    )
