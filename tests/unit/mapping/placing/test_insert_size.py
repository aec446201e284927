from math import erfc, log, sqrt

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.sequences import reverse_complement

from mummergpu.mapping import block_mapper
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.options import InsertSizes, MappingOptions
from mummergpu.mapping.placing.insert_size import (
    MIN_PAIRS,
    ORIENTATION,
    ORIENTATIONS,
    QUALITY,
    SIZE,
    estimate_insert_sizes,
    size_penalties,
    sizes_of_library,
)
from mummergpu.mapping.seeding.candidate_search import CandidateFinder


def test_too_few_pairs_say_nothing():
    assert estimate_insert_sizes(np.full(MIN_PAIRS - 1, 300)) is None
    assert estimate_insert_sizes(np.full(MIN_PAIRS, 300)) is not None


def test_outliers_count_neither_for_mean_nor_for_deviation():
    sizes = np.random.default_rng(5).normal(400, 50, 2000).astype(np.int64)
    found = estimate_insert_sizes(np.concatenate((sizes, [9_000] * 100)))
    assert found is not None
    assert abs(found.mean - 400) < 5
    assert abs(found.deviation - 50) < 5
    assert 140 < found.min_size < 250
    assert 550 < found.max_size < 660


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
    assert penalties[middle] == 0
    assert (np.diff(penalties[middle:]) >= 0).all()
    assert (np.diff(penalties[: middle + 1]) <= 0).all()
    points = -0.721 * log(2 * erfc(2 / sqrt(2)))
    assert penalties[340 - first] == min(64 * unpaired, round(points * 64))


def test_bounds_of_the_user_are_taken():
    sizes = InsertSizes.of_user(300.0, 20.0, max_size=500, min_size=10)
    assert (sizes.min_size, sizes.max_size) == (10, 500)
    first, penalties = size_penalties(sizes, 17)
    assert first <= 10
    assert first + penalties.size > 500


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
    found = sizes_of_library(every)
    assert found.orientation == orientation
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
    assert many == 2 * len(begins)
    assert 0.2 * many < few < 0.9 * many
    assert sizes.shape[0] == 4 and sizes.shape[1] > 5
