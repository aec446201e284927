"""The cuda backend on a device whose memory runs out: blocks are halved, and no match is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import pytest
from helpers.opened_backends import FORWARD, GENOME, REPEATS, OpenTrees, refused
from helpers.search_cases import block_of
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.errors import BackendError
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.tree import cuda_pages as resident
from mummergpu.matching.tree import cuda_program
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats


@pytest.mark.parametrize("code", ["m", "QRT", "QRTmrt"])
def test_any_request_may_be_refused_and_no_match_is_lost(
    opened_trees: OpenTrees, code: str
) -> None:
    given = opened_trees(code)
    given.load_pages(GENOME)
    block = GENOME.block()
    with refused(given.device, lambda number, size: False):
        assert given.find(block) == GENOME.expected(FORWARD)
        requests = given.device.requests
    assert requests > 15
    for searcher in given.backend._searchers:
        searcher.release()
    for wanted in range(1, requests + 1):
        lines = len(given.notices)
        textures = len(given.device.textures)
        with refused(given.device, lambda number, size, wanted=wanted: number == wanted):
            assert given.find(block) == GENOME.expected(FORWARD)
        assert given.halved[lines - 1 :] == [13]
        assert len(given.device.textures) == textures
        for searcher in given.backend._searchers:
            searcher.release()
    assert given.device.refusals == requests


@pytest.mark.parametrize("code", ["m", "QRT", "QRTmrt"])
def test_trees_that_do_not_fit_are_an_error_and_leave_nothing(
    opened_trees: OpenTrees, code: str
) -> None:
    given = opened_trees(code)
    with refused(given.device, lambda number, size: False):
        given.load_pages(GENOME)
        requests, held = given.device.requests, given.device.used
    assert requests > 8
    for wanted in range(1, requests + 1):
        with (
            refused(given.device, lambda number, size, wanted=wanted: number == wanted),
            pytest.raises(BackendError, match="the trees do not fit the device's memory"),
        ):
            given.load_pages(GENOME)
        assert not given.device.buffers and not given.device.textures
    given.load_pages(GENOME)
    assert given.device.used == held
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


def test_blocks_are_halved_beside_each_other(opened_trees: OpenTrees, small_blocks: int) -> None:
    given = opened_trees("QRT", memory=small_blocks)
    given.load_pages(REPEATS)
    parts = [REPEATS.queries[: 1 + number % 8] for number in range(12)]
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), parts))
    assert found == [REPEATS.expected(FORWARD)[: len(part)] for part in parts]
    assert given.halved


@pytest.mark.parametrize(
    ("code", "module", "limit", "value", "message"),
    [
        ("QRT", cuda_program, "TEXTURE_PART_BITS", 4, "too large for textures"),
        ("QRTmrt", resident, "MAX_ARRAY_ROWS", 31, "too large for two-dimensional textures"),
    ],
    ids=["one dimension", "two dimensions"],
)
def test_trees_too_large_for_textures_are_an_error(
    opened_trees: OpenTrees,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    module: ModuleType,
    limit: str,
    value: int,
    message: str,
) -> None:
    given = opened_trees(code)
    with monkeypatch.context() as patched:
        patched.setattr(module, limit, value)
        with pytest.raises(BackendError, match=f"{message}; use a smaller --page-size"):
            given.load_pages(GENOME)
    given.load_pages(GENOME)
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


@pytest.mark.parametrize("free", [1 << 20, 79 << 20])
def test_a_device_with_too_little_memory_is_refused(compiler: WatchedCompiler, free: int) -> None:
    device = WatchedDevice(free)
    with pytest.raises(BackendError, match="bytes of device memory are too few"):
        TreeCudaBackend(device, compiler, Policy(), Stats(), lambda line: None)
    assert not device.buffers and not device.streams
