"""Clusters against the rule in plain Python: every chain of a set is tried."""

import random
from itertools import combinations, pairwise

import numpy as np
import pytest

from mummergpu.mapping.genomes.clusters import find_clusters
from mummergpu.mapping.genomes.columns import Anchors
from mummergpu.mapping.genomes.options import ClusterOptions

Match = tuple[int, int, int]


def clusters_of(groups, options):
    """Find the clusters of matches: where each begins in query and reference, and its length."""
    offsets = np.cumsum([0, *map(len, groups)])
    rows = [match for group in groups for match in sorted(group)]
    columns = tuple(np.array([row[n] for row in rows], dtype=np.int64) for n in range(3))
    return find_clusters(offsets, Anchors(columns[0], columns[1], columns[2]), options)


def listed(found):
    anchors = list(zip(*(column.tolist() for column in found.anchors), strict=True))
    ends = found.offsets.tolist()
    return [
        (group, anchors[ends[n] : ends[n + 1]]) for n, group in enumerate(found.groups.tolist())
    ]


def overlap(one, other):
    return max(0, one[0] + one[2] - other[0], one[1] + one[2] - other[1])


def best_score(matches):
    """The best score of all chains of some matches."""
    best = 0
    for size in range(1, len(matches) + 1):
        for chain in combinations(sorted(matches), size):
            score = chain[0][2]
            for one, other in pairwise(chain):
                if overlap(one, other) >= other[2]:
                    break
                bent = abs((one[0] - one[1]) - (other[0] - other[1]))
                score += other[2] - overlap(one, other) - bent
            else:
                best = max(best, score)
    return best


def chain_score(chain):
    """The score of a cluster, whose anchors do not overlap."""
    bent = sum(abs((one[0] - one[1]) - (other[0] - other[1])) for one, other in pairwise(chain))
    return sum(match[2] for match in chain) - bent


@pytest.mark.parametrize("seed", range(20))
def test_the_best_chain_of_a_set_is_a_cluster(seed):
    some = random.Random(seed)
    options = ClusterOptions(20, 10_000, 10_000, 0.0)
    matches = set()
    while len(matches) < 9:
        start = some.randrange(400)
        matches.add((start, start + some.choice((0, 0, 3, -7, 25))))
    # Matches that begin at one position would be taken for the inside of a repeat.
    group = [(q, r, some.randrange(20, 40)) for q, r in matches]
    if len({q for q, _ in matches}) < 9 or len({r for _, r in matches}) < 9:
        pytest.skip("two matches begin at one position")
    found = listed(clusters_of([group], options))
    assert max(chain_score(chain) for _, chain in found) == best_score(group)
    for _, chain in found:
        assert sum(match[2] for match in chain) >= 0
        for one, other in pairwise(chain):
            assert overlap(one, other) == 0


def test_a_gap_or_another_diagonal_ends_a_cluster():
    near = [(0, 1000, 70), (150, 1150, 70)]
    far = [(320, 1320, 70)]
    bent = [(480, 1500, 70)]
    found = listed(clusters_of([near + far + bent], ClusterOptions()))
    assert found == [(0, near), (0, far), (0, bent)]
    wide = ClusterOptions(max_gap=100)
    assert listed(clusters_of([near + far + bent], wide)) == [(0, near + far), (0, bent)]
    wider = ClusterOptions(max_gap=100, diagonal_difference=20)
    assert listed(clusters_of([near + far + bent], wider)) == [(0, near + far + bent)]


def test_the_share_of_the_gap_counts_if_it_is_larger():
    group = [(0, 0, 70), (150, 159, 70)]
    assert len(listed(clusters_of([group], ClusterOptions()))) == 1
    assert len(listed(clusters_of([group], ClusterOptions(diagonal_factor=0.1)))) == 2


def test_small_clusters_are_dropped_and_overlaps_cut_off():
    group = [(0, 0, 40), (30, 33, 40), (400, 400, 64), (600, 600, 65)]
    found = listed(clusters_of([group], ClusterOptions()))
    assert found == [(0, [(0, 0, 40), (40, 43, 30)]), (0, [(600, 600, 65)])]


def test_groups_stay_apart():
    match = (5, 7, 40)
    after = (50, 52, 40)
    assert listed(clusters_of([[match], [after]], ClusterOptions())) == []
    found = listed(clusters_of([[match, after], [], [match, after]], ClusterOptions()))
    assert found == [(0, [match, after]), (2, [match, after])]


def test_what_is_left_over_is_joined_again():
    """Two chains side by side, in one set: both are clusters."""
    one = [(step * 100, step * 100, 60) for step in range(5)]
    other = [(step * 100 + 5, step * 100 + 30, 50) for step in range(5)]
    found = listed(clusters_of([one + other], ClusterOptions(diagonal_difference=30)))
    assert sorted(found) == sorted([(0, one), (0, other)])


def test_the_inside_of_a_repeat_is_dropped():
    """27 units against 20: only the first and the last match say something."""
    matches = [(unit, 0, 200) for unit in range(0, 70, 10)]
    found = listed(clusters_of([matches], ClusterOptions()))
    assert found == [(0, [(0, 0, 200)]), (0, [(60, 0, 200)])]


def test_no_matches_make_no_clusters():
    assert clusters_of([], ClusterOptions()).groups.size == 0
