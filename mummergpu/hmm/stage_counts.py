"""How many of HMMER's filters sequences pass, for the statistics of a text report.

The filters here let all pass that HMMER's do, and a few more: those whose scores are so near to a
threshold that the rounding of HMMER's numbers decides. Only a report counts the stages, and asks
HMMER about these few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Int64Array

FILTERS: Final = 4
"""HMMER counts after MSV, after its correction for composition, after Viterbi and after Forward."""

VITERBI: Final = 3
"""The number of filters up to Viterbi's."""

UNKNOWN: Final = -1
"""The number of filters of a sequence for which HMMER's own numbers decide."""


class Reached(NamedTuple):
    """Sequences that pass HMMER's first filter, and how many of its `FILTERS` each one passes."""

    sequences: Int64Array
    filters: Int64Array

    @classmethod
    def of_all(cls, sequences: Int64Array, filters: int) -> Reached:
        """Return sequences that all pass as many filters."""
        return cls(sequences, np.full(sequences.size, filters, dtype=np.int64))

    def settled(self, passed: Callable[[int], int]) -> Reached:
        """Return the same without `UNKNOWN`; `passed` returns the filters that HMMER counts."""
        filters = self.filters.copy()
        for place in np.flatnonzero(filters == UNKNOWN).tolist():
            filters[place] = passed(int(self.sequences[place]))
        return Reached(self.sequences, filters)

    def passing(self, filters: int) -> Int64Array:
        """Return the sequences that pass so many filters, or may."""
        return self.those_passing(filters).sequences

    def those_passing(self, filters: int) -> Reached:
        """Return `passing` with the filters of each."""
        chosen = (self.filters >= filters) | (self.filters == UNKNOWN)
        return Reached(self.sequences[chosen], self.filters[chosen])

    def part(self, first: int, end: int) -> Reached:
        """Return some of the sequences."""
        return Reached(self.sequences[first:end], self.filters[first:end])

    def after_forward(self, passes: BoolArray, is_sure: BoolArray) -> Reached:
        """Return the same when Forward has decided about those that pass the filters before."""
        filters = self.filters.copy()
        chosen = (filters >= VITERBI) | (filters == UNKNOWN)
        is_known = is_sure & (filters[chosen] != UNKNOWN)
        filters[chosen] = np.where(passes, np.where(is_known, FILTERS, UNKNOWN), VITERBI)
        return Reached(self.sequences, filters)

    def with_filters(self, forward: Reached) -> Reached:
        """Return the same with the filters of those that Forward's has seen."""
        filters = self.filters.copy()
        filters[filters >= VITERBI] = forward.filters
        return Reached(self.sequences, filters)

    def counts(self) -> Int64Array:
        """Return how many sequences pass each filter, if all is known."""
        return np.array([self.passing(one).size for one in range(1, FILTERS + 1)])


class Statistics(NamedTuple):
    """The size of the targets of a search or a scan, and how many pass each of the filters."""

    targets: int
    letters: int  # The residues of sequences, or the nodes of profiles
    passed: tuple[int, ...]
