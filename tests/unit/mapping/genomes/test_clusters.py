"""Clusters and their links, against the rule in which every match is compared with every other."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each

from mummergpu.mapping.genomes import clusters
from mummergpu.mapping.genomes.chaining import NO_TARGET, Targets, link_clusters
from mummergpu.mapping.genomes.clusters import Clusters, find_clusters
from mummergpu.mapping.genomes.columns import Anchors, Bounds
from mummergpu.mapping.genomes.options import ClusterOptions

MOST_BETWEEN = 4000

OPTIONS = (
    ClusterOptions(),
    ClusterOptions(min_bases=20),
    ClusterOptions(0, 30, 0, 0.0),
    ClusterOptions(30, 40, 0, 0.5),
    ClusterOptions(30, 200, 3, 2.0),
    ClusterOptions(30, 10**12, 10**15, 0.0),
)


def without_inner(group):
    """Drop the matches that lie among copies of a unit and begin where another one does."""
    dropped, doubted = [False] * len(group), [False] * len(group)
    for one, (query, reference, length) in enumerate(group):
        # How far copies of a unit reach in either sequence, which begin with the match.
        reaches = {"query": 0, "reference": 0}
        for other in range(one + 1, len(group)):
            other_query, other_reference, other_length = group[other]
            least = min(length, other_length)
            if reference == other_reference:
                axis, begin, start = "query", query, other_query
            elif query == other_query:
                axis, begin, start = "reference", reference, other_reference
            else:
                continue
            overlap = begin + length - start
            if dropped[one] or overlap < 0:
                continue
            if start - begin <= least:
                reaches[axis] = max(reaches[axis], start + least)
            if dropped[other] or overlap < least // 2 or start + least > reaches[axis]:
                continue
            if other_length < length:
                dropped[other] = True
            elif length < other_length or doubted[one]:
                dropped[one] = True
            else:
                doubted[other] = True
    return [match for match, is_dropped in zip(group, dropped, strict=True) if not is_dropped]


def are_joined(one, other, options):
    gap = other[0] - one[0] - one[2]
    difference = abs((one[0] - one[1]) - (other[0] - other[1]))
    share = round(options.diagonal_factor * 1_000_000) * gap // 1_000_000
    return gap <= options.max_gap and difference <= max(options.diagonal_difference, share)


def sets_of(group, options):
    """Join all matches that are close to each other, directly or by others."""
    sets = []
    for number, match in enumerate(group):
        near = [one for one in sets if any(are_joined(group[n], match, options) for n in one)]
        sets = [one for one in sets if one not in near]
        sets.append(sorted([number, *(n for one in near for n in one)]))
    return [[group[n] for n in one] for one in sorted(sets)]


def best_chain(members):
    """Return the indexes of the chain with the best score, the first one that ends with it."""
    scores = []
    before = []
    for number, (query, reference, length) in enumerate(members):
        score, source = length, None
        for other in range(number - 1, -1, -1):
            other_query, other_reference, other_length = members[other]
            gap = query - other_query - other_length
            other_gap = reference - other_reference - other_length
            overlap = max(0, -gap, -other_gap)
            if overlap >= length or max(gap, other_gap) > MOST_BETWEEN - overlap:
                continue
            bent = abs((query - reference) - (other_query - other_reference))
            if scores[other] + length - overlap - bent > score:
                score, source = scores[other] + length - overlap - bent, other
        scores.append(score)
        before.append(source)
    number = scores.index(max(scores))
    chain = [number]
    while (source := before[chain[0]]) is not None:
        chain.insert(0, source)
    return chain


def without_overlaps(chain):
    anchors = chain[:1]
    for (query, reference, length), (begin, other_begin, size) in pairwise(chain):
        cut = max(0, query + length - begin, reference + length - other_begin)
        anchors.append((begin + cut, other_begin + cut, size - cut))
    return anchors


def clusters_by_rule(group, options):
    """Return the clusters of a group, in the order of `Clusters`."""
    found = []
    left = without_inner(group)
    while left:
        rest = []
        for members in sets_of(left, options):
            if sum(match[2] for match in members) < options.min_bases:
                continue
            chain = best_chain(members)
            matches = [members[n] for n in chain]
            if sum(match[2] for match in matches) >= options.min_bases:
                found.append(without_overlaps(matches))
            rest += [match for n, match in enumerate(members) if n not in chain]
        left = sorted(rest)
    return sorted(found, key=lambda anchors: (anchors[0][1], anchors[0][0]))


def listed(found):
    anchors = list(zip(*(column.tolist() for column in found.anchors), strict=True))
    ends = found.offsets.tolist()
    return [
        (group, anchors[ends[n] : ends[n + 1]]) for n, group in enumerate(found.groups.tolist())
    ]


def columns_of(groups):
    rows = np.array([match for group in groups for match in group], dtype=np.int64).reshape(-1, 3)
    return np.cumsum([0, *map(len, groups)]), Anchors._make(rows[:, n].copy() for n in range(3))


def common_matches(query, reference, least):
    """Return all maximal matches of two texts, from the ends of each diagonal."""
    found = []
    for diagonal in range(1 - len(reference), len(query)):
        length = 0
        start = max(0, diagonal)
        for place in range(start, min(len(query), len(reference) + diagonal) + 1):
            inside = place < len(query) and place - diagonal < len(reference)
            if inside and query[place] == reference[place - diagonal]:
                length += 1
                continue
            if length >= least:
                found.append((place - length, place - length - diagonal, length))
            length = 0
    return sorted(found)


def repeats(some):
    """Return a text of copies of a few units, some of them short, with errors and other bases."""
    score_fixed = ["".join(some.choices("ACGT", k=some.choice((1, 2, 3, 7, 31)))) for _ in range(3)]
    text = ""
    while len(text) < 300:
        unit = some.choice(score_fixed)
        text += unit * some.randrange(1, 60 // len(unit) + 2)
        text += "".join(some.choices("ACGT", k=some.choice((0, 0, 1, 20))))
    return "".join(some.choice("ACGT") if some.random() < 0.02 else base for base in text)


def check(groups, options, map_function=map):
    """Compare the clusters of groups with those by the rule; return how many there are."""
    offsets, matches = columns_of(groups)
    expected = [
        (number, anchors)
        for number, group in enumerate(groups)
        for anchors in clusters_by_rule(group, options)
    ]
    assert listed(find_clusters(offsets, matches, options, map_function)) == expected
    return len(expected)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_matches_of_repeats_are_clustered_by_the_rule(options):
    found = 0
    for seed in range(12):
        some = random.Random(seed)
        query = repeats(some)
        reference = query if seed % 3 == 0 else repeats(some) + query[:150]
        found += check([common_matches(query, reference, some.choice((6, 10, 14)))], options)
    assert found > 0


@pytest.mark.parametrize("options", OPTIONS)
def test_any_matches_are_clustered_by_the_rule(options):
    """Also those that no two texts have: several on a diagonal overlap, or are the same."""
    for seed in range(40):
        some = random.Random(seed)
        groups = []
        for _ in range(some.randrange(1, 6)):
            most, apart = some.choice((60, 900)), some.choice((1, 4, 40, 800))
            starts = [some.randrange(most) for _ in range(some.randrange(50))]
            groups.append(
                sorted(
                    (start, max(0, start + some.randrange(-apart, apart)), some.randrange(1, 60))
                    for start in starts
                )
            )
        check(groups, options)


@each("threads", (2, 3))
def test_clusters_do_not_depend_on_threads_and_tasks(threads, monkeypatch):
    monkeypatch.setattr(clusters, "_MATCHES_OF_TASK", 7)
    some = random.Random(threads)
    groups = [common_matches(repeats(some), repeats(some), 8)[: n * n] for n in range(12)]
    with ThreadPoolExecutor(threads) as executor:
        assert check(groups, ClusterOptions(min_bases=20), executor.map) > 0


def test_far_diagonals_that_share_a_list_are_not_joined():
    some = random.Random(1)
    steps = [(some.randrange(300), 1000 * n, some.randrange(20, 40)) for n in range(500)]
    group = sorted([*steps, *((query + 45, start + 47, 30) for query, start, _ in steps[::3])])
    assert check([group], ClusterOptions(min_bases=50)) > 100


NEAR, FAR_ON, BENT = [(0, 1000, 70), (150, 1150, 70)], [(320, 1320, 70)], [(480, 1500, 70)]
ONE = [(step * 100, step * 100, 60) for step in range(5)]
BESIDE = [(step * 100 + 5, step * 100 + 30, 50) for step in range(5)]


@pytest.mark.parametrize(
    ("groups", "options", "expected"),
    [
        # A gap or another diagonal ends a cluster.
        ([NEAR + FAR_ON + BENT], {}, [(0, NEAR), (0, FAR_ON), (0, BENT)]),
        ([NEAR + FAR_ON + BENT], {"max_gap": 100}, [(0, NEAR + FAR_ON), (0, BENT)]),
        (
            [NEAR + FAR_ON + BENT],
            {"max_gap": 100, "diagonal_difference": 20},
            [(0, NEAR + FAR_ON + BENT)],
        ),
        # The share of the gap counts if it is larger.
        ([[(0, 0, 70), (150, 159, 70)]], {}, [(0, [(0, 0, 70), (150, 159, 70)])]),
        (
            [[(0, 0, 70), (150, 159, 70)]],
            {"diagonal_factor": 0.1},
            [(0, [(0, 0, 70)]), (0, [(150, 159, 70)])],
        ),
        # Small clusters are dropped, and overlaps are cut off.
        (
            [[(0, 0, 40), (30, 33, 40), (400, 400, 64), (600, 600, 65)]],
            {},
            [(0, [(0, 0, 40), (40, 43, 30)]), (0, [(600, 600, 65)])],
        ),
        # Groups stay apart.
        ([[(5, 7, 40)], [(50, 52, 40)]], {}, []),
        (
            [[(5, 7, 40), (50, 52, 40)], [], [(5, 7, 40), (50, 52, 40)]],
            {},
            [(0, [(5, 7, 40), (50, 52, 40)]), (2, [(5, 7, 40), (50, 52, 40)])],
        ),
        # Two chains side by side, in one set: what is left over is joined again.
        ([sorted(ONE + BESIDE)], {"diagonal_difference": 30}, [(0, ONE), (0, BESIDE)]),
        # 27 units against 20: only the first and the last match say something.
        (
            [[(unit, 0, 200) for unit in range(0, 70, 10)]],
            {},
            [(0, [(0, 0, 200)]), (0, [(60, 0, 200)])],
        ),
        ([], {}, []),
    ],
)
def test_clusters_that_were_worked_out_by_hand(groups, options, expected):
    offsets, matches = columns_of(groups)
    assert listed(find_clusters(offsets, matches, ClusterOptions(**options))) == expected


LENGTH = 30
BREAK = 200
END = 100_000


def linked(starts, targets):
    """Clusters of two anchors each, the second one 100 bases behind the first.

    A target is the cluster that may continue one, how many bases are cut off its anchor, how far
    away it is, and whether an extension reaches it.
    """
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
    assert paths(found) == expected and found.groups.tolist() == [0] * len(expected)
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
