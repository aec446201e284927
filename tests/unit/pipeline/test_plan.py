"""How a run is divided: which format, how large the pages, which of them together."""

import pytest
from helpers.options import index_options
from helpers.plans import padded_bytes, plan_of, reference_of_size, sizes_of

from mummergpu.errors import OptionError
from mummergpu.index.kmer_index import UNKNOWN_QUERY_BASES
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import DEFAULT_POLICY
from mummergpu.index.tree_index import search_length
from mummergpu.pipeline.context import RunContext
from mummergpu.pipeline.plan import choose_block_size, describe_plan, plan_index

pytestmark = pytest.mark.usefixtures("without_bases")

PAPERS = 8_388_608
TREE, BUILDING = 97, 65
"""Bytes a base of a wide page: of its tree, and of what building it takes besides."""


@pytest.mark.parametrize(
    ("bases", "told", "wide"),
    [
        (PAPERS, {}, False),
        (3 * PAPERS, {}, False),
        (PAPERS, {"page_size": PAPERS + 1}, False),
        (PAPERS + 1, {"page_size": PAPERS + 1}, True),
        (100, {"page_size": 1 << 30}, False),
        (100, {"address_bits": 32}, True),
        (100, {"address_bits": 32, "page_size": 30}, True),
        (3 * PAPERS, {"address_bits": 24}, False),
        (3 * PAPERS, {"address_bits": 24, "page_size": None}, False),
        (PAPERS, {"page_size": None}, False),
        (PAPERS, {"page_size": None, "address_bits": 32}, True),
        (PAPERS + 1, {"page_size": None}, True),
    ],
)
def test_the_format_is_the_papers_while_its_addresses_reach(bases, told, wide, free):
    free(1 << 40)
    assert plan_of(bases, **told).layout == Layout.of(DEFAULT_POLICY, wide)


@pytest.mark.parametrize(
    ("told", "option", "message"),
    [
        ({"page_size": (1 << 30) + 1}, "page_size", "at most 1073741824 bases"),
        ({"page_size": PAPERS + 1, "address_bits": 24}, "address_bits", "at most 8388608 bases"),
    ],
)
def test_pages_too_large_for_the_addresses_are_refused(told, option, message):
    with pytest.raises(OptionError, match=message) as caught:
        plan_of(100, **told)
    assert caught.value.option == option


@pytest.mark.parametrize("bases", [1, 1000, PAPERS])
def test_a_reference_that_fits_one_page_is_one(bases, free):
    free(1)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]


def test_the_whole_reference_is_one_page_if_it_fits_the_memory(free):
    bases = 250_000_000
    needed = bases * (TREE + BUILDING) + padded_bytes(bases)
    free(2 * needed)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]
    free(2 * needed - 2)
    assert len(plan_of(bases, page_size=None).pages) == 2
    free(1)
    assert sizes_of(plan_of(bases, page_size=None, memory=needed)) == [bases]
    assert len(plan_of(bases, page_size=None, memory=needed - 1).pages) == 2


@pytest.mark.parametrize("minimum_length", [1, 20, 1000])
@pytest.mark.parametrize("share", [2, 3, 5, 7.3, 11])
def test_pages_are_equal_and_as_few_as_fit(share, minimum_length):
    bases = 250_000_000
    fitting = int(bases / share)
    memory = fitting * (TREE + BUILDING) + padded_bytes(bases)
    plan = plan_of(bases, page_size=None, memory=memory, minimum_length=minimum_length)
    sizes = sizes_of(plan)
    assert max(sizes) <= fitting
    assert max(sizes) - min(sizes) <= len(sizes)
    overlap = minimum_length - 1
    assert bases > (len(sizes) - 1) * (fitting - overlap) + overlap, "fewer would do"
    assert plan.layout.wide
    assert all(len(group) == 1 for group in plan.groups)


def test_the_backend_can_hold_less_than_the_host():
    bases = 100_000_000
    most = 40_000_000 * TREE
    plan = plan_of(bases, most, page_size=None, memory=1 << 40)
    assert len(plan.pages) == 3
    assert [len(group) for group in plan.groups] == [1, 1, 1]
    assert max(sizes_of(plan)) * TREE <= most
    plan = plan_of(bases, most, page_size=15_000_000, memory=1 << 40)
    assert [len(group) for group in plan.groups] == [2, 2, 2, 1]
    assert len(plan_of(bases, 1 << 40, page_size=None, memory=1 << 40).pages) == 1


def test_pages_are_never_smaller_than_the_papers_for_want_of_memory():
    for memory, most in ((1, None), (1 << 40, 1)):
        plan = plan_of(3 * PAPERS, most, page_size=None, memory=memory)
        assert max(sizes_of(plan)) == PAPERS
        assert not plan.layout.wide
        assert len(plan.groups) == len(plan.pages)


