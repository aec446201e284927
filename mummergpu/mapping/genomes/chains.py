"""Chains of matches: the one with the best score of a set is a cluster."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.jit import jit_without_refcounts

Int64Array = npt.NDArray[np.int64]
Anchors = tuple[Int64Array, Int64Array, Int64Array]
"""Where matches begin in the query and in the reference, and their lengths."""

MOST_PREDECESSORS: Final = 4096
"""The matches before another one that it may follow in a chain, counted back from it."""

MOST_BETWEEN: Final = 4000
"""The most bases of each sequence between two matches of a cluster: all cells of their matrix fit
into `whole_matrix.MOST_CELLS`."""

NONE: Final = -1
"""In place of the number of a match: there is none."""


@jit_without_refcounts
def best_chain(
    matches: Anchors,
    begin: int,
    members: Int64Array,
    count: int,
    columns: tuple[Int64Array, Int64Array, Int64Array],
) -> int:
    """Chain the matches of a set; return the number of the last one of the best chain.

    Parameters
    ----------
    matches : tuple of ndarray, dtype=int64
        The matches of all groups.
    begin : int
        Where the group begins.
    members : ndarray, dtype=int64
        The matches of the set, counted from `begin`, ascending.
    count : int
        How many there are.
    columns : tuple of ndarray, dtype=int64
        Output, for each match of the set: the score of the best chain that it ends, the highest
        score up to it, and the number of the match before it in its chain or -1.

    Returns
    -------
    int
        The number of the match in `members`.
    """
    query_starts, reference_starts, lengths = matches
    scores, highest, before = columns
    best = 0
    for number in range(count):
        row = begin + members[number]
        length = lengths[row]
        query_start, reference_start = query_starts[row], reference_starts[row]
        score, source = length, NONE
        other = number - 1
        # No chain before is better than the highest of them, and nothing is added but the length.
        while (
            other >= 0 and number - other <= MOST_PREDECESSORS and highest[other] + length > score
        ):
            earlier = begin + members[other]
            gap = query_start - query_starts[earlier] - lengths[earlier]
            other_gap = reference_start - reference_starts[earlier] - lengths[earlier]
            overlap = max(0, -gap, -other_gap)
            bent = abs(
                (query_start - reference_start)
                - (query_starts[earlier] - reference_starts[earlier])
            )
            if overlap < length and max(gap, other_gap) <= MOST_BETWEEN - overlap:
                chained = scores[other] + length - overlap - bent
                if chained > score:
                    score, source = chained, other
            other -= 1
        scores[number] = score
        before[number] = source
        highest[number] = score if number == 0 else max(score, highest[number - 1])
        if score > scores[best]:
            best = number
    return best


@jit_without_refcounts
def take_chain(
    matches: Anchors,
    begin: int,
    members: Int64Array,
    before: Int64Array,
    end: int,
    least_bases: int,
    is_alive: npt.NDArray[np.bool_],
    group: int,
    count: int,
    clusters: tuple[Int64Array, Int64Array],
    anchors: Anchors,
) -> int:
    """Take a chain out of its set, and write it if it has enough bases; return the new count."""
    query_starts, reference_starts, lengths = matches
    groups, offsets = clusters
    total, size = 0, 0
    number = end
    while number != NONE:
        row = members[number]
        is_alive[row] = False
        total += lengths[begin + row]
        size += 1
        number = before[number]
    if total < least_bases:
        return count
    place = offsets[count] + size
    groups[count] = group
    offsets[count + 1] = place
    number = end
    while number != NONE:
        place -= 1
        row = begin + members[number]
        cut = 0
        if before[number] != NONE:
            earlier = begin + members[before[number]]
            cut = max(
                0,
                query_starts[earlier] + lengths[earlier] - query_starts[row],
                reference_starts[earlier] + lengths[earlier] - reference_starts[row],
            )
        anchors[0][place] = query_starts[row] + cut
        anchors[1][place] = reference_starts[row] + cut
        anchors[2][place] = lengths[row] - cut
        number = before[number]
    return count + 1
