"""Judges mapped reads by where they come from: one evaluator for all mappers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mapping.sam import Placement
from mapping.truth import Span, overlaps, true_span

QUALITIES = (60, 40, 20, 10, 1, 0)
"""The mapping qualities from which reads are counted."""


class Verdict(NamedTuple):
    """A read, where it comes from, and whether its mapper knew."""

    placement: Placement
    truth: Span | None
    right: bool


def verdicts(placements: Iterable[Placement]) -> Iterator[Verdict]:
    """Judge each read, once, from its primary record.

    A read is right if the bases of the reference that its alignment covers and those that it
    comes from share over a tenth of what they cover together, whatever the strand. One that is
    unmapped is not right; it counts as wrong nowhere, since nothing was claimed.

    Parameters
    ----------
    placements : iterable of Placement
        The primary records of a file.

    Yields
    ------
    Verdict
        In the order of the records.

    Raises
    ------
    ValueError
        If a read has two primary records, or a name that does not tell where it comes from.
    """
    seen: set[tuple[str, int]] = set()
    for placement in placements:
        read = placement.name, placement.mate
        if read in seen:
            raise ValueError(f"two primary records of {placement.name}, mate {placement.mate}")
        seen.add(read)
        truth = true_span(*read, placement.read_bases)
        span = placement.span
        right = span is not None and truth is not None and overlaps(span, truth)
        yield Verdict(placement, truth, right)


@dataclass
class Accuracy:
    """Reads counted by mapping quality.

    Attributes
    ----------
    reads : int
        All reads of the input, with those that the mapper left out.
    records : int
        Those of which it wrote a primary record.
    right, wrong : Counter
        Mapped reads of each mapping quality.
    turned : int
        Reads that lie where they come from, on the other strand.
    """

    reads: int = 0
    records: int = 0
    right: Counter[int] = field(default_factory=Counter)
    wrong: Counter[int] = field(default_factory=Counter)
    turned: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count a read."""
        self.records += 1
        span, quality = verdict.placement.span, verdict.placement.quality
        if span is None:
            return
        (self.right if verdict.right else self.wrong)[quality] += 1
        if verdict.right and verdict.truth and span.reverse != verdict.truth.reverse:
            self.turned += 1

    def from_quality(self, least: int) -> tuple[int, int]:
        """Return how many reads have at least a mapping quality, and how many of them are wrong."""
        right, wrong = (
            sum(count for quality, count in counts.items() if quality >= least)
            for counts in (self.right, self.wrong)
        )
        return right + wrong, wrong

    def by_quality(self) -> list[tuple[int, int, int]]:
        """Return each mapping quality that occurs, downwards, its reads, and wrong ones of them."""
        qualities = sorted({*self.right, *self.wrong}, reverse=True)
        return [(each, self.right[each] + self.wrong[each], self.wrong[each]) for each in qualities]

    def figures(self) -> dict[str, Any]:
        """Return what is printed and saved."""
        mapped, wrong = self.from_quality(0)
        return {
            "reads": self.reads,
            "without_record": self.reads - self.records,
            "mapped_percent": 100 * mapped / self.reads if self.reads else 0.0,
            "right_percent": 100 * (mapped - wrong) / self.reads if self.reads else 0.0,
            "on_the_other_strand": self.turned,
            "from_quality": {
                str(least): dict(zip(("reads", "wrong"), self.from_quality(least), strict=True))
                for least in QUALITIES
            },
        }


def accuracy_of(found: Iterable[Verdict], reads: int | None = None) -> Accuracy:
    """Count judged reads.

    Parameters
    ----------
    found : iterable of Verdict
        The verdicts of one mapper.
    reads : int, optional
        How many reads it was given. By default as many as it wrote.

    Raises
    ------
    ValueError
        If it wrote more reads than it was given.
    """
    accuracy = Accuracy()
    for verdict in found:
        accuracy.add(verdict)
    if reads is not None and accuracy.records > reads:
        raise ValueError(f"{accuracy.records} primary records of {reads} reads")
    accuracy.reads = accuracy.records if reads is None else reads
    return accuracy
