from __future__ import annotations

from math import erfc, log, sqrt
from typing import Any

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.mapped_reads import Mapped, block_of, random_bases
from helpers.sequences import reverse_complement

from mummergpu.mapping import block_mapper
from mummergpu.mapping.block_mapper import BlockMapper
from mummergpu.mapping.candidates.candidates import Candidates
from mummergpu.mapping.options import MappingOptions
from mummergpu.mapping.placing.insert_size import MIN_PAIRS, InsertSizes, estimate_insert_sizes
from mummergpu.mapping.seeding.candidate_search import CandidateFinder


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


def test_pairs_that_are_frequent_throughout_need_not_be_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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

    def counted(*arguments: Any) -> Candidates:
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
    assert sizes.shape[1] > 5
