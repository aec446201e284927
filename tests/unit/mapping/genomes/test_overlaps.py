"""Which alignments cover a sequence best, and which compete, against all choices there are."""

import random
from itertools import combinations, pairwise

import numpy as np
import pytest
from helpers.loops import each

from mummergpu.mapping.genomes.overlaps import MAX_OVERLAP, best_cover, find_rivals, map_one_to_one


def score_of(rows):
    """What a choice of alignments scores, in the order of their begins; -1 if it is not allowed."""
    score = (rows[0][1] - rows[0][0]) * rows[0][2] ** 2
    for one, other in pairwise(rows):
        overlap = max(0, one[1] - other[0])
        overlap = min(overlap, other[1] - other[0])
        if overlap > MAX_OVERLAP * min(one[1] - one[0], other[1] - other[0]):
            return -1.0
        score += (other[1] - other[0] - overlap) * other[2] ** 2
    return score


@pytest.mark.parametrize("seed", range(30))
def test_no_choice_covers_more(seed):
    some = random.Random(seed)
    rows = []
    for _ in range(8):
        begin = some.randrange(300)
        rows.append((begin, begin + some.randrange(20, 150), some.uniform(0.7, 1.0)))
    rows.sort()
    columns = [np.array([row[n] for row in rows]) for n in range(3)]
    taken = best_cover(np.zeros(8, dtype=np.int64), columns[0], columns[1], columns[2])
    chosen = tuple(row for row, is_taken in zip(rows, taken, strict=True) if is_taken)
    best = max(score_of(choice) for size in range(1, 9) for choice in combinations(rows, size))
    assert score_of(chosen) == pytest.approx(best)


def test_sequences_are_covered_apart():
    sequences = np.array([1, 0, 1])
    begins, ends = np.array([0, 0, 0]), np.array([100, 100, 90])
    taken = best_cover(sequences, begins, ends, np.array([0.9, 0.9, 0.9]))
    assert taken.tolist() == [True, True, False]


def test_both_sides_must_be_best():
    one, other = np.array([0, 0]), np.array([0, 1])
    places = (np.array([0, 0]), np.array([100, 100]))
    taken = map_one_to_one((one, *places), (other, *places), np.array([0.9, 0.95]))
    assert taken.tolist() == [False, True]


def test_nothing_is_taken_of_nothing():
    nothing = np.zeros(0, dtype=np.int64)
    assert best_cover(nothing, nothing, nothing, np.zeros(0)).size == 0


def plain_rivals(rows):
    found = list(range(len(rows)))
    kept = []
    for number in sorted(found, key=lambda number: (-rows[number][3], number)):
        query, begin, end, _ = rows[number]
        for better in kept:
            other = rows[better]
            overlap = min(end, other[2]) - max(begin, other[1])
            if query == other[0] and 2 * overlap >= min(end - begin, other[2] - other[1]):
                found[number] = better
                break
        else:
            kept.append(number)
    return found


@each("seed", range(200))
def test_rivals_are_those_of_the_rule(seed):
    some = random.Random(seed)
    longest = some.choice([3, 30, 300])
    rows = []
    for query in range(3):
        for _ in range(some.randrange(30)):
            begin = some.randrange(300)
            end = begin + some.randint(1, longest)
            rows.append((query, begin, end, some.randrange(some.choice([3, 100]))))
    columns = [np.array([row[n] for row in rows], dtype=np.int64) for n in range(4)]
    assert find_rivals(*columns).tolist() == plain_rivals(rows)
