"""Coverage counts every matched base of every bin."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.drawing.coverage import CoverageCounter, draw_coverage
from mummergpu.drawing.records import Records


def records_of(lengths: list[int]) -> Records:
    names = [f"r{number}" for number in range(len(lengths))]
    return Records(names, np.array(lengths, dtype=np.int64), "reference")


@given(st.data(), st.lists(st.integers(0, 30), min_size=1, max_size=5), st.integers(1, 40))
def test_bins_hold_the_bases_of_their_matches(data: Any, lengths: list[int], bins: int) -> None:
    records = records_of([*lengths, 1])
    total = records.base_count
    whole = CoverageCounter(records, bins)
    expected = np.zeros((2, total), dtype=np.int64)
    for _ in range(data.draw(st.integers(1, 3))):
        part = CoverageCounter(records, bins)
        starts = data.draw(st.lists(st.integers(0, total - 1), max_size=5))
        sizes = [data.draw(st.integers(1, total - start)) for start in starts]
        reverse = [data.draw(st.booleans()) for _ in starts]
        for start, size, way in zip(starts, sizes, reverse, strict=True):
            expected[int(way), start : start + size] += 1
        part.add(np.array(starts, np.int64), np.array(sizes, np.int64), np.array(reverse, bool))
        whole.merge(part)
    edges = whole.edges
    assert (
        edges[0] == 0
        and edges[-1] == total
        and set(records.offsets.tolist()) <= set(edges.tolist())
    )
    sums = np.add.reduceat(expected, edges[:-1], axis=1)
    assert whole.matched_bases().tolist() == sums.tolist()


def test_strands_are_drawn_upon_each_other() -> None:
    from matplotlib.figure import Figure

    counter = CoverageCounter(records_of([100, 50]), 15)
    counter.add(np.array([0, 0, 100]), np.array([50, 20, 50]), np.array([False, True, True]))
    axes = Figure().add_subplot()
    draw_coverage(axes, counter, "A title")
    forward, reverse = (patch.get_data() for patch in axes.patches)
    assert forward.values.tolist() == [1] * 5 + [0] * 10
    assert reverse.values.tolist() == [2, 2, 1, 1, 1] + [0] * 5 + [1] * 5
    assert reverse.baseline.tolist() == forward.values.tolist()
    assert axes.get_title("left") == "A title\n3 matches"
    assert axes.get_ylabel() == "matches over a base\n(mean of 10 bp)"
