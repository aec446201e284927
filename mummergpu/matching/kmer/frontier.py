"""The matches found at one minimizer of a query that lie in no other one, on each strand.

A match of a frontier begins later than the one before it, and ends later. So it has at most one for
each start, however many copies of a repeat there are.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, inline
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.mems import MemRows
from mummergpu.sequence.minimizers import MAXIMUM_WINDOW

TWICE: Final = -1
"""In place of where a match begins in the reference: it occurs a second time."""


class UniqueMatchFrontier(NamedTuple):
    """The matches found at a minimizer that lie in no other one, on each strand.

    Attributes
    ----------
    starts, ends : ndarray, dtype=int64, shape=(2, MAXIMUM_WINDOW)
        Where they begin and end in the codes; both ascend.
    reference_starts : ndarray, dtype=int64, shape=(2, MAXIMUM_WINDOW)
        Where they begin in the reference, without the margin; or `TWICE`.
    counts : ndarray, dtype=int64, shape=(2,)
        Their number.
    """

    starts: Int64Array
    ends: Int64Array
    reference_starts: Int64Array
    counts: Int64Array


def new_frontier() -> UniqueMatchFrontier:
    """Return an empty frontier, with room for the matches of one minimizer."""
    starts, ends, reference_starts = np.empty((3, 2, MAXIMUM_WINDOW), dtype=np.int64)
    return UniqueMatchFrontier(starts, ends, reference_starts, np.zeros(2, dtype=np.int64))


@inline
def add_to_frontier(
    frontier: UniqueMatchFrontier, strand: int, start: int, end: int, reference_start: int
) -> bool:
    """Add a match to the frontier, unless it lies in another one, and leave out what lies in it.

    Return whether it occurs a second time.
    """
    starts, ends, reference_starts = frontier.starts, frontier.ends, frontier.reference_starts
    count = frontier.counts[strand]
    for one in range(count):
        if starts[strand, one] <= start and ends[strand, one] >= end:
            # None of the others lies in this match, as they would lie in that one, too.
            if starts[strand, one] == start and ends[strand, one] == end:
                reference_starts[strand, one] = TWICE
                return True
            return False
    kept = 0
    for one in range(count):
        if starts[strand, one] < start or ends[strand, one] > end:
            starts[strand, kept] = starts[strand, one]
            ends[strand, kept] = ends[strand, one]
            reference_starts[strand, kept] = reference_starts[strand, one]
            kept += 1
    target = kept
    while target > 0 and starts[strand, target - 1] > start:
        starts[strand, target] = starts[strand, target - 1]
        ends[strand, target] = ends[strand, target - 1]
        reference_starts[strand, target] = reference_starts[strand, target - 1]
        target -= 1
    starts[strand, target], ends[strand, target] = start, end
    reference_starts[strand, target] = reference_start
    frontier.counts[strand] = kept + 1
    return False


@inline
def write_frontier(frontier: UniqueMatchFrontier, strand: int, rows: MemRows, row: int) -> int:
    """Write the matches of a frontier that occur once, from a row on; return where they end."""
    for one in range(frontier.counts[strand]):
        if frontier.reference_starts[strand, one] != TWICE:
            rows.query_starts[as_index(row)] = frontier.starts[strand, one] - MARGIN
            rows.reference_starts[as_index(row)] = frontier.reference_starts[strand, one]
            rows.lengths[as_index(row)] = frontier.ends[strand, one] - frontier.starts[strand, one]
            row += 1
    return row
