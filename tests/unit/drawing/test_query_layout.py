"""Queries in the order of where they lie, turned around where they match in reverse."""

import numpy as np
from helpers.made_matches import made_matches
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.drawing.segments import arranged, best_layout, in_layout, segments_of


def layout_of(rows, queries, references):
    order, is_turned = best_layout(segments_of(made_matches(rows, queries, references)))
    return order.tolist(), is_turned.tolist()


def test_queries_come_in_the_order_of_the_reference():
    rows = [
        (0, 1, 0, 10, 30, False),
        (1, 0, 0, 200, 30, False),
        (2, 0, 0, 50, 30, True),
        (4, 1, 0, 0, 10, False),
    ]
    order, is_turned = layout_of(rows, [40, 40, 40, 40, 40], [300, 100])
    # The fourth matches nowhere, and the fifth before the first in the second record.
    assert order == [2, 1, 4, 0, 3]
    assert is_turned == [False, False, True, False, False]


def test_the_record_that_shares_most_bases_counts():
    rows = [
        *((0, 0, start, start, 20, False) for start in (0, 30, 60)),
        (0, 1, 0, 0, 50, True),
        (1, 1, 0, 60, 5, False),
    ]
    assert layout_of(rows, [100, 100], [100, 100]) == ([0, 1], [False, False])


def test_a_far_copy_does_not_move_a_query():
    rows = [(0, 0, 0, 900, 10, False), (0, 0, 20, 120, 50, False), (1, 0, 0, 500, 50, False)]
    assert layout_of(rows, [100, 100], [1000])[0] == [0, 1]


def test_of_equal_records_the_first_counts():
    rows = [(0, 1, 0, 5, 20, False), (0, 0, 30, 50, 20, False), (1, 0, 0, 99, 1, False)]
    assert layout_of(rows, [100, 100], [100, 100])[0] == [0, 1]


def shown_rows(segments):
    """The rows of segments as the records have them, from the places on the axes."""
    queries, references = segments.queries, segments.references
    numbers = queries.numbers_of(segments.query_positions)
    rows = []
    for at, number in enumerate(numbers.tolist()):
        inside = int(segments.query_positions[at] - queries.offsets[number])
        length = int(segments.lengths[at])
        turned = bool(queries.is_turned[number])
        start = int(queries.lengths[number]) - inside - length if turned else inside
        reverse = bool(segments.is_reverse[at]) != turned
        place = int(segments.reference_positions[at])
        rows.append((queries.names[number], start, place, length, reverse))
    assert references.base_count >= 0
    return rows


@given(st.data(), st.lists(st.integers(0, 12), min_size=1, max_size=6))
def test_arranged_matches_are_the_same_matches(data, queries):
    filled = [number for number, length in enumerate(queries) if length]
    rows = []
    for _ in range(data.draw(st.integers(0, 8)) if filled else 0):
        query = data.draw(st.sampled_from(filled))
        start = data.draw(st.integers(0, queries[query] - 1))
        length = data.draw(st.integers(1, queries[query] - start))
        place = data.draw(st.integers(0, 20))
        rows.append(
            (query, data.draw(st.integers(0, 1)), start, place, length, data.draw(st.booleans()))
        )
    segments = segments_of(made_matches(rows, queries, [40, 40]))
    placed = arranged(segments)
    assert shown_rows(placed) == shown_rows(segments)
    assert sorted(placed.queries.names) == sorted(segments.queries.names)
    # Most matched bases of a query rise.
    rising = np.where(placed.is_reverse, -placed.lengths, placed.lengths)
    by_query = np.bincount(
        placed.queries.numbers_of(placed.query_positions), rising, minlength=len(queries)
    )
    assert len({row[1] for row in rows}) > 1 or (by_query >= 0).all()


def test_one_query_stays_as_it_is_unless_asked():
    segments = segments_of(made_matches([(0, 0, 10, 20, 5, True)], [50], [50]))
    assert in_layout(segments, None) is segments
    turned = in_layout(segments, True)
    assert turned.queries.label(0) == "*q0"
    assert turned.query_positions.tolist() == [35] and turned.is_reverse.tolist() == [False]
    several = segments_of(made_matches([(0, 0, 10, 20, 5, True)], [50, 1], [50]))
    assert in_layout(several, None).queries.is_turned.any()
    assert in_layout(several, False) is several


def test_no_match_at_all():
    assert layout_of([], [5, 5], [10]) == ([0, 1], [False, False])
