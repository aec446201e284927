"""The histogram of lengths holds every match once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.drawing.lengths import LengthCounter, draw_lengths


def counter_of(*parts: list[int]) -> LengthCounter:
    whole = LengthCounter()
    for part in parts:
        counter = LengthCounter()
        counter.add(np.array(part, dtype=np.int64))
        whole.merge(counter)
    return whole


some_lengths = st.lists(st.integers(1, 10**6), min_size=1, max_size=30)


@given(some_lengths, st.lists(st.integers(15, 200), max_size=30))
def test_bars_hold_all_matches(first: list[int], second: list[int]) -> None:
    counter = counter_of(first, second)
    every = sorted([*first, *second])
    assert np.repeat(counter.lengths, counter.counts).tolist() == every
    assert counter.match_count == len(every)
    edges, counts = counter.bars()
    assert (edges[0], edges[-1]) == (every[0], every[-1] + 1) and (np.diff(edges) > 0).all()
    assert counts.tolist() == np.histogram(every, [*edges[:-1], every[-1] + 0.5])[0].tolist()


def test_bars_grow_steadily() -> None:
    """Bars of one and two lengths by turns would show peaks that are not there."""
    edges, counts = counter_of(list(range(20, 3000))).bars()
    assert len(counts) > 25
    breadths = np.diff(edges)
    assert (breadths[1:] >= breadths[:-1] - 1).all() and breadths[0] >= 2


def test_the_picture_says_how_many() -> None:
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    draw_lengths(axes, counter_of([20, 20, 1500]), None, "MUMs")
    assert axes.get_title("left") == "3 MUMs · the longest has 1,500 bp"
    assert axes.get_xscale() == axes.get_yscale() == "log"
    empty = Figure().add_subplot()
    draw_lengths(empty, LengthCounter())
    assert empty.get_title("left") == "0 matches"
