"""The matches that contain whole windows, beside a plain loop."""

import numpy as np
import pytest

from mummergpu.mapping.options import has_enough_windows, seed_length
from mummergpu.mapping.seeding.windows import matches_of_windows, shortest_sure_match
from mummergpu.sequence.mems import MemColumns


def random_matches(seed, read_count):
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 5, read_count)
    total = int(counts.sum())
    return MemColumns(
        np.concatenate(([0], np.cumsum(counts))),
        generator.integers(0, 120, total),
        generator.integers(0, 10_000, total),
        generator.integers(5, 90, total),
    )


def contains_window(start, length, window):
    return any(
        start <= first and first + window <= start + length for first in range(0, 300, window)
    )


@pytest.mark.parametrize("window", [5, 20, 37])
def test_a_match_stays_if_a_window_lies_in_it(window):
    given = random_matches(window, 200)
    kept = matches_of_windows(given, window)
    expected = []
    for read in range(200):
        for row in range(given.offsets[read], given.offsets[read + 1]):
            start, length = int(given.query_starts[row]), int(given.lengths[row])
            if contains_window(start, length, window):
                expected.append((read, start, int(given.reference_starts[row]), length))
    reads = np.repeat(np.arange(200), np.diff(kept.offsets))
    found = zip(reads, kept.query_starts, kept.reference_starts, kept.lengths, strict=True)
    assert [tuple(map(int, row)) for row in found] == expected
    assert 0 < len(expected) < given.lengths.size


def test_long_matches_contain_a_window_wherever_they_begin():
    window = 37
    sure = shortest_sure_match(window)
    assert all(contains_window(start, sure, window) for start in range(window))
    assert not all(contains_window(start, sure - 1, window) for start in range(window))


@pytest.mark.parametrize("read_length", range(30, 501, 7))
def test_windows_are_used_where_one_stays_whole_under_four_edits(read_length):
    length = seed_length(read_length)
    assert has_enough_windows(read_length, length) == (5 * length <= read_length)
    if read_length >= 80:
        assert has_enough_windows(read_length, length)
