"""The options of mapping."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.tiles.scratch import MOST_BASES

MOST_READ_BASES: Final = MOST_BASES
"""The longest read that is mapped; longer ones stay unmapped."""


@dataclass(frozen=True)
class MappingOptions:
    """How reads are mapped.

    Attributes
    ----------
    seed_length : int
        The length of the shortest matches that are looked for first.
    costs : Costs
        The scores.
    margin : int
        Placements that are so many points worse than the best do not matter.
    unpaired : int
        The penalty of mates that are not a proper pair.
    least_score : int
        The least score of an alignment that is reported.
    by_windows : bool
        Whether only matches count that contain a whole window of their read of `seed_length` bases
        (`windows`): a search need not look for others.
    most_secondary : int
        The most secondary alignments of a read.
    has_alternatives : bool
        Whether secondary alignments are the alternatives of others (`alternatives`), each of which
        has at most `most_secondary`.
    """

    seed_length: int
    costs: Costs = field(default_factory=Costs)
    margin: int = 12
    unpaired: int = 17
    least_score: int = 30
    by_windows: bool = True
    most_secondary: int = 0
    has_alternatives: bool = False

    @property
    def pruning(self) -> tuple[bool, int, int]:
        """Which candidates are kept (`pruning.Pruning`): all, if other placements are wanted."""
        return self.most_secondary == 0, self.seed_length, self.margin
