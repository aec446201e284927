"""Matches of several pages and of neighbouring blocks, put together."""

import numpy as np
import pytest
from helpers.in_memory import Row, columns_of
from helpers.search_cases import rows_of

from mummergpu.matching.row_order import join_all, merge_pages

Rows = list[Row]
PAGE_BASES = 1000


def made_rows(random, page, query_count):
    """The rows of queries on one page, ordered; many begin at the same base of a query."""
    queries = []
    for _ in range(query_count):
        count = int(random.choice([0, 0, 1, 3, 40]))
        places = random.choice(20 * PAGE_BASES, count, replace=False)
        rows = sorted((int(place) % 20, page * PAGE_BASES + int(place) // 20) for place in places)
        queries.append([(*row, int(random.integers(1, 99))) for row in rows])
    return queries


@pytest.mark.parametrize("query_count", [0, 1, 30])
@pytest.mark.parametrize("page_count", [1, 2, 3, 4, 5, 8, 11])
def test_the_rows_of_all_pages_come_in_order_and_none_is_lost(page_count, query_count):
    random = np.random.default_rng(100 * page_count + query_count)
    pages = [made_rows(random, page, query_count) for page in range(page_count)]
    merged = rows_of(merge_pages([columns_of(page) for page in pages]))
    expected = [sorted(row for page in pages for row in page[q]) for q in range(query_count)]
    assert merged == expected


def test_at_equal_query_starts_the_earlier_page_comes_first():
    later = columns_of([[(0, 500, 9), (7, 500, 9)]])
    earlier = columns_of([[(0, 10, 9), (0, 20, 9), (7, 10, 9)]])
    assert rows_of(merge_pages([earlier, later])) == [
        [(0, 10, 9), (0, 20, 9), (0, 500, 9), (7, 10, 9), (7, 500, 9)]
    ]


def test_the_pages_are_left_as_they_were():
    random = np.random.default_rng(3)
    pages = [made_rows(random, page, 5) for page in range(3)]
    columns = [columns_of(page) for page in pages]
    merge_pages(columns)
    assert [rows_of(page) for page in columns] == pages


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 3), (3, 0), (1, 1), (12, 7)])
def test_blocks_are_joined_query_by_query(first, second):
    random = np.random.default_rng(10 * first + second)
    one, other = made_rows(random, 0, first), made_rows(random, 0, second)
    assert rows_of(join_all((columns_of(one), columns_of(other)))) == one + other
