"""Which clusters become one alignment, once it is known what each may go on with."""

from itertools import pairwise

import numpy as np
import pytest

from mummergpu.mapping.genomes.chaining import NO_TARGET, Targets, link_clusters
from mummergpu.mapping.genomes.clusters import Clusters
from mummergpu.mapping.genomes.columns import Anchors, Bounds

LENGTH = 30
BREAK = 200
END = 100_000

Target = tuple[int, int, int, bool]
"""The cluster that may continue one, how many bases are cut off its anchor, how far away it is, and
whether an extension reaches it."""


def linked(starts, targets):
    """Clusters of two anchors each, the second one 100 bases behind the first."""
    count = len(starts)
    places = [(query + 100 * n, other + 100 * n) for query, other in starts for n in range(2)]
    columns = np.array(places, dtype=np.int64).reshape(-1, 2)
    anchors = Anchors(columns[:, 0].copy(), columns[:, 1].copy(), np.full(2 * count, LENGTH))
    clusters = Clusters(np.zeros(count, dtype=np.int64), 2 * np.arange(count + 1), anchors)
    found = [targets.get(cluster, (NO_TARGET, 0, 0, False)) for cluster in range(count)]
    numbers = np.array([one[:3] for one in found], dtype=np.int64).reshape(-1, 3)
    made = Targets(
        numbers[:, 0].copy(),
        2 * np.maximum(numbers[:, 0], 0),
        numbers[:, 1].copy(),
        numbers[:, 2].copy(),
        np.array([one[3] for one in found], dtype=np.bool_),
    )
    bounds = Bounds(*(np.array([end], dtype=np.int64) for end in (0, END, 0, END)))
    return link_clusters(clusters, bounds, made, BREAK)


def paths(found):
    """The starts in the query of the anchors of each alignment."""
    ends = found.offsets.tolist()
    starts = found.anchors.query_starts.tolist()
    return [starts[begin:end] for begin, end in pairwise(ends)]


FAR = [(0, 0), (1000, 5000), (2000, 9000)]
"""Clusters on diagonals that are far from each other."""


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        ({}, [[0, 100], [1000, 1100], [2000, 2100]]),
        ({0: (1, 0, 9, True)}, [[0, 100, 1000, 1100], [2000, 2100]]),
        # A cluster that is not reached is an alignment of its own.
        ({0: (1, 0, 9, False)}, [[0, 100], [1000, 1100], [2000, 2100]]),
        ({0: (1, 0, 9, True), 1: (2, 0, 9, True)}, [[0, 100, 1000, 1100, 2000, 2100]]),
        # What overlaps the cluster before is cut off.
        ({0: (2, 7, 9, True)}, [[0, 100, 2007, 2100], [1000, 1100]]),
        # Of two clusters that reach one, the nearer goes on; of equally near ones the first.
        ({0: (2, 0, 9, True), 1: (2, 0, 8, True)}, [[0, 100], [1000, 1100, 2000, 2100]]),
        ({0: (2, 0, 8, True), 1: (2, 0, 8, True)}, [[0, 100, 2000, 2100], [1000, 1100]]),
        # A nearer one that does not reach it takes nothing away.
        ({0: (2, 0, 9, True), 1: (2, 0, 8, False)}, [[0, 100, 2000, 2100], [1000, 1100]]),
    ],
)
def test_clusters_are_linked_to_those_that_reach_them(targets, expected):
    found = linked(FAR, targets)
    assert paths(found) == expected
    assert found.groups.tolist() == [0] * len(expected)
    cut = sum(target[1] for target in targets.values())
    assert found.anchors.lengths.sum() == LENGTH * 6 - cut


@pytest.mark.parametrize(
    ("shift", "bounded"), [(0, True), (BREAK, True), (BREAK + 1, False), (-BREAK - 1, False)]
)
def test_alignments_near_one_diagonal_do_not_extend_into_each_other(shift, bounded):
    found = linked([(0, 0), (1000, 1000 + shift)], {0: (1, 0, 9, False)})
    ends = found.bounds.query_ends.tolist(), found.bounds.reference_ends.tolist()
    begins = found.bounds.query_begins.tolist(), found.bounds.reference_begins.tolist()
    if bounded:
        assert ends == ([1000, END], [1000 + shift, END])
        assert begins == ([0, 100 + LENGTH], [0, 100 + LENGTH])
    else:
        assert ends == ([END, END], [END, END]) and begins == ([0, 0], [0, 0])
