"""Keeps the matches that contain a whole window of their read.

The windows of a read lie side by side from its first base. A read with e edits matches its place
in one of any ``e + 1`` windows as a whole, so no placement with fewer edits than windows is lost.
Which matches are kept depends on the matches alone, and not on the k-mers that a search looks up.
"""

from __future__ import annotations

import numpy as np

from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.sequence.mems import MemColumns


def shortest_sure_match(window: int) -> int:
    """Return the length from which on a match contains a whole window for sure."""
    return 2 * window - 1


def matches_of_windows(matches: MemColumns, window: int) -> MemColumns:
    """Return the matches that contain a whole window."""
    count = matches.lengths.size
    kept = MemColumns(
        np.empty_like(matches.offsets),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
    )
    end = keep_windows(matches, window, kept)
    return MemColumns(
        kept.offsets, kept.query_starts[:end], kept.reference_starts[:end], kept.lengths[:end]
    )


@jit_without_refcounts
def keep_windows(matches: MemColumns, window: int, kept: MemColumns) -> int:
    """Copy the matches that contain a whole window; return how many there are."""
    kept.offsets[0] = 0
    end = 0
    for read in range(matches.offsets.size - 1):
        for row in range(matches.offsets[read], matches.offsets[read + 1]):
            start = matches.query_starts[row]
            first = (start + window - 1) // window * window
            if first + window <= start + matches.lengths[row]:
                kept.query_starts[end] = start
                kept.reference_starts[end] = matches.reference_starts[row]
                kept.lengths[end] = matches.lengths[row]
                end += 1
        kept.offsets[read + 1] = end
    return end
