"""Tiles against the whole matrix in plain Python: extensions, and gaps between two ends."""

import random
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from helpers.full_matrix import FullMatrix, score_of
from helpers.whole_alignments import ANY_SCORE
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mummergpu.sequence.codes import BREAK, MARGIN, with_margins
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.tiles.band import new_scratch
from mummergpu.viterbi.tiles.extension import (
    CANNOT_REACH,
    extend_path,
    extend_score,
    longest_gap_with_words,
    shared_words,
)
from mummergpu.viterbi.tiles.gap_fill import fill_gap
from mummergpu.viterbi.whole.whole_matrix import NO_MEMORY, MatrixScratch, align_whole

EXAMPLES = settings(max_examples=300)
SCRATCH = new_scratch(500, 100)


class Extended(NamedTuple):
    score: int
    i: int
    j: int
    operations: list[tuple[int, int]]


def extended(read, reference, costs, direction=1, first_band=8, min_score=0, surroundings=5):
    """What both functions find for sequences that are written from the corner."""
    arrays = []
    for codes in (read, reference):
        # What lies beside the tile are bases like any others.
        array = np.array([*[1] * surroundings, *codes, *[1] * surroundings], dtype=np.uint8)
        at = MARGIN + surroundings
        arrays.append(
            (with_margins(array[::direction]), at if direction > 0 else at + len(codes) - 1)
        )
    (read_codes, read_at), (reference_codes, reference_at) = arrays
    tile = Tile(read_at, len(read), reference_at, len(reference), direction)
    how = (read_codes, reference_codes, tile, costs, first_band, min_score, SCRATCH)
    operations = np.zeros(1100, dtype=np.uint32)
    score, i, j, count = extend_path(*how, operations, 3)
    assert (score, i, j) == extend_score(*how) and not operations[:3].any()
    return Extended(score, i, j, [(int(one) >> 4, int(one) & 15) for one in operations[3:][:count]])


def check(read, reference, costs, direction=1, first_band=8, matrix=None):
    """Compare a tile with the whole matrix, which takes long."""
    matrix = matrix or FullMatrix(read, reference, costs)
    found = extended(read, reference, costs, direction, first_band)
    assert found[:3] == matrix.best() and found.operations == matrix.operations(found.i, found.j)
    assert found.score == score_of(found.operations, read, reference, costs)
    assert extended(read, reference, costs, direction, first_band, found.score) == found
    least = extended(read, reference, costs, direction, first_band, found.score + 1)
    assert least == (CANNOT_REACH, 0, 0, [])
    return found


COSTS = st.builds(
    Costs,
    match=st.integers(1, 3),
    mismatch=st.integers(0, 8),
    unknown=st.integers(0, 3),
    insertion_open=st.integers(0, 8),
    insertion_extend=st.integers(1, 3),
    deletion_open=st.integers(0, 8),
    deletion_extend=st.integers(1, 3),
    end_bonus=st.integers(0, 10),
    max_gap=st.sampled_from([0, 1, 3, 15, 16, 40, 100]),
)


@st.composite
def tiles(draw):
    """A piece of a reference, and a read of it with a few edits, or of something else."""
    base = st.integers(0, draw(st.sampled_from([1, 2, 4])) - 1)
    reference = draw(st.lists(base, max_size=50))
    read = list(reference[: draw(st.integers(0, 50))])
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(read)))
        length = draw(st.integers(1, 20))
        kind = draw(st.sampled_from(["replace", "insert", "delete", "unknown"]))
        if kind == "insert":
            read[at:at] = draw(st.lists(base, min_size=1, max_size=length))
        elif kind == "delete":
            del read[at : at + length]
        elif at < len(read):
            read[at] = BREAK if kind == "unknown" else draw(base)
    if draw(st.booleans()) and reference:
        reference[draw(st.integers(0, len(reference) - 1))] = BREAK
    return read[:60], reference


@EXAMPLES
@given(tile=tiles(), costs=COSTS, direction=st.sampled_from([1, -1]), first_band=st.integers(0, 30))
@example(([0] * 10, [0] * 10), Costs(), 1, 8)
@example(([], [0, 1]), Costs(), -1, 0)
@example(([0, 1], []), Costs(), 1, 8)
@example(([2, 2, 0, 0, 0], [1, 2, 0, 0, 0]), Costs(end_bonus=0), 1, 8)
def test_a_tile_has_the_best_score_of_the_whole_matrix(tile, costs, direction, first_band):
    check(*tile, costs, direction, first_band)


def random_bases(seed, count):
    return np.random.default_rng(seed).integers(0, 4, count).tolist()


