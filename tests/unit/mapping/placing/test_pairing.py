"""Which candidates of two mates form proper pairs, against every pair of them."""

import numpy as np
import pytest

from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import (
    ALL_FOUND,
    NUMBERS,
    Candidates,
    Qualities,
    Reads,
    Scoring,
    Target,
)
from mummergpu.mapping.options import InsertSizes
from mummergpu.mapping.placing.insert_size import PairSizes
from mummergpu.mapping.placing.pairing import (
    are_facing,
    is_proper_pair,
    mate_diagonals,
    pair_penalty,
    partner_range,
    template_size,
)
from mummergpu.viterbi.recurrence.model import Costs

LENGTH, OTHER_LENGTH = 50, 40
COSTS = Costs(max_gap=10)
SIZES = PairSizes.of_sizes(InsertSizes(150.0, 10.0, 120, 190), 17)
PAIRING = SIZES.pairing(True)


def table_of(rows, first_mate):
    """Candidates: strand, record, diagonal, and the shifts at both ends; the first mate's first."""
    numbers = np.zeros((len(rows), NUMBERS), dtype=np.int32)
    for place, field in enumerate((column.STRAND, column.RECORD)):
        numbers[:, field] = [row[place] for row in rows]
    numbers[:, column.LEFT_SHIFT] = [row[3] for row in rows]
    numbers[:, column.RIGHT_SHIFT] = [row[4] for row in rows]
    return Candidates(
        np.array([0, first_mate, len(rows)], dtype=np.int64),
        np.array([first_mate, len(rows) - first_mate], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.int64),
        numbers,
        np.full(2, ALL_FOUND, dtype=np.uint8),
    )


def scoring():
    codes = np.zeros(1, dtype=np.uint8)
    offsets = np.array([0, LENGTH, LENGTH + OTHER_LENGTH], dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    return Scoring(
        Reads(offsets, codes, codes),
        Target(codes, starts, starts),
        COSTS,
        Qualities(codes, np.zeros(256, dtype=np.int32)),
    )


@pytest.mark.parametrize(
    ("one", "other", "size"),
    [
        # Forward and reverse: from the first base of the one to the last of the other.
        ((0, 0, 100, 0, 0), (1, 0, 210, 0, 0), 150),
        ((1, 0, 200, 0, 0), (0, 0, 100, 0, 0), 150),
        # Gaps move the end that counts, and not the other one.
        ((0, 0, 100, 3, 9), (1, 0, 210, 9, 2), 149),
        ((1, 0, 200, 9, -4), (0, 0, 100, -5, 9), 151),
        # The mate lies before the read, as in a short circle.
        ((0, 0, 100, 0, 0), (1, 0, 40, 0, 0), -20),
    ],
)
def test_a_template_reaches_from_one_outer_end_to_the_other(one, other, size):
    table = table_of([one, other], 1)  # type: ignore[list-item]
    assert are_facing(table, 0, 1)
    assert template_size(table, 0, LENGTH, 1, OTHER_LENGTH, NO_CIRCLES) == size


@pytest.mark.parametrize(
    ("other", "is_proper"),
    [
        ((1, 0, 179, 0, 0), False),
        ((1, 0, 180, 0, 0), True),
        ((1, 0, 250, 0, 0), True),
        ((1, 0, 251, 0, 0), False),
        ((0, 0, 210, 0, 0), False),
        ((1, 1, 210, 0, 0), False),
    ],
)
def test_proper_pairs_face_each_other_within_the_bounds(other, is_proper):
    table = table_of([(0, 0, 100, 0, 0), other], 1)  # type: ignore[list-item]
    assert is_proper_pair(table, 0, LENGTH, 1, OTHER_LENGTH, PAIRING) == is_proper
    assert not is_proper_pair(table, 0, LENGTH, -1, OTHER_LENGTH, PAIRING)
    assert not is_proper_pair(table, -1, LENGTH, 1, OTHER_LENGTH, PAIRING)
    unknown = PairSizes.of_sizes(None, 17).pairing(True)
    assert not is_proper_pair(table, 0, LENGTH, 1, OTHER_LENGTH, unknown)


def test_a_mate_on_the_outer_diagonals_has_the_outer_sizes():
    for strand in range(2):
        row = (strand, 0, 1000, 0, 0)
        first, last = mate_diagonals(table_of([row], 1), 0, LENGTH, OTHER_LENGTH, 120, 190)
        sizes = []
        for diagonal in (first, last):
            table = table_of([row, (1 - strand, 0, diagonal, 0, 0)], 1)
            sizes.append(template_size(table, 0, LENGTH, 1, OTHER_LENGTH, NO_CIRCLES))
        assert sorted(sizes) == [120, 190]


@pytest.mark.parametrize("seed", range(5))
def test_no_partner_is_missed(seed):
    random = np.random.default_rng(seed)
    rows = [
        sorted(
            (
                *random.integers(0, 2, 2).tolist(),
                int(random.integers(900, 1300)),
                *random.integers(-5, 6, 2).tolist(),
            )
            for _ in range(60)
        )
        for _ in range(2)
    ]
    # The gaps of both mates together reach no farther than one may. Those of a read ascend by
    # strand, then by diagonal.
    rows = [sorted(some, key=lambda row: (row[0], row[2])) for some in rows]
    table = table_of([*rows[0], *rows[1]], 60)
    found = 0
    for mate in range(2):
        own, others = (range(60), range(60, 120)) if mate == 0 else (range(60, 120), range(60))
        lengths = (LENGTH, OTHER_LENGTH) if mate == 0 else (OTHER_LENGTH, LENGTH)
        for row in own:
            begin, end = partner_range(table, row, mate, 1 - mate, scoring(), PAIRING)
            for other in others:
                facing = are_facing(table, row, other)
                size = template_size(table, row, lengths[0], other, lengths[1], NO_CIRCLES)
                fits = facing and PAIRING.first_size <= size <= PAIRING.last_size
                assert not fits or begin <= other < end
                if begin <= other < end:
                    penalty = pair_penalty(table, row, lengths[0], other, lengths[1], PAIRING)
                    expected = (
                        int(PAIRING.penalties[PAIRING.penalty_begin + size - PAIRING.first_size])
                        if fits
                        else -1
                    )
                    assert penalty == expected
                    found += fits
    assert found > 100
