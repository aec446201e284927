"""Clusters of matches: colinear matches of one query and one record that lie close together.

The rule is that of MUMmer's mgaps. Matches are joined if few bases of the query lie between them
and their diagonals differ little; of all that are joined in this way, the chain of matches with the
best score is a cluster: the sum of their lengths, less their overlaps and the differences of their
diagonals. What is left over is joined and chained again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.genomes.chains import NONE, Anchors, Int64Array, best_chain, take_chain
from mummergpu.mapping.genomes.options import ClusterOptions
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts

Room = tuple[
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    npt.NDArray[np.bool_],
]
"""Memory for each match of a group: the matches that are left, their sets, the next of the same
set, the last of each set, the members of a set, three columns of chains, and what is left."""


_MILLION: Final = 1_000_000
"""Shares are counted in millionths: code without numba takes no other numbers than whole ones."""


@dataclass(frozen=True)
class Clusters:
    """Clusters of the matches on one strand.

    Attributes
    ----------
    groups : ndarray, dtype=int64, shape=(n_clusters,)
        The number of the group of matches that each cluster is from.
    offsets : ndarray, dtype=int64, shape=(n_clusters + 1,)
        Where the anchors of each cluster begin, and where the last ones end.
    query_starts, reference_starts, lengths : ndarray, dtype=int64, shape=(n_anchors,)
        The anchors: matches, of which what overlaps the anchor before is cut off.
    """

    groups: Int64Array
    offsets: Int64Array
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array

    @property
    def count(self) -> int:
        """The number of clusters."""
        return self.groups.size

    @property
    def anchors(self) -> Anchors:
        """The anchors as compiled functions take them."""
        return self.query_starts, self.reference_starts, self.lengths


def find_clusters(group_offsets: Int64Array, matches: Anchors, options: ClusterOptions) -> Clusters:
    """Return the clusters of groups of matches.

    Parameters
    ----------
    group_offsets : ndarray, dtype=int64, shape=(n_groups + 1,)
        Where the matches of each group begin: those of a query with a record of the reference.
    matches : tuple of ndarray, dtype=int64
        Where each begins in the query and in the reference, and its length. In a group they ascend
        by their start in the query, then by that in the reference.
    options : ClusterOptions
        Which matches form a cluster.

    Returns
    -------
    Clusters
        Those of each group ascend by their start in the reference, then in the query.
    """
    count = matches[0].size
    groups = np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    anchors = tuple(np.empty(count, dtype=np.int64) for _ in range(3))
    most = int(np.diff(group_offsets).max(initial=0))
    found = _chain_groups(
        group_offsets,
        matches,
        options.least_bases,
        options.most_gap,
        options.diagonal_difference,
        round(options.diagonal_factor * _MILLION),
        _new_room(most),
        (groups, offsets),
        (anchors[0], anchors[1], anchors[2]),
    )
    begins, ends = offsets[:found], offsets[1 : found + 1]
    query_starts, reference_starts, lengths = anchors
    order = np.lexsort((query_starts[begins], reference_starts[begins], groups[:found]))
    sizes = (ends - begins)[order]
    new_offsets = np.concatenate(([0], np.cumsum(sizes)))
    rows = np.repeat(begins[order] - new_offsets[:-1], sizes) + np.arange(new_offsets[-1])
    return Clusters(
        groups[:found][order],
        new_offsets,
        query_starts[rows],
        reference_starts[rows],
        lengths[rows],
    )


def _new_room(most: int) -> Room:
    """Return memory for groups of so many matches."""
    numbers = [np.empty(most, dtype=np.int64) for _ in range(8)]
    one, two, three, four, five, six, seven, eight = numbers
    return one, two, three, four, five, six, seven, eight, np.empty(most, dtype=np.bool_)


@jit_without_refcounts
def _chain_groups(
    group_offsets: Int64Array,
    matches: Anchors,
    least_bases: int,
    most_gap: int,
    diagonal_difference: int,
    diagonal_millionths: int,
    room: Room,
    clusters: tuple[Int64Array, Int64Array],
    anchors: Anchors,
) -> int:
    """Write the clusters of all groups, and return how many there are."""
    alive, sets, following, last_of_set, members, scores, highest, before, is_alive = room
    count = 0
    for group in range(group_offsets.size - 1):
        begin = group_offsets[group]
        size = group_offsets[group + 1] - begin
        _drop_inner_matches(matches, begin, size, is_alive, members)
        while True:
            left = 0
            for row in range(size):
                if is_alive[row]:
                    alive[left] = row
                    left += 1
            if left == 0:
                break
            _join_close_matches(
                matches,
                begin,
                alive,
                left,
                most_gap,
                diagonal_difference,
                diagonal_millionths,
                sets,
            )
            _list_sets(alive, left, sets, following, last_of_set)
            for place in range(left):
                first = alive[place]
                if sets[first] != first:
                    continue
                total, size_of_set = 0, 0
                row = first
                while row != NONE:
                    members[size_of_set] = row
                    size_of_set += 1
                    total += matches[2][begin + row]
                    row = following[row]
                if total < least_bases:
                    for number in range(size_of_set):
                        is_alive[members[number]] = False
                    continue
                end = best_chain(matches, begin, members, size_of_set, (scores, highest, before))
                count = take_chain(
                    matches,
                    begin,
                    members,
                    before,
                    end,
                    least_bases,
                    is_alive,
                    group,
                    count,
                    clusters,
                    anchors,
                )
    return count


@inline_without_refcounts
def _drop_inner_matches(
    matches: Anchors, begin: int, size: int, is_alive: npt.NDArray[np.bool_], doubts: Int64Array
) -> None:
    """Drop the matches that lie inside a repeat and begin where another one does.

    If one sequence has more copies of a short unit than the other, only the first and the last of
    the matches between them say something.
    """
    query_starts, reference_starts, lengths = matches
    for row in range(size):
        is_alive[row] = True
        doubts[row] = 0
    for row in range(size - 1):
        if not is_alive[row]:
            continue
        one = begin + row
        end = query_starts[one] + lengths[one]
        other = one + 1
        while other < begin + size and query_starts[other] <= end:
            place = other - begin
            if is_alive[place]:
                overlap = NONE
                if reference_starts[one] == reference_starts[other]:
                    overlap = end - query_starts[other]
                elif query_starts[one] == query_starts[other]:
                    overlap = reference_starts[one] + lengths[one] - reference_starts[other]
                if overlap >= min(lengths[one], lengths[other]) // 2:
                    if lengths[other] < lengths[one]:
                        is_alive[place] = False
                    elif lengths[one] < lengths[other] or doubts[row] == 1:
                        is_alive[row] = False
                        break
                    else:
                        doubts[place] = 1
            other += 1


@inline_without_refcounts
def _join_close_matches(
    matches: Anchors,
    begin: int,
    alive: Int64Array,
    count: int,
    most_gap: int,
    diagonal_difference: int,
    diagonal_millionths: int,
    sets: Int64Array,
) -> None:
    """Give each match the number of its set, which is that of the set's first match."""
    query_starts, reference_starts, lengths = matches
    for place in range(count):
        sets[alive[place]] = alive[place]
    for place in range(count):
        row = alive[place]
        one = begin + row
        end = query_starts[one] + lengths[one]
        diagonal = query_starts[one] - reference_starts[one]
        for next_place in range(place + 1, count):
            other = begin + alive[next_place]
            gap = query_starts[other] - end
            if gap > most_gap:
                break
            difference = abs(query_starts[other] - reference_starts[other] - diagonal)
            if difference <= max(diagonal_difference, diagonal_millionths * gap // _MILLION):
                first, second = _set_of(sets, row), _set_of(sets, alive[next_place])
                if first < second:
                    sets[second] = first
                elif second < first:
                    sets[first] = second
    for place in range(count):
        sets[alive[place]] = _set_of(sets, alive[place])


@inline_without_refcounts
def _set_of(sets: Int64Array, row: int) -> int:
    """Return the first match of the set of a match, and shorten the way to it."""
    while sets[row] != row:
        sets[row] = sets[sets[row]]
        row = sets[row]
    return row


@inline_without_refcounts
def _list_sets(
    alive: Int64Array, count: int, sets: Int64Array, following: Int64Array, last_of_set: Int64Array
) -> None:
    """Write for each match which one of its set follows."""
    for place in range(count):
        row = alive[place]
        following[row] = NONE
        first = sets[row]
        if first != row:
            following[last_of_set[first]] = row
        last_of_set[first] = row
