"""Coverage: how many matches lie over the bases of the reference, bin by bin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.colours import FORWARD, REVERSE
from mummergpu.drawing.groups import STRAND_COLOURS
from mummergpu.drawing.record_axis import label_axis, length_text
from mummergpu.drawing.records import Records
from mummergpu.drawing.style import add_colour_legend, add_head
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS: Final = 700

_MAX_RECORDS: Final = 400
"""Bins end at the borders of records if there are not more of these."""


class CoverageCounter:
    """Counts matched bases in bins of the reference, exactly, without keeping the matches.

    Attributes
    ----------
    edges : ndarray, dtype=int64, shape=(n_bins + 1,)
        Where the bins begin, and the end of the last.
    """

    def __init__(self, references: Records, bins: int = BINS) -> None:
        self.references = references
        total = references.base_count
        edges = np.linspace(0, total, min(bins, total) + 1).astype(np.int64)
        if references.count <= _MAX_RECORDS:
            edges = np.concatenate((edges, references.offsets))
        self.edges: Int64Array = np.unique(edges)
        self.match_count = 0
        # For each strand and bin, starts less ends: their number, and their bases up to the bin's
        # end. Matched bases follow from these sums.
        self._open = np.zeros((2, self.edges.size - 1), dtype=np.int64)
        self._rest = np.zeros((2, self.edges.size - 1), dtype=np.int64)

    def add(self, positions: Int64Array, lengths: Int64Array, is_reverse: BoolArray) -> None:
        """Count matches that begin at 0-based positions on the axis of the reference."""
        self.match_count += lengths.size
        for strand, chosen in enumerate((~is_reverse, is_reverse)):
            starts = positions[chosen]
            self._add_ends(strand, starts, 1)
            self._add_ends(strand, starts + lengths[chosen], -1)

    def merge(self, other: CoverageCounter) -> None:
        """Add what another counter, with the same bins, has counted."""
        self.match_count += other.match_count
        self._open += other._open
        self._rest += other._rest

    def matched_bases(self) -> Int64Array:
        """Return the matched bases of forward and reverse matches: int64, shape=(2, n_bins)."""
        before = np.cumsum(self._open, axis=1) - self._open
        return before * np.diff(self.edges) + self._rest

    def _add_ends(self, strand: int, places: Int64Array, sign: int) -> None:
        numbers = np.searchsorted(self.edges, places, side="right") - 1
        inside = numbers < self.edges.size - 1
        numbers = numbers[inside]
        rest = self.edges[numbers + 1] - places[inside]
        np.add.at(self._open[strand], numbers, sign)
        np.add.at(self._rest[strand], numbers, sign * rest)


def draw_coverage(
    axes: Axes, counter: CoverageCounter, title: str | None = None, what: str = "matches"
) -> None:
    """Draw the mean number of matches over the bases of each bin, strand upon strand."""
    label_axis(axes, "x", counter.references)
    widths = np.diff(counter.edges)
    depth: Float64Array = counter.matched_bases() / widths
    edges = counter.edges
    axes.stairs(depth[0], edges, fill=True, color=FORWARD)
    axes.stairs(depth.sum(axis=0), edges, baseline=depth[0], fill=True, color=REVERSE)
    axes.set_ylim(0, 1.05 * max(float(depth.sum(axis=0).max(initial=0.0)), 0.1))
    widest = length_text(int(widths.max(initial=0)))
    axes.set_ylabel(f"matches over a base\n(mean of {widest})")
    add_colour_legend(axes, STRAND_COLOURS)
    add_head(axes, title, [f"{counter.match_count:,} {what}"])
