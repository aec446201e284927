from __future__ import annotations

from math import erfc, log, sqrt

import numpy as np
import pytest

from mummergpu.mapping.placing.insert_size import MIN_PAIRS, InsertSizes, estimate_insert_sizes


def test_too_few_pairs_say_nothing() -> None:
    assert estimate_insert_sizes(np.full(MIN_PAIRS - 1, 300)) is None


def test_outliers_count_neither_for_mean_nor_for_deviation() -> None:
    sizes = np.random.default_rng(5).normal(400, 50, 2000).astype(np.int64)
    found = estimate_insert_sizes(np.concatenate((sizes, [9_000] * 100)))
    assert found is not None
    assert abs(found.mean - 400) < 5
    assert abs(found.deviation - 50) < 5
    assert 140 < found.min_size < 250
    assert 550 < found.max_size < 660


def test_the_order_of_pairs_does_not_matter() -> None:
    sizes = np.random.default_rng(6).integers(100, 900, 500)
    assert estimate_insert_sizes(sizes) == estimate_insert_sizes(sizes[::-1])


def test_equal_sizes() -> None:
    assert estimate_insert_sizes(np.full(100, 250)) == InsertSizes(250.0, 1.0, 246, 254)


@pytest.mark.parametrize("unpaired", [0, 5, 17])
def test_penalties_grow_from_the_mean_up_to_that_of_mates_that_are_no_pair(unpaired: int) -> None:
    sizes = InsertSizes.of_user(300.0, 20.0)
    first, penalties = sizes.penalties(unpaired, 64)
    assert first <= sizes.min_size < sizes.max_size < first + penalties.size
    assert penalties.max() <= 64 * unpaired
    middle = 300 - first
    assert penalties[middle] == 0
    assert (np.diff(penalties[middle:]) >= 0).all()
    assert (np.diff(penalties[: middle + 1]) <= 0).all()
    points = -0.721 * log(2 * erfc(2 / sqrt(2)))
    assert penalties[340 - first] == min(64 * unpaired, round(points * 64))


def test_bounds_of_the_user_are_taken() -> None:
    sizes = InsertSizes.of_user(300.0, 20.0, max_size=500, min_size=10)
    assert (sizes.min_size, sizes.max_size) == (10, 500)
    first, penalties = sizes.penalties(17, 64)
    assert first <= 10
    assert first + penalties.size > 500


def test_mates_that_are_far_apart_do_not_count() -> None:
    random = np.random.default_rng(5)
    near = random.integers(300, 500, 200)
    far = random.integers(10_001, 1_000_000, 600)
    assert estimate_insert_sizes(np.concatenate((near, far))) == estimate_insert_sizes(near)
    assert estimate_insert_sizes(far) is None
