"""Pages of a reference and their trees: cutting, building, grouping."""

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import pairwise, product

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.loops import each
from helpers.trees import LAYOUTS, PLAIN, WIDE, WIDE_LAYOUTS, check_tree, layout_id
from hypothesis import given
from hypothesis import strategies as st

from mummergpu.index.pages import Page, groups_built_within, plan_pages
from mummergpu.index.tree.layout import MAX_PAGE_BASES
from mummergpu.index.tree_index import build_page, build_pages, page_codes
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK, decode

BUILD_BYTES_PER_BASE = 65
REFERENCE = reference_of(["ACGTACGTTTGACNNACG", "", "GATTACA", "A" * 20, "ACGTACGTTTGAC"])


@pytest.fixture
def executor():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@given(st.integers(0, 5000), st.integers(1, 500), st.integers(0, 100))
def test_pages_cover_the_reference_and_overlap(length, size, overlap):
    if size <= overlap:
        with pytest.raises(ValueError, match=f"pages of {size} bases cannot overlap by {overlap}"):
            plan_pages(length, size, overlap)
        return
    pages = plan_pages(length, size, overlap)
    assert [page.index for page in pages] == list(range(len(pages))) and pages[0].begin == 0
    assert pages[-1].end == pages[-1].owned_end == length
    for page in pages:
        assert page.end - page.begin <= size and page.begin <= page.owned_end <= page.end
    for page, following in pairwise(pages):
        assert page.owned_end == following.begin and page.end - following.begin == overlap
        assert page.end - page.begin == size and page.end < following.end


def test_the_codes_of_a_page_end_with_a_break():
    codes = page_codes(REFERENCE, Page(0, 2, 9, 5))
    assert decode(codes) == b"GTACGTTN"
    codes[:] = 0
    assert decode(REFERENCE.codes[2:9]) == b"GTACGTT", "the reference was changed"


@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
@each("page_size", [4, 7, 20, 1000])
def test_the_tree_of_each_page_knows_the_base_before_it(layout, page_size):
    for page in plan_pages(REFERENCE.codes.size, page_size, 3):
        indexed = build_page(REFERENCE, page, layout, Stats())
        before = int(REFERENCE.codes[page.begin - 1]) if page.begin else BREAK
        check_tree(indexed.tree, page_codes(REFERENCE, page), before)
        assert indexed.page is page and indexed.joined_reference is REFERENCE.codes
        assert indexed.tree.layout == layout


def test_pages_come_in_their_order_and_are_counted(executor):
    pages = plan_pages(REFERENCE.codes.size, 20, 3)
    stats = Stats()
    calls = []
    indexed = build_pages(REFERENCE, pages, PLAIN, stats, executor, lambda: calls.append(1))
    assert [one.page for one in indexed] == pages and len(calls) == len(pages)
    assert stats.counts["tree_nodes"] == sum(one.tree.node_count for one in indexed)
    assert stats.counts["tree_leaves"] == sum(one.tree.leaf_count for one in indexed)
    assert stats.bytes["trees"] == sum(one.tree.byte_count for one in indexed)
    for stage in ("tree_construction", "tree_reorder", "tree_flatten"):
        assert stats.stages[stage].count == len(pages)


class LazyExecutor(Executor):
    """Runs a task when its result is asked for, so that others can be seen to be cancelled."""

    def __init__(self):
        self.futures = []

    def submit(self, task, /, *arguments, **named):
        future = Future()
        if not self.futures:
            try:
                future.set_result(task(*arguments, **named))
            except ValueError as error:
                future.set_exception(error)
        self.futures.append(future)
        return future


def test_a_failure_is_passed_on_and_waiting_pages_are_not_built():
    reference = reference_of(["A"])
    codes = np.full(MAX_PAGE_BASES + 1, BREAK, dtype=np.uint8)
    too_large = Page(0, 0, codes.size, codes.size)
    object.__setattr__(reference, "codes", codes)
    executor = LazyExecutor()
    with pytest.raises(ValueError, match="do not fit 24-bit addresses"):
        build_pages(reference, [too_large, too_large], PLAIN, Stats(), executor, lambda: None)
    assert executor.futures[1].cancelled()


def test_a_failing_callback_ends_the_building(executor):
    def interrupted():
        raise KeyboardInterrupt

    pages = plan_pages(REFERENCE.codes.size, 20, 3)
    with pytest.raises(KeyboardInterrupt):
        build_pages(REFERENCE, pages, PLAIN, Stats(), executor, interrupted)


@pytest.mark.parametrize("layout", [PLAIN, WIDE], ids=layout_id)
@each("threads", [1, 2, 7])
@each("memory", [0, 50_000, 100_000, 200_000, 400_000, 1 << 40])
@each("device_memory", [None, 0, 100_000, 1 << 40])
def test_groups_hold_all_pages_in_order_and_keep_to_both_memories(
    memory, device_memory, threads, layout
):
    pages = plan_pages(10_000, 500, 19)

    def fits(group):
        sizes = sorted((page.end - page.begin for page in group), reverse=True)
        trees = sum(sizes) * layout.max_bytes_per_base
        building = sum(sizes[:threads]) * BUILD_BYTES_PER_BASE
        on_device = device_memory is None or trees <= device_memory
        return trees + building <= memory and on_device

    groups = groups_built_within(
        pages,
        memory,
        threads,
        lambda page: (page.end - page.begin) * layout.max_bytes_per_base,
        lambda page: (page.end - page.begin) * BUILD_BYTES_PER_BASE,
        device_memory,
    )
    assert [page for group in groups for page in group] == pages
    assert all(group and (len(group) == 1 or fits(group)) for group in groups)
    for group, following in pairwise(groups):
        assert not fits([*group, following[0]]), "another page would have fitted"


def test_a_tree_takes_no_more_than_is_planned_for():
    for letters, layout in product((1, 4), (PLAIN, WIDE)):
        codes = np.random.default_rng(1).integers(0, letters, 50_000).astype(np.uint8)
        reference = reference_of([decode(codes).decode()])
        (page,) = plan_pages(codes.size, 1 << 20, 3)
        tree = build_page(reference, page, layout, Stats()).tree
        assert tree.byte_count <= codes.size * layout.max_bytes_per_base + 1
