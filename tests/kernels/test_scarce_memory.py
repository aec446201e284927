"""Both searches on a device whose memory is scarce: blocks are halved, and no match is lost.

`test_cuda_memory.py` and `test_kmer_backend.py` have what one of the searches has alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest
from helpers.opened_backends import FORWARD, REPEATS, OpenedTables, OpenedTrees
from helpers.search_cases import block_of
from helpers.watched_device import WatchedDevice

from mummergpu.errors import BackendError
from mummergpu.matching.backends.streaming import STREAMS


class Search(NamedTuple):
    """A search, and what is too much for it."""

    open: Callable[..., OpenedTables | OpenedTrees]
    counting_kernel: str
    long_query: int
    refused_size: int


@pytest.fixture(params=["tables", "m", "QRT"])
def search(request: pytest.FixtureRequest) -> Search:
    """The k-mer search, or that of the trees of a policy."""
    if request.param == "tables":
        return Search(request.getfixturevalue("opened_tables"), "count_kmer_mems", 3000, 20_000)
    opened = partial(request.getfixturevalue("opened_trees"), request.param)
    return Search(opened, "match_kernel", 2000, 30_000)


def test_what_is_planned_is_told(search: Search, small_blocks: int) -> None:
    given = search.open(device=WatchedDevice(2 << 30), memory=small_blocks)
    assert given.notices == [
        "device host (sm_90) through host, 2.0 GiB free; 3 blocks of 300 bases at once"
    ]
    assert given.backend.sizes.block_bases == given.backend.sizes.part_bases == 300
    assert given.backend.page_memory == small_blocks // 2
    assert given.stats.settings["device_memory"] == 2 << 30


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_blocks_that_do_not_fit_are_halved(search: Search, small_blocks: int, who: str) -> None:
    given = search.open(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > 20_000
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD)
    assert (given.device.refusals > 0) == (who == "the device")
    assert given.halved[0] == 16 and Counter(given.halved)[8] == 2
    launched = Counter(given.device.launches)[search.counting_kernel]
    counted = given.stats.kernels[search.counting_kernel].launches
    assert launched > counted, "what came to nothing is not counted"
    small = block_of(REPEATS.queries[:1])
    assert given.find(small) == REPEATS.expected(FORWARD)[:1]


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_a_single_query_that_does_not_fit_is_an_error(
    search: Search, small_blocks: int, who: str
) -> None:
    given = search.open(memory=small_blocks if who == "the plan" else None)
    given.load_pages(REPEATS)
    if who == "the device":
        given.device.refuse = lambda number, size: size > search.refused_size
    block = block_of(("A" * 20, "A" * search.long_query, "A" * 30))
    for _ in range(STREAMS + 1):
        with pytest.raises(BackendError, match="the matches of one query do not fit") as caught:
            given.find(block)
        assert "use --backend cpu, or look for longer matches" in caught.value.message
    assert given.find(REPEATS.block()) == REPEATS.expected(FORWARD), "no searcher is lost"
