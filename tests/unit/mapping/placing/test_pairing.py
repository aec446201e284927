"""Which candidates of mates are proper pairs, against every pair, and how far mates lie apart."""

from math import erfc, log, sqrt

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.sequences import reverse_complement

from mummergpu.input.circular_records import NO_CIRCLES
from mummergpu.mapping import block_mapper
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.candidates import candidates, column
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.mapping.placing import pairing
from mummergpu.mapping.placing.insert_size import (
    MIN_PAIRS,
    ORIENTATION,
    ORIENTATIONS,
    QUALITY,
    SIZE,
    PairSizes,
    estimate_insert_sizes,
    size_penalties,
    sizes_of_library,
)
from mummergpu.mapping.seeding.candidate_search import CandidateFinder
from mummergpu.viterbi.recurrence.model import Costs

LENGTH, OTHER_LENGTH = 50, 40
COSTS = Costs(max_gap=10)
SIZES = PairSizes.of_sizes(InsertSizes(150.0, 10.0, 120, 190), 17)
PAIRING = SIZES.pairing(True)


def table_of(rows, first_mate):
    """Candidates: strand, record, diagonal, and the shifts at both ends; the first mate's first."""
    numbers = np.zeros((len(rows), candidates.NUMBERS), dtype=np.int32)
    for place, field in enumerate((column.STRAND, column.RECORD)):
        numbers[:, field] = [row[place] for row in rows]
    numbers[:, column.LEFT_SHIFT] = [row[3] for row in rows]
    numbers[:, column.RIGHT_SHIFT] = [row[4] for row in rows]
    return candidates.Candidates(
        np.array([0, first_mate, len(rows)], dtype=np.int64),
        np.array([first_mate, len(rows) - first_mate], dtype=np.int64),
        np.array([row[2] for row in rows], dtype=np.int64),
        numbers,
        np.full(2, candidates.ALL_FOUND, dtype=np.uint8),
    )


