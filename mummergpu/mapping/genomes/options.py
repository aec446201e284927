"""The options of genome alignment, with nucmer's meaning and defaults."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from typing import Final

from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import (
    between,
    check_bool,
    check_factor,
    check_int,
    keep_values,
    texts,
)
from mummergpu.viterbi.recurrence.model import LARGEST_COST, MOST_BASES, Costs

NUCMER_COSTS: Final = Costs(
    match=3,
    mismatch=7,
    unknown=7,
    insertion_open=3,
    insertion_extend=7,
    deletion_open=3,
    deletion_extend=7,
    end_bonus=0,
)
"""What nucmer scores: 3 for a match, -7 for a difference and for each base of a gap, and -3 more
for the first one."""


GAPS_OF_DIFFERENCES: Final = (16, 1)
"""The gap open and extension penalties that find the differences of genomes best: about the odds of
a gap relative to those of a substitution, in genomes that differ in some percent of their bases.
Those of nucmer split long gaps."""


def costs_of_gaps(
    gap_open: int | None, gap_extend: int | None, formats: Collection[str] = ()
) -> Costs:
    """Return nucmer's scores with other gap penalties, None for the default ones.

    These are `GAPS_OF_DIFFERENCES` if `formats`, those of the output, has VCF and no .delta, else
    nucmer's. `OptionError` is raised if a number is too large, or no base of a gap costs anything.
    """
    usual = NUCMER_COSTS.deletion_open, NUCMER_COSTS.deletion_extend
    if "vcf" in formats and "delta" not in formats:
        usual = GAPS_OF_DIFFERENCES
    gap_open = usual[0] if gap_open is None else gap_open
    gap_extend = usual[1] if gap_extend is None else gap_extend
    gap_open = between("gap_open", gap_open, 0, LARGEST_COST)
    gap_extend = between("gap_extend", gap_extend, 1, LARGEST_COST)
    return NUCMER_COSTS._replace(
        insertion_open=gap_open,
        deletion_open=gap_open,
        insertion_extend=gap_extend,
        deletion_extend=gap_extend,
    )


MAX_BREAK_LENGTH: Final = 2 * MOST_BASES
"""The longest break: a window of it is a tile."""


@frozen
class ClusterOptions:
    """Which matches form a cluster.

    Attributes
    ----------
    min_bases : int
        The fewest bases of all matches of a cluster together.
    max_gap : int
        The most bases of the query between two matches of a cluster.
    diagonal_difference : int
        How far apart the diagonals of two neighbouring matches may be, in bases.
    diagonal_factor : float
        The same as a share of the gap between them; the larger of both counts.
    """

    min_bases: int = 65
    max_gap: int = 90
    diagonal_difference: int = 5
    diagonal_factor: float = 0.12

    def __post_init__(self) -> None:
        keep_values(
            self,
            min_bases=check_int("min_cluster", self.min_bases),
            max_gap=check_int("max_gap", self.max_gap),
            diagonal_difference=check_int("diagonal_difference", self.diagonal_difference),
            diagonal_factor=check_factor("diagonal_factor", self.diagonal_factor),
        )


@frozen
class GenomeOptions:
    """How genomes are aligned.

    Attributes
    ----------
    clusters : ClusterOptions
        Which matches form a cluster.
    break_length : int
        An alignment is extended until it gets no better for this many bases, counted in both
        sequences together.
    extend : bool
        Whether alignments are extended beyond clusters at all.
    simplify : bool
        Whether clusters and alignments that lie inside another one are left out. Repeats of a
        genome are found if it is aligned with itself without that.
    costs : Costs
        The scores of alignments.
    circular : sequence of str
        The names of circular records of the reference, after whose last bases alignments continue
        at the first; ``all`` for all records.
    """

    clusters: ClusterOptions = field(default_factory=ClusterOptions)
    break_length: int = 200
    extend: bool = True
    simplify: bool = True
    costs: Costs = NUCMER_COSTS
    circular: Sequence[str] = ()

    @property
    def window(self) -> int:
        """The bases of the query in which an extension must get better, 0 for no extension.

        It is half of the break length, which counts the bases of both sequences.
        """
        return self.break_length // 2 if self.extend else 0

    def __post_init__(self) -> None:
        self.costs.check()
        keep_values(
            self,
            break_length=between("break_length", self.break_length, 2, MAX_BREAK_LENGTH),
            extend=check_bool("extend", self.extend),
            simplify=check_bool("simplify", self.simplify),
            circular=texts("circular", self.circular),
        )


@frozen
class AlignmentFilter:
    """Which genome alignments are written.

    Those that map bases `one_to_one` (each base at its best place, in the reference and in the
    query), with a least share of equal columns between 0 and 1, and a least length in both.
    """

    one_to_one: bool = False
    min_identity: float = 0.0
    min_length: int = 0

    def __post_init__(self) -> None:
        keep_values(
            self,
            one_to_one=check_bool("one_to_one", self.one_to_one),
            min_identity=check_factor("min_identity", self.min_identity, 1),
            min_length=check_int("min_alignment_length", self.min_length),
        )
