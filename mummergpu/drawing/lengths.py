"""The lengths of matches: how many there are of each, on logarithmic scales."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from mummergpu.drawing.colours import FORWARD
from mummergpu.drawing.style import add_head, number_plainly
from mummergpu.runtime.arrays import Int64Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_BARS: Final = 50
_MAX_TICKS: Final = 12
_LEAST_LENGTHS: Final = 3
"""The first bar has about so many lengths."""
_LOWEST: Final = 0.7
"""Where bars begin: a bar of one match is seen."""


class LengthCounter:
    """Counts matches by their length.

    Attributes
    ----------
    lengths : ndarray, dtype=int64, shape=(n_lengths,)
        The lengths that occur, rising.
    counts : ndarray, dtype=int64, shape=(n_lengths,)
        How many matches have each.
    """

    def __init__(self) -> None:
        self.lengths: Int64Array = np.empty(0, dtype=np.int64)
        self.counts: Int64Array = np.empty(0, dtype=np.int64)

    def add(self, lengths: Int64Array) -> None:
        """Count the matches of some lengths: int64, shape=(n_matches,)."""
        found, counts = np.unique(lengths, return_counts=True)
        self._add(found, counts)

    def merge(self, other: LengthCounter) -> None:
        """Add what another counter has counted."""
        self._add(other.lengths, other.counts)

    @property
    def match_count(self) -> int:
        """The number of matches."""
        return int(self.counts.sum())

    def bars(self) -> tuple[Int64Array, Int64Array]:
        """Return bars of about equal breadth on a logarithmic scale.

        They are the least length in each bar and one more than the longest of all, and the number
        of matches in each bar.
        """
        first, end = int(self.lengths[0]), int(self.lengths[-1]) + 1
        # The first bar gets several lengths: with one or two by turns, bars would go up and down.
        growth = math.log1p(_LEAST_LENGTHS / first)
        bars = max(1, min(_MAX_BARS, int(math.log(end / first) / growth)))
        edges = np.unique(np.geomspace(first, end, bars + 1).round().astype(np.int64))
        numbers = np.searchsorted(edges, self.lengths, side="right") - 1
        counts = np.zeros(edges.size - 1, dtype=np.int64)
        np.add.at(counts, numbers, self.counts)
        return edges, counts

    def _add(self, lengths: Int64Array, counts: Int64Array) -> None:
        merged, places = np.unique(np.append(self.lengths, lengths), return_inverse=True)
        sums = np.zeros(merged.size, dtype=np.int64)
        np.add.at(sums, places, np.append(self.counts, counts))
        self.lengths, self.counts = merged, sums


def draw_lengths(
    axes: Axes, counter: LengthCounter, title: str | None = None, what: str = "matches"
) -> None:
    """Draw a histogram of the lengths of matches."""
    axes.set_xlabel("length of a match (bp)")
    axes.set_ylabel("matches")
    told = [f"{counter.match_count:,} {what}"]
    if counter.match_count:
        edges, counts = counter.bars()
        for axis, scale in ((axes.xaxis, axes.set_xscale), (axes.yaxis, axes.set_yscale)):
            scale("log")
            number_plainly(axis, (1.0, 2.0, 5.0), _MAX_TICKS)
        bottom = max(_LOWEST, float(counts[counts > 0].min()) / 2)
        axes.stairs(counts, edges, baseline=bottom, fill=True, color=FORWARD)
        axes.set_xlim(float(edges[0]), float(edges[-1]))
        axes.set_ylim(bottom, 1.5 * float(counts.max()))
        axes.grid(which="major")
        told.append(f"the longest has {counter.lengths[-1]:,} bp")
    add_head(axes, title, told)
