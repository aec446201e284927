"""The options of mapping."""

from __future__ import annotations

from dataclasses import field
from typing import Final, NamedTuple

from mummergpu.runtime.frozen import frozen
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs

MAX_READ_BASES: Final = MOST_BASES
"""The longest read that is mapped; longer ones stay unmapped."""


class Limits(NamedTuple):
    """The bounds that placements are compared with; described at `MappingOptions`."""

    seed_length: int
    margin: int
    min_score: int


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
