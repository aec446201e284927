"""Ranks the alignments of a query: the best one, those of its other bases, and other places.

Of the alignments of a query, the best one is primary. One that has hardly any bases of a better
one is supplementary: it goes on with the query somewhere else. All others tell where the same bases
could lie as well: they are secondary.
"""

from __future__ import annotations

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import jit


def find_rivals(
    queries: Int64Array, begins: Int64Array, ends: Int64Array, scores: Int64Array
) -> Int64Array:
    """Return which better alignment each alignment of a query competes with.

    The alignments of a query are taken from the highest score to the lowest. One that overlaps a
    better one, which competes with none itself, by half of the shorter one or more competes with
    it; with the best one if there are several. That is the rule of minimap2 and bwa mem.

    Parameters
    ----------
    queries : ndarray, dtype=int64, shape=(n_alignments,)
        The query of each alignment.
    begins, ends : ndarray, dtype=int64, shape=(n_alignments,)
        The first base of the query, and the one after the last, on its forward strand.
    scores : ndarray, dtype=int64, shape=(n_alignments,)
        The scores; of equal ones, the first is the best.

    Returns
    -------
    ndarray, dtype=int64, shape=(n_alignments,)
        The better alignment; the alignment itself if there is none.
    """
    order = np.lexsort((np.arange(scores.size), -scores, queries))
    better = np.arange(scores.size)
    room = np.empty(scores.size, dtype=np.int64), np.empty(scores.size, dtype=np.int64)
    _find_better(order, queries, begins, ends, room, better)
    return better


@jit
def _find_better(
    order: Int64Array,
    queries: Int64Array,
    begins: Int64Array,
    ends: Int64Array,
    room: tuple[Int64Array, Int64Array],
    better: Int64Array,
) -> None:
    """Find what each alignment competes with, in the order of their scores."""
    # None of those that compete with none lies inside another one, and so they ascend by their
    # ends as by their begins.
    free, places = room
    count, query = 0, -1
    for place in range(order.size):
        row = order[place]
        if queries[row] != query:
            count, query = 0, queries[row]
        begin, end = begins[row], ends[row]
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if ends[free[middle]] > begin:
                high = middle
            else:
                low = middle + 1
        best = -1
        number = low
        while number < count and begins[free[number]] < end:
            other = free[number]
            overlap = min(end, ends[other]) - max(begin, begins[other])
            shorter = min(end - begin, ends[other] - begins[other])
            if 2 * overlap >= shorter and (best < 0 or places[other] < places[best]):
                best = other
            number += 1
        if best >= 0:
            better[row] = best
            continue
        places[row] = place
        number = count
        while number > 0 and begins[free[number - 1]] > begin:
            free[number] = free[number - 1]
            number -= 1
        free[number] = row
        count += 1
