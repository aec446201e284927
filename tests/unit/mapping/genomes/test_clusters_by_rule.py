"""Clusters against the rule, step by step: every match is compared with every other one."""

import random
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from helpers.loops import each

from mummergpu.mapping.genomes import clusters
from mummergpu.mapping.genomes.clusters import find_clusters
from mummergpu.mapping.genomes.columns import Anchors
from mummergpu.mapping.genomes.options import ClusterOptions

Match = tuple[int, int, int]

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
        map_function = executor.map
        assert check(groups, ClusterOptions(min_bases=20), map_function) > 0


def test_far_diagonals_that_share_a_list_are_not_joined():
    some = random.Random(1)
    steps = [(some.randrange(300), 1000 * n, some.randrange(20, 40)) for n in range(1500)]
    group = sorted([*steps, *((query + 45, start + 47, 30) for query, start, _ in steps[::3])])
    assert check([group], ClusterOptions(min_bases=50)) > 100
