"""Links clusters to those that continue them: an alignment may go through several clusters.

The rule for which cluster may continue another one is that of nucmer. Whether it does is found
out: the alignment is extended towards it, and must not break before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.mapping.genomes.anchors import Anchors
from mummergpu.mapping.genomes.clusters import Clusters
from mummergpu.mapping.genomes.reaching import NO_TARGET, TargetSearch, first_after, is_reached
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray

Bounds = tuple[Int64Array, Int64Array, Int64Array, Int64Array]
"""Where the query of each group begins and ends in the codes, and where the record does."""

TargetColumns = tuple[Int64Array, Int64Array, Int64Array, Int64Array, BoolArray]
"""The fields of `Targets`."""

Sequences = tuple[CodeArray, CodeArray]
"""The codes of the queries and of the reference, with margins."""

MOST_DISTANCE: Final = 10_000
"""How far from a cluster, in bases of the reference, one that continues it may begin."""

FAR_DISTANCE: Final = 100_000
"""The same for one that lies near the diagonal on which the cluster ends."""


def break_operations(break_length: int) -> int:
    """Return how many operations there may be between two extensions that meet."""
    return break_length + 3


@dataclass(frozen=True)
class Targets:
    """Where each cluster may go on.

    Attributes
    ----------
    clusters : ndarray, dtype=int64, shape=(n_clusters,)
        The cluster that may continue it, `NO_TARGET` for none.
    anchors : ndarray, dtype=int64, shape=(n_clusters,)
        The first anchor of that cluster which ends after this one ends.
    cuts : ndarray, dtype=int64, shape=(n_clusters,)
        How many of its first bases are cut off, because this cluster has them.
    distances : ndarray, dtype=int64, shape=(n_clusters,)
        How far away it is: twice the longer gap less the shorter one.
    reached : ndarray, dtype=bool, shape=(n_clusters,)
        Whether an extension gets there before it breaks.
    """

    clusters: Int64Array
    anchors: Int64Array
    cuts: Int64Array
    distances: Int64Array
    reached: BoolArray

    @classmethod
    def of_count(cls, count: int) -> Targets:
        """Return targets of so many clusters, to be found."""
        clusters = np.full(count, NO_TARGET, dtype=np.int64)
        anchors, cuts, distances = (np.zeros(count, dtype=np.int64) for _ in range(3))
        return cls(clusters, anchors, cuts, distances, np.zeros(count, dtype=np.bool_))

    @property
    def columns(self) -> TargetColumns:
        """The fields as compiled functions take them."""
        return self.clusters, self.anchors, self.cuts, self.distances, self.reached


@dataclass(frozen=True)
class LinkedAnchors:
    """The anchors of alignments that go through one cluster or more.

    Attributes
    ----------
    groups : ndarray, dtype=int64, shape=(n_alignments,)
        The group of each alignment.
    offsets : ndarray, dtype=int64, shape=(n_alignments + 1,)
        Where the anchors of each alignment begin.
    anchors : tuple of ndarray, dtype=int64, shape=(n_anchors,)
        Where the anchors begin in the query and in the reference, and their lengths.
    bounds : tuple of ndarray, dtype=int64, shape=(n_alignments,)
        How far each alignment may extend: its first base in the query, the one after its last, and
        the same in the reference.
    """

    groups: Int64Array
    offsets: Int64Array
    anchors: Anchors
    bounds: Bounds

    @property
    def count(self) -> int:
        """The number of alignments."""
        return self.groups.size


@jit_without_refcounts
def find_targets(
    groups: Int64Array,
    offsets: Int64Array,
    anchors: Anchors,
    bounds: Bounds,
    search: TargetSearch,
    first: int,
    end: int,
    targets: TargetColumns,
) -> None:
    """Find where some clusters may go on."""
    query_starts, reference_starts, lengths = anchors
    target_clusters, target_anchors, cuts, distances, reached = targets
    for cluster in range(first, end):
        last = offsets[cluster + 1] - 1
        ends = query_starts[last] + lengths[last], reference_starts[last] + lengths[last]
        found = NO_TARGET
        for is_far in range(2):
            if is_far:
                other, anchor, cut = _next_on_diagonal(
                    groups, offsets, anchors, cluster, ends, search[2]
                )
                if other == NO_TARGET or other == found:
                    break
                found = other
            else:
                found, anchor, cut = _next_close(groups, offsets, anchors, bounds, cluster, search)
                if found == NO_TARGET:
                    continue
            begin = query_starts[anchor] + cut, reference_starts[anchor] + cut
            gap, other_gap = begin[0] - ends[0], begin[1] - ends[1]
            target_clusters[cluster] = found
            target_anchors[cluster], cuts[cluster] = anchor, cut
            distances[cluster] = 2 * max(gap, other_gap) - min(gap, other_gap)
            reached[cluster] = is_reached(ends, begin, search)
            if reached[cluster]:
                break


@inline_without_refcounts
def _next_close(
    groups: Int64Array,
    offsets: Int64Array,
    anchors: Anchors,
    bounds: Bounds,
    cluster: int,
    search: TargetSearch,
) -> tuple[int, int, int]:
    """Return the cluster that may continue one by nucmer's rule, its anchor, and what is cut off.

    It is the first one that lies near, or on a diagonal that is near enough for the gap between
    them; or else the nearest one, if that is nearer than the ends of the sequences.
    """
    query_starts, reference_starts, lengths = anchors
    costs, break_length = search[1], search[2]
    last, group = offsets[cluster + 1] - 1, groups[cluster]
    query_end = query_starts[last] + lengths[last]
    reference_end = reference_starts[last] + lengths[last]
    distance = min(bounds[1][group] - query_end, bounds[3][group] - reference_end)
    found, found_anchor, found_cut = NO_TARGET, 0, 0
    other = cluster + 1
    while other < groups.size and groups[other] == group:
        if reference_starts[offsets[other]] - reference_end > MOST_DISTANCE:
            break
        anchor, cut = first_after(anchors, offsets, other, query_end, reference_end)
        if anchor != NO_TARGET:
            gap = query_starts[anchor] + cut - query_end
            other_gap = reference_starts[anchor] + cut - reference_end
            longer, shorter = max(gap, other_gap), min(gap, other_gap)
            pays = shorter * costs.match >= (longer - shorter) * costs.insertion_extend
            if longer < break_length or pays or 2 * longer - shorter < distance:
                found, found_anchor, found_cut = other, anchor, cut
                distance = 2 * longer - shorter
            if longer < break_length or pays:
                break
        other += 1
    return found, found_anchor, found_cut


@inline_without_refcounts
def _next_on_diagonal(
    groups: Int64Array,
    offsets: Int64Array,
    anchors: Anchors,
    cluster: int,
    ends: tuple[int, int],
    break_length: int,
) -> tuple[int, int, int]:
    """Return the next cluster near the diagonal on which one ends, its anchor, and what is cut off.

    An extension that gets so far would follow the alignment of that cluster all along.
    """
    query_starts, reference_starts, _ = anchors
    diagonal = ends[0] - ends[1]
    other = cluster + 1
    while other < groups.size and groups[other] == groups[cluster]:
        if reference_starts[offsets[other]] - ends[1] > FAR_DISTANCE:
            break
        anchor, cut = first_after(anchors, offsets, other, ends[0], ends[1])
        if anchor != NO_TARGET:
            if abs(query_starts[anchor] - reference_starts[anchor] - diagonal) <= break_length:
                return other, anchor, cut
        other += 1
    return NO_TARGET, 0, 0


def link_clusters(
    clusters: Clusters, bounds: Bounds, targets: Targets, break_length: int
) -> LinkedAnchors:
    """Join clusters to alignments."""
    count = clusters.count
    sources = np.full(count, NO_TARGET, dtype=np.int64)
    anchor_count = clusters.lengths.size
    rows = np.empty(anchor_count, dtype=np.int64)
    heads, tails = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    near = np.full(count, NO_TARGET, dtype=np.int64)
    cuts = np.zeros(anchor_count, dtype=np.int64)
    found = _follow_links(
        clusters.offsets, targets.columns, sources, near, (rows, cuts), heads, tails, offsets
    )
    heads, tails, offsets = heads[:found], tails[:found], offsets[: found + 1]
    rows, cuts = rows[: offsets[-1]], cuts[: offsets[-1]]
    groups = clusters.groups[heads]
    query_starts, reference_starts, lengths = clusters.anchors
    own_bounds = bounds[0][groups], bounds[1][groups], bounds[2][groups], bounds[3][groups]
    _bound_by_targets(clusters, targets, tails, break_length, own_bounds)
    _bound_by_sources(clusters, near[heads], heads, break_length, own_bounds)
    anchors = query_starts[rows] + cuts, reference_starts[rows] + cuts, lengths[rows] - cuts
    return LinkedAnchors(groups, offsets, anchors, own_bounds)


def _bound_by_targets(
    clusters: Clusters, targets: Targets, tails: Int64Array, break_length: int, bounds: Bounds
) -> None:
    """Let alignments end before the cluster that they might have gone on with."""
    rows = np.flatnonzero(targets.clusters[tails] != NO_TARGET)
    rows = rows[_are_close(clusters, tails[rows], targets.anchors[tails[rows]], break_length)]
    anchors, cuts = targets.anchors[tails[rows]], targets.cuts[tails[rows]]
    bounds[1][rows] = clusters.query_starts[anchors] + cuts
    bounds[3][rows] = clusters.reference_starts[anchors] + cuts


def _bound_by_sources(
    clusters: Clusters, sources: Int64Array, heads: Int64Array, break_length: int, bounds: Bounds
) -> None:
    """Let alignments begin after the cluster that might have gone on with them."""
    rows = np.flatnonzero(sources != NO_TARGET)
    anchors = clusters.offsets[heads[rows]]
    rows = rows[_are_close(clusters, sources[rows], anchors, break_length)]
    last = clusters.offsets[sources[rows] + 1] - 1
    lengths = clusters.lengths[last]
    bounds[0][rows] = clusters.query_starts[last] + lengths
    bounds[2][rows] = clusters.reference_starts[last] + lengths


def _are_close(
    clusters: Clusters, sources: Int64Array, anchors: Int64Array, break_length: int
) -> BoolArray:
    """Return whether the diagonals of clusters' ends and of anchors are so close.

    An extension on one of them might otherwise follow the other alignment all along.
    """
    last = clusters.offsets[sources + 1] - 1
    diagonals = clusters.query_starts - clusters.reference_starts
    close: BoolArray = np.abs(diagonals[last] - diagonals[anchors]) <= break_length
    return close


@jit_without_refcounts
def _follow_links(
    cluster_offsets: Int64Array,
    targets: TargetColumns,
    sources: Int64Array,
    near: Int64Array,
    anchors: tuple[Int64Array, Int64Array],
    heads: Int64Array,
    tails: Int64Array,
    offsets: Int64Array,
) -> int:
    """Write the anchors of each alignment, its first and its last cluster; return their number."""
    target_clusters, target_anchors, target_cuts, distances, reached = targets
    rows, cuts = anchors
    for cluster in range(sources.size):
        target = target_clusters[cluster]
        if target == NO_TARGET:
            continue
        other = near[target]
        # An anchor behind the first one has been passed by: nothing ends there.
        if target_anchors[cluster] == cluster_offsets[target]:
            if other == NO_TARGET or distances[cluster] < distances[other]:
                near[target] = cluster
        source = sources[target]
        if reached[cluster]:
            if source == NO_TARGET or distances[cluster] < distances[source]:
                sources[target] = cluster
    count, filled = 0, 0
    for head in range(sources.size):
        if sources[head] != NO_TARGET:
            continue
        heads[count] = head
        cluster = head
        first, cut = cluster_offsets[cluster], 0
        while True:
            for row in range(first, cluster_offsets[cluster + 1]):
                rows[filled], cuts[filled] = row, cut
                filled, cut = filled + 1, 0
            target = target_clusters[cluster]
            if target == NO_TARGET or sources[target] != cluster:
                break
            first, cut = target_anchors[cluster], target_cuts[cluster]
            cluster = target
        tails[count] = cluster
        count += 1
        offsets[count] = filled
    return count
