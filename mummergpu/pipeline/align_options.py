"""The options of the job that aligns genomes; they are checked on construction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from functools import cached_property
from typing import Final

from mummergpu.errors import OptionError
from mummergpu.index.file import kind_for_reference
from mummergpu.index.options import IndexOptions
from mummergpu.mapping.genomes.options import AlignmentFilter, GenomeOptions
from mummergpu.matching.options import STRANDS, SearchOptions, Uniqueness
from mummergpu.output.options import RecordStyle
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.options import MatchOptions, RunOptions
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import check_bool, keep_values, optional_positive
from mummergpu.viterbi.recurrence.model import AlignmentMethod

OF_MATCHES: Final = (
    *("min_length", "mode", "min_cluster", "max_gap", "diagonal_difference", "diagonal_factor"),
    *("break_length", "extend", "circular"),
)
"""The parameters of matches and of the gaps between them."""


def refuse_options_of_matches(method: AlignmentMethod, given: Collection[str]) -> None:
    """Refuse `given` parameters of matches if the method uses none, or not for all queries."""
    if method is AlignmentMethod.AUTO and "circular" in given:
        text = "the method 'auto' aligns small records from end to end; use 'tile'"
        raise OptionError("circular", text)
    for name in OF_MATCHES:
        if name in given and not method.takes_matches:
            text = f"the method '{method.value}' aligns whole sequences without any"
            raise OptionError(name, f"is about matches, and {text}")


@frozen
class AlignOptions(RunOptions):
    """The options of a run that aligns genomes.

    Attributes
    ----------
    query_paths : tuple of str
        Files of queries; "-" is standard input.
    outputs : tuple of OutputTarget
        The files for the alignments.
    search : SearchOptions
        The matches that alignments begin with.
    memory : int or None
        The memory limit for the reference and its index; None for half of the free memory.
    genomes : GenomeOptions
        How genomes are aligned.
    kept : AlignmentFilter
        Which alignments are written.
    with_changes : bool
        Whether PAF has the differing bases (cs:Z).
    with_bases : bool
        Whether SAM has the bases of the queries.
    equal_bases : bool
        Whether PAF, SAM and BAM distinguish matches from mismatches (= and X).
    method : AlignmentMethod
        Whether to align tiles between matches, or whole sequences from end to end.
    """

    query_paths: tuple[str, ...]
    outputs: tuple[OutputTarget, ...] = (OutputTarget(format="delta"),)
    search: SearchOptions = field(
        default=SearchOptions(strands=STRANDS["both"], uniqueness=Uniqueness.IN_REFERENCE)
    )
    memory: int | None = None
    genomes: GenomeOptions = field(default_factory=GenomeOptions)
    kept: AlignmentFilter = field(default_factory=AlignmentFilter)
    with_changes: bool = False
    with_bases: bool = True
    equal_bases: bool = False
    method: AlignmentMethod = AlignmentMethod.TILE

    def __post_init__(self) -> None:
        super().__post_init__()
        keep_values(
            self,
            memory=optional_positive("max_memory", self.memory),
            equal_bases=check_bool("equal_bases", self.equal_bases),
        )
        formats = {target.format for target in self.outputs}
        RecordStyle(equal_bases=self.equal_bases).check_formats(formats)
        if self.equal_bases and formats.isdisjoint({"paf", "sam", "bam"}):
            raise OptionError("equal_bases", "is for PAF, SAM and BAM")

    @cached_property
    def anchors(self) -> MatchOptions:
        """The search for the matches that alignments begin with, whose sink aligns."""
        kind = kind_for_reference(self.reference_path)
        return MatchOptions(
            self.reference_path,
            self.query_paths,
            self.outputs,
            index=IndexOptions(self.search.minimum_length, kind, self.memory),
            search=self.search,
            threads=self.threads,
            device=self.device,
            verify=self.verify,
            no_empty=self.no_empty,
            command=self.command,
        )
