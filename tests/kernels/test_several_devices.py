"""Several devices as one backend, on the host: who searches what."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from helpers.host_device import HostBuffer, HostDevice, everything_given_back
from helpers.in_memory import reference_of
from helpers.index_pages import build_kmer_pages
from helpers.opened_backends import FORWARD, GENOME, REPEATS
from helpers.search_cases import STRANDS, SearchCase, find_on, rows_of
from helpers.several_devices import WHOLE, NamedDevice, OpenDevices
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cuda import upload
from mummergpu.cuda.pool import DevicePool
from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.options import KmerOptions
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends.several_devices import SeveralDevices
from mummergpu.matching.backends.streaming import STREAMS, StreamingBackend
from mummergpu.matching.kmer import cuda as kmer_cuda
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.options import DeviceOptions
from mummergpu.runtime.stats import Stats


def tables_of(case: SearchCase) -> list[KmerPage]:
    return build_kmer_pages(reference_of(case.records), case.page_plan, KmerSampling(3))


@pytest.mark.parametrize("numbers", [(0,), (0, 1), (2, 0, 1)])
@pytest.mark.parametrize("case", [GENOME, WHOLE, REPEATS], ids=lambda case: case.name)
def test_devices_find_what_one_finds(
    opened_devices: OpenDevices, numbers: tuple[int, ...], case: SearchCase
) -> None:
    given = opened_devices(*numbers)
    given.load_pages(case)
    with ThreadPoolExecutor(8) as threads:
        tasks = list(STRANDS) * 6
        found = list(
            threads.map(lambda strand: find_on(given.backend, case.block(), strand), tasks)
        )
    for strand, columns in zip(tasks, found, strict=True):
        assert columns is not None and rows_of(columns) == case.expected(strand)
    assert all(given.launches().values())


def test_tables_are_searched_on_all_devices(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1, kind=KmerOptions())
    given.backend.load_pages(tables_of(GENOME), GENOME.minimum_length)
    for strand in STRANDS * 2:
        columns = find_on(given.backend, GENOME.block(), strand)
        assert columns is not None and rows_of(columns) == GENOME.expected(strand)
    assert all("count_kmer_mems" in device.launches for device in given.devices.values())


@pytest.mark.parametrize("numbers", [(0,), (0, 1)])
@pytest.mark.parametrize("search", ["tree", "kmer"])
def test_pages_go_through_pinned_pieces(
    opened_devices: OpenDevices,
    monkeypatch: pytest.MonkeyPatch,
    search: str,
    numbers: tuple[int, ...],
) -> None:
    monkeypatch.setattr(upload, "UPLOAD_PIECE_BYTES", 100)
    monkeypatch.setattr(upload, "BYTES_PER_THREAD", 1)
    monkeypatch.setattr(upload, "LEAST_BYTES", 1)
    monkeypatch.setattr(kmer_cuda, "UPLOAD_BASES", 256)
    pinned: list[int] = []

    def pinned_by(device: NamedDevice, count: int, dtype: Any) -> Any:
        pinned.append(count)
        return HostDevice.pinned(device, count, dtype)

    monkeypatch.setattr(NamedDevice, "pinned", pinned_by)
    options = DeviceOptions(numbers=numbers, threads=5)
    given = opened_devices(
        *numbers, options=options, kind=KmerOptions() if search == "kmer" else None
    )
    for _ in range(2):
        if search == "kmer":
            given.backend.load_pages(tables_of(GENOME), GENOME.minimum_length)
        else:
            given.load_pages()
        for strand in STRANDS:
            columns = find_on(given.backend, GENOME.block(), strand)
            assert columns is not None and rows_of(columns) == GENOME.expected(strand)
    threads = 5 // len(numbers)
    # Two pieces for each thread that found something to copy, in both loads.
    assert 2 * 2 * len(numbers) <= pinned.count(100) <= 2 * 2 * threads * len(numbers)


def test_blocks_one_after_the_other_are_spread(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1, 2)
    given.load_pages(WHOLE)
    for _ in range(7):
        assert given.find(WHOLE) == GENOME.expected(FORWARD)
    assert given.launches() == {0: 3, 1: 2, 2: 2}
    given.backend.close()
    assert given.stats.settings["device_blocks"] == {"0": 3, "1": 2, "2": 2}
    assert given.notices[-1] == "blocks searched: 3 on device 0, 2 on device 1, 2 on device 2"


def test_a_device_that_is_busy_gets_no_more_blocks(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages(WHOLE)
    go_on = threading.Event()

    def before_launch(kernel: str) -> None:
        if kernel == "match_kernel":
            assert go_on.wait(60)

    given.devices[0].before_launch = before_launch
    with ThreadPoolExecutor(8) as threads:
        searches = [threads.submit(given.find, WHOLE) for _ in range(4 * STREAMS)]
        # The streams of the first device stay busy with their first blocks.
        while sum(search.done() for search in searches) < 3 * STREAMS:
            assert not go_on.wait(0.01)
        go_on.set()
        for search in searches:
            assert search.result(60) == GENOME.expected(FORWARD)
    launches = given.launches()
    assert 1 <= launches[0] <= STREAMS and sum(launches.values()) == 4 * STREAMS


def test_all_streams_of_all_devices_work_at_once(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages(WHOLE)
    meeting = threading.Barrier(2 * STREAMS, timeout=60)

    def before_launch(kernel: str) -> None:
        if kernel == "match_kernel":
            meeting.wait()

    for device in given.devices.values():
        device.before_launch = before_launch
    with ThreadPoolExecutor(2 * STREAMS) as threads:
        found = list(threads.map(lambda _: given.find(WHOLE), range(2 * STREAMS)))
    assert found == [GENOME.expected(FORWARD)] * (2 * STREAMS)


def test_devices_load_pages_at_the_same_time(
    opened_devices: OpenDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = opened_devices(0, 1, 2)
    meeting = threading.Barrier(3, timeout=60)
    for device in given.devices.values():
        waited: list[int] = []

        def allocate(
            size: int, device: NamedDevice = device, waited: list[int] = waited
        ) -> HostBuffer:
            if not waited:
                waited.append(meeting.wait())
            return WatchedDevice.allocate(device, size)

        monkeypatch.setattr(device, "allocate", allocate)
    given.load_pages()
    assert given.find() == GENOME.expected(FORWARD)


def test_the_smallest_device_decides_for_all(opened_devices: OpenDevices) -> None:
    small = 3 << 28
    given = opened_devices(0, 1, memory_bytes=(1 << 32, small))
    expected = plan.divide_memory(small, None, STREAMS)
    assert given.backend.memory_for_pages(1_000_003) == expected.tree_bytes
    assert given.backend.sizes.block_bases == expected.block_bases
    alone = {backend.page_memory for backend in given.backend._backends.values()}
    assert alone == {expected.tree_bytes}
    given.load_pages()
    assert given.find() == GENOME.expected(FORWARD)


def test_sizes_that_differ_are_those_that_suit_every_device(
    opened_devices: OpenDevices, compiler: WatchedCompiler
) -> None:
    devices = {number: NamedDevice(number) for number in (0, 1)}
    pool = DevicePool(devices.__getitem__)
    cache: Any = compiler
    backends: dict[int, StreamingBackend[Any, Any]] = {
        number: KmerCudaBackend(pool.device(number), cache, Stats(), lambda line: None)
        for number in devices
    }
    backends[1].sizes = replace(backends[1].sizes, block_bases=7, max_rows=1 << 40)
    backends[1].page_memory += 5
    several = SeveralDevices(backends, pool, Stats(), lambda line: None)
    assert several.sizes == replace(backends[0].sizes, block_bases=7)
    # Of the reference, a device keeps 16 bytes for each 32 bases, and some padding.
    left = backends[0].page_memory - 16 * (31_251 + 4)
    assert several.memory_for_pages(1_000_003) == backends[0].memory_for_pages(1_000_003) == left
    assert several.memory_for_pages(1 << 40) == 0
    several.close()
    assert all(map(everything_given_back, devices.values()))


def test_all_devices_are_named(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 3, options=DeviceOptions(memory=1 << 28))
    assert given.stats.settings["device"] == "card 0 (0), card 3 (3)"
    assert given.stats.settings["architecture"] == "sm_90"
    assert given.stats.settings["device_memory"] == 2 << 30
    blocks = f"3 blocks of {given.backend.sizes.block_bases:,} bases at once"
    assert given.notices == [
        f"GPU {number}: device card {number} (sm_90) through host, 1.0 GiB free; {blocks}"
        for number in (0, 3)
    ]


def test_kernel_times_are_sums_over_devices(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages(WHOLE)
    for _ in range(4):
        given.find(WHOLE)
    kernel = given.stats.kernels["match_kernel"]
    # A mark of the host's device takes one millisecond.
    assert (kernel.launches, kernel.milliseconds) == (4, 4.0)


def test_pages_are_released_on_all_devices(opened_devices: OpenDevices) -> None:
    given = opened_devices(0, 1)
    given.load_pages()
    assert all(device.used for device in given.devices.values())
    given.backend.release_pages()
    assert not any(device.used for device in given.devices.values())
    given.load_pages()
    assert given.find() == GENOME.expected(FORWARD)
