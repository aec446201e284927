from __future__ import annotations

import numpy as np
import pytest

from mummergpu.mapping.placing.evidence import FARTHEST, UNIT, quality_thresholds, weights_of_units
from mummergpu.mapping.placing.mapping_quality import (
    COPIES_OF_A_FAMILY,
    MOST_ERROR,
    kinship_of,
    quality_of,
    weight_of,
)
from mummergpu.runtime.jit import jit_without_refcounts

THRESHOLDS = quality_thresholds()
WEIGHTS = weights_of_units()


@jit_without_refcounts
def _quality(
    weight: float, copies: float, is_proper: bool, mates: int, length: int, thresholds: np.ndarray
) -> int:
    return quality_of((weight, copies), 1.0 + weight, is_proper, mates, length, thresholds)


@jit_without_refcounts
def _weights(units: int, weights: np.ndarray) -> tuple[float, float]:
    return weight_of(units, weights), kinship_of(units, weights)


def quality(
    error: float, copies: float = 0.0, proper: bool = True, mates: int = 2, length: int = 100
) -> int:
    return _quality(error / (1 - error), copies, proper, mates, length, THRESHOLDS)


def test_a_placement_without_rivals_has_the_best_quality() -> None:
    assert quality(0.0) == quality(0.0, proper=False) == quality(0.0, proper=False, mates=1) == 60


def test_one_of_several_placements_has_no_quality() -> None:
    assert quality(MOST_ERROR + 0.001) == 0
    for proper, mates in ((True, 2), (False, 2), (False, 1)):
        assert quality(0.5, proper=proper, mates=mates) == 0
        assert quality(MOST_ERROR - 0.001, proper=proper, mates=mates) >= 1


@pytest.mark.parametrize(("proper", "mates"), [(True, 2), (False, 2), (False, 1)])
def test_the_quality_falls_with_the_error_and_never_says_less_than_it(
    proper: bool, mates: int
) -> None:
    errors = np.geomspace(1e-8, 0.99, 200)
    found = [quality(error, proper=proper, mates=mates) for error in errors]
    assert found == sorted(found, reverse=True)
    honest = -10 * np.log10(errors)
    assert all(q <= max(1.0, each) for q, each in zip(found, honest, strict=True))


def test_support_of_a_mate_and_length_raise_the_quality() -> None:
    assert quality(0.001) > quality(0.001, proper=False, mates=1) > quality(0.001, proper=False)
    lengths = [quality(0.001, length=length) for length in (36, 50, 75, 100, 150, 250)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[-1]


def test_a_large_family_takes_the_quality_away_and_a_small_one_hardly_does() -> None:
    found = [quality(0.001, copies) for copies in (0.0, 0.2, 1.0, 4.0, 10.0, COPIES_OF_A_FAMILY)]
    assert found == sorted(found, reverse=True)
    assert found[1] >= found[0] - 1
    assert found[-1] == 0


def test_kinship_is_the_fourth_root_of_the_weight_up_to_the_farthest() -> None:
    assert _weights(0, WEIGHTS) == _weights(-5, WEIGHTS) == (1.0, 1.0)
    weight, kinship = _weights(5 * UNIT, WEIGHTS)
    assert weight == pytest.approx(4.0**-5)
    assert kinship == pytest.approx(weight**0.25)
    assert min(_weights(FARTHEST, WEIGHTS)) > 0.0
    assert _weights(FARTHEST + 1, WEIGHTS) == (0.0, 0.0)
