"""The trees of a study: grown once, and in each layout what an ordinary run would build."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.opened_backends import GENOME
from helpers.search_cases import SearchCase
from helpers.trees import LAYOUTS, WIDE_LAYOUTS

from mummergpu.index.tree_index import build_page
from mummergpu.runtime.stats import Stats
from mummergpu.studies import layout_sweep
from mummergpu.studies.layout_sweep import TreeStore

ONE_PAGE = SearchCase("one page", GENOME.records, GENOME.queries, 6)
LENGTHS = {len(record) for record in GENOME.records}


def store_of(case):
    return TreeStore(reference_of(case.records), case.page_plan, map)


def differences(store, case, layout):
    """Say in what the pages of a store are not those of an ordinary run."""
    reference = reference_of(case.records)
    pages, _ = store.flatten(layout)
    found = []
    assert [page.page for page in pages] == case.page_plan
    for page in pages:
        expected = build_page(reference, page.page, layout, Stats())
        for name, value in vars(expected.tree).items():
            if not np.array_equal(getattr(page.tree, name), value):
                found.append(f"page {page.page.index}: {name}")
        if not np.array_equal(page.joined_reference, reference.codes):
            found.append("the reference")
    return found


@pytest.mark.parametrize("case", [GENOME, ONE_PAGE], ids=lambda case: case.name)
def test_pages_are_those_of_an_ordinary_run(case):
    store = store_of(case)
    for layout in LAYOUTS:
        assert differences(store, case, layout) == []


def test_pages_of_the_wide_format_are_those_of_an_ordinary_run():
    store = store_of(ONE_PAGE)
    for layout in WIDE_LAYOUTS:
        assert differences(store, ONE_PAGE, layout) == []


def test_a_tree_is_flattened_as_often_as_asked_for():
    store = store_of(GENOME)
    for layout in (LAYOUTS[5], LAYOUTS[2], LAYOUTS[5]):
        assert differences(store, GENOME, layout) == []


def test_growing_and_ordering_happen_once(monkeypatch):
    calls = {"grown": 0, "ordered": 0, "flattened": 0}

    def counted(name, function):
        def count(*given):
            calls[name] += 1
            return function(*given)

        return count

    # What has warmed up a store is not counted.
    monkeypatch.setattr(layout_sweep, "warm_up", lambda: None)
    monkeypatch.setattr(layout_sweep, "grow_tree", counted("grown", layout_sweep.grow_tree))
    monkeypatch.setattr(layout_sweep, "order_nodes", counted("ordered", layout_sweep.order_nodes))
    monkeypatch.setattr(
        layout_sweep, "flatten_tree", counted("flattened", layout_sweep.flatten_tree)
    )
    store = store_of(GENOME)
    pages = len(GENOME.page_plan)
    assert pages >= 5
    assert calls == {"grown": pages, "ordered": 0, "flattened": 0}
    seconds = [store.flatten(layout)[1] for layout in LAYOUTS]
    assert calls == {"grown": pages, "ordered": 2 * pages, "flattened": 16 * pages}
    assert {each["build"] for each in seconds} == {store.build_seconds}
    for reordered in (False, True):
        of_order = {
            each["order"]
            for each, layout in zip(seconds, LAYOUTS, strict=True)
            if layout.node_reordering == reordered
        }
        assert len(of_order) == 1
    assert len({each["flatten"] for each in seconds}) == 16
    assert all(set(each) == {"build", "order", "flatten"} for each in seconds)
    assert all(value > 0 for each in seconds for value in each.values())


def test_seconds_are_summed_over_pages(monkeypatch):
    now = [0.0]

    def tick():
        now[0] += 1.0
        return now[0]

    monkeypatch.setattr(layout_sweep.time, "perf_counter", tick)
    store = store_of(GENOME)
    pages = float(len(GENOME.page_plan))
    assert store.flatten(LAYOUTS[3])[1] == {"build": pages, "order": pages, "flatten": pages}


def test_threads_make_the_same_trees():
    with ThreadPoolExecutor(3) as pool:
        reference = reference_of(GENOME.records)
        store = TreeStore(reference, GENOME.page_plan, pool.map)
        assert differences(store, GENOME, LAYOUTS[7]) == []
