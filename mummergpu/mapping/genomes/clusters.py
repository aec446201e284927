"""Clusters of matches: colinear matches of one query and one record that lie close together.

The rule is that of MUMmer's mgaps. Matches are joined if few bases of the query lie between them
and their diagonals differ little; of all that are joined in this way, the chain of matches with the
best score is a cluster: the sum of their lengths, less their overlaps and the differences of their
diagonals. What is left over is joined and chained again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np

from mummergpu.mapping.genomes.anchors import Anchors, list_count
from mummergpu.mapping.genomes.chains import SetRoom, chain_sets
from mummergpu.mapping.genomes.joining import (
    JoinRule,
    join_groups,
    join_rule,
    list_sets,
    measure_sets,
)
from mummergpu.mapping.genomes.options import ClusterOptions
from mummergpu.runtime.arrays import Int64Array

MapFunction = Callable[..., Iterable[Any]]

_MATCHES_OF_TASK: Final = 1 << 14
"""What a thread does at a time: small groups and sets together, a large one alone."""


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


@dataclass(frozen=True)
class _Sets:
    """Sets of matches that are joined, in the order of their first matches.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_sets + 1,)
        Where the matches of each set begin.
    rows : ndarray, dtype=int64
        The matches, those of a set ascending.
    """

    offsets: Int64Array
    rows: Int64Array


def find_clusters(
    group_offsets: Int64Array,
    matches: Anchors,
    options: ClusterOptions,
    map_function: MapFunction = map,
) -> Clusters:
    """Return the clusters of groups of matches.

    Joining takes time in proportion to the matches, and for each match to those of the ranges of
    diagonals beside its own that begin in its last bases and are not joined with it. Chaining takes
    a step for each match of a set, and each that it may follow (`chains.MOST_PREDECESSORS` at
    most), and does that again with what a chain leaves of its set.
    """
    # No gap is longer than the last match is far from the first base.
    most_gap = min(options.most_gap, int(matches[0].max(initial=0)))
    rule = join_rule(most_gap, options.diagonal_difference, options.diagonal_factor)
    least_bases = options.least_bases

    def join(groups: tuple[int, int]) -> _Sets:
        return _join_groups(group_offsets, groups, matches, rule, least_bases)

    joined = list(map_function(join, _tasks(group_offsets)))
    set_sizes = [np.diff(part.offsets) for part in joined]
    offsets = np.cumsum(np.concatenate(([0], *set_sizes)), dtype=np.int64)
    rows = np.concatenate([np.empty(0, dtype=np.int64), *(part.rows for part in joined)])
    del joined
    heads, counts, *columns = (np.empty(rows.size, dtype=np.int64) for _ in range(5))
    anchors = columns[0], columns[1], columns[2]

    def chain(sets: tuple[int, int]) -> tuple[Int64Array, Int64Array, Int64Array]:
        begin, end = offsets[sets[0]], offsets[sets[1]]
        room = _new_room(int(np.diff(offsets[sets[0] : sets[1] + 1]).max()))
        clusters = heads[begin:end], counts[begin:end]
        found = chain_sets(
            (offsets, rows), *sets, matches, rule, least_bases, room, clusters, anchors
        )
        first_rows, sizes = clusters[0][:found], clusters[1][:found]
        return first_rows, begin + np.cumsum(sizes) - sizes, sizes

    none = np.empty(0, dtype=np.int64)
    parts = [(none, none, none), *map_function(chain, _tasks(offsets))]
    first_rows, begins, sizes = (np.concatenate(part) for part in zip(*parts, strict=True))
    groups = np.searchsorted(group_offsets, first_rows, side="right") - 1
    query_starts, reference_starts, lengths = anchors
    order = np.lexsort((query_starts[begins], reference_starts[begins], groups))
    anchor_counts = sizes[order]
    new_offsets = np.concatenate(([0], np.cumsum(anchor_counts)))
    shifts = np.repeat(begins[order] - new_offsets[:-1], anchor_counts)
    chosen = shifts + np.arange(new_offsets[-1])
    return Clusters(
        groups[order], new_offsets, query_starts[chosen], reference_starts[chosen], lengths[chosen]
    )


def _tasks(offsets: Int64Array) -> list[tuple[int, int]]:
    """Return ranges of groups or sets, for a thread each."""
    steps = np.arange(0, offsets[-1], _MATCHES_OF_TASK)
    bounds = np.unique(np.append(np.searchsorted(offsets, steps), offsets.size - 1))
    return list(pairwise(bounds.tolist()))


def _join_groups(
    group_offsets: Int64Array,
    groups: tuple[int, int],
    matches: Anchors,
    rule: JoinRule,
    least_bases: int,
) -> _Sets:
    """Return the sets of some groups that have enough bases."""
    sizes = np.diff(group_offsets[groups[0] : groups[1] + 1])
    count = int(sizes.sum())
    following, rows, sets = (np.empty(count, dtype=np.int64) for _ in range(3))
    lists = np.empty(list_count(int(sizes.max(initial=0))), dtype=np.int64)
    room = np.empty(count, dtype=np.uint8), following, lists
    left = join_groups(group_offsets, *groups, matches, rule, room, rows, sets)
    set_sizes = np.empty(left, dtype=np.int64)
    kept = measure_sets(matches[2], rows, 0, left, sets, least_bases, following, set_sizes)
    members, offsets = np.empty(kept, dtype=np.int64), np.empty(kept + 1, dtype=np.int64)
    set_count = list_sets(rows, 0, left, sets, set_sizes, members, offsets, 0)
    offsets[set_count] = kept
    return _Sets(offsets[: set_count + 1].copy(), members)


def _new_room(most: int) -> SetRoom:
    """Return memory for sets of so many matches."""
    numbers = [np.empty(most, dtype=np.int64) for _ in range(11)]
    lists = np.empty(list_count(most), dtype=np.int64)
    return (
        (numbers[0], numbers[1], numbers[2]),
        (numbers[3], numbers[4], numbers[5], numbers[6]),
        (numbers[7], numbers[8], lists),
        (numbers[9], numbers[10]),
    )
