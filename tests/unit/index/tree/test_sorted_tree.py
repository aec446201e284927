"""Trees from sorted suffixes: the same as Ukkonen's, array for array."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from helpers.in_memory import reference_of
from helpers.trees import LAYOUTS, PLAIN, TEXTS, WIDE_LAYOUTS, check_tree, layout_id, page_codes_of

from mummergpu.errors import OptionError
from mummergpu.index.pages import Page, plan_pages
from mummergpu.index.tree.build import BUILDERS, build_page, build_pages
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.sorted_tree import grow_sorted_tree, sort_suffixes
from mummergpu.index.tree.ukkonen import GrownTree, grow_tree
from mummergpu.input.reference import Reference
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import BREAK

needs_library = pytest.mark.skipif(
    find_spec("pydivsufsort") is None, reason="pydivsufsort is not installed"
)


def assert_same_tree(codes: np.ndarray) -> GrownTree:
    expected, found = grow_tree(codes), grow_sorted_tree(codes)
    assert found.leaf_count == expected.leaf_count
    for one, other in (
        (found.codes, expected.codes),
        (found.inner_nodes, expected.inner_nodes),
        (found.next_leaves, expected.next_leaves),
    ):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    return found


def with_breaks(random: np.random.Generator, codes: np.ndarray, count: int) -> np.ndarray:
    codes = np.append(codes, np.uint8(BREAK))
    codes[random.integers(0, codes.size, count)] = BREAK
    return codes


@needs_library
def test_suffixes_that_begin_with_a_break_are_the_last() -> None:
    codes = page_codes_of("NACNAC")
    assert sort_suffixes(codes).tolist()[:4] == [4, 1, 5, 2]


@needs_library
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_tree_of_an_awkward_text(text: str) -> None:
    assert_same_tree(page_codes_of(text))


@needs_library
def test_many_short_texts() -> None:
    random = np.random.default_rng(11)
    for _ in range(300):
        letters, length = random.integers(1, 5), random.integers(0, 60)
        codes = random.integers(0, letters, length).astype(np.uint8)
        assert_same_tree(with_breaks(random, codes, int(random.integers(0, 8))))


@needs_library
@pytest.mark.parametrize("letters", [4, 2, 1])
@pytest.mark.parametrize("breaks", [0, 30, 5_000])
def test_a_long_text(letters: int, breaks: int) -> None:
    random = np.random.default_rng(letters)
    codes = random.integers(0, letters, 30_000).astype(np.uint8)
    assert_same_tree(with_breaks(random, codes, breaks))


@needs_library
@pytest.mark.parametrize("unit", [1, 2, 3, 7, 171, 5_000])
@pytest.mark.parametrize("changes", [0, 1, 300])
def test_a_tandem_repeat(unit: int, changes: int) -> None:
    random = np.random.default_rng(unit)
    codes = np.resize(random.integers(0, 4, unit).astype(np.uint8), 30_000)
    places = random.integers(0, codes.size, changes)
    codes[places] = random.integers(0, 4, changes)
    assert_same_tree(with_breaks(random, codes, changes // 100))


@needs_library
def test_equal_and_reversed_records() -> None:
    random = np.random.default_rng(4)
    record = np.append(random.integers(0, 4, 3_000).astype(np.uint8), np.uint8(BREAK))
    other = np.append(3 - record[-2::-1], np.uint8(BREAK))
    tree = assert_same_tree(np.concatenate([record, other, record, record[500:], other]))
    assert (tree.next_leaves != 0).sum() >= 3_000


@needs_library
def test_long_runs_of_breaks() -> None:
    random = np.random.default_rng(9)
    codes = random.integers(0, 4, 40_000).astype(np.uint8)
    codes[5_000:25_000] = BREAK
    codes[30_000:] = BREAK
    assert_same_tree(codes)


@needs_library
def test_fibonacci_words_and_their_links_over_many_nodes() -> None:
    one, other = "A", "AC"
    while len(other) < 20_000:
        one, other = other, other + one
    assert_same_tree(page_codes_of(other))
    assert_same_tree(page_codes_of(other[:7_000] + "N" + other[3:9_000] + "N" + other))


@pytest.fixture(scope="module")
def reference() -> Reference:
    random = np.random.default_rng(2)
    family = random.integers(0, 4, 150)
    copies = [np.where(random.random(150) < 0.1, 3, family) for _ in range(6)]
    codes = np.concatenate([*copies, random.integers(0, 4, 900), *copies])
    text = bytes(b"ACGT"[code] for code in codes).decode()
    return reference_of([text[:1_200], "", "NN" + text[1_200:], "A" * 40, text[100:400]])


@needs_library
@pytest.mark.parametrize("layout", LAYOUTS + WIDE_LAYOUTS, ids=layout_id)
def test_flat_trees_are_the_same_in_every_layout_and_format(
    layout: Layout, reference: Reference
) -> None:
    for page in plan_pages(reference.codes.size, 1_000, 19):
        expected, found = (
            build_page(reference, page, layout, Stats(), builder).tree for builder in BUILDERS
        )
        assert np.array_equal(found.nodes, expected.nodes)
        assert np.array_equal(found.children, expected.children)
        assert np.array_equal(found.reference, expected.reference)
        assert (found.layout, found.base_count) == (expected.layout, expected.base_count)
        assert (found.node_count, found.leaf_count) == (expected.node_count, expected.leaf_count)


@needs_library
def test_pages_are_built_side_by_side(reference: Reference) -> None:
    pages = plan_pages(reference.codes.size, 500, 19)
    with ThreadPoolExecutor(4) as pool:
        indexed = build_pages(reference, pages, PLAIN, Stats(), pool, lambda: None, "sa")
    for page, one in zip(pages, indexed, strict=True):
        codes = np.append(reference.codes[page.begin : page.end], np.uint8(BREAK))
        before = int(reference.codes[page.begin - 1]) if page.begin else BREAK
        check_tree(one.tree, codes, before)


def test_a_missing_library_is_told(reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydivsufsort", None)
    with pytest.raises(OptionError, match=r"builder: 'sa' needs .*pip install 'mummergpu\[sa\]'"):
        build_page(reference, Page(0, 0, 100, 100), PLAIN, Stats(), "sa")
