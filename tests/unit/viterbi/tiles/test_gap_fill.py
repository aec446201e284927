"""`fill_gap` against the whole matrix in plain Python, and against its own second method."""

import random
from itertools import pairwise

import numpy as np
import pytest
from helpers.full_matrix import FullMatrix, score_of
from helpers.whole_alignments import ANY_SCORE

from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.tiles.band import new_scratch
from mummergpu.viterbi.tiles.gap_fill import fill_gap
from mummergpu.viterbi.whole.whole_matrix import NO_MEMORY, MatrixScratch, align_whole

GENOMES = Costs(3, 7, 7, 3, 7, 3, 7, 0, 100)
COSTS = [GENOMES, Costs(1, 4, 4, 6, 1, 6, 1, 0, 100), Costs(2, 3, 3, 5, 2, 1, 4, 0, 20)]
Operations = list[tuple[int, int]]


def changed(bases, some, rate):
    """A copy with differences and gaps."""
    result = []
    for base in bases:
        if some.random() > rate:
            result.append(base)
            continue
        kind = some.randrange(4)
        if kind == 0:
            result.append(some.randrange(5))
        elif kind == 1:
            result += [base, *(some.randrange(4) for _ in range(some.randrange(1, 6)))]
    return result


def aligned(query, reference, costs, whole=False, least=ANY_SCORE):
    """The score and the operations; an equal base follows both sequences."""
    codes = [with_margins(np.array([*bases, 2], dtype=np.uint8)) for bases in (query, reference)]
    cells = (len(query) + 1) * (len(reference) + 1)
    matrix = MatrixScratch(
        np.empty(2 * (len(reference) + 1), dtype=np.int64),
        np.empty(cells, dtype=np.uint8),
        np.empty(len(query) + 1, dtype=np.int64),
    )
    operations = np.full(len(query) + len(reference) + 3, 7, dtype=np.uint32)
    tile = Tile(MARGIN, len(query), MARGIN, len(reference), 1)
    sides = (*codes, tile, costs)
    if whole:
        score, count = align_whole(*sides, least, matrix, operations, 1)
    else:
        scratch = new_scratch(MOST_BASES, 100)
        score, count = fill_gap(*sides, scratch, matrix, operations, 1)
    assert operations[0] == 7
    return score, [(int(word) >> 4, int(word) & 15) for word in operations[1 : count + 1]]


def check(query, reference, costs, score):
    for whole in (False, True):
        found, operations = aligned(query, reference, costs, whole)
        assert found == score
        assert score_of(operations, query, reference, costs) == score
        assert sum(length for length, kind in operations if kind != 2) == len(query)
        assert sum(length for length, kind in operations if kind != 1) == len(reference)
        assert all(a[1] != b[1] for a, b in pairwise(operations))
    assert aligned(query, reference, costs, True) == aligned(query, reference, costs)
    # What is known of the score leaves cells out, and changes nothing.
    for least in (score, score - 5, score - 200):
        assert aligned(query, reference, costs, True, least) == (score, operations)


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("seed", range(6))
def test_the_score_is_that_of_the_whole_matrix(costs, seed):
    some = random.Random(seed)
    for _ in range(25):
        reference = some.choices(range(4), k=some.randrange(0, 30))
        if some.random() < 0.3:
            reference = (reference[:3] * 20)[: len(reference)]
        query = changed(reference, some, some.choice((0.05, 0.2, 0.6)))
        if some.random() < 0.2:
            query = some.choices(range(4), k=some.randrange(0, 30))
        matrix = FullMatrix([*query, 2], [*reference, 2], costs)
        end = ("match", (len(query) + 1, len(reference) + 1))
        if abs(len(query) - len(reference)) <= costs.max_gap:
            check(query, reference, costs, matrix.scores[end] - costs.match)


@pytest.mark.parametrize("seed", range(4))
def test_long_tiles_are_as_the_whole_matrix_says(seed):
    some = random.Random(seed)
    for size in (60, 300, 1200):
        reference = some.choices(range(4), k=size)
        query = changed(reference, some, 0.1)
        middle = some.randrange(size // 2)
        query = query[:middle] + query[middle + some.choice((0, 9, 40, 130)) :]
        check(query, reference, GENOMES, aligned(query, reference, GENOMES, True)[0])


def test_few_cells_are_computed_if_the_score_is_known():
    some = random.Random(7)
    reference = some.choices(range(4), k=3000)
    query = changed(reference, some, 0.03)
    query = query[:1000] + query[1130:]
    score, operations = aligned(query, reference, GENOMES)
    assert (score, operations) == aligned(query, reference, GENOMES, True)
    codes = [with_margins(np.array([*bases, 2], dtype=np.uint8)) for bases in (query, reference)]
    tile = Tile(MARGIN, len(query), MARGIN, len(reference), 1)
    sides = (*codes, tile, GENOMES)
    made = np.empty(len(query) + len(reference), dtype=np.uint32)
    numbers = np.empty(2 * len(reference) + 2, dtype=np.int64)
    for share, fits in ((5, True), (1000, False)):
        directions = np.empty(len(query) * len(reference) // share, dtype=np.uint8)
        matrix = MatrixScratch(numbers, directions, np.empty(len(query) + 1, dtype=np.int64))
        found, count = align_whole(*sides, score, matrix, made, 0)
        assert (found == score) == (count == len(operations)) == fits
        assert (count == NO_MEMORY) != fits
    for room in (numbers[1:], numbers[:10]):
        cells = np.empty(len(query) * len(reference), dtype=np.uint8)
        matrix = MatrixScratch(room, cells, numbers)
        assert align_whole(*sides, score, matrix, made, 0)[1] == NO_MEMORY


def test_one_side_may_be_empty():
    assert aligned([], [], GENOMES) == (0, [])
    assert aligned([1, 2, 3], [], GENOMES) == (-24, [(3, 1)])
    assert aligned([], [0, 0], GENOMES) == (-17, [(2, 2)])


def test_breaks_match_nothing():
    assert aligned([4, 1], [4, 1], GENOMES) == (-4, [(2, 0)])
