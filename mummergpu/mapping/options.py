"""The options of mapping."""

from __future__ import annotations

from dataclasses import field
from math import floor
from typing import Final, NamedTuple

from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.option_values import check_int, shown
from mummergpu.viterbi.recurrence.model import LARGEST_COST, MOST_BASES, Costs

MAX_READ_BASES: Final = MOST_BASES
"""The longest read that is mapped; longer ones stay unmapped."""


class Limits(NamedTuple):
    """The bounds that placements are compared with; described at `MappingOptions`."""

    seed_length: int
    margin: int
    min_score: int


Penalty = int | tuple[int, int]
"""A penalty of all gaps, or of deletions and of insertions."""


@frozen
class Scores:
    """The scores of alignments of reads; the defaults are those of bwa mem.

    Attributes
    ----------
    match : int
        Match score, 1 to 20; ``-A`` of the command.
    mismatch : int
        Mismatch penalty, 0 to 100 as all penalties; ``-B``.
    gap_open : int, or tuple of int
        Gap open penalty, or those of deletions and of insertions; ``-O``.
    gap_extend : int, or tuple of int
        Gap extension penalty, at least 1, or those of deletions and of insertions; ``-E``.
    clipping : int
        Clipping penalty; ``-L``.
    unpaired : int
        Penalty of an unpaired read pair; ``-U``.
    min_score : int
        Minimum score of an alignment to report; ``-T``.

    Raises
    ------
    OptionError
        If a number is out of its range.

    Examples
    --------
    >>> import mummergpu
    >>> mummergpu.Scores(gap_open=(8, 6)).min_score
    30
    """

    match: int = 1
    mismatch: int = 4
    gap_open: Penalty = 6
    gap_extend: Penalty = 1
    clipping: int = 5
    unpaired: int = 17
    min_score: int = 30

    def __post_init__(self) -> None:
        check_int("unpaired", self.unpaired, 0, LARGEST_COST)
        check_int("min_score", self.min_score)
        self.costs.check()

    @property
    def costs(self) -> Costs:
        """The scores as the aligner takes them."""
        deletion_open, insertion_open = _two_penalties("gap_open", self.gap_open)
        deletion_extend, insertion_extend = _two_penalties("gap_extend", self.gap_extend)
        return Costs(
            match=check_int("match", self.match),
            mismatch=check_int("mismatch", self.mismatch),
            insertion_open=insertion_open,
            insertion_extend=insertion_extend,
            deletion_open=deletion_open,
            deletion_extend=deletion_extend,
            end_bonus=check_int("clipping", self.clipping, 0, LARGEST_COST),
        )


def _two_penalties(option: str, asked: object) -> tuple[int, int]:
    """Return the penalties of deletions and of insertions."""
    both = asked if isinstance(asked, tuple | list) else (asked, asked)
    if len(both) != 2:
        raise OptionError(option, f"{shown(asked)} is not a number, nor two such as (6, 6)")
    return check_int(option, both[0], 0, LARGEST_COST), check_int(option, both[1], 0, LARGEST_COST)


MOST_TOLD: Final = 1e6
"""All sizes and deviations that a user gives must be below this, in bases."""

PROPER_DEVIATIONS: Final = 4.0
"""The sizes of proper pairs are within this many standard deviations of the mean."""


