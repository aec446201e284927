"""What the searches of trees and of tables have in common: memory that runs out, many threads.

`test_cuda_backend.py` and `test_kmer_backend.py` have what one of the searches has alone.
"""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import pytest
from helpers.host_device import HostDevice
from helpers.in_memory import block_of
from helpers.kmer_cases import tables_of
from helpers.opened_backends import FORWARD, GENOME, REPEATS, OpenedTables, OpenedTrees, refused
from helpers.search_cases import ONE_PAGE, SearchCase
from helpers.watched_device import WatchedDevice

from mummergpu.cuda import pinned_staging
from mummergpu.errors import BackendError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.matching.backends.cuda_streams import STREAMS
from mummergpu.matching.kmer import cuda as kmer_cuda

if TYPE_CHECKING:
    from collections.abc import Callable


class Search(NamedTuple):
    """A search, and what is too much for it."""

    open: Callable[..., OpenedTables | OpenedTrees]
    pages: str
    first_kernel: str
    counting_kernel: str
    min_requests: int
    """A block of the genome takes more requests for memory than these."""
    long_query: int
    refused_size: int


@pytest.fixture(params=["tables", "m", "QRT", "QRTmrt"])
def search(request):
    """The k-mer search, or that of the trees of a policy."""
    if request.param == "tables":
        opened = request.getfixturevalue("opened_tables")
        return Search(opened, "tables", "mark_queries", "count_kmer_mems", 12, 3000, 20_000)
    opened = partial(request.getfixturevalue("opened_trees"), request.param)
    return Search(opened, "trees", "match_kernel", "match_kernel", 15, 2000, 30_000)


def test_what_is_planned_is_told(search, small_blocks):
    given = search.open(device=WatchedDevice(2 << 30), memory=small_blocks)
    assert given.notices == [
        "device host (sm_90) through host, 2.0 GiB free; 3 blocks of 300 bases at once"
    ]
    assert given.backend.sizes.block_bases == given.backend.sizes.batch_bases == 300
    assert given.backend.page_memory == small_blocks // 2
    assert given.stats.settings["device_memory"] == 2 << 30


@pytest.mark.parametrize("who", ["the plan", "the device"])
def test_blocks_that_do_not_fit_are_halved(search, small_blocks, who):
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
def test_a_single_query_that_does_not_fit_is_an_error(search, small_blocks, who):
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


def test_any_request_may_be_refused_and_no_match_is_lost(search):
    given = search.open()
    given.load_pages(GENOME)
    block = GENOME.block()
    with refused(given.device, lambda number, size: False):
        assert given.find(block) == GENOME.expected(FORWARD)
        requests = given.device.requests
    assert requests > search.min_requests
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


def test_pages_that_do_not_fit_are_an_error_and_leave_nothing(search):
    given = search.open()
    with refused(given.device, lambda number, size: False):
        given.load_pages(GENOME)
        requests, held = given.device.requests, given.device.used
    if search.pages == "tables":
        # The reference and its codes, which go when they are packed, and two arrays a part.
        assert requests == 2 + 2 * len(tables_of(GENOME, KmerSampling(3)))
    assert requests > 8
    for wanted in range(1, requests + 1):
        with (
            refused(given.device, lambda number, size, wanted=wanted: number == wanted),
            pytest.raises(BackendError, match=f"the {search.pages} do not fit the device's memory"),
        ):
            given.load_pages(GENOME)
        assert not given.device.buffers and not given.device.textures
    given.load_pages(GENOME)
    assert given.device.used == held
    assert given.find(GENOME.block()) == GENOME.expected(FORWARD)


@pytest.mark.parametrize("halving", [False, True], ids=["whole", "in halves"])
@pytest.mark.parametrize("page_size", [ONE_PAGE, 120])
def test_more_matches_than_there_may_be_are_none(search, small_blocks, page_size, halving):
    case = SearchCase("repeats", REPEATS.records, REPEATS.queries, 5, page_size)
    given = search.open(memory=small_blocks if halving else None)
    given.load_pages(case)
    expected = REPEATS.expected(FORWARD)
    count = sum(map(len, expected))
    assert given.find(case.block(), count) == expected
    for most in (0, 1, count // 3, count // 2, count - 1):
        assert given.find(case.block(), most) is None
    assert given.find(case.block(), count) == expected
    assert bool(given.halved) == halving


def test_blocks_are_halved_beside_each_other(search, small_blocks):
    given = search.open(memory=small_blocks)
    given.load_pages(REPEATS)
    parts = [REPEATS.queries[: 1 + number % 8] for number in range(12)]
    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), parts))
    assert found == [REPEATS.expected(FORWARD)[: len(part)] for part in parts]
    assert given.halved


def test_as_many_blocks_are_under_way_as_there_are_streams(search):
    given = search.open()
    case = SearchCase("one page", GENOME.records, GENOME.queries, 6)
    given.load_pages(case)
    meeting = threading.Barrier(STREAMS, timeout=60)

    def before_launch(kernel):
        if kernel == search.first_kernel:
            meeting.wait()

    given.device.before_launch = before_launch
    given.device.max_users = 0
    queries = [case.queries[number:] for number in range(3 * STREAMS)]
    with ThreadPoolExecutor(3 * STREAMS) as pool:
        found = list(pool.map(lambda part: given.find(block_of(part)), queries))
    assert found == [case.expected(FORWARD)[number:] for number in range(3 * STREAMS)]
    assert given.device.max_users == STREAMS
    assert len(given.device.streams) == 1 + STREAMS


def test_pages_go_through_pinned_pieces(search, monkeypatch):
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", 100)
    monkeypatch.setattr(pinned_staging, "BYTES_PER_THREAD", 1)
    monkeypatch.setattr(pinned_staging, "LEAST_BYTES", 1)
    monkeypatch.setattr(kmer_cuda, "UPLOAD_BASES", 256)
    pinned = []

    def pinned_by(device, count, dtype):
        pinned.append(count)
        return HostDevice.pinned(device, count, dtype)

    monkeypatch.setattr(WatchedDevice, "pinned", pinned_by)
    given = search.open(threads=5)
    for _ in range(2):
        given.load_pages(GENOME)
        assert given.find(GENOME.block()) == GENOME.expected(FORWARD)
    # Up to two pieces for each thread in both loads, and for each search.
    assert 2 * 2 < pinned.count(100) <= 2 * 2 * 5 + 2 * STREAMS
