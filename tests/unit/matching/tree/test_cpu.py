"""The kernels of the cpu backend through its one method: which rows, in which order."""

import numpy as np
import pytest
from helpers.in_memory import block_of, reference_of
from helpers.loops import each
from helpers.search_cases import SearchCase, find_on, rows_of
from helpers.trees import PLAIN, WIDE, layout_id

from mummergpu.index.pages import plan_pages
from mummergpu.index.tree_index import build_page
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.strand import Strand


def columns_of(reference, page, queries, minimum_length, layout=PLAIN):
    stats = Stats()
    block = block_of(queries)
    backend = TreeCpuBackend(stats)
    backend.load_pages([build_page(reference, page, layout, stats)], minimum_length)
    return find_on(backend, block)


def on_one_page(record, queries, minimum_length):
    reference = reference_of([record])
    (page,) = plan_pages(reference.codes.size, 1 << 20, minimum_length - 1)
    return rows_of(columns_of(reference, page, queries, minimum_length))


def expected(records, queries, minimum_length):
    case = SearchCase("", tuple(records), tuple(queries), minimum_length)
    return case.expected(Strand.FORWARD)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 33, 300])
@pytest.mark.parametrize("behind", ["N", "C", "CGTAGCTTNCAGGACT"])
def test_rows_of_one_query_position_ascend_however_many_they_are(count, behind):
    """They come from the tree by what stands behind them, and from a chain the last first."""
    record = "".join("GATTACA" + behind[number * 7 % len(behind)] for number in range(count))
    (rows,) = on_one_page(record, ["GATTACA"], 7)
    assert rows == [(0, 8 * number, 7) for number in range(count)]


@pytest.mark.parametrize(
    ("record", "queries", "least", "rows"),
    [
        ("ACGTACGT", ["ACG", "", "ACGT", "A"], 4, [[], [], [(0, 0, 4), (0, 4, 4)], []]),
        ("ACGTACGT", [], 4, []),
        ("ACGTACGT", ["ACG", ""], 4, [[], []]),
        # Breaks before both sequences do not match each other.
        ("CCNGATTACAT", ["CTNGATTACAC"], 4, [[(3, 3, 7)]]),
    ],
    ids=["some too short", "no queries", "all too short", "breaks"],
)
def test_rows_of_small_blocks(record, queries, least, rows):
    assert on_one_page(record, queries, least) == rows


RECORDS = ["ACGTTGCATGTCAGGCTAACGTTGCA", "TTGACNNCAGGCTAACG", "", "A" * 12, "GCATGTCAGGC"]
# Suffixes that end behind the same bases, and breaks that settle what is maximal to the left.
RECORDS += ["TGATTACA", "CGATTACA", "GATTACA", "AGATTACA", "TACGTNACGTGACGT"]
QUERIES = ["ACGTTGCATGTCAGGCTAACGTTGCA", "AAAAAAAAAAAAAAAAAA", "TTGACGCAGGCTAACGN", "GCATG", "T"]
QUERIES += ["GATTACA", "GATTACAT", "CGATTACAT", "TTACA", "TACGTNACGTNNACGT"]


@pytest.mark.parametrize("layout", [PLAIN, WIDE], ids=layout_id)
@each("page_size", [5, 6, 13, 30, 1000])
def test_pages_report_what_begins_in_their_own_part_and_nothing_twice(layout, page_size):
    reference = reference_of(RECORDS)
    found = [[] for _ in QUERIES]
    for page in plan_pages(reference.codes.size, page_size, 3):
        columns = columns_of(reference, page, QUERIES, 4, layout)
        assert (
            (page.begin <= columns.reference_starts) & (columns.reference_starts < page.owned_end)
        ).all()
        for query, rows in enumerate(rows_of(columns)):
            assert rows == sorted(rows)
            found[query] += rows
    assert [sorted(rows) for rows in found] == expected(RECORDS, QUERIES, 4)


def test_a_match_longer_than_many_pages_comes_whole_from_the_first():
    record = "".join(np.random.default_rng(9).choice(list("ACGT"), 2_000))
    reference = reference_of([record])
    pages = plan_pages(reference.codes.size, 100, 39)
    assert len(pages) > 30
    found = [rows_of(columns_of(reference, page, [record], 40))[0] for page in pages]
    assert found == [[(0, 0, 2_000)]] + [[]] * (len(pages) - 1)


def test_a_match_ends_where_its_record_ends_also_at_the_end_of_a_page():
    records = ["ACGTTGCA", "TGTCAGGC"]
    reference = reference_of(records)
    pages = plan_pages(reference.codes.size, 8, 3)
    assert pages[0].end == 8
    query = "ACGTTGCAATGTCAGGC"
    found = [row for page in pages for row in rows_of(columns_of(reference, page, [query], 4))[0]]
    assert sorted(found) == expected(records, [query], 4)[0]


@pytest.mark.parametrize("page_size", [1000, 20])
def test_more_rows_than_there_is_room_for_are_not_made(page_size):
    reference = reference_of(["A" * 50])
    stats = Stats()
    pages = plan_pages(50, page_size, 4)
    block = block_of(["A" * 20])
    backend = TreeCpuBackend(stats)
    backend.load_pages([build_page(reference, page, PLAIN, stats) for page in pages], 5)
    rows = len(expected(["A" * 50], ["A" * 20], 5)[0])
    assert find_on(backend, block, max_rows=rows - 1) is None
    assert find_on(backend, block, max_rows=rows).count == rows
