"""What a search is told: one set of defaults for the command line and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
from mummergpu.sequence.codes import Strand


class Uniqueness(Enum):
    """Which matches are reported, by how often their bases occur."""

    ALL = "maxmatch"
    IN_REFERENCE = "mumreference"
    IN_BOTH = "mum"


@dataclass(frozen=True)
class SearchOptions:
    """Which matches are searched for.

    Attributes
    ----------
    minimum_length : int
        The fewest bases of a reported match.
    strands : tuple of Strand
        Which strands of the queries are searched, in the order of the output.
    uniqueness : Uniqueness
        Which matches are reported.
    block_size : int or None
        About how many query bases are worked on together; None for what the backend likes.
    """

    minimum_length: int = DEFAULT_MINIMUM_LENGTH
    strands: tuple[Strand, ...] = (Strand.FORWARD,)
    uniqueness: Uniqueness = Uniqueness.ALL
    block_size: int | None = None


@dataclass(frozen=True)
class DeviceOptions:
    """What the search runs on.

    Attributes
    ----------
    backend : str
        ``cpu``, ``cuda``, or ``auto`` for ``cuda`` wherever it can be had.
    number : int
        Which GPU, counted from 0.
    memory : int or None
        The most bytes of its memory to take; None for nearly all that is free.
    profile : bool
        Whether the kernels of a GPU count the nodes that they visit.
    kernel_folder : str or None
        Where compiled kernels are kept between runs; None to keep none.
    """

    backend: str = "auto"
    number: int = 0
    memory: int | None = None
    profile: bool = False
    kernel_folder: str | None = None
