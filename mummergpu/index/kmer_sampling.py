"""Which k-mers of the reference a table lists, and which k-mers of a query are looked up.

The table lists the k-mers that begin at multiples of the reference step; a search looks up the
k-mers that begin at multiples of the query step. If the two steps have no common divisor, a match
contains a pair of such k-mers every `reference step * query step` bases, which is the period of
pairs. A match that is at least as long as a k-mer and a period minus one base therefore contains a
pair. (This is the idea of copMEM: Grabowski and Bieniecki, Bioinformatics 2019.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import Final

MAX_PERIOD: Final = 1 << 20
"""The longest period of pairs in bases, even for long matches."""


@dataclass(frozen=True)
class KmerSampling:
    """Which k-mers of a reference a table lists.

    Attributes
    ----------
    kmer_length : int
        The number of bases of a k-mer, 1 to `extension.MAXIMUM_KMER_LENGTH`.
    reference_step : int
        The bases from one listed position to the next, at least 1. Listed positions are multiples
        of it, counted from the first base of the reference.
    """

    kmer_length: int
    reference_step: int = 1

    @property
    def shortest_match(self) -> int:
        """The length, in bases, of the shortest matches that contain a listed k-mer for sure."""
        return self.kmer_length + self.reference_step - 1

    def query_step(self, minimum_length: int, looks_up_all: bool = False) -> int:
        """Return the bases from one k-mer of a query that is looked up to the next.

        Parameters
        ----------
        minimum_length : int
            The minimum length of a MEM in bases, at least `shortest_match`.
        looks_up_all : bool
            Whether to look up all k-mers of a query. A search that skips frequent k-mers does:
            which MEMs it finds then depends on their first listed k-mer alone, and not on where a
            query or a block of queries begins.

        Returns
        -------
        int
            The largest step with which every MEM contains a pair, or one base.
        """
        if looks_up_all:
            return 1
        longest_period = min(minimum_length - self.kmer_length + 1, MAX_PERIOD)
        step = longest_period // self.reference_step
        while gcd(step, self.reference_step) > 1:
            step -= 1
        return step

    def period(self, minimum_length: int, looks_up_all: bool = False) -> int:
        """Return the bases from one pair of a match to the next: the product of both steps."""
        return self.reference_step * self.query_step(minimum_length, looks_up_all)

    def table_bytes(self, bases: int) -> int:
        """Return the most bytes that the table of a part of so many bases takes."""
        return 4 * (-(-bases // self.reference_step) + (1 << 2 * self.kmer_length) + 1)
