"""Ways in which the match kernel may share out its work: the oracle's matches, always."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from helpers.host_device import everything_given_back
from helpers.opened_backends import FORWARD
from helpers.search_cases import CASES, SearchCase, find_on, rows_of
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cuda import nvrtc as compilation
from mummergpu.cuda.launcher import WAVES
from mummergpu.cuda.nvrtc import compile_with_log
from mummergpu.cuda.pool import DevicePool
from mummergpu.cuda.sources import read_sources
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.matching.tree.cuda_program import tree_program
from mummergpu.matching.tree.cuda_search import TreeStreamSearcher
from mummergpu.runtime.stats import Stats

AS_BEFORE = {
    "QUERIES_BY_COUNTER": 0,
    "WALKS_PER_THREAD": 1,
    "SHORT_TURNS": 0,
    "EARLY_QUERY_WORDS": 1,
    "EARLY_CHILDREN": 1,
    "STREAM_CANDIDATES": 0,
    "SEARCH_AHEAD_AFTER": 0,
}
CHOICES = {
    "as before": {},
    "counter": {"QUERIES_BY_COUNTER": 1, "SEARCH_AHEAD_AFTER": 1},
    "short turns": {"SHORT_TURNS": 3, "STREAM_CANDIDATES": 1, "SEARCH_AHEAD_AFTER": 4},
    "late": {"EARLY_QUERY_WORDS": 0, "EARLY_CHILDREN": 0, "SHORT_TURNS": 1},
    "two walks": {"WALKS_PER_THREAD": 2, "EARLY_QUERY_WORDS": 0},
    "four walks": {"QUERIES_BY_COUNTER": 1, "WALKS_PER_THREAD": 4, "SHORT_TURNS": 2},
}
FORMATS = [("none", False), ("m", False), ("QRTmrt", False), ("m", True), ("QRT", True)]


@pytest.fixture(scope="module")
def compiler(cxx: str, library_folder: Path) -> WatchedCompiler:
    return WatchedCompiler(library_folder)


@pytest.fixture(params=CHOICES)
def choices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """One way, of which the programs are told."""
    found = AS_BEFORE | CHOICES[request.param]
    for name, value in found.items():
        assert name in cuda_program.KERNEL_CHOICES
        monkeypatch.setitem(cuda_program.KERNEL_CHOICES, name, value)
    return found


@pytest.fixture
def searcher(choices: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The searcher launches as the choices want it."""
    monkeypatch.setattr(TreeStreamSearcher, "walks_per_thread", choices["WALKS_PER_THREAD"])
    waves = 1 if choices["QUERIES_BY_COUNTER"] else WAVES
    monkeypatch.setattr(TreeStreamSearcher, "match_waves", waves)


def cases_for(code: str) -> list[SearchCase]:
    """A page in strips takes megabytes, however small."""
    return [case for case in CASES if "t" not in code or len(case.page_plan) < 4]


@pytest.mark.usefixtures("searcher")
@pytest.mark.parametrize(("code", "wide"), FORMATS)
def test_every_choice_gives_the_matches_of_the_definition(
    compiler: WatchedCompiler, code: str, wide: bool
) -> None:
    policy = Policy.from_code(code)
    cases = cases_for(code)
    assert len(cases) > 10
    for number, case in enumerate(cases):
        device = WatchedDevice(1 << 34, 1 + number % 3)
        with DevicePool(lambda _, device=device: device) as pool:
            backend = TreeCudaBackend(pool.device(0), compiler, policy, Stats(), lambda _: None)
            backend.load_pages(case.pages(Layout.of(policy, wide)), case.minimum_length)
            columns = find_on(backend, case.block())
            assert columns is not None and rows_of(columns) == case.expected(FORWARD), case.name
            backend.close()
        assert everything_given_back(device)


@pytest.mark.usefixtures("nvrtc", "choices")
@pytest.mark.parametrize(("code", "wide"), [("m", False), ("none", False), ("m", True)])
def test_every_choice_compiles_and_spills_nothing(
    monkeypatch: pytest.MonkeyPatch, code: str, wide: bool
) -> None:
    monkeypatch.setattr(compilation, "OPTIONS", (*compilation.OPTIONS, "--ptxas-options=-v"))
    program = tree_program(Policy.from_code(code), wide, False)
    log = compile_with_log(read_sources(), program, "sm_90").log
    needs = re.search(r"Function properties for match_kernel\n.*", log)
    assert needs is not None
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in needs[0]
