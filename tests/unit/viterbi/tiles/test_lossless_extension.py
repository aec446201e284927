"""Extensions that score no less than none, against the whole matrix in plain Python."""

import random

import numpy as np
import pytest
from helpers.full_matrix import FullMatrix, score_of
from helpers.sequences import random_bases
from helpers.uncompiled import Uncompiled

from mummergpu.mapping.genomes.options import NUCMER_COSTS
from mummergpu.sequence.codes import MARGIN, with_margins
from mummergpu.viterbi.recurrence.model import PAIRWISE
from mummergpu.viterbi.recurrence.tile import Tile
from mummergpu.viterbi.tiles.band import new_scratch, write_path
from mummergpu.viterbi.tiles.drop_extension import (
    NO_ROOM,
    extend_until_drop,
    extend_without_loss,
    longest_window,
    reach_before_drop,
)
from mummergpu.viterbi.tiles.extension import extend_score

SCRATCH = new_scratch(1500, 100)
COSTS = NUCMER_COSTS


def changed(text, chance, share):
    made = []
    for code in text:
        kind = chance.random()
        if kind < share:
            made.append(chance.randrange(4))
        elif kind > 1 - share / 4:
            made += [code, *chance.choices(range(4), k=chance.choice([1, 2, 12]))]
        elif kind < 1 - share / 2:
            made.append(code)
    return made


def best_in_triangle(matrix, window):
    """The best score of a match that ends within twice the window of both sequences together."""
    return max(
        (
            score
            for (state, (i, j)), score in matrix.scores.items()
            if state == PAIRWISE.states[0].name and 0 < i + j <= 2 * window
        ),
        default=-1,
    )


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("window", [5, 20])
def test_the_best_that_is_no_loss_is_found(window, direction):
    chance = random.Random(window)
    found = set()
    for _ in range(40):
        reference = chance.choices(range(4), k=chance.choice([2 * window, 50]))
        query = changed(reference, chance, chance.choice([0.3, 0.6]))[: chance.randrange(3, 60)]
        arrays = [
            with_margins(np.array(side[::direction], dtype=np.uint8)) for side in (query, reference)
        ]
        at = [MARGIN if direction > 0 else MARGIN + len(side) - 1 for side in (query, reference)]
        i, j, registers = extend_without_loss(
            *arrays,
            Tile(at[0], len(query), at[1], len(reference), direction),
            *(COSTS, window, SCRATCH),
        )
        best = best_in_triangle(FullMatrix(query, reference, NUCMER_COSTS), window)
        assert (i > 0) == (best >= 0)
        found.add(i > 0)
        if i == 0:
            continue
        operations = np.array([i << 4], dtype=np.uint32)
        if registers:
            operations = np.empty(200, dtype=np.uint32)
            count = write_path(i, j, registers, SCRATCH.directions, operations, 0)
            operations = operations[:count]
        path = [(int(one) >> 4, int(one) & 15) for one in operations]
        score = score_of(path, query[:i], reference[:j], NUCMER_COSTS)
        # What scores nothing without a gap is taken at once.
        assert score == best or (score == 0 and not registers)
        assert i + j <= 2 * window and query[i - 1] == reference[j - 1]
    assert found == {False, True}


def codes_of(text):
    return with_margins(np.array(["ACGT".index(base) for base in text], dtype=np.uint8))


def reached(query, reference, window, min_gain=0):
    tile = Tile(MARGIN, len(query), MARGIN, len(reference), 1)
    ends = codes_of(query), codes_of(reference), tile, COSTS, window
    operations = np.empty(2000, dtype=np.uint32)
    found = reach_before_drop(*ends, min_gain, SCRATCH)
    if min_gain == 0:
        used = extend_until_drop(*ends, SCRATCH, operations, 0)
        assert used[:2] == found
        path = [(int(one) >> 4, int(one) & 15) for one in operations[: used[2]]]
        assert sum(length for length, kind in path if kind != 2) == found[0]
    return found


def test_an_extension_goes_on_where_it_gets_no_worse():
    # Seven differences cost as much as so many groups of matches score.
    equal, other = "ACGGTCA", "T"
    assert reached("CCC" + equal * 3, "GGG" + equal * 3, 24) == (24, 24)
    assert reached("CCC" + equal, "GGG" + equal, 24) == (10, 10)
    assert reached("CCC" + equal[:6] + other, "GGG" + equal[:6] + "G", 24) == (0, 0)


@pytest.mark.parametrize(
    "query, reference, ends",
    [
        # A gap of three bases costs 24, as much as eight equal bases score.
        ("TTT" + "ACGGACCA", "ACGGACCA", (11, 8)),
        ("ACGGACCA", "TTT" + "ACGGACCA", (8, 11)),
        ("TTT" + "ACGGACC", "ACGGACC", (0, 0)),
        # Two gaps of one base, back on the first diagonal, and a difference: 27.
        ("T" + "ACG" + "A" + "GTCAGT", "ACG" + "TC" + "GTCAGT", (11, 11)),
        ("T" + "ACG" + "A" + "GTCAG", "ACG" + "TC" + "GTCAG", (0, 0)),
    ],
)
def test_gaps_may_score_nothing(query, reference, ends):
    assert reached(query, reference, 12) == ends


def test_an_insertion_may_use_more_of_the_query():
    chance = random.Random(3)
    text = random_bases(chance, 80)
    inserted = random_bases(chance, 20)
    # The insertion costs 143: 48 equal bases make up for it, and 20 + 2 * 48 is less than twice 60.
    assert reached(inserted + text, text, 60) == (100, 80)
    assert reached(inserted + text, text, 58) == (100, 80)
    assert reached(inserted + text, text, 57)[0] == 0


def test_what_scores_nothing_must_lie_in_the_window():
    text = "ACGGTCA"
    assert reached("CCC" + text, "GGG" + text, 10) == (10, 10)
    assert reached("CCC" + text, "GGG" + text, 9) == (0, 0)


def test_operations_have_room_for_a_window():
    text = random_bases(random.Random(5), 40)
    tile = Tile(MARGIN, 40, MARGIN, 40, 1)
    for size, expected in ((4 * 40 + 1, (40, 40, 1)), (4 * 40, (0, 0, NO_ROOM))):
        operations = np.empty(size, dtype=np.uint32)
        codes = codes_of(text), codes_of(text)
        assert extend_until_drop(*codes, tile, COSTS, 40, SCRATCH, operations, 0) == expected


def test_a_window_towards_a_match_is_fifteen_times_as_long_up_to_a_tile():
    longest = Uncompiled().function(longest_window)
    assert [longest(window) for window in (1, 99, 100, 101, 1500)] == [15, 1485, 1500, 1500, 1500]


def differing(text, step):
    """The text with another base at every step."""
    others = str.maketrans("ACGT", "CGTA")
    bases = (base.translate(others) if at % step == 0 else base for at, base in enumerate(text))
    return "".join(bases)


def test_a_long_window_must_pay():
    text = random_bases(random.Random(4), 300)
    # Every fourth base differs: each base scores a half.
    other = differing(text, 4)
    assert reached(other, text, 300) == (300, 300) and reached(other, text, 300, 1) == (0, 0)
    # Every fifth: each scores 1 exactly, which is enough.
    other = differing(text, 5)
    tile = Tile(MARGIN, 300, MARGIN, 300, 1)
    assert extend_score(codes_of(other), codes_of(text), tile, COSTS, 8, 1, SCRATCH) == (300,) * 3
    assert reached(other, text, 300, 1) == (300, 300)
    # Every seventh: each scores 1.6.
    assert reached(differing(text, 7), text, 300, 1) == (300, 300)
