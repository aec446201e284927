"""Links clusters to those that continue them: an alignment may go through several clusters.

The rule for which cluster may continue another one is that of nucmer. Whether it does is found
out: the alignment is extended towards it, and must not break before (`is_reached`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.genomes.clusters import Clusters
from mummergpu.mapping.genomes.columns import Anchors, Bounds, Sequences
from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import OperationArray
from mummergpu.viterbi.recurrence.tile import tile_at
from mummergpu.viterbi.tiles.band import Scratch
from mummergpu.viterbi.tiles.drop_extension import longest_window, reach_before_drop
from mummergpu.viterbi.tiles.gap_fill import fill_gap
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch


class Extender(NamedTuple):
    """The inputs of extending alignments: the sequences, the scores, and memory of one thread."""

    sequences: Sequences
    costs: Costs
    break_length: int  # The bases of both sequences that may lie between two extensions that meet.
    window: int  # The bases of the query in which an extension must get better; 0 for no extension.
    scratch: Scratch
    matrix: MatrixScratch
    operations: OperationArray  # Memory for the operations of a part.


FAR_OPERATIONS: Final = 1 << 18
"""The most operations of the part of a tile that is found from its far corner; more than a break
has."""

_GAIN_OF_LONG_WINDOWS: Final = 3
"""A long window must score at least one part in this many of a window without differences."""

NO_TARGET: Final = -1
"""The value of a cluster or an anchor if there is none."""


@inline
def is_reached(end: tuple[int, int], begin: tuple[int, int], extender: Extender) -> bool:
    """Return whether an alignment goes from the end of a cluster to the beginning of another one.

    It does so if extensions from both meet or leave no more than a break between them, and if the
    rest costs no more than a break of matches scores. Extensions that break try again with the
    longest window: unlike others, they have a known target. The region that they cross must be
    worth it: long gaps between similar bases are, a long dissimilar stretch is not, and nucmer
    leaves it out.
    """
    query, reference = extender.sequences.query, extender.sequences.reference
    costs, window, scratch = extender.costs, extender.window, extender.scratch
    break_length = extender.break_length
    query_at, reference_at = end
    gap, other_gap = begin[0] - end[0], begin[1] - end[1]
    for turn in range(4):
        if turn > 0 and gap + other_gap <= break_length:
            break
        # Odd turns extend backwards from the begin; those from 2 on try with the longest window.
        back = turn & 1
        tile = tile_at(
            query_at + back * (gap - 1),
            gap,
            reference_at + back * (other_gap - 1),
            other_gap,
            1 - 2 * back,
        )
        used, reference_used = reach_before_drop(
            query,
            reference,
            tile,
            costs,
            window if turn < 2 else longest_window(window),
            0 if turn < 2 else costs.match // _GAIN_OF_LONG_WINDOWS,
            scratch,
        )
        gap -= used
        other_gap -= reference_used
        query_at += used * (1 - back)
        reference_at += reference_used * (1 - back)
    if gap + other_gap > break_length:
        return False
    tile = tile_at(query_at, gap, reference_at, other_gap, 1)
    score, _ = fill_gap(
        query, reference, tile, costs, scratch, extender.matrix, extender.operations, 0
    )
    return score >= -costs.match * break_length


@inline
def first_after(
    anchors: Anchors, offsets: Int64Array, cluster: int, query_end: int, reference_end: int
) -> tuple[int, int]:
    """Return the first anchor of a cluster that ends after an end in both sequences.

    The bases before the end are cut off, and their number is returned too. Both alignments match
    them, so the place at which one stops and the other begins costs nothing.
    """
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    lengths = anchors.lengths
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


MAX_DISTANCE: Final = 10_000
"""How far from a cluster, in bases of the reference, one that continues it may begin."""

FAR_DISTANCE: Final = 100_000
"""The same for one that lies near the diagonal on which the cluster ends."""


class Targets(NamedTuple):
    """Where each cluster may continue."""

    clusters: Int64Array  # The cluster that may continue it, `NO_TARGET` for none.
    anchors: Int64Array  # The first anchor of that cluster which ends after this one ends.
    cuts: Int64Array  # How many of its first bases are cut off, because this cluster has them.
    distances: Int64Array  # How far away it is: twice the longer gap minus the shorter one.
    reached: BoolArray  # Whether an extension gets there before it breaks.


def new_targets(count: int) -> Targets:
    """Return targets of `count` clusters, to be found."""
    clusters = np.full(count, NO_TARGET, dtype=np.int64)
    anchors, cuts, distances = (np.zeros(count, dtype=np.int64) for _ in range(3))
    return Targets(clusters, anchors, cuts, distances, np.zeros(count, dtype=np.bool_))


class LinkedAnchors(NamedTuple):
    """The anchors of alignments that go through one cluster or more."""

    groups: Int64Array  # The group of each alignment.
    offsets: Int64Array  # Where the anchors of each alignment begin; (n_alignments + 1,).
    anchors: Anchors  # The anchors, whose positions are indexes of codes with margins.
    bounds: Bounds  # How far each alignment may extend.


@jit
def find_targets(
    clusters: Clusters, bounds: Bounds, extender: Extender, first: int, end: int, targets: Targets
) -> None:
    """Find the targets of a range of clusters, whose groups have bounds."""
    offsets, anchors = clusters.offsets, clusters.anchors
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    lengths, reached = anchors.lengths, targets.reached
    for cluster in range(first, end):
        last = offsets[cluster + 1] - 1
        ends = query_starts[last] + lengths[last], reference_starts[last] + lengths[last]
        found = NO_TARGET
        # nucmer's rule comes first; if its target is not reached, the diagonal may have another.
        for is_far in range(2):
            if is_far:
                other, anchor, cut = _next_on_diagonal(
                    clusters, cluster, ends, extender.break_length
                )
                if other == NO_TARGET or other == found:
                    break
                found = other
            else:
                found, anchor, cut = _next_close(clusters, bounds, cluster, extender)
                if found == NO_TARGET:
                    continue
            begin = query_starts[anchor] + cut, reference_starts[anchor] + cut
            gap, other_gap = begin[0] - ends[0], begin[1] - ends[1]
            targets.clusters[cluster] = found
            targets.anchors[cluster], targets.cuts[cluster] = anchor, cut
            targets.distances[cluster] = 2 * max(gap, other_gap) - min(gap, other_gap)
            reached[cluster] = is_reached(ends, begin, extender)
            if reached[cluster]:
                break


@inline
def _next_close(
    clusters: Clusters, bounds: Bounds, cluster: int, extender: Extender
) -> tuple[int, int, int]:
    """Return the cluster that may continue one by nucmer's rule, its anchor, and the bases cut off.

    It is the first one that lies near, or on a diagonal that is near enough for the gap between
    them; or else the nearest one, if that is nearer than the ends of the sequences.
    """
    groups, offsets, anchors = clusters.groups, clusters.offsets, clusters.anchors
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
    lengths, costs, break_length = anchors.lengths, extender.costs, extender.break_length
    last, group = offsets[cluster + 1] - 1, groups[cluster]
    query_end = query_starts[last] + lengths[last]
    reference_end = reference_starts[last] + lengths[last]
    distance = min(
        bounds.query_ends[group] - query_end, bounds.reference_ends[group] - reference_end
    )
    found, found_anchor, found_cut = NO_TARGET, 0, 0
    other = cluster + 1
    while other < groups.size and groups[other] == group:
        if reference_starts[offsets[other]] - reference_end > MAX_DISTANCE:
            break
        anchor, cut = first_after(anchors, offsets, other, query_end, reference_end)
        if anchor != NO_TARGET:
            gap = query_starts[anchor] + cut - query_end
            other_gap = reference_starts[anchor] + cut - reference_end
            longer, shorter = max(gap, other_gap), min(gap, other_gap)
            pays = shorter * costs.match >= (longer - shorter) * costs.insertion_extend
            # A gap pays if the bases matched across it are worth its difference of lengths.
            if longer < break_length or pays or 2 * longer - shorter < distance:
                found, found_anchor, found_cut = other, anchor, cut
                distance = 2 * longer - shorter
            if longer < break_length or pays:
                break
        other += 1
    return found, found_anchor, found_cut


@inline
def _next_on_diagonal(
    clusters: Clusters, cluster: int, ends: tuple[int, int], break_length: int
) -> tuple[int, int, int]:
    """Return the next cluster near the diagonal of one's end, its anchor, and the bases cut off.

    An extension that reaches it would follow the alignment of that cluster all along.
    """
    groups, offsets, anchors = clusters.groups, clusters.offsets, clusters.anchors
    query_starts, reference_starts = anchors.query_starts, anchors.reference_starts
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
    count, anchors = clusters.groups.size, clusters.anchors
    sources = np.full(count, NO_TARGET, dtype=np.int64)
    near = np.full(count, NO_TARGET, dtype=np.int64)
    rows = np.empty(anchors.lengths.size, dtype=np.int64)
    cuts = np.zeros(anchors.lengths.size, dtype=np.int64)
    heads, tails = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    offsets = np.zeros(count + 1, dtype=np.int64)
    paths = ClusterPaths(rows, cuts, heads, tails, offsets)
    found = _follow_links(clusters.offsets, targets, sources, near, paths)
    heads, tails, offsets = heads[:found], tails[:found], offsets[: found + 1]
    rows, cuts = rows[: offsets[-1]], cuts[: offsets[-1]]
    groups = clusters.groups[heads]
    own_bounds = Bounds._make(bound[groups] for bound in bounds)
    _bound_by_targets(clusters, targets, tails, break_length, own_bounds)
    _bound_by_sources(clusters, near[heads], heads, break_length, own_bounds)
    cut_anchors = Anchors(
        anchors.query_starts[rows] + cuts,
        anchors.reference_starts[rows] + cuts,
        anchors.lengths[rows] - cuts,
    )
    return LinkedAnchors(groups, offsets, cut_anchors, own_bounds)


def _bound_by_targets(
    clusters: Clusters, targets: Targets, tails: Int64Array, break_length: int, bounds: Bounds
) -> None:
    """End alignments before the cluster that they might have continued with."""
    rows = np.flatnonzero(targets.clusters[tails] != NO_TARGET)
    rows = rows[_are_close(clusters, tails[rows], targets.anchors[tails[rows]], break_length)]
    anchors, cuts = targets.anchors[tails[rows]], targets.cuts[tails[rows]]
    bounds.query_ends[rows] = clusters.anchors.query_starts[anchors] + cuts
    bounds.reference_ends[rows] = clusters.anchors.reference_starts[anchors] + cuts


def _bound_by_sources(
    clusters: Clusters, sources: Int64Array, heads: Int64Array, break_length: int, bounds: Bounds
) -> None:
    """Begin alignments after the cluster that might have continued with them."""
    rows = np.flatnonzero(sources != NO_TARGET)
    anchors = clusters.offsets[heads[rows]]
    rows = rows[_are_close(clusters, sources[rows], anchors, break_length)]
    last = clusters.offsets[sources[rows] + 1] - 1
    lengths = clusters.anchors.lengths[last]
    bounds.query_begins[rows] = clusters.anchors.query_starts[last] + lengths
    bounds.reference_begins[rows] = clusters.anchors.reference_starts[last] + lengths


def _are_close(
    clusters: Clusters, sources: Int64Array, anchors: Int64Array, break_length: int
) -> BoolArray:
    """Return which diagonals of clusters' ends are within a break of those of anchors.

    An extension on one of them might otherwise follow the other alignment all along.
    """
    last = clusters.offsets[sources + 1] - 1
    diagonals = clusters.anchors.query_starts - clusters.anchors.reference_starts
    close: BoolArray = np.abs(diagonals[last] - diagonals[anchors]) <= break_length
    return close


class ClusterPaths(NamedTuple):
    """The clusters that each alignment goes through."""

    # The anchors, and how many of the first bases of each are cut off.
    rows: Int64Array
    cuts: Int64Array
    # The first and the last cluster of each alignment.
    heads: Int64Array
    tails: Int64Array
    offsets: Int64Array  # Where the anchors of each alignment begin.


@jit
def _follow_links(
    cluster_offsets: Int64Array,
    targets: Targets,
    sources: Int64Array,
    near: Int64Array,
    paths: ClusterPaths,
) -> int:
    """Write the anchors of each alignment, its first and its last cluster; return their number.

    `sources` receives the cluster that each one continues, and `near` the nearest one that has it
    as a target if it continues none; both hold `NO_TARGET` before.
    """
    distances, reached = targets.distances, targets.reached
    rows, cuts, offsets = paths.rows, paths.cuts, paths.offsets
    for cluster in range(sources.size):
        target = targets.clusters[cluster]
        if target == NO_TARGET:
            continue
        other = near[target]
        # An anchor after the first one has been passed by: no alignment ends there.
        if targets.anchors[cluster] == cluster_offsets[target]:
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
        paths.heads[count] = head
        cluster = head
        first, cut = cluster_offsets[cluster], 0
        while True:
            for row in range(first, cluster_offsets[cluster + 1]):
                rows[filled], cuts[filled] = row, cut
                filled, cut = filled + 1, 0
            target = targets.clusters[cluster]
            if target == NO_TARGET or sources[target] != cluster:
                break
            first, cut = targets.anchors[cluster], targets.cuts[cluster]
            cluster = target
        paths.tails[count] = cluster
        count += 1
        offsets[count] = filled
    return count