@pytest.mark.parametrize("gap", [1, 14, 15, 16, 17, 31, 32, 99, 100])
def test_a_gap_wider_than_the_first_band_is_found(gap):
    reference = random_bases(1, 70 + gap)
    costs = Costs(match=4)
    read = reference[:30] + reference[30 + gap :]
    found = check(read, reference, costs, 1 if gap % 2 else -1)
    assert sum(length for length, operation in found.operations if operation == 2) == gap
    read = reference[:30] + random_bases(2, gap) + reference[30:70]
    found = check(read, reference[:72], costs, -1 if gap % 2 else 1)
    assert sum(length for length, operation in found.operations if operation == 1) == gap


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("gap", [1, 15, 16, 17, 31, 33])
def test_a_gap_is_found_that_words_just_allow(gap, direction):
    # The words at the gap are not in the reference: no other gap is longer and scores as much.
    reference = random_bases(4, 110 + gap)
    read = reference[:50] + reference[50 + gap :]
    found = check(read, reference, Costs(), direction)
    assert found[:3] == (115 - 6 - gap, 110, 110 + gap)
    assert longest_gap_with_words(102, Costs(), found.score) == gap
    # Breaks cost less than edits, and cut words as these do.
    for at in range(3, 110, 5):
        read[at] = BREAK
    found = check(read, reference, Costs(unknown=0), direction)
    assert (gap, 2) in found.operations


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("length", [0, 4, 5, 9, 34])
def test_words_are_those_within_reach(length, direction):
    random = np.random.default_rng(5)
    for _ in range(20):
        read, reference = (random.integers(0, 4, size).tolist() for size in (length, 60))
        at, reach = int(random.integers(0, 50)), length + 12
        reference[at : at + length // 2] = read[: length // 2]
        arrays = [
            with_margins(np.array([*[0] * 3, *one, *[0] * 3][::direction], dtype=np.uint8))
            for one in (read, reference)
        ]
        ends = (length, len(reference)) if direction < 0 else (1, 1)
        tile = Tile(MARGIN + 2 + ends[0], length, MARGIN + 2 + ends[1], len(reference), direction)
        found = shared_words(*arrays, tile, Costs(), length + 5 - 6 - 12, SCRATCH.words)
        words = {tuple(reference[n : n + 5]) for n in range(min(len(reference), reach) - 4)}
        least = sum(tuple(read[n : n + 5]) in words for n in range(length - 4))
        beside = [0] * 3 + reference[: reach + 3] + [0] * 3
        words = {tuple(beside[n : n + 5]) for n in range(len(beside) - 4)}
        beside = [0] * 3 + read + [0] * 3
        assert least <= found <= sum(tuple(beside[n : n + 5]) in words for n in range(length + 2))


def test_words_say_nothing_where_edits_cost_little():
    read = with_margins(np.zeros(30, dtype=np.uint8))
    reference = with_margins(np.ones(30, dtype=np.uint8))
    tile = Tile(MARGIN, 20, MARGIN, 30, 1)
    for costs in (Costs(mismatch=3), Costs(insertion_open=3), Costs(deletion_open=3), Costs(2)):
        assert shared_words(read, reference, tile, costs, 0, SCRATCH.words) == 20
    assert shared_words(read, reference, tile, Costs(1, 4, 1, 4, 1, 4), 0, SCRATCH.words) == 0


def test_a_gap_is_not_longer_than_the_most():
    reference = random_bases(1, 110)
    read = reference[:40] + reference[60:]
    assert check(read, reference, Costs(max_gap=20)).i == 90
    assert check(read, reference, Costs(max_gap=19)).i < 90


def test_the_end_of_the_read_is_reached_where_the_bonus_pays():
    reference = random_bases(3, 40)
    read = [*reference[:20], reference[20] ^ 1]
    assert check(read, reference, Costs(end_bonus=5))[:3] == (21, 21, 21)
    # A draw: the end is preferred.
    assert check(read, reference, Costs(end_bonus=4))[:3] == (20, 21, 21)
    assert check(read, reference, Costs(end_bonus=3))[:3] == (20, 20, 20)
    # The same behind a gap of three bases, for which a band is computed.
    reference = random_bases(3, 80)
    read = [*reference[:30], *reference[33:63], reference[63] ^ 1]
    for bonus, expected in ((5, (52, 61, 64)), (4, (51, 61, 64)), (3, (51, 60, 63))):
        assert check(read, reference, Costs(end_bonus=bonus))[:3] == expected


def test_breaks_match_nothing():
    reference = random_bases(4, 40)
    read = reference[:30]
    read[10] = BREAK
    assert check(read, reference, Costs()).score == 29 - 1 + 5
    reference[10] = BREAK
    assert check(read, reference, Costs()).score == 29 - 1 + 5
    assert check(reference[:10] + random_bases(4, 40)[10:30], reference, Costs()).score == 30


@pytest.mark.parametrize("length", [36, 75, 150, 300])
def test_reads_of_usual_lengths(length):
    random = np.random.default_rng(length)
    for _ in range(max(1, 150 // length)):
        reference = random.integers(0, 4, length + 20).tolist()
        read = [base if random.random() > 0.03 else 3 - base for base in reference[:length]]
        at = int(random.integers(length))
        read[at:at] = random.integers(0, 4, int(random.integers(4))).tolist()
        check(read[:length], reference, Costs())


@pytest.mark.parametrize(
    ("kept", "seed"), [(200, 0), *((kept, seed) for kept in (1, 30, 120) for seed in range(4))]
)
def test_a_long_read_may_hang_over_the_end_of_the_reference(seed, kept):
    # All diagonals on which the read's end lies in the reference are outside of the band.
    some = random.Random(seed)
    read = some.choices(range(4), k=500)
    reference = read[:kept]
    place = some.randrange(kept)
    reference[place:place] = some.choices(range(4), k=some.choice((0, 9, 40)))
    reference[: kept // 2 : 17] = [0] * len(reference[: kept // 2 : 17])
    for costs in (Costs(), Costs(3, 7, 7, 3, 7, 3, 7, 0, 100)):
        matrix = FullMatrix(read, reference, costs)
        for first_band in (8, 100):
            check(read, reference, costs, first_band=first_band, matrix=matrix)


GENOMES = Costs(3, 7, 7, 3, 7, 3, 7, 0, 100)
FILL_COSTS = [GENOMES, Costs(1, 4, 4, 6, 1, 6, 1, 0, 100), Costs(2, 3, 3, 5, 2, 1, 4, 0, 20)]


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
    sides = (*codes, Tile(MARGIN, len(query), MARGIN, len(reference), 1), costs)
    if whole:
        score, count = align_whole(*sides, least, matrix, operations, 1)
    else:
        score, count = fill_gap(*sides, new_scratch(MOST_BASES, 100), matrix, operations, 1)
    assert operations[0] == 7
    return score, [(int(word) >> 4, int(word) & 15) for word in operations[1 : count + 1]]


def check_fill(query, reference, costs, score):
    for whole in (False, True):
        found, operations = aligned(query, reference, costs, whole)
        assert found == score and score_of(operations, query, reference, costs) == score
        assert sum(length for length, kind in operations if kind != 2) == len(query)
        assert sum(length for length, kind in operations if kind != 1) == len(reference)
        assert all(a[1] != b[1] for a, b in pairwise(operations))
    assert aligned(query, reference, costs, True) == aligned(query, reference, costs)
    # What is known of the score leaves cells out, and changes nothing.
    for least in (score, score - 5, score - 200):
        assert aligned(query, reference, costs, True, least) == (score, operations)


@pytest.mark.parametrize("costs", FILL_COSTS)
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
            check_fill(query, reference, costs, matrix.scores[end] - costs.match)


@pytest.mark.parametrize("seed", range(4))
def test_long_tiles_are_as_the_whole_matrix_says(seed):
    some = random.Random(seed)
    for size in (60, 300, 1200):
        reference = some.choices(range(4), k=size)
        query = changed(reference, some, 0.1)
        middle = some.randrange(size // 2)
        query = query[:middle] + query[middle + some.choice((0, 9, 40, 130)) :]
        check_fill(query, reference, GENOMES, aligned(query, reference, GENOMES, True)[0])


def test_few_cells_are_computed_if_the_score_is_known():
    some = random.Random(7)
    reference = some.choices(range(4), k=3000)
    query = changed(reference, some, 0.03)
    query = query[:1000] + query[1130:]
    score, operations = aligned(query, reference, GENOMES)
    assert (score, operations) == aligned(query, reference, GENOMES, True)
    codes = [with_margins(np.array([*bases, 2], dtype=np.uint8)) for bases in (query, reference)]
    sides = (*codes, Tile(MARGIN, len(query), MARGIN, len(reference), 1), GENOMES)
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
    # Insertions and deletions may cost something else.
    assert aligned([1, 2, 3], [], FILL_COSTS[2]) == (-11, [(3, 1)])
    assert aligned([], [0, 0], FILL_COSTS[2]) == (-9, [(2, 2)])


def test_breaks_in_a_gap_match_nothing():
    assert aligned([4, 1], [4, 1], GENOMES) == (-4, [(2, 0)])
