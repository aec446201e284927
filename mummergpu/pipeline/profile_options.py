"""The options of a profile search: its input, the hits to report, and its output."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import field
from pathlib import Path
from typing import Final, Protocol

from mummergpu.errors import InputError
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile, read_profiles
from mummergpu.hmm.report_options import ReportOptions
from mummergpu.input.blocks.proteins import NamedProteins, Warn
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.words import say_nothing

_WHAT_IS_MISSING: Final = {
    "gathering": ("gathering cutoffs (GA)", "--cut_ga"),
    "noise": ("noise cutoffs (NC)", "--cut_nc"),
    "trusted": ("trusted cutoffs (TC)", "--cut_tc"),
}


class ProteinSource(Protocol):
    """A source of proteins, such as `ProteinFiles` or `hmm.translation.TranslatedFiles`."""

    @property
    def can_repeat(self) -> bool:
        """Whether the proteins can be read more than once."""

    @property
    def bytes_total(self) -> int | None:
        """The size of the files; None if it is unknown."""

    @property
    def bytes_read(self) -> int:
        """The bytes read so far in this pass."""

    @property
    def is_translated(self) -> bool:
        """Whether the proteins are ORFs, named by position (`hmm.translation.OrfPlace`)."""

    def blocks(
        self, threads: ReadingThreads | None = None, warn: Warn = say_nothing, scale: int = 1
    ) -> Generator[NamedProteins]:
        """Yield the proteins in blocks, up to `scale` times as large as usual."""


@frozen
class ProfileSearchOptions:
    """The options of a profile search.

    Attributes
    ----------
    profiles : tuple of str or Profile
        Files of profiles ("-" is standard input), and profiles in memory.
    sequences : ProteinSource
        The proteins.
    finishing : FinishingOptions
        How hits are filtered and reported.
    Z : float or None
        The number of targets for E-values; None to count them.
    scans : bool
        Whether the proteins are the queries and the profiles the targets, as in hmmscan.
    outputs : tuple of (str, str)
        The kind of each output file (`output.profiles.KINDS`), and its path.
    threads : int
        The number of threads.
    command : str
        The command line, for the tables.
    device : DeviceOptions
        The backend of the filters, and the device.
    report : ReportOptions
        How the text report and alignments look.
    """

    profiles: tuple[str | Profile, ...]
    sequences: ProteinSource
    finishing: FinishingOptions = field(default_factory=FinishingOptions)
    Z: float | None = None
    scans: bool = False
    outputs: tuple[tuple[str, str], ...] = ()
    threads: int = 1
    command: str = ""
    device: DeviceOptions = field(default_factory=lambda: DeviceOptions(backend="cpu"))
    report: ReportOptions = field(default_factory=ReportOptions)

    def __post_init__(self) -> None:
        if self.device.filter_policy != DeviceOptions.filter_policy:
            from mummergpu.hmm.tile_filter import tile_policy

            # Refuse a policy with which no profile can be filtered.
            tile_policy(self.device.filter_policy, 0, 0)

    @property
    def program(self) -> str:
        """The equivalent HMMER program."""
        return "hmmscan" if self.scans else "hmmsearch"

    @property
    def needs_alignments(self) -> bool:
        """Whether an output needs the alignments of hits, which take ten times the memory."""
        kinds = {kind for kind, _ in self.outputs}
        return "alignment" in kinds or ("text" in kinds and self.report.shows_alignments)

    @property
    def counts_stages(self) -> bool:
        """Whether an output needs how many targets of each query pass each filter."""
        return any(kind == "text" for kind, _ in self.outputs)

    @property
    def orfs(self) -> str | None:
        """``query`` or ``target``, whichever are ORFs; None if neither."""
        if not self.sequences.is_translated:
            return None
        return "query" if self.scans else "target"

    @property
    def can_repeat_profiles(self) -> bool:
        """Whether the profiles can be read more than once."""
        return all(not isinstance(one, str) or Path(one).is_file() for one in self.profiles)

    def read_profiles(self) -> Iterator[Profile]:
        """Read the profiles one by one; raise `InputError` if one is invalid or lacks cutoffs."""
        for source in self.profiles:
            for profile in [source] if isinstance(source, Profile) else read_profiles(source):
                if not self.scans:
                    self.check_cutoffs(profile)
                yield profile

    def check_cutoffs(self, profile: Profile) -> None:
        """Raise an error if a profile lacks the requested cutoffs.

        A scan needs them only for the profiles that it compares with a protein.
        """
        wanted = self.finishing.bit_cutoffs
        if wanted is not None and not profile.has_cutoffs[wanted]:
            what, option = _WHAT_IS_MISSING[wanted]
            message = f"the profile has no {what}, for {option}"
            raise InputError(message, profile.path, record=profile.shown_name)