@frozen
class InsertSizes:
    """The distribution of the sizes of templates, from one outer end of the mates to the other.

    Attributes
    ----------
    mean, deviation : float
        The mean and the standard deviation, in bases.
    min_size, max_size : int
        The sizes of a proper pair.
    orientation : str
        How mates lie to each other (`insert_size.ORIENTATIONS`).
    others : tuple of InsertSizes
        Further bells of the distribution, whose sizes are proper too.
    share : float
        The pairs of such a bell, for each one of the first bell.
    is_wide : bool
        Whether there were too few pairs to estimate the sizes, so that these are all usual ones.
    """

    mean: float
    deviation: float
    min_size: int
    max_size: int
    orientation: str = "fr"
    others: tuple[InsertSizes, ...] = ()
    share: float = 1.0
    is_wide: bool = False

    @classmethod
    def of_user(
        cls, mean: float, deviation: float, max_size: int | None = None, min_size: int | None = None
    ) -> InsertSizes:
        """Return the distribution that a user describes; bounds are 4 deviations from the mean."""
        told = [one for one in (mean, deviation, max_size, min_size) if one is not None]
        if not all(0 < one < MOST_TOLD for one in told):
            text = ", ".join(f"{one:g}" for one in told)
            raise OptionError("insert_size", f"{text} are not numbers of bases")
        if max_size is not None and min_size is not None and max_size < min_size:
            text = f"the largest size, {max_size}, is below the smallest"
            raise OptionError("insert_size", text)
        if min_size is None:
            min_size = max(1, floor(mean - PROPER_DEVIATIONS * deviation + 0.5))
        if max_size is None:
            max_size = floor(mean + PROPER_DEVIATIONS * deviation + 0.5)
        return cls(mean, deviation, min_size, max_size)

    @property
    def proper(self) -> list[list[int]]:
        """The least and the largest size of each range of proper pairs, ascending."""
        ranges: list[list[int]] = []
        bells = (self, *self.others)
        for least, most in sorted((bell.min_size, bell.max_size) for bell in bells):
            if ranges and least <= ranges[-1][1] + 1:
                ranges[-1][1] = max(most, ranges[-1][1])
            else:
                ranges.append([least, most])
        return ranges


@frozen
class MappingOptions:
    """How reads are mapped.

    Attributes
    ----------
    seed_length : int
        The length of the shortest matches that are looked for first.
    costs : Costs
        The scores.
    margin : int
        Placements that are worse than the best by more points than this do not matter.
    unpaired : int
        The penalty of mates that are not a proper pair.
    min_score : int
        The least score of an alignment that is reported.
    by_windows : bool
        Whether only matches that contain a whole window of their read of `seed_length` bases count
        (`windows`): a search need not look for others.
    max_occurrences : int or None
        The most matches of a read on a strand that are all looked at; a read with more has its
        rarest seeds chosen (`seed_rule`). None to look at all of them.
    max_secondary : int
        The most secondary alignments of a read.
    has_alternatives : bool
        Whether secondary alignments are the alternatives of others
        (`secondary.list_alternatives`), each of which has at most `max_secondary`.
    """

    seed_length: int
    costs: Costs = field(default_factory=Costs)
    margin: int = 12
    unpaired: int = 17
    min_score: int = 30
    by_windows: bool = True
    max_occurrences: int | None = None
    max_secondary: int = 0
    has_alternatives: bool = False

    @property
    def limits(self) -> Limits:
        """The numbers that compiled functions compare placements with."""
        return Limits(self.seed_length, self.margin, self.min_score)

    @property
    def prunes(self) -> bool:
        """Whether candidates that cannot matter are dropped: not if other placements are wanted."""
        return self.max_secondary == 0


SHORTEST_SEED: Final = 16
LONGEST_SEED: Final = 64
"""The bounds of `seed_length`."""

MIN_EDITS: Final = 4
BASES_OF_EDIT: Final = 40
"""The first pass finds all placements with up to `MIN_EDITS` edits, or one per `BASES_OF_EDIT`
bases of a read if that is more; unless the bounds forbid it."""


def seed_length(read_length: int) -> int:
    """Return the length in bases of the shortest matches that most reads are mapped with.

    A read of n bases with e edits has a match of at least ``(n - e) / (e + 1)`` bases with its
    place.
    """
    edits = max(MIN_EDITS, read_length // BASES_OF_EDIT)
    length = -(-(read_length - edits) // (edits + 1))
    return min(max(length, SHORTEST_SEED), LONGEST_SEED)


def has_enough_windows(read_length: int, length: int) -> bool:
    """Return whether the matches that contain whole windows of a read show all of its placements.

    They do if one window (`windows`) stays whole with as many edits as `MIN_EDITS`. If not, matches
    count wherever they begin, which finds more.
    """
    return read_length // length > MIN_EDITS


LONGEST_SECOND_SEED: Final = 20
SHORTEST_SECOND_SEED: Final = 12
"""The bounds of `second_seed_length`."""


def second_seed_length(first: int) -> int:
    """Return the length of the matches with which badly placed reads are mapped again.

    With 20 bases, all placements of a read of 150 bases with up to 6 edits are found.
    """
    return min(max(2 * first // 3, SHORTEST_SECOND_SEED), LONGEST_SECOND_SEED, first)
