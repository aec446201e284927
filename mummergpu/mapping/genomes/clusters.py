"""Clusters of matches: colinear matches of one query and one record that lie close together.

The rule is that of MUMmer's mgaps. Matches are joined if few bases of the query lie between them
and their diagonals differ little; of all that are joined in this way, the chain of matches with the
best score is a cluster: the sum of their lengths, less their overlaps and the differences of their
diagonals. The remaining matches are joined and chained again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.mapping.genomes.clustering import (
    ClusterRule,
    JoinRoom,
    cluster_rule,
    join_close_matches,
    join_groups,
    list_count,
    list_sets,
    measure_sets,
)
from mummergpu.mapping.genomes.columns import NONE, Anchors
from mummergpu.mapping.genomes.options import ClusterOptions
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit

MapFunction = Callable[..., Iterable[Any]]

_MATCHES_OF_TASK: Final = 1 << 14
"""The matches of a task: small groups and sets together, a large one alone."""


MAX_PREDECESSORS: Final = 4096
"""The matches before another one that it may follow in a chain, counted back from it."""

MAX_BETWEEN: Final = 4000
"""The most bases of each sequence between two matches of a cluster: all cells of their matrix fit
into `whole_matrix.MOST_CELLS`."""


class Clusters(NamedTuple):
    """Clusters of the matches on one strand."""

    groups: Int64Array  # The number of the group of matches that each cluster is from.
    # Where the anchors of each cluster begin, and where the last ones end; (n_clusters + 1,).
    offsets: Int64Array
    anchors: Anchors  # Matches, without the bases that overlap the anchor before.


class MatchSets(NamedTuple):
    """Sets of matches that are joined, in the order of their first matches."""

    offsets: Int64Array  # Where the matches of each set begin; (n_sets + 1,).
    rows: Int64Array  # The matches, those of a set ascending.


class FoundClusters(NamedTuple):
    """The first match of each cluster, and how many anchors it has."""

    first_rows: Int64Array
    sizes: Int64Array


class ChainColumns(NamedTuple):
    """Chains of the matches of a set."""

    # The score of the best chain that each match ends, and the match before it in that, or -1.
    scores: Int64Array
    # The highest score up to each match, and how far in the query the matches up to it reach.
    highest: Int64Array
    before: Int64Array
    furthest: Int64Array


class SetRoom(NamedTuple):
    """Memory for the matches of a set."""

    # The matches of the sets that are left of it, the output of `list_sets`, and where these begin.
    rows: Int64Array
    listed: Int64Array
    starts: Int64Array
    chains: ChainColumns  # The chains of one of them.
    join: JoinRoom  # The memory of joining.
    # The memory of `measure_sets`.
    bases: Int64Array
    sizes: Int64Array


def find_clusters(
    group_offsets: Int64Array,
    matches: Anchors,
    options: ClusterOptions,
    map_function: MapFunction = map,
) -> Clusters:
    """Return the clusters of groups of matches: those of a query with a record of the reference.

    In a group, matches ascend by their start in the query, then by that in the reference. The
    clusters of a group ascend by their start in the reference, then in the query.

    Joining takes time in proportion to the matches, and for each match to those of the ranges of
    diagonals next to its own that begin in its last bases and are not joined with it. Chaining
    takes a step for each match of a set, and each that it may follow (`MAX_PREDECESSORS` at most),
    and is repeated with the matches that a chain leaves of its set.
    """
    # No gap is longer than the last match is far from the first base.
    max_gap = min(options.max_gap, int(matches.query_starts.max(initial=0)))
    rule = cluster_rule(
        max_gap, options.diagonal_difference, options.diagonal_factor, options.min_bases
    )

    def join(groups: tuple[int, int]) -> MatchSets:
        return _join_groups(group_offsets, groups, matches, rule)

    joined = list(map_function(join, _tasks(group_offsets)))
    set_sizes = [np.diff(part.offsets) for part in joined]
    offsets = np.cumsum(np.concatenate(([0], *set_sizes)), dtype=np.int64)
    rows = np.concatenate([np.empty(0, dtype=np.int64), *(part.rows for part in joined)])
    del joined
    heads, counts, *columns = (np.empty(rows.size, dtype=np.int64) for _ in range(5))
    anchors = Anchors(columns[0], columns[1], columns[2])

    def chain(sets: tuple[int, int]) -> tuple[Int64Array, Int64Array, Int64Array]:
        begin, end = offsets[sets[0]], offsets[sets[1]]
        room = _new_room(int(np.diff(offsets[sets[0] : sets[1] + 1]).max()))
        found = FoundClusters(heads[begin:end], counts[begin:end])
        count = chain_sets(MatchSets(offsets, rows), *sets, matches, rule, room, found, anchors)
        first_rows, sizes = found.first_rows[:count], found.sizes[:count]
        return first_rows, begin + np.cumsum(sizes) - sizes, sizes

    none = np.empty(0, dtype=np.int64)
    parts = [(none, none, none), *map_function(chain, _tasks(offsets))]
    first_rows, begins, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    groups = np.searchsorted(group_offsets, first_rows, side="right") - 1
    order = np.lexsort((anchors.query_starts[begins], anchors.reference_starts[begins], groups))
    anchor_counts = sizes[order]
    new_offsets = np.concatenate(([0], np.cumsum(anchor_counts)))
    shifts = np.repeat(begins[order] - new_offsets[:-1], anchor_counts)
    chosen = shifts + np.arange(new_offsets[-1])
    kept = Anchors(
        anchors.query_starts[chosen], anchors.reference_starts[chosen], anchors.lengths[chosen]
    )
    return Clusters(groups[order], new_offsets, kept)


def _tasks(offsets: Int64Array) -> list[tuple[int, int]]:
    """Return ranges of groups or sets, for a thread each."""
    steps = np.arange(0, offsets[-1], _MATCHES_OF_TASK)
    bounds = np.unique(np.append(np.searchsorted(offsets, steps), offsets.size - 1))
    return list(pairwise(bounds.tolist()))


def _join_groups(
    group_offsets: Int64Array, groups: tuple[int, int], matches: Anchors, rule: ClusterRule
) -> MatchSets:
    """Return the sets of some groups that have enough bases."""
    sizes = np.diff(group_offsets[groups[0] : groups[1] + 1])
    count = int(sizes.sum())
    rows, known = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.uint8)
    room = _new_join_room(count, int(sizes.max(initial=0)))
    left = join_groups(group_offsets, *groups, matches, rule, known, room, rows)
    set_sizes, sets = np.empty(left, dtype=np.int64), room.sets
    kept = measure_sets(
        matches.lengths, rows, 0, left, sets, rule.min_bases, room.following, set_sizes
    )
    members, offsets = np.empty(kept, dtype=np.int64), np.empty(kept + 1, dtype=np.int64)
    set_count = list_sets(rows, 0, left, sets, set_sizes, members, offsets, 0)
    offsets[set_count] = kept
    return MatchSets(offsets[: set_count + 1].copy(), members)


def _new_join_room(count: int, largest: int) -> JoinRoom:
    """Return memory to join `count` matches; the largest group or set has `largest`."""
    lists = np.empty(list_count(largest), dtype=np.int64)
    return JoinRoom(np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), lists)


def _new_room(most: int) -> SetRoom:
    """Return memory for sets of `most` matches."""
    numbers = [np.empty(most, dtype=np.int64) for _ in range(9)]
    chains = ChainColumns(numbers[3], numbers[4], numbers[5], numbers[6])
    join = _new_join_room(most, most)
    return SetRoom(numbers[0], numbers[1], numbers[2], chains, join, numbers[7], numbers[8])


@jit
def chain_sets(
    sets: MatchSets,
    first: int,
    end: int,
    matches: Anchors,
    rule: ClusterRule,
    room: SetRoom,
    found: FoundClusters,
    anchors: Anchors,
) -> int:
    """Take the clusters out of a range of sets; return how many there are.

    The chain with the best score is a cluster, if it has enough bases. The rest of the set is
    joined again, and each set of that is chained again. The anchors are written one after the other
    from where the matches of the first set begin.
    """
    offsets, min_bases = sets.offsets, rule.min_bases
    rows, starts, sizes, joined = room.rows, room.starts, room.sizes, room.join.sets
    count, place = 0, offsets[first]
    for number in range(first, end):
        filled = offsets[number + 1] - offsets[number]
        for member in range(filled):
            rows[member] = sets.rows[offsets[number] + member]
        starts[0], left = 0, 1
        # The sets that are left follow each other in `rows`; the last one is next.
        while left > 0:
            left -= 1
            begin = starts[left]
            last = _best_chain(matches, rows, begin, filled, room.chains)
            size = _take_chain(matches, room, last, min_bases, found, count, anchors, place)
            place += size
            count += size > 0
            filled = _compact(rows, begin, filled)
            join_close_matches(matches, rows, begin, filled, rule, room.join)
            kept = measure_sets(
                matches.lengths, rows, begin, filled, joined, min_bases, room.bases, sizes
            )
            left = list_sets(rows, begin, filled, joined, sizes, room.listed, starts, left)
            filled = begin + kept
            for member in range(begin, filled):
                rows[member] = room.listed[member]
    return count


@inline
def _best_chain(
    matches: Anchors, rows: Int64Array, begin: int, end: int, chains: ChainColumns
) -> int:
    """Chain the matches of a set; return the last one of the best chain, as an index of `rows`."""
    query_starts, reference_starts = matches.query_starts, matches.reference_starts
    lengths = matches.lengths
    scores, highest = chains.scores, chains.highest
    before, furthest = chains.before, chains.furthest
    best = begin
    for number in range(begin, end):
        row = rows[number]
        length = lengths[row]
        query_start, reference_start = query_starts[row], reference_starts[row]
        score, source = length, NONE
        other = number - 1
        # No chain before is better than the highest of them, and only the length is added; none is
        # near enough if the one that reaches furthest is not.
        while (
            other >= begin
            and number - other <= MAX_PREDECESSORS
            and highest[other] + length > score
            and query_start - furthest[other] <= MAX_BETWEEN
        ):
            earlier = rows[other]
            gap = query_start - query_starts[earlier] - lengths[earlier]
            other_gap = reference_start - reference_starts[earlier] - lengths[earlier]
            overlap = max(0, -gap, -other_gap)
            bent = abs(
                (query_start - reference_start)
                - (query_starts[earlier] - reference_starts[earlier])
            )
            if overlap < length and max(gap, other_gap) <= MAX_BETWEEN - overlap:
                chained = scores[other] + length - overlap - bent
                if chained > score:
                    score, source = chained, other
            other -= 1
        scores[number] = score
        before[number] = source
        highest[number], furthest[number] = score, query_start + length
        if number > begin:
            highest[number] = max(score, highest[number - 1])
            furthest[number] = max(query_start + length, furthest[number - 1])
        if score > scores[best]:
            best = number
    return best


@inline
def _take_chain(
    matches: Anchors,
    room: SetRoom,
    last: int,
    min_bases: int,
    found: FoundClusters,
    count: int,
    anchors: Anchors,
    begin: int,
) -> int:
    """Write a chain if it has enough bases, and take it out of its set; return how many anchors.

    `room.rows` has -1 where the chain's matches were.
    """
    query_starts, reference_starts = matches.query_starts, matches.reference_starts
    lengths, rows, before = matches.lengths, room.rows, room.chains.before
    total, size = 0, 0
    number = last
    while number != NONE:
        total += lengths[rows[number]]
        size += 1
        number = before[number]
    if total < min_bases:
        size = 0
    # The chain is known from its end, so its anchors are written backwards.
    place = begin + size
    number = last
    while number != NONE:
        row = rows[number]
        rows[number] = NONE
        number = before[number]
        if size == 0:
            continue
        cut = 0
        if number != NONE:
            earlier = rows[number]
            cut = max(
                0,
                query_starts[earlier] + lengths[earlier] - query_starts[row],
                reference_starts[earlier] + lengths[earlier] - reference_starts[row],
            )
        else:
            found.first_rows[count], found.sizes[count] = row, size
        place -= 1
        anchors.query_starts[place] = query_starts[row] + cut
        anchors.reference_starts[place] = reference_starts[row] + cut
        anchors.lengths[place] = lengths[row] - cut
    return size


@inline
def _compact(rows: Int64Array, begin: int, end: int) -> int:
    """Move the remaining matches of a range together; return where they end."""
    filled = begin
    for number in range(begin, end):
        if rows[number] != NONE:
            rows[filled] = rows[number]
            filled += 1
    return filled
