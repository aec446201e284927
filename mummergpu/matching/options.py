"""The options of a search, with the same defaults for the command line and for programs."""

from __future__ import annotations

from enum import Enum
from typing import Final

from mummergpu.index.options import DEFAULT_MINIMUM_LENGTH
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import choice, keep_values, one_of, positive
from mummergpu.sequence.strand import Strand


class Uniqueness(Enum):
    """Which matches are reported, depending on how often their bases occur."""

    ALL = "maxmatch"
    IN_REFERENCE = "mumreference"
    IN_BOTH = "mum"


STRANDS: Final[dict[str, tuple[Strand, ...]]] = {
    "both": (Strand.FORWARD, Strand.REVERSE),
    "forward": (Strand.FORWARD,),
    "reverse": (Strand.REVERSE,),
}
"""The words for the strands of queries."""

MODES: Final = {
    "all": Uniqueness.ALL,
    "maxmatch": Uniqueness.ALL,
    "mumreference": Uniqueness.IN_REFERENCE,
    "mum": Uniqueness.IN_BOTH,
}
"""The words for which matches are reported."""

BACKENDS: Final = ("auto", "cpu", "cuda")


@frozen
class SearchOptions:
    """The options that decide which matches are found.

    Attributes
    ----------
    minimum_length : int
        The fewest bases of a reported match.
    strands : tuple of Strand
        The strands of the queries to search, in the order of the output.
    block_size : int or None
        About how many query bases make a block; None for the size that the backend prefers.
    """

    minimum_length: int = DEFAULT_MINIMUM_LENGTH
    strands: tuple[Strand, ...] = (Strand.FORWARD,)
    uniqueness: Uniqueness = Uniqueness.ALL
    block_size: int | None = None

    def __post_init__(self) -> None:
        keep_values(self, minimum_length=positive("min_length", self.minimum_length))

    @classmethod
    def of_words(
        cls, min_length: int, strands: str, mode: str, block_size: int | None = None
    ) -> SearchOptions:
        """Return the options that words of `STRANDS` and `MODES` stand for."""
        found = choice("strands", strands, STRANDS)
        return cls(min_length, found, choice("mode", mode, MODES), block_size)

    @property
    def in_words(self) -> str:
        """The matches that are found, in words."""
        if self.uniqueness is Uniqueness.IN_BOTH:
            return f"MUMs of at least {self.minimum_length} bp"
        found = f"matches of at least {self.minimum_length} bp"
        is_unique = self.uniqueness is Uniqueness.IN_REFERENCE
        return f"{found}, unique in the reference" if is_unique else found


@frozen
class DeviceOptions:
    """The options that say where the search runs.

    Attributes
    ----------
    backend : str
        ``cpu``, ``cuda``, or ``auto`` for the faster one that is available.
    number : int
        The number of the GPU, counted from 0: a process uses one.
    memory : int or None
        The most bytes of the GPU's memory to use; None for nearly all that is free.
    threads : int
        The most threads that copy an index to the GPU.
    profile : bool
        Whether the GPU kernels count the nodes that they visit.
    kernel_folder : str or None
        The folder that keeps compiled kernels between runs; None to keep none.
    library : str
        The library that the GPU is used through: ``pycuda``, ``cuda-bindings``, or ``auto`` for
        PyCUDA where it is installed.
    filter_policy : str
        How a GPU computes the Viterbi filter of profiles: ``auto``, ``warp``, or the code of a
        policy of threads.
    """

    backend: str = "auto"
    number: int = 0
    memory: int | None = None
    threads: int = 1
    profile: bool = False
    kernel_folder: str | None = None
    library: str = "auto"
    filter_policy: str = "auto"

    def __post_init__(self) -> None:
        backend = one_of("backend", self.backend, BACKENDS)
        keep_values(self, backend=backend, threads=positive("threads", self.threads))
