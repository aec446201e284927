"""The methods by which sequences are aligned (Du, Yin and Bader 2010, section IV)."""

from __future__ import annotations

from enum import Enum


class AlignmentMethod(Enum):
    """A method, by the name of the option.

    Attributes
    ----------
    TILE
        Matches cut the matrix into tiles, which are independent of each other.
    WAVEFRONT
        The whole matrix, an anti-diagonal of blocks at a time; the directions of all cells stay in
        the memory in which they are computed.
    STREAMING
        The same, and the directions go elsewhere meanwhile: from a device to the memory of the
        host, from the processor to a temporary file.
    """

    TILE = "tile"
    WAVEFRONT = "wavefront"
    STREAMING = "streaming"
