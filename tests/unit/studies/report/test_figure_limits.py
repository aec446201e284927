"""Axes of figures: outliers do not stretch them."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from mummergpu.studies.report.style import mark_outliers, usual_limit


@pytest.mark.parametrize(
    ("values", "limit"),
    [
        ([1.0, 1.1, 1.2, 1.3, 9.0], 1.3),
        ([1.0, 1.1, 1.2, 1.3, 1.7], 1.7),
        ([1.0] * 9 + [1.02], 1.02),
        ([1.0] * 9 + [1.5, 2.0], 1.0),
        ([2.0], 2.0),
        ([], inf),
    ],
)
def test_only_what_is_far_above_the_others_is_beyond_the_limit(
    values: list[float], limit: float
) -> None:
    assert usual_limit(values) == limit


@given(st.lists(st.floats(1, 100), min_size=1, max_size=40))
def test_three_quarters_of_the_values_are_shown(values: list[float]) -> None:
    limit = usual_limit(values)
    assert limit in values
    assert sum(one <= limit for one in values) >= 0.75 * len(values) - 1


def test_outliers_are_told_by_number() -> None:
    axes = Figure().add_subplot()
    mark_outliers(axes, [1, 2, 3], [1.0, 7.25, 1.5], 1.5)
    assert [text.get_text() for text in axes.texts] == ["7.25"]
    assert [line.get_xydata().tolist() for line in axes.lines] == [[[2.0, 1.5]]]