def scoring():
    codes = np.zeros(1, dtype=np.uint8)
    offsets = np.array([0, LENGTH, LENGTH + OTHER_LENGTH], dtype=np.int64)
    starts = np.zeros(1, dtype=np.int64)
    return candidates.Scoring(
        candidates.Reads(offsets, codes, codes),
        candidates.Target(codes, starts, starts),
        COSTS,
        candidates.Qualities(codes, np.zeros(256, dtype=np.int32)),
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
    table = table_of([one, other], 1)
    assert pairing.are_facing(table, 0, 1)
    assert pairing.template_size(table, 0, LENGTH, 1, OTHER_LENGTH, NO_CIRCLES) == size


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
    table = table_of([(0, 0, 100, 0, 0), other], 1)
    assert pairing.is_proper_pair(table, 0, LENGTH, 1, OTHER_LENGTH, PAIRING) == is_proper
    assert not pairing.is_proper_pair(table, 0, LENGTH, -1, OTHER_LENGTH, PAIRING)
    assert not pairing.is_proper_pair(table, -1, LENGTH, 1, OTHER_LENGTH, PAIRING)
    unknown = PairSizes.of_sizes(None, 17).pairing(True)
    assert not pairing.is_proper_pair(table, 0, LENGTH, 1, OTHER_LENGTH, unknown)


def test_a_mate_on_the_outer_diagonals_has_the_outer_sizes():
    for strand in range(2):
        row = (strand, 0, 1000, 0, 0)
        first, last = pairing.mate_diagonals(table_of([row], 1), 0, LENGTH, OTHER_LENGTH, 120, 190)
        sizes = []
        for diagonal in (first, last):
            table = table_of([row, (1 - strand, 0, diagonal, 0, 0)], 1)
            sizes.append(pairing.template_size(table, 0, LENGTH, 1, OTHER_LENGTH, NO_CIRCLES))
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
            begin, end = pairing.partner_range(table, row, mate, 1 - mate, scoring(), PAIRING)
            for other in others:
                facing = pairing.are_facing(table, row, other)
                size = pairing.template_size(table, row, lengths[0], other, lengths[1], NO_CIRCLES)
                fits = facing and PAIRING.first_size <= size <= PAIRING.last_size
                assert not fits or begin <= other < end
                if begin <= other < end:
                    penalty = pairing.pair_penalty(
                        table, row, lengths[0], other, lengths[1], PAIRING
                    )
                    expected = (
                        int(PAIRING.penalties[PAIRING.penalty_begin + size - PAIRING.first_size])
                        if fits
                        else -1
                    )
                    assert penalty == expected
                    found += fits
    assert found > 100


def test_too_few_pairs_say_nothing():
    assert estimate_insert_sizes(np.full(MIN_PAIRS - 1, 300)) is None
    assert estimate_insert_sizes(np.full(MIN_PAIRS, 300)) is not None


def test_outliers_count_neither_for_mean_nor_for_deviation():
    sizes = np.random.default_rng(5).normal(400, 50, 2000).astype(np.int64)
    found = estimate_insert_sizes(np.concatenate((sizes, [9_000] * 100)))
    assert abs(found.mean - 400) < 5 and abs(found.deviation - 50) < 5
    assert 140 < found.min_size < 250 and 550 < found.max_size < 660


def test_the_order_of_pairs_does_not_matter():
    sizes = np.random.default_rng(6).integers(100, 900, 500)
    assert estimate_insert_sizes(sizes) == estimate_insert_sizes(sizes[::-1])


def test_equal_sizes():
    assert estimate_insert_sizes(np.full(100, 250)) == InsertSizes(250.0, 1.0, 246, 254)


@pytest.mark.parametrize("unpaired", [0, 5, 17])
def test_penalties_grow_from_the_mean_up_to_that_of_mates_that_are_no_pair(unpaired):
    sizes = InsertSizes.of_user(300.0, 20.0)
    first, penalties = size_penalties(sizes, unpaired)
    assert first <= sizes.min_size < sizes.max_size < first + penalties.size
    assert penalties.max() <= 64 * unpaired
    middle = 300 - first
    assert penalties[middle] == 0 and (np.diff(penalties[middle:]) >= 0).all()
    assert (np.diff(penalties[: middle + 1]) <= 0).all()
    points = -0.721 * log(2 * erfc(2 / sqrt(2)))
    assert penalties[340 - first] == min(64 * unpaired, round(points * 64))


def test_bounds_of_the_user_are_taken():
    sizes = InsertSizes.of_user(300.0, 20.0, max_size=500, min_size=10)
    assert (sizes.min_size, sizes.max_size) == (10, 500)
    first, penalties = size_penalties(sizes, 17)
    assert first <= 10 and first + penalties.size > 500


def test_mates_that_are_far_apart_do_not_count():
    random = np.random.default_rng(5)
    near = random.integers(300, 500, 200)
    far = random.integers(10_001, 1_000_000, 600)
    assert estimate_insert_sizes(np.concatenate((near, far))) == estimate_insert_sizes(near)
    assert estimate_insert_sizes(far) is None


def measured(sizes, quality=60, orientation="fr"):
    """What the measured templates of some sizes are."""
    rows = np.zeros((4, len(sizes)), dtype=np.int64)
    rows[SIZE], rows[QUALITY], rows[ORIENTATION] = sizes, quality, ORIENTATIONS.index(orientation)
    return rows


def normal(mean, deviation, count):
    return np.random.default_rng(int(mean)).normal(mean, deviation, count).astype(np.int64)


def test_pairs_that_are_barely_placed_count_where_too_few_are_well_placed():
    sizes = np.arange(280, 321)
    good, barely = measured(sizes), measured(sizes + 100, quality=1)
    assert sizes_of_library(np.concatenate((good, barely), axis=1)).mean == 300
    assert sizes_of_library(np.concatenate((good[:, :1], barely), axis=1)).mean > 390


def test_a_wide_range_is_proper_where_too_few_pairs_are_placed():
    none = sizes_of_library(measured([]))
    assert none.is_wide and none.proper == [[1, 1000]]
    few = sizes_of_library(measured([2000] * (MIN_PAIRS - 1)), "rf")
    assert few.is_wide and few.proper == [[1, 1000]] and few.orientation == "rf"
    few = sizes_of_library(measured([2000] * (MIN_PAIRS - 1)))
    assert few.mean == 2000 and few.proper == [[1, 4000]]
    assert not sizes_of_library(measured([2000] * MIN_PAIRS)).is_wide


@pytest.mark.parametrize("share", [0.005, 0.015, 0.15, 0.4])
@pytest.mark.parametrize("mean, deviation", [(330, 18), (1000, 4), (7000, 300)])
def test_a_further_bell_is_proper_from_a_hundredth_on(share, mean, deviation):
    others = int(share * 5000)
    sizes = np.concatenate((normal(167, 10, 5000 - others), normal(mean, deviation, others)))
    found = sizes_of_library(measured(sizes))
    first, *more = found.proper
    assert first[0] <= 140 and 195 <= first[1] < 280 and found.mean < 180
    assert len(more) == (share > 0.01)
    if more:
        assert more[0][0] < mean - 2 * deviation and mean + 2 * deviation < more[0][1]
        listed, penalties = size_penalties(found, 17)
        points = max(0.0, 0.721 * log((1 - share) / share / 2))
        assert abs(penalties[mean - listed] - 64 * points) < 12
        assert penalties[240 - listed] == 17 * 64 or mean == 330


@pytest.mark.parametrize("mean, deviation", [(300, 25), (500, 50), (400, 130), (150, 1)])
def test_one_bell_stays_one(mean, deviation):
    sizes = normal(mean, deviation, 16000).clip(1)
    found = sizes_of_library(measured(sizes))
    assert found == estimate_insert_sizes(sizes) and not found.others


def test_sizes_that_lie_everywhere_are_no_bell():
    sizes = np.concatenate(
        (normal(300, 25, 9000), np.random.default_rng(1).integers(1, 10000, 900))
    )
    assert len(sizes_of_library(measured(sizes)).others) == 0


def test_pairs_farther_in_tell_other_bells():
    first, later = measured(normal(300, 25, 16000)), measured(normal(900, 40, 500))
    found = sizes_of_library(first, later=later)
    assert [
        least < mean < most for (least, most), mean in zip(found.proper, (300, 900), strict=True)
    ]
    assert found.mean == sizes_of_library(first).mean


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_the_orientation_is_that_of_most_pairs(orientation):
    few = [measured(normal(500, 50, 400), orientation=one) for one in ORIENTATIONS]
    most = measured(normal(3000, 200, 1000), orientation=orientation)
    every = np.concatenate((*few, most), axis=1)
    assert sizes_of_library(every).orientation == orientation
    assert sizes_of_library(every, "ff").orientation == "ff"


def test_pairs_that_are_frequent_throughout_need_not_be_placed(monkeypatch):
    """Their qualities are 0, so that their sizes do not count."""
    random = np.random.default_rng(3)
    copy = random_bases(random, 300)
    bases = b"".join(random_bases(random, 500) + copy for _ in range(12))
    # Some templates lie in a copy, others beside one, or partly.
    begins = [*range(0, 800, 20), *random.integers(800, len(bases) - 250, 30).tolist()]
    templates = [bases[begin : begin + 250].decode() for begin in begins]
    mates = [(one[:80], reverse_complement(one[-80:])) for one in templates]
    reads = [read.encode() for pair in mates for read in pair]
    mapped = Mapped(block_of(reads, True), reference_of([bases]), 16)
    mapper = BlockMapper(mapped.reference, MappingOptions(16, max_occurrences=5))
    placed = []
    find = CandidateFinder.find

    def counted(*arguments):
        found = find(*arguments)
        placed.append(int(np.count_nonzero(found.counts)))
        return found

    monkeypatch.setattr(CandidateFinder, "find", counted)
    sizes = mapper.insert_sizes(mapped.block, mapped.mems)
    monkeypatch.setattr(block_mapper, "without_frequent_pairs", lambda mems: mems)
    assert np.array_equal(mapper.insert_sizes(mapped.block, mapped.mems), sizes)
    few, many = placed
    assert many == 2 * len(begins) and 0.2 * many < few < 0.9 * many
    assert sizes.shape[0] == 4 and sizes.shape[1] > 5
