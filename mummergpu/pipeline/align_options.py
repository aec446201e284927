"""The options of the job that aligns genomes."""

from __future__ import annotations

from dataclasses import dataclass, field

from mummergpu.mapping.genomes.options import GenomeOptions
from mummergpu.output.genomes.sink import AlignmentFilter
from mummergpu.output.targets import OutputTarget
from mummergpu.pipeline.options import MatchOptions
from mummergpu.viterbi.methods import AlignmentMethod


@dataclass(frozen=True)
class AlignOptions:
    """The options of a run that aligns genomes.

    Attributes
    ----------
    anchors : MatchOptions
        The files, the matches that alignments begin with, and where the search runs; what its
        outputs receive are the alignments.
    genomes : GenomeOptions
        How genomes are aligned.
    kept : AlignmentFilter
        Which alignments are written.
    with_changes : bool
        Whether PAF tells the bases of the differences (cs:Z).
    with_bases : bool
        Whether SAM has the bases of the queries.
    method : AlignmentMethod
        Whether matches cut the sequences into tiles, or they are aligned from end to end.
    """

    anchors: MatchOptions
    genomes: GenomeOptions = field(default_factory=GenomeOptions)
    kept: AlignmentFilter = field(default_factory=AlignmentFilter)
    with_changes: bool = False
    with_bases: bool = True
    method: AlignmentMethod = AlignmentMethod.TILE

    @property
    def targets(self) -> tuple[OutputTarget, ...]:
        """All files that are written."""
        return self.anchors.outputs
