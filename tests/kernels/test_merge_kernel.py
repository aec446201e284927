"""The kernel that merges the MEMs of pages, on the host: each row has its place, by definition."""

from collections.abc import Callable
from itertools import accumulate, pairwise

import numpy as np
import pytest
from helpers.host_device import HostProgram, compile_for_host
from hypothesis import given, settings
from hypothesis import strategies as st

from mummergpu.index.tree.policy import Policy
from mummergpu.matching.tree.cuda_program import tree_program

Row = tuple[int, int, int]
"""Query start, reference start, length."""

Page = list[list[Row]]
"""The rows of each query, ordered."""

PAGE_BASES = 1000
POISON = -77

Merge = Callable[..., Page]


@pytest.fixture(scope="module")
def merge(cxx, library_folder):
    """Merges pages one after the other, as a search does, with a grid of some threads."""
    program = HostProgram(compile_for_host(tree_program(Policy(), False, False), library_folder))

    def merge_all(pages, blocks=1, threads=1):
        found, *later = [arrays_of(page) for page in pages]
        for other in later:
            found = merged_by(program, found, other, blocks, threads)
        return page_of(found)

    return merge_all


def arrays_of(page):
    """Offsets and three columns, as they lie on a device."""
    offsets = np.array([0, *accumulate(map(len, page))], dtype=np.int64)
    rows = np.array([row for rows in page for row in rows], dtype=np.int64).reshape(-1, 3)
    return [offsets, *(np.ascontiguousarray(column) for column in rows.T)]


def page_of(arrays):
    offsets, *columns = (array.tolist() for array in arrays)
    rows = list(zip(*columns, strict=True))
    assert offsets[0] == 0 and offsets[-1] == len(rows)
    return [rows[begin:end] for begin, end in pairwise(offsets)]


def merged_by(program, earlier, later, blocks, threads):
    count = earlier[1].size + later[1].size
    sizes = (earlier[0].size, count, count, count)
    # What no thread writes stays as it is, and so does what lies behind each array.
    merged = [np.full(size + 1, POISON, dtype=np.int64) for size in sizes]
    arguments = [array.ctypes.data for array in (*earlier, *later)]
    arguments += [earlier[0].size - 1, *(array.ctypes.data for array in merged)]
    program.run("merge_pages", blocks, threads, arguments)
    assert all(array[-1] == POISON for array in merged)
    return [array[:-1] for array in merged]


def expected(pages):
    """Rows by query start; those of earlier pages first where it is equal."""
    return [
        sorted((row for rows in queries for row in rows), key=lambda row: row[0])
        for queries in zip(*pages, strict=True)
    ]


def ordered(starts, page):
    """A query's rows on a page, of which many may begin at the same base of the query."""
    return [
        (start, page * PAGE_BASES + number, 10 + number)
        for number, start in enumerate(sorted(starts))
    ]


@st.composite
def several_pages(draw):
    """The rows of some queries on some pages: of many there are none, of some there are many."""
    query_count = draw(st.integers(1, 9))
    lists = st.one_of(st.just([]), st.lists(st.integers(0, 6), max_size=40))
    return [
        [ordered(draw(lists), page) for _ in range(query_count)]
        for page in range(draw(st.integers(2, 5)))
    ]


@settings(max_examples=150, deadline=None)
@given(several_pages(), st.integers(1, 3), st.integers(1, 40))
def test_all_rows_come_in_order_and_none_is_lost(merge, pages, blocks, threads):
    assert merge(pages, blocks, threads) == expected(pages)


@pytest.mark.parametrize("empty", [(0,), (1,), (0, 1), (1, 2)])
def test_pages_without_rows_change_nothing(merge, empty):
    pages = [[ordered([1, 1, 4], page), [], ordered([2], page)] for page in range(3)]
    for page in empty:
        pages[page] = [[], [], []]
    assert merge(pages) == expected(pages)


def test_queries_without_rows_are_passed_over(merge):
    rows = ordered([0, 3, 3], 0), ordered([3, 3, 5], 1)
    for place in range(7):
        pages = [[[] if query != place else side for query in range(7)] for side in rows]
        assert merge(pages, 2, 3) == expected(pages)
    assert merge([[], []]) == []


@pytest.mark.parametrize("counts", [(20_000, 30_000), (20_000, 1), (1, 20_000), (0, 20_000)])
def test_one_query_may_have_nearly_all_rows(merge, counts):
    random = np.random.default_rng(sum(counts))
    pages = [
        [
            ordered([2], page),
            [],
            ordered(random.integers(0, 300, count).tolist(), page),
            ordered([0], page),
        ]
        for page, count in enumerate(counts)
    ]
    assert merge(pages, 7, 64) == expected(pages)


@pytest.mark.parametrize("threads", [1, 7, 5_000])
def test_all_rows_at_one_base_of_the_query_stay_in_the_order_of_pages(merge, threads):
    pages = [[[], ordered([4] * 500, page), []] for page in range(4)]
    assert merge(pages, 1, threads) == [[], [row for page in pages for row in page[1]], []]
