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

from mummergpu.mapping.genomes.options import ClusterOptions
from mummergpu.runtime.jit import inline_without_refcounts, jit, jit_without_refcounts

Int64Array = npt.NDArray[np.int64]
Anchors = tuple[Int64Array, Int64Array, Int64Array]
"""Where matches begin in the query and in the reference, and their lengths."""

_MOST_PREDECESSORS: Final = 4096
"""The matches before another one that it may follow in a chain, counted back from it."""

MOST_BETWEEN: Final = 4000
"""The most bases of each sequence between two matches of a cluster: all cells of their matrix fit
into `whole_matrix.MOST_CELLS`."""

_NONE: Final = -1


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
    found = _chain_groups(
        group_offsets,
        matches,
        options.least_bases,
        options.most_gap,
        options.diagonal_difference,
        float(options.diagonal_factor),
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


@jit
def _chain_groups(
    group_offsets: Int64Array,
    matches: Anchors,
    least_bases: int,
    most_gap: int,
    diagonal_difference: int,
    diagonal_factor: float,
    clusters: tuple[Int64Array, Int64Array],
    anchors: Anchors,
) -> int:
    """Write the clusters of all groups, and return how many there are."""
    most = 0
    for group in range(group_offsets.size - 1):
        most = max(most, group_offsets[group + 1] - group_offsets[group])
    alive = np.empty(most, dtype=np.int64)
    sets = np.empty(most, dtype=np.int64)
    following = np.empty(most, dtype=np.int64)
    last_of_set = np.empty(most, dtype=np.int64)
    members = np.empty(most, dtype=np.int64)
    scores = np.empty(most, dtype=np.int64)
    highest = np.empty(most, dtype=np.int64)
    before = np.empty(most, dtype=np.int64)
    is_alive = np.empty(most, dtype=np.bool_)
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
                diagonal_factor,
                sets,
            )
            _list_sets(alive, left, sets, following, last_of_set)
            for place in range(left):
                first = alive[place]
                if sets[first] != first:
                    continue
                total, size_of_set = 0, 0
                row = first
                while row != _NONE:
                    members[size_of_set] = row
                    size_of_set += 1
                    total += matches[2][begin + row]
                    row = following[row]
                if total < least_bases:
                    for number in range(size_of_set):
                        is_alive[members[number]] = False
                    continue
                end = _best_chain(matches, begin, members, size_of_set, (scores, highest, before))
                count = _take_chain(
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
                overlap = _NONE
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
    diagonal_factor: float,
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
            if difference <= max(diagonal_difference, int(diagonal_factor * gap)):
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
        following[row] = _NONE
        first = sets[row]
        if first != row:
            following[last_of_set[first]] = row
        last_of_set[first] = row


@jit_without_refcounts
def _best_chain(
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
        score, source = length, _NONE
        other = number - 1
        # No chain before is better than the highest of them, and nothing is added but the length.
        while (
            other >= 0 and number - other <= _MOST_PREDECESSORS and highest[other] + length > score
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
def _take_chain(
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
    while number != _NONE:
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
    while number != _NONE:
        place -= 1
        row = begin + members[number]
        cut = 0
        if before[number] != _NONE:
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
