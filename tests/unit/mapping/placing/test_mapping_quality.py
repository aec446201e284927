import numpy as np
import pytest

from mummergpu.mapping.candidates import candidates
from mummergpu.mapping.placing import mapping_quality
from mummergpu.runtime.jit import jit
from mummergpu.viterbi.recurrence.model import Costs

THRESHOLDS = candidates.quality_thresholds()
WEIGHTS = candidates.likelihoods_of_scores()


@jit
def _quality(weight, copies, is_proper, length, thresholds):
    return mapping_quality.quality_of((weight, copies), 1.0 + weight, is_proper, length, thresholds)


@jit
def _weights(score_fixed, weights):
    return mapping_quality.weight_of(score_fixed, weights), mapping_quality.repeat_similarity_of(
        score_fixed, weights
    )


def quality(error, copies=0.0, proper=True, length=100):
    return _quality(error / (1 - error), copies, proper, length, THRESHOLDS)


def test_a_placement_without_rivals_has_the_best_quality():
    assert quality(0.0) == quality(0.0, proper=False) == 60


def test_one_of_several_placements_has_no_quality():
    for length in (36, 50, 100, 250):
        assert quality(mapping_quality.MAX_ERROR + 0.001, length=length) == 0
        assert quality(0.5, proper=False, length=length) == 0
    assert quality(mapping_quality.MAX_ERROR - 0.001) >= 1
    for length, proper, doubt in (
        (36, True, mapping_quality.MAX_PAIRED_DOUBT),
        (36, False, mapping_quality.MAX_PAIRED_DOUBT),
        (100, False, mapping_quality.UNSUPPORTED_DOUBT),
    ):
        most = mapping_quality.MAX_DOUBTED_ERROR / doubt
        assert quality(most + 0.0001, proper=proper, length=length) == 0
        assert quality(most - 0.0001, proper=proper, length=length) >= 1


@pytest.mark.parametrize("proper", [True, False])
def test_the_quality_falls_with_the_error_and_never_says_less_than_it(proper):
    errors = np.geomspace(1e-8, 0.99, 200)
    found = [quality(error, proper=proper) for error in errors]
    assert found == sorted(found, reverse=True)
    honest = -10 * np.log10(errors)
    assert all(q <= max(1.0, each) for q, each in zip(found, honest, strict=True))


LENGTHS = (36, 50, 75, 100, 150, 250)


def test_the_length_of_reads_of_a_pair_raises_their_quality():
    found = [quality(0.001, length=length) for length in LENGTHS]
    assert found == sorted(found) and found[0] < found[-1]


def test_a_read_that_no_mate_supports_has_no_better_quality_than_one_of_a_pair():
    for length in (30, *LENGTHS):
        for error in (1e-5, 1e-4, 1e-3, 1e-2):
            assert quality(error, 0.1, proper=False, length=length) <= quality(
                error, 0.1, length=length
            )
    assert quality(0.001, proper=False) < quality(0.001)


@pytest.mark.parametrize("length", [50, 75, 100, 150, 250])
def test_a_lead_of_one_base_that_no_mate_supports_is_not_trusted(length):
    one_base = 5 * candidates.UNIT - min(candidates.credits_of_qualities(Costs()))
    weight, repeat_similarity = _weights(one_base, WEIGHTS)
    assert 1 <= _quality(weight, repeat_similarity, False, length, THRESHOLDS) < 20
    two, repeat_similarity = _weights(2 * 5 * candidates.UNIT, WEIGHTS)
    assert _quality(two, repeat_similarity, False, length, THRESHOLDS) >= 20
    assert _quality(weight, repeat_similarity, True, length, THRESHOLDS) >= 20


def test_a_base_without_quality_gives_no_credit():
    """A mismatch costs five points; an error of quality 0 makes one of three bases, 4.2 less."""
    credits = candidates.credits_of_qualities(Costs())
    assert credits[[0, 28, 29, 93]].tolist() == [269, -28, -31, -31] and not credits[94:].any()


def test_a_large_family_takes_the_quality_away_and_a_small_one_hardly_does():
    found = [
        quality(0.001, copies)
        for copies in (0.0, 0.2, 1.0, 4.0, 10.0, mapping_quality.REPEAT_COPIES)
    ]
    assert found == sorted(found, reverse=True) and found[1] >= found[0] - 1
    assert found[-1] == 0


def test_without_a_mate_a_family_counts_by_the_bases_that_its_copies_share():
    found = [quality(0.0001, 2.0, proper=False, length=length) for length in LENGTHS]
    assert found == sorted(found, reverse=True) and found[-1] < found[1]
    assert quality(0.0001, mapping_quality.REPEAT_BASES / 100, proper=False, length=100) == 0


def test_kinship_is_the_fourth_root_of_the_weight_up_to_the_farthest():
    assert _weights(0, WEIGHTS) == _weights(-5, WEIGHTS) == (1.0, 1.0)
    weight, repeat_similarity = _weights(5 * candidates.UNIT, WEIGHTS)
    assert weight == pytest.approx(4.0**-5) and repeat_similarity == pytest.approx(weight**0.25)
    assert min(_weights(candidates.FARTHEST, WEIGHTS)) > 0.0
    assert _weights(candidates.FARTHEST + 1, WEIGHTS) == (0.0, 0.0)
