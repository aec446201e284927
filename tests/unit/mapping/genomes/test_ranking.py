"""Which alignments of a query compete, against the rule in plain Python."""

import random

import numpy as np
from helpers.loops import each

from mummergpu.mapping.genomes.overlaps import find_rivals

Row = tuple[int, int, int, int]
"""The query, the begin, the end and the score."""


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