def test_no_page_is_larger_than_its_addresses(free):
    free(1 << 60)
    plan = plan_of(3_100_000_000, page_size=None)
    assert len(plan.pages) == 3
    assert max(sizes_of(plan)) <= 1 << 30


@pytest.mark.parametrize(
    ("page_size", "minimum_length", "expected"),
    [(PAPERS, 20, 20), (30, 20, 15), (31, 20, 16), (1, 20, 1), (None, 20, 20)],
)
def test_pages_overlap_by_less_than_half(page_size, minimum_length, expected):
    told = {"page_size": page_size, "minimum_length": minimum_length}
    assert search_length(page_size, minimum_length) == expected
    assert plan_of(1000, **told).search_length == expected


def test_matches_longer_than_the_papers_page_are_planned_for():
    told = {"page_size": None, "minimum_length": 2 * PAPERS}
    plan = plan_of(5 * PAPERS, memory=1, **told)
    assert plan.search_length == PAPERS // 2
    assert plan.pages[-1].end == 5 * PAPERS


def test_the_report_tells_the_plan():
    lines = []
    context = RunContext(notice=lines.append)
    stats = context.stats
    told = {"page_size": 30, "memory": 1}
    plan = plan_of(100, address_bits=32, **told)
    describe_plan(plan, 20, "cpu", context)
    assert stats.settings["page_size"] == 30
    assert stats.settings["address_bits"] == 32
    assert stats.settings["page_groups"] == stats.counts["pages"] == len(plan.pages)
    (line,) = lines
    assert f"{len(plan.pages)} pages in {len(plan.groups)} groups; " in line
    assert "32-bit addresses" in line
    describe_plan(plan_of(100, **told), 20, "cpu", context)
    assert "24-bit addresses" in lines[-1]


def taken_megabytes(index):
    assert index.memory_warning is not None
    return int(index.memory_warning.split("this reference takes ")[1].split("M ")[0])


def test_a_limit_that_nothing_keeps_to_is_told():
    bases = 100_000_000
    for told, least in (({"search": "kmer"}, 100 << 20), ({"page_size": None}, 800 << 20)):
        reference = reference_of_size(bases)
        lowest = plan_index(reference, index_options(memory=1 << 20, **told), 2)
        asked = taken_megabytes(lowest) << 20
        assert least < asked < 4 * least
        enough = plan_index(reference, index_options(memory=asked, **told), 2)
        assert enough.memory_warning is None
        # No limit takes more than a higher one.
        peaks = [
            max(index.peak_bytes(group, 2) for group in index.groups) for index in (lowest, enough)
        ]
        assert peaks[0] <= peaks[1]
        less = plan_index(reference, index_options(memory=asked - (80 << 20), **told), 2)
        assert less.memory_warning is not None
        lines = []
        describe_plan(less, 20, "cpu", RunContext(2, warn=lines.append))
        assert lines == [less.memory_warning]
    # What is negligible is not told.
    for told in ({"search": "kmer"}, {"page_size": 300}):
        index = plan_index(reference_of_size(1000), index_options(memory=1, **told), 2)
        assert index.groups and index.memory_warning is None


@pytest.mark.parametrize(
    ("file_bytes", "threads", "asked", "expected"),
    [
        (4_000, 2, None, 8_000 // 8),
        (20_000, 2, None, 20_000 // 8),
        (10_000_000, 2, None, 8_000),
        (10_000_000, 2, 77, 77),
        (10_000, 2, 5_000_000, 5_000_000),
    ],
)
def test_blocks_are_small_where_queries_are_few(tmp_path, file_bytes, threads, asked, expected):
    half = tmp_path / "half.fa"
    half.write_bytes(b"A" * (file_bytes // 2))
    assert choose_block_size(asked, (str(half), str(half)), threads, 8_000) == expected


def test_blocks_are_as_the_backend_likes_where_nobody_knows_the_size():
    assert choose_block_size(None, ("-",), 2, 8_000) == 8_000


@pytest.mark.parametrize("kind", ["kmer", "tree"])
def test_what_else_needs_memory_is_taken_from_the_limit(kind):
    reference = reference_of_size(300_000_000)
    other = 200 << 20

    def plan(memory, other_bytes):
        options = index_options(search=kind, page_size=None, memory=memory)
        return plan_index(reference, options, 1, None, UNKNOWN_QUERY_BASES, other_bytes)

    enough = {"kmer": 700 << 20, "tree": 12 << 30}[kind]
    alone, beside = plan(enough, 0), plan(enough + other, other)
    assert (sizes_of(alone), alone.settings()) == (sizes_of(beside), beside.settings())
    least = [taken_megabytes(plan(100 << 20, other_bytes)) for other_bytes in (0, other)]
    assert abs(least[1] - least[0] - (other >> 20)) <= 1
