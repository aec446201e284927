"""Which k-mers of the reference a table lists, and which k-mers of a query are looked up.

The table lists the k-mers that begin at multiples of the reference step; a search looks up the
k-mers that begin at multiples of the query step. If the two steps have no common divisor, a match
contains a pair of such k-mers every `reference step * query step` bases: the sampling step. A
match that is at least as long as a k-mer and a sampling step minus one base therefore contains a
pair. (This is the idea of copMEM: Grabowski and Bieniecki, Bioinformatics 2019.)

Or the table lists picked k-mers (`sequence.picked_kmers`): of each span of as many k-mers as the
reference step, the one that the span's bases choose. Wherever a span occurs, its picked k-mer is
listed, so a search looks up one k-mer per span. More k-mers are listed than with a step.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from mummergpu.runtime.frozen import frozen

MAX_SAMPLING_STEP: Final = 1 << 20
"""The longest sampling step in bases, even for long matches."""


@frozen
class KmerSampling:
    """Which k-mers of a reference a table lists.

    Attributes
    ----------
    kmer_length : int
        The number of bases of a k-mer, 1 to `extension.MAXIMUM_KMER_LENGTH`.
    reference_step : int
        The bases from one listed position to the next, at least 1. Listed positions are multiples
        of it, counted from the first base of the reference.
    is_picked : bool
        Whether picked k-mers are listed instead, of `reference_step` side by side.
    """

    kmer_length: int
    reference_step: int = 1
    is_picked: bool = False

    @property
    def picked_of(self) -> int:
        """The k-mers in a row of which one is picked; 0 if positions at a step are listed."""
        return self.reference_step if self.is_picked else 0

    @property
    def kmers_of_window(self) -> int:
        """How many k-mers at the end of a window are looked up, of which one is listed."""
        return 1 if self.is_picked else self.reference_step

    @property
    def lookup_bases(self) -> int:
        """The bases by which a k-mer is looked up: those of a span, or its own."""
        return self.shortest_match if self.is_picked else self.kmer_length

    def describe_places(self) -> str:
        """Describe in a few words where k-mers are listed."""
        if self.is_picked:
            return f"picked of {self.reference_step} side by side"
        return f"at every {self.reference_step} bases"

    @property
    def shortest_match(self) -> int:
        """The length, in bases, of the shortest matches that contain a listed k-mer for sure."""
        return self.kmer_length + self.reference_step - 1

    def query_step(self, minimum_length: int) -> int:
        """Return the bases from one k-mer of a query that is looked up to the next.

        It is the largest step with which every MEM of `minimum_length` bases, which are at least
        `shortest_match`, contains a pair; or one base.
        """
        if self.is_picked:
            # A match contains a span that begins at such a place.
            return min(minimum_length - self.shortest_match + 1, MAX_SAMPLING_STEP)
        longest_step = min(minimum_length - self.kmer_length + 1, MAX_SAMPLING_STEP)
        step = longest_step // self.reference_step
        while gcd(step, self.reference_step) > 1:
            step -= 1
        return step

    def sampling_step(self, minimum_length: int) -> int:
        """Return the bases from one pair of a match to the next: the product of both steps.

        With picked k-mers, those from one span that is looked up to the next.
        """
        if self.is_picked:
            return self.query_step(minimum_length)
        return self.reference_step * self.query_step(minimum_length)

    def table_bytes(self, bases: int) -> int:
        """Return the most bytes that the table of a part of `bases` bases takes."""
        return 4 * (self.positions_expected(bases) + (1 << 2 * self.kmer_length) + 1)

    def positions_expected(self, bases: int) -> int:
        """Return the most positions listed of `bases` bases; if picked, the most expected."""
        if self.is_picked:
            # Those of random bases with the lowest ranks; the words of mod-minimizers need fewer.
            return -(-2 * bases // (self.reference_step + 1))
        return -(-bases // self.reference_step)
