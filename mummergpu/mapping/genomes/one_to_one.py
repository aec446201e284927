"""Chooses the alignments that map each base of a genome to its best place in the other one.

The rule is that of MUMmer's delta-filter: of the alignments of a sequence, those are taken that
together have the most bases, each counted with the square of its alignment's identity, and those of
an overlap only once. What is taken for the reference and for the query is mapped one to one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array
from mummergpu.runtime.jit import jit

FloatArray = Float64Array

MAX_OVERLAP: Final = 0.75
"""Two alignments of which one lies in the other with a larger share are not both taken."""


def map_one_to_one(
    reference: tuple[Int64Array, Int64Array, Int64Array],
    query: tuple[Int64Array, Int64Array, Int64Array],
    identities: FloatArray,
) -> BoolArray:
    """Return which alignments map bases one to one, rearrangements allowed.

    Parameters
    ----------
    reference, query : tuple of ndarray, dtype=int64
        The sequence of each alignment, and where it begins and ends there, on the forward strand.
    identities : ndarray, dtype=float64
        The share of the columns of each alignment in which the bases are equal.

    Returns
    -------
    ndarray, dtype=bool
        True for the alignments that are best in the reference and in the query.
    """
    return best_cover(*reference, identities) & best_cover(*query, identities)


def best_cover(
    sequences: Int64Array, begins: Int64Array, ends: Int64Array, identities: FloatArray
) -> BoolArray:
    """Return which alignments cover each sequence best."""
    count = sequences.size
    order = np.lexsort((np.arange(count), ends, begins, sequences))
    firsts = np.flatnonzero(np.diff(sequences[order], prepend=-1))
    taken = np.zeros(count, dtype=np.bool_)
    room = np.zeros(count), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for first, end in pairwise([*firsts, count]):
        _cover(begins, ends, identities, order[first:end], room, taken)
    return taken


@jit
def _cover(
    begins: Int64Array,
    ends: Int64Array,
    identities: FloatArray,
    order: Int64Array,
    room: tuple[FloatArray, Int64Array, Int64Array],
    taken: BoolArray,
) -> None:
    """Mark the best cover of a sequence."""
    # Alignments are visited by their begins. Those that have ended before the next one begins are
    # closed for good; only those that are still open can overlap it.
    scores, before, open_rows = room
    open_count = 0
    best, best_ended = -1, -1
    for place in range(order.size):
        row = order[place]
        weight = identities[row] * identities[row]
        length = ends[row] - begins[row]
        # Of the alignments that have ended, only the best chain counts.
        still_open = 0
        for number in range(open_count):
            other = open_rows[number]
            if ends[other] > begins[row]:
                open_rows[still_open] = other
                still_open += 1
            elif best_ended < 0 or scores[other] > scores[best_ended]:
                best_ended = other
        open_count = still_open
        scores[row], before[row] = length * weight, best_ended
        if best_ended >= 0:
            scores[row] += scores[best_ended]
        for number in range(open_count):
            other = open_rows[number]
            overlap = min(ends[other], ends[row]) - begins[row]
            shorter = min(length, ends[other] - begins[other])
            score = scores[other] + (length - overlap) * weight
            if overlap <= MAX_OVERLAP * shorter and score > scores[row]:
                scores[row], before[row] = score, other
        open_rows[open_count] = row
        open_count += 1
        if best < 0 or scores[row] > scores[best]:
            best = row
    while best >= 0:
        taken[best] = True
        best = before[best]
