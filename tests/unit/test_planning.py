"""How a run is divided: which format, how large the pages, which of them together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mummergpu import planning
from mummergpu.errors import OptionError
from mummergpu.layout import Layout
from mummergpu.planning import Plan, describe_plan, make_plan, search_length
from mummergpu.reference import Reference
from mummergpu.settings import MatchOptions
from mummergpu.stats import Stats

PAPERS = 8_388_608
TREE, BUILDING = 97, 65
"""Bytes a base of a wide page: of its tree, and of what building it takes besides."""


def reference_of_size(bases: int) -> Reference:
    """A reference of so many bases that takes no memory."""
    codes = np.broadcast_to(np.uint8(0), bases)
    starts, lengths = np.zeros(1, dtype=np.int64), np.array([bases], dtype=np.int64)
    return Reference("made.fa", codes, starts, lengths, (b"r",))


def plan_of(bases: int, most_tree_bytes: int | None = None, **told: Any) -> Plan:
    options = MatchOptions("r.fa", ("q.fa",), **told)
    return make_plan(options, reference_of_size(bases), most_tree_bytes)


def sizes_of(plan: Plan) -> list[int]:
    return [page.end - page.begin for page in plan.pages]


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets how much memory is free."""

    def set_free(size: int) -> None:
        monkeypatch.setattr(planning, "free_memory", lambda: size)

    return set_free


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
def test_the_format_is_the_papers_while_its_addresses_reach(
    bases: int, told: dict[str, Any], wide: bool, free: Any
) -> None:
    free(1 << 40)
    options = MatchOptions("r.fa", ("q.fa",))
    assert plan_of(bases, **told).layout == Layout.of(options.policy, wide)


@pytest.mark.parametrize(
    ("told", "option", "message"),
    [
        ({"page_size": (1 << 30) + 1}, "--page-size", "at most 1073741824 bases"),
        ({"page_size": PAPERS + 1, "address_bits": 24}, "--address-bits", "at most 8388608 bases"),
    ],
)
def test_pages_too_large_for_the_addresses_are_refused(
    told: dict[str, Any], option: str, message: str
) -> None:
    with pytest.raises(OptionError, match=message) as caught:
        plan_of(100, **told)
    assert caught.value.option == option


@pytest.mark.parametrize("bases", [1, 1000, PAPERS])
def test_a_reference_that_fits_one_page_is_one(bases: int, free: Any) -> None:
    free(1)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]


def test_the_whole_reference_is_one_page_if_it_fits_the_memory(free: Any) -> None:
    bases = 250_000_000
    needed = bases * (TREE + BUILDING)
    free(2 * needed)
    assert sizes_of(plan_of(bases, page_size=None)) == [bases]
    free(2 * needed - 2)
    assert len(plan_of(bases, page_size=None).pages) == 2
    free(1)
    assert sizes_of(plan_of(bases, page_size=None, memory=needed)) == [bases]
    assert len(plan_of(bases, page_size=None, memory=needed - 1).pages) == 2


@pytest.mark.parametrize("minimum_length", [1, 20, 1000])
@pytest.mark.parametrize("share", [2, 3, 5, 7.3, 11])
def test_pages_are_equal_and_as_few_as_fit(share: float, minimum_length: int) -> None:
    bases = 250_000_000
    fitting = int(bases / share)
    memory = fitting * (TREE + BUILDING)
    plan = plan_of(bases, page_size=None, memory=memory, minimum_length=minimum_length)
    sizes = sizes_of(plan)
    assert max(sizes) <= fitting
    assert max(sizes) - min(sizes) <= len(sizes)
    overlap = minimum_length - 1
    assert bases > (len(sizes) - 1) * (fitting - overlap) + overlap, "fewer would do"
    assert plan.layout.wide
    assert all(len(group) == 1 for group in plan.groups)


def test_the_backend_can_hold_less_than_the_host() -> None:
    bases = 100_000_000
    most = 40_000_000 * TREE
    plan = plan_of(bases, most, page_size=None, memory=1 << 40)
    assert len(plan.pages) == 3
    assert [len(group) for group in plan.groups] == [1, 1, 1]
    assert max(sizes_of(plan)) * TREE <= most
    plan = plan_of(bases, most, page_size=15_000_000, memory=1 << 40)
    assert [len(group) for group in plan.groups] == [2, 2, 2, 1]
    assert len(plan_of(bases, 1 << 40, page_size=None, memory=1 << 40).pages) == 1


def test_pages_are_never_smaller_than_the_papers_for_want_of_memory() -> None:
    for memory, most in ((1, None), (1 << 40, 1)):
        plan = plan_of(3 * PAPERS, most, page_size=None, memory=memory)
        assert max(sizes_of(plan)) == PAPERS
        assert not plan.layout.wide
        assert len(plan.groups) == len(plan.pages)


def test_no_page_is_larger_than_its_addresses(free: Any) -> None:
    free(1 << 60)
    plan = plan_of(3_100_000_000, page_size=None)
    assert len(plan.pages) == 3
    assert max(sizes_of(plan)) <= 1 << 30


@pytest.mark.parametrize(
    ("page_size", "minimum_length", "expected"),
    [(PAPERS, 20, 20), (30, 20, 15), (31, 20, 16), (1, 20, 1), (None, 20, 20)],
)
def test_pages_overlap_by_less_than_half(
    page_size: int | None, minimum_length: int, expected: int
) -> None:
    told = {"page_size": page_size, "minimum_length": minimum_length}
    assert search_length(MatchOptions("r.fa", ("q.fa",), **told)) == expected
    assert plan_of(1000, **told).search_length == expected


def test_matches_longer_than_the_papers_page_are_planned_for() -> None:
    told = {"page_size": None, "minimum_length": 2 * PAPERS}
    plan = plan_of(5 * PAPERS, memory=1, **told)
    assert plan.search_length == PAPERS // 2
    assert plan.pages[-1].end == 5 * PAPERS


def test_the_report_tells_the_plan() -> None:
    stats, lines = Stats(), list[str]()
    options = MatchOptions("r.fa", ("q.fa",), page_size=30, address_bits=32, memory=1)
    reference = reference_of_size(100)
    plan = make_plan(options, reference)
    describe_plan(plan, options, reference, "cpu", stats, lines.append)
    assert stats.settings["page_size"] == 30
    assert stats.settings["address_bits"] == 32
    assert stats.settings["page_groups"] == stats.counts["pages"] == len(plan.pages)
    (line,) = lines
    assert f"{len(plan.pages)} pages in {len(plan.groups)} groups; " in line
    assert "32-bit addresses" in line
    plan = make_plan(replace(options, address_bits=None), reference)
    describe_plan(plan, options, reference, "cpu", stats, lines.append)
    assert "24-bit addresses" in lines[-1]
