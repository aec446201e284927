"""The options of a search with profiles: what is compared, what is reported, and where to."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from mummergpu.errors import InputError
from mummergpu.hmm.finishing import FinishingOptions
from mummergpu.hmm.profiles import Profile, read_profiles
from mummergpu.input.blocks.proteins import ProteinRecords, Warn, say_nothing
from mummergpu.input.bytes.reading_threads import ReadingThreads

_CUTOFFS: Final = {
    "gathering": ("gathering cutoffs (GA)", "--cut_ga"),
    "noise": ("noise cutoffs (NC)", "--cut_nc"),
    "trusted": ("trusted cutoffs (TC)", "--cut_tc"),
}


class ProteinSource(Protocol):
    """Where proteins come from: `ProteinFiles`, `ProteinsInMemory`."""

    @property
    def can_repeat(self) -> bool:
        """Whether the proteins can be read more than once."""

    @property
    def bytes_total(self) -> int | None:
        """The size of the files, None if it is not known."""

    @property
    def bytes_read(self) -> int:
        """The bytes read so far in this pass."""

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing
    ) -> Generator[ProteinRecords]:
        """Yield the proteins, block by block."""


@dataclass(frozen=True)
class ProfileSearchOptions:
    """The options of a search with profiles.

    Attributes
    ----------
    profiles : tuple of str or Profile
        Files of profiles, "-" being standard input, and profiles in memory.
    sequences : ProteinSource
        The proteins.
    finishing : FinishingOptions
        What is reported.
    Z : float or None
        The number of targets for E-values; None to count them.
    scans : bool
        Whether the proteins are the queries and the profiles the targets, as in hmmscan.
    outputs : tuple of (str, str)
        The kind of each file that is written (`output.profiles.KINDS`), and its path.
    threads : int
        The number of threads.
    command : str
        The command line, for the tables.
    """

    profiles: tuple[str | Profile, ...]
    sequences: ProteinSource
    finishing: FinishingOptions = field(default_factory=FinishingOptions)
    Z: float | None = None
    scans: bool = False
    outputs: tuple[tuple[str, str], ...] = ()
    threads: int = 1
    command: str = ""

    @property
    def program(self) -> str:
        """The program of HMMER that does the same."""
        return "hmmscan" if self.scans else "hmmsearch"

    def read_profiles(self) -> Iterator[Profile]:
        """Read the profiles one by one.

        Raises
        ------
        InputError
            If a file is no valid file of profiles, or a profile has not the cutoffs that are asked
            for.
        """
        for source in self.profiles:
            if isinstance(source, Profile):
                yield self._with_cutoffs(source, "profiles")
            else:
                for profile in read_profiles(source):
                    yield self._with_cutoffs(profile, source)

    def _with_cutoffs(self, profile: Profile, path: str) -> Profile:
        wanted = self.finishing.bit_cutoffs
        if wanted is not None and not profile.has_cutoffs[wanted]:
            what, option = _CUTOFFS[wanted]
            raise InputError(f"the profile has no {what}, for {option}", path, record=profile.name)
        return profile
