"""Links clusters to those that continue them: an alignment may go through several clusters.

The rule for which cluster may continue another one is that of nucmer. Whether it does is found
out: the alignment is extended towards it, and must not break before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.genomes.chains import Anchors
from mummergpu.mapping.genomes.clusters import Clusters
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.between import align_between
from mummergpu.viterbi.break_extension import longest_window, reach_before_break
from mummergpu.viterbi.model import CostTuple
from mummergpu.viterbi.operations import OperationArray
from mummergpu.viterbi.scratch import Scratch
from mummergpu.viterbi.whole_matrix import MatrixScratch

Int64Array = npt.NDArray[np.int64]
Bounds = tuple[Int64Array, Int64Array, Int64Array, Int64Array]
"""Where the query of each group begins and ends in the codes, and where the record does."""

TargetColumns = tuple[Int64Array, Int64Array, Int64Array, Int64Array, npt.NDArray[np.bool_]]
"""The fields of `Targets`."""

Sequences = tuple[CodeArray, CodeArray]
"""The codes of the queries and of the reference, with margins."""

TargetSearch = tuple[Sequences, CostTuple, int, int, Scratch, MatrixScratch, OperationArray]
"""What an extension to another cluster needs: the codes; `Costs.as_tuple()`; the bases of both
sequences that may lie between two extensions that meet; the bases of the query in which an
extension must get better; and memory to work in, with room for `break_operations` operations."""

MOST_DISTANCE: Final = 10_000
"""How far from a cluster, in bases of the reference, one that continues it may begin."""

NO_TARGET: Final = -1


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
    reached: npt.NDArray[np.bool_]

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
    """Find where some clusters may go on.

    Parameters
    ----------
    groups, offsets, anchors
        The clusters (`Clusters`); their positions are indexes of codes with margins.
    bounds : tuple of ndarray, dtype=int64
        Those of each group.
    search : tuple
        What an extension needs (`TargetSearch`).
    first, end : int
        The range of clusters.
    targets : tuple of ndarray
        Output: the fields of `Targets`.
    """
    query_starts, reference_starts, lengths = anchors
    target_clusters, target_anchors, cuts, distances, reached = targets
    costs, break_length = search[1], search[2]
    for cluster in range(first, end):
        last = offsets[cluster + 1] - 1
        query_end = query_starts[last] + lengths[last]
        reference_end = reference_starts[last] + lengths[last]
        group = groups[cluster]
        distance = min(bounds[1][group] - query_end, bounds[3][group] - reference_end)
        found, found_anchor, found_cut = NO_TARGET, 0, 0
        other = cluster + 1
        while other < groups.size and groups[other] == group:
            if reference_starts[offsets[other]] - reference_end > MOST_DISTANCE:
                break
            anchor, cut = _first_after(anchors, offsets, other, query_end, reference_end)
            if anchor != NO_TARGET:
                gap = query_starts[anchor] + cut - query_end
                other_gap = reference_starts[anchor] + cut - reference_end
                longer, shorter = max(gap, other_gap), min(gap, other_gap)
                pays = shorter * costs[0] >= (longer - shorter) * costs[4]
                if longer < break_length or pays or 2 * longer - shorter < distance:
                    found, found_anchor, found_cut = other, anchor, cut
                    distance = 2 * longer - shorter
                if longer < break_length or pays:
                    break
            other += 1
        target_clusters[cluster] = found
        if found == NO_TARGET:
            continue
        target_anchors[cluster], cuts[cluster] = found_anchor, found_cut
        distances[cluster] = distance
        begin = query_starts[found_anchor] + found_cut, reference_starts[found_anchor] + found_cut
        reached[cluster] = _is_reached((query_end, reference_end), begin, search)


@inline_without_refcounts
def _is_reached(end: tuple[int, int], begin: tuple[int, int], search: TargetSearch) -> bool:
    """Return whether an alignment goes from the end of a cluster to the begin of another one.

    It does so if extensions from both meet or leave no more than a break between them, and if what
    they leave costs no more than a break of matches scores. Extensions that break try again with
    the longest window: unlike others, they know where to go.
    """
    sequences, costs, break_length, window, scratch, matrix, operations = search
    query_at, reference_at = end
    gap, other_gap = begin[0] - end[0], begin[1] - end[1]
    for turn in range(4):
        if turn > 0 and gap + other_gap <= break_length:
            break
        back = turn & 1
        used, reference_used = reach_before_break(
            sequences[0],
            query_at + back * (gap - 1),
            gap,
            sequences[1],
            reference_at + back * (other_gap - 1),
            other_gap,
            1 - 2 * back,
            costs,
            window if turn < 2 else longest_window(window),
            scratch,
        )
        gap -= used
        other_gap -= reference_used
        query_at += used * (1 - back)
        reference_at += reference_used * (1 - back)
    if gap + other_gap > break_length:
        return False
    score, _ = align_between(
        sequences[0],
        query_at,
        gap,
        sequences[1],
        reference_at,
        other_gap,
        costs,
        scratch,
        matrix,
        operations,
        0,
    )
    return score >= -costs[0] * break_length


@inline_without_refcounts
def _first_after(
    anchors: Anchors, offsets: Int64Array, cluster: int, query_end: int, reference_end: int
) -> tuple[int, int]:
    """Return the first anchor of a cluster that ends after an end in both sequences.

    The bases before the end are cut off: how many is returned, too. Both alignments of them match,
    so it costs nothing where the one stops and the other begins.
    """
    query_starts, reference_starts, lengths = anchors
    anchor = offsets[cluster + 1] - 1
    before = max(query_end - query_starts[anchor], reference_end - reference_starts[anchor])
    if before >= lengths[anchor]:
        return NO_TARGET, 0
    anchor = offsets[cluster]
    while True:
        before = max(query_end - query_starts[anchor], reference_end - reference_starts[anchor])
        if before < lengths[anchor]:
            return anchor, max(before, 0)
        anchor += 1


def link_clusters(
    clusters: Clusters, bounds: Bounds, targets: Targets, break_length: int
) -> LinkedAnchors:
    """Join clusters to alignments.

    Parameters
    ----------
    clusters : Clusters
        The clusters.
    bounds : tuple of ndarray, dtype=int64
        Those of each group.
    targets : Targets
        Where each cluster may go on. If several clusters reach one, the nearest of them is
        continued by it, and of equally near ones the first.
    break_length : int
        As in `find_targets`.

    Returns
    -------
    LinkedAnchors
        The anchors of all alignments, in the order of their first clusters. An alignment extends up
        to a cluster near its diagonal that it might have gone on with, but not into it.
    """
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
) -> npt.NDArray[np.bool_]:
    """Return whether the diagonals of clusters' ends and of anchors are so close.

    An extension on one of them might otherwise follow the other alignment all along.
    """
    last = clusters.offsets[sources + 1] - 1
    diagonals = clusters.query_starts - clusters.reference_starts
    close: npt.NDArray[np.bool_] = np.abs(diagonals[last] - diagonals[anchors]) <= break_length
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
    """Write the anchors of each alignment, its first and its last cluster; return their number.

    Parameters
    ----------
    cluster_offsets : ndarray, dtype=int64
        Where the anchors of each cluster begin.
    targets : tuple of ndarray
        The fields of `Targets`.
    sources : ndarray, dtype=int64, shape=(n_clusters,)
        Receives the cluster that each one continues; `NO_TARGET` before.
    near : ndarray, dtype=int64, shape=(n_clusters,)
        Receives the nearest cluster with it as a target if it continues none; `NO_TARGET` before.
    anchors : tuple of ndarray, dtype=int64, shape=(n_anchors,)
        Output: the anchors, and how many of the first bases of each are cut off.
    heads, tails, offsets : ndarray, dtype=int64
        Output: the first and the last cluster of each alignment; where its anchors begin.

    Returns
    -------
    int
        The number of alignments.
    """
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
