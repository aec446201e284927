import numpy as np
import pytest
from helpers.uncompiled import Uncompiled

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    DEAD,
    EXACT,
    NUMBERS,
    Candidates,
    are_apart,
    is_rival,
    likelihoods_of_scores,
    quality_thresholds,
    read_interval,
)
from mummergpu.mapping.placing.choice import new_choices
from mummergpu.mapping.placing.mapping_quality import Odds
from mummergpu.mapping.placing.secondary import Extra, min_score_beside, split_reads
from mummergpu.viterbi.recurrence.model import Costs

LENGTH = 100
MIN_SCORE = 30


def table_of(rows):
    """Candidates of one read: strand, begin and end of what they align there, score and state."""
    numbers = np.zeros((len(rows), NUMBERS), dtype=np.int32)
    for row, (strand, begin, end, score, state) in enumerate(rows):
        numbers[row, column.STRAND], numbers[row, column.SCORE], numbers[row, column.STATE] = (
            strand,
            score,
            state,
        )
        # The seed is in the middle, so that both flanks have bases.
        numbers[row, column.SEED_BEGIN], numbers[row, column.SEED_BASES] = (
            begin + 5,
            end - begin - 12,
        )
        numbers[row, column.LEFT_QUERY_BASES], numbers[row, column.RIGHT_QUERY_BASES] = 5, 7
    return Candidates(
        np.array([0, len(rows)], dtype=np.int64),
        np.array([len(rows)], dtype=np.int64),
        np.arange(len(rows), dtype=np.int64),
        numbers,
        np.full(1, ALL_FOUND, dtype=np.uint8),
    )


def test_parts_are_those_of_the_read_on_both_strands():
    table = table_of([(0, 10, 60, 50, EXACT), (1, 10, 60, 50, EXACT)])
    assert [read_interval(table, row, LENGTH) for row in range(2)] == [(10, 60), (40, 90)]


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ((0, 40), (40, 100), True),
        ((0, 40), (21, 100), True),
        ((0, 40), (20, 100), False),
        ((30, 50), (0, 100), False),
        ((0, 60), (50, 70), False),
        ((0, 60), (51, 70), True),
    ],
)
def test_parts_compete_that_share_half_of_the_shorter_one(one, other, apart):
    assert are_apart(one, other) == are_apart(other, one) == apart
    table = table_of([(0, *one, 50, EXACT), (0, *other, 50, EXACT), (0, *one, 50, DEAD)])
    assert is_rival(table, 0, 1, LENGTH) != apart and not is_rival(table, 0, 0, LENGTH)
    assert not is_rival(table, 2, 1, LENGTH)


@pytest.mark.parametrize(
    ("others", "found"),
    [
        # The best one that aligns what is clipped, and the first of equal ones.
        ([(0, 60, 95, 35, EXACT), (1, 5, 40, 36, EXACT), (0, 61, 97, 36, EXACT)], 2),
        # Not one of the part that is aligned already, a dead one, or one that scores too little.
        ([(0, 0, 60, 60, EXACT), (0, 60, 95, 60, DEAD), (0, 60, 90, MIN_SCORE - 1, EXACT)], -1),
        # The bonus of an end that is reached does not count.
        ([(0, 65, 100, MIN_SCORE + 4, EXACT)], -1),
        ([(0, 65, 100, MIN_SCORE + 5, EXACT)], 1),
    ],
)
def test_a_split_read_has_the_best_candidate_of_its_clip(others, found):
    table = table_of([(0, 0, 60, 65, EXACT), *others])
    extra = Extra(np.empty(1, dtype=np.int64), np.empty(1, dtype=np.uint8))
    choices, odds = new_choices(1), Odds(likelihoods_of_scores(), quality_thresholds())
    offsets = np.array([0, LENGTH], dtype=np.int64)
    for chosen, expected in ((0, found), (-1, -1)):
        choices.candidates[0] = chosen
        split_reads(offsets, table, choices, Costs(), MIN_SCORE, odds, extra)
        assert extra.candidates.tolist() == [expected]
        assert (extra.qualities[0] > 0) <= (expected >= 0)


@pytest.mark.parametrize(("clip", "found"), [(19, -1), (20, 1)])
def test_a_short_clip_is_not_looked_at(clip, found):
    table = table_of([(0, 0, LENGTH - clip, 80, EXACT), (0, 60, 99, 40, EXACT)])
    table.numbers[1, column.SEED_BEGIN] = LENGTH - clip + 5
    extra = Extra(np.empty(1, dtype=np.int64), np.empty(1, dtype=np.uint8))
    choices = new_choices(1)
    choices.candidates[0] = 0
    odds = Odds(likelihoods_of_scores(), quality_thresholds())
    offsets = np.array([0, LENGTH], dtype=np.int64)
    split_reads(offsets, table, choices, Costs(), MIN_SCORE, odds, extra)
    assert extra.candidates.tolist() == [found]


@pytest.mark.parametrize(("score", "least"), [(30, 24), (31, 25), (34, 28), (35, 28), (36, 29)])
def test_an_alternative_scores_four_fifths(score, least):
    """Four fifths or a little more, of the score without the bonus of the ends."""
    beside = Uncompiled().function(min_score_beside)
    for begin, end, bonus in ((10, 60, 0), (0, 60, 5), (0, LENGTH, 10)):
        table = table_of([(0, begin, end, score + bonus, EXACT)])
        assert beside(table, 0, LENGTH, Costs()) == least
