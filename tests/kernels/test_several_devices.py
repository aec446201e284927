"""Several devices as one backend, on the host: who searches what, and what goes wrong on one."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from helpers.host_device import HostBuffer, HostDevice, everything_given_back
from helpers.index_pages import build_kmer_pages
from helpers.opened_backends import FORWARD, GENOME, REPEATS, refused
from helpers.search_cases import ANY, STRANDS, SearchCase, find_on, rows_of
from helpers.trees import reference_of
from helpers.watched_device import WatchedCompiler, WatchedDevice

from mummergpu.cuda import upload
from mummergpu.cuda.pool import DevicePool
from mummergpu.errors import BackendError
from mummergpu.index.kmer_page import KmerPage
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.options import KmerOptions, TreeOptions
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import Policy
from mummergpu.matching.backends import memory_plan as plan
from mummergpu.matching.backends.several_devices import SeveralDevices
from mummergpu.matching.backends.streaming import STREAMS, StreamingBackend
from mummergpu.matching.kmer import cuda as kmer_cuda
from mummergpu.matching.kmer.cuda import KmerCudaBackend
from mummergpu.matching.open_cuda import _Opening
from mummergpu.matching.options import DeviceOptions
from mummergpu.matching.tree.cuda import TreeCudaBackend
from mummergpu.runtime.stats import Stats

POLICY = Policy.from_code("m")


class NamedDevice(WatchedDevice):
    """A device with a name, whose closing can fail."""

    def __init__(self, number: int, memory_bytes: int = 1 << 30) -> None:
        super().__init__(memory_bytes)
        self.name = f"card {number}"
        self.closing_fails = False

    def close(self) -> None:
        super().close()
        if self.closing_fails:
            raise BackendError("cuda", "the device failed: closing")


@dataclass
class Several:
    """A backend of several devices, and what it said."""

    backend: SeveralDevices[Any]
    devices: dict[int, NamedDevice]
    stats: Stats
    notices: list[str]

    def load_pages(self, case: SearchCase = GENOME) -> None:
        self.backend.load_pages(case.pages(Layout.of(POLICY)), case.minimum_length)

    def find(self, case: SearchCase = GENOME) -> object:
        columns = find_on(self.backend, case.block(), FORWARD, ANY)
        return None if columns is None else rows_of(columns)

    def launches(self) -> dict[int, int]:
        """How many blocks each device has matched, of one page."""
        return {
            number: Counter(device.launches)["match_kernel"]
            for number, device in self.devices.items()
        }

    def fail_on(self, number: int) -> None:
        """Let every search on a device fail."""

        def before_launch(kernel: str) -> None:
            raise BackendError("cuda", "the device failed: played")

        self.devices[number].before_launch = before_launch


Open = Callable[..., Several]
ONE_PAGE = SearchCase("one page", GENOME.records, GENOME.queries, 6)


def tables_of(case: SearchCase) -> list[KmerPage]:
    return build_kmer_pages(reference_of(list(case.records)), case.page_plan, KmerSampling(3))


@pytest.fixture(scope="module")
def compiler(cxx: str, library_folder: Path) -> WatchedCompiler:
    return WatchedCompiler(library_folder)


@pytest.fixture
def opened(compiler: WatchedCompiler) -> Iterator[Open]:
    """Opens devices as the command does, and closes them: then nothing may be left on them."""
    every: list[Several] = []

    def open_several(
        *numbers: int,
        memory_bytes: tuple[int, ...] = (),
        options: DeviceOptions | None = None,
        kind: KmerOptions | TreeOptions | None = None,
    ) -> Several:
        sizes = memory_bytes or (1 << 30,) * len(numbers)
        devices = dict(zip(numbers, map(NamedDevice, numbers, sizes), strict=True))
        stats, notices = Stats(), list[str]()
        pool = DevicePool(devices.__getitem__)
        cache: Any = compiler
        opening = _Opening(
            kind or TreeOptions(policy=POLICY),
            options or DeviceOptions(numbers=numbers),
            stats,
            cache,
            plan.LARGEST_BLOCK,
        )
        borrowed = {number: pool.device(number) for number in numbers}
        backend: Any = opening.open_several(borrowed, notices.append, pool)
        every.append(Several(backend, devices, stats, notices))
        return every[-1]

    yield open_several
    for one in every:
        if not all(device.closed for device in one.devices.values()):
            one.backend.close()
        assert all(map(everything_given_back, one.devices.values()))


@pytest.mark.parametrize("numbers", [(0,), (0, 1), (2, 0, 1)])
@pytest.mark.parametrize("case", [GENOME, ONE_PAGE, REPEATS], ids=lambda case: case.name)
def test_devices_find_what_one_finds(
    opened: Open, numbers: tuple[int, ...], case: SearchCase
) -> None:
    given = opened(*numbers)
    given.load_pages(case)
    with ThreadPoolExecutor(8) as threads:
        tasks = list(STRANDS) * 6
        found = list(
            threads.map(lambda strand: find_on(given.backend, case.block(), strand), tasks)
        )
    for strand, columns in zip(tasks, found, strict=True):
        assert columns is not None and rows_of(columns) == case.expected(strand)
    assert all(given.launches().values())


def test_tables_are_searched_on_all_devices(opened: Open) -> None:
    given = opened(0, 1, kind=KmerOptions())
    given.backend.load_pages(tables_of(GENOME), GENOME.minimum_length)
    for strand in STRANDS * 2:
        columns = find_on(given.backend, GENOME.block(), strand)
        assert columns is not None and rows_of(columns) == GENOME.expected(strand)
    assert all("count_kmer_mems" in device.launches for device in given.devices.values())


@pytest.mark.parametrize("numbers", [(0,), (0, 1)])
@pytest.mark.parametrize("search", ["tree", "kmer"])
def test_pages_go_through_pinned_pieces(
    opened: Open, monkeypatch: pytest.MonkeyPatch, search: str, numbers: tuple[int, ...]
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
    given = opened(*numbers, options=options, kind=KmerOptions() if search == "kmer" else None)
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


def test_blocks_one_after_the_other_are_spread(opened: Open) -> None:
    given = opened(0, 1, 2)
    given.load_pages(ONE_PAGE)
    for _ in range(7):
        assert given.find(ONE_PAGE) == GENOME.expected(FORWARD)
    assert given.launches() == {0: 3, 1: 2, 2: 2}
    given.backend.close()
    assert given.stats.settings["device_blocks"] == {"0": 3, "1": 2, "2": 2}
    assert given.notices[-1] == "blocks searched: 3 on device 0, 2 on device 1, 2 on device 2"


def test_a_device_that_is_busy_gets_no_more_blocks(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages(ONE_PAGE)
    go_on = threading.Event()

    def before_launch(kernel: str) -> None:
        if kernel == "match_kernel":
            assert go_on.wait(60)

    given.devices[0].before_launch = before_launch
    with ThreadPoolExecutor(8) as threads:
        searches = [threads.submit(given.find, ONE_PAGE) for _ in range(4 * STREAMS)]
        # The streams of the first device stay busy with their first blocks.
        while sum(search.done() for search in searches) < 3 * STREAMS:
            assert not go_on.wait(0.01)
        go_on.set()
        for search in searches:
            assert search.result(60) == GENOME.expected(FORWARD)
    launches = given.launches()
    assert 1 <= launches[0] <= STREAMS and sum(launches.values()) == 4 * STREAMS


def test_all_streams_of_all_devices_work_at_once(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages(ONE_PAGE)
    meeting = threading.Barrier(2 * STREAMS, timeout=60)

    def before_launch(kernel: str) -> None:
        if kernel == "match_kernel":
            meeting.wait()

    for device in given.devices.values():
        device.before_launch = before_launch
    with ThreadPoolExecutor(2 * STREAMS) as threads:
        found = list(threads.map(lambda _: given.find(ONE_PAGE), range(2 * STREAMS)))
    assert found == [GENOME.expected(FORWARD)] * (2 * STREAMS)


def test_devices_load_pages_at_the_same_time(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    given = opened(0, 1, 2)
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


def test_the_smallest_device_decides_for_all(opened: Open) -> None:
    small = 3 << 28
    given = opened(0, 1, memory_bytes=(1 << 32, small))
    expected = plan.divide_memory(small, None, STREAMS)
    assert given.backend.memory_for_pages(1_000_003) == expected.tree_bytes
    assert given.backend.sizes.block_bases == expected.block_bases
    alone = {backend.page_memory for backend in given.backend._backends.values()}
    assert alone == {expected.tree_bytes}
    given.load_pages()
    assert given.find() == GENOME.expected(FORWARD)


def test_sizes_that_differ_are_those_that_suit_every_device(
    opened: Open, compiler: WatchedCompiler
) -> None:
    devices = {number: NamedDevice(number) for number in (0, 1)}
    pool = DevicePool(devices.__getitem__)
    cache: Any = compiler
    backends: dict[int, StreamingBackend[Any, Any]] = {
        number: KmerCudaBackend(pool.device(number), cache, Stats(), lambda line: None)
        for number in devices
    }
    backends[1].sizes = replace(backends[1].sizes, block_bases=7, most_rows=1 << 40)
    backends[1].page_memory += 5
    several = SeveralDevices(backends, pool, Stats(), lambda line: None)
    assert several.sizes == replace(backends[0].sizes, block_bases=7)
    # Of the reference, a device keeps 16 bytes for each 32 bases, and some padding.
    left = backends[0].page_memory - 16 * (31_251 + 4)
    assert several.memory_for_pages(1_000_003) == backends[0].memory_for_pages(1_000_003) == left
    assert several.memory_for_pages(1 << 40) == 0
    several.close()
    assert all(map(everything_given_back, devices.values()))


def test_all_devices_are_named(opened: Open) -> None:
    given = opened(0, 3, options=DeviceOptions(memory=1 << 28))
    assert given.stats.settings["device"] == "card 0 (0), card 3 (3)"
    assert given.stats.settings["architecture"] == "sm_90"
    assert given.stats.settings["device_memory"] == 2 << 30
    blocks = f"3 blocks of {given.backend.sizes.block_bases:,} bases at once"
    assert given.notices == [
        f"GPU {number}: device card {number} (sm_90), 1.0 GiB free; {blocks}" for number in (0, 3)
    ]


def test_kernel_times_are_sums_over_devices(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages(ONE_PAGE)
    for _ in range(4):
        given.find(ONE_PAGE)
    kernel = given.stats.kernels["match_kernel"]
    # A mark of the host's device takes one millisecond.
    assert (kernel.launches, kernel.milliseconds) == (4, 4.0)


def test_a_device_without_memory_for_the_pages_is_named(opened: Open) -> None:
    given = opened(0, 1, 2)
    expected = r"device 1 \(card 1\): the trees do not fit the device's memory"
    with (
        refused(given.devices[1], lambda number, size: True),
        pytest.raises(BackendError, match=expected),
    ):
        given.load_pages()
    # The others have their pages, but the run is over.
    with pytest.raises(BackendError, match=expected):
        given.find()
    given.backend.close()


def test_a_device_that_fails_in_a_search_is_named(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages()
    given.fail_on(1)
    assert given.find() == GENOME.expected(FORWARD)
    for _ in range(3):
        with pytest.raises(BackendError) as caught:
            given.find()
        assert str(caught.value) == ("backend 'cuda': device 1 (card 1): the device failed: played")
    given.backend.close()
    assert "device_blocks" not in given.stats.settings


def test_an_unforeseen_error_ends_the_other_searches(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages()

    def before_launch(kernel: str) -> None:
        raise ValueError("unforeseen")

    given.devices[0].before_launch = before_launch
    with pytest.raises(ValueError, match="unforeseen"):
        given.find()
    with pytest.raises(BackendError, match=r"device 0 \(card 0\): ValueError: unforeseen"):
        given.find()


def test_threads_that_wait_for_a_stream_end_when_a_device_fails(opened: Open) -> None:
    """All streams are busy and many threads wait; then one device fails, the other hangs on."""
    given = opened(0, 1)
    given.load_pages(ONE_PAGE)
    busy = threading.Barrier(2 * STREAMS + 1, timeout=60)
    fail, go_on = threading.Event(), threading.Event()

    def wait_and_fail(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert fail.wait(60)
            raise BackendError("cuda", "the device failed: played")

    def wait(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert go_on.wait(60)

    given.devices[0].before_launch, given.devices[1].before_launch = wait_and_fail, wait
    with ThreadPoolExecutor(20) as threads:
        searches = [threads.submit(given.find, ONE_PAGE) for _ in range(20)]
        busy.wait()
        fail.set()
        failed = []
        # All but those on the second device, whose streams are busy until later.
        while len(failed) < 20 - STREAMS:
            failed = [search for search in searches if search.done()]
            assert not go_on.wait(0.01)
        for search in failed:
            assert isinstance(search.exception(), BackendError)
            assert "device 0 (card 0): the device failed: played" in str(search.exception())
        go_on.set()
        rest = [search for search in searches if search not in failed]
        assert [search.result(60) for search in rest] == [GENOME.expected(FORWARD)] * STREAMS
    given.backend.close()


def test_threads_that_wait_for_a_stream_end_when_all_is_closed(opened: Open) -> None:
    given = opened(0)
    given.load_pages(ONE_PAGE)
    busy, go_on = threading.Barrier(STREAMS + 1, timeout=60), threading.Event()

    def wait(kernel: str) -> None:
        if kernel == "match_kernel":
            busy.wait()
            assert go_on.wait(60)

    given.devices[0].before_launch = wait
    with ThreadPoolExecutor(STREAMS + 3) as threads:
        under_way = [threads.submit(given.find, ONE_PAGE) for _ in range(STREAMS)]
        busy.wait()
        waiting = [threads.submit(given.find, ONE_PAGE) for _ in range(2)]
        closing = threads.submit(given.backend.close)
        for search in waiting:
            with pytest.raises(BackendError, match="the backend is closed"):
                search.result(60)
        assert not closing.done()
        go_on.set()
        assert [search.result(60) for search in under_way] == [GENOME.expected(FORWARD)] * STREAMS
        closing.result(60)


def test_a_device_that_cannot_be_closed_is_named_and_the_others_are_closed(opened: Open) -> None:
    given = opened(0, 1, 2)
    given.load_pages()
    given.devices[1].closing_fails = True
    with pytest.raises(BackendError, match="the device failed: closing"):
        given.backend.close()
    assert all(map(everything_given_back, given.devices.values()))


def test_memory_that_cannot_be_freed_names_the_device(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = opened(0, 1)
    given.load_pages()
    plain = TreeCudaBackend._let_go

    def let_go(backend: TreeCudaBackend) -> None:
        plain(backend)
        if backend.device is given.devices[0]:
            raise BackendError("cuda", "the device failed: freeing")

    monkeypatch.setattr(TreeCudaBackend, "_let_go", let_go)
    with pytest.raises(BackendError, match=r"device 0 \(card 0\): the device failed: freeing"):
        given.backend.close()
    assert all(device.closed for device in given.devices.values())
    assert everything_given_back(given.devices[1])
    given.devices[0].streams.clear()


def test_closing_after_a_failure_raises_no_other_error(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages()
    given.fail_on(0)
    with pytest.raises(BackendError, match="played"):
        given.find()
    given.devices[0].closing_fails = True
    given.backend.close()


def test_a_device_that_cannot_be_used_is_named_and_leaves_nothing(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices: list[NamedDevice] = []
    plain = NamedDevice.new_stream

    def new_stream(device: NamedDevice) -> Any:
        devices.append(device)
        if device.name == "card 1":
            raise BackendError("cuda", "the device failed: no stream")
        return plain(device)

    monkeypatch.setattr(NamedDevice, "new_stream", new_stream)
    with pytest.raises(BackendError, match=r"device 1 \(card 1\): the device failed: no stream"):
        opened(0, 1)
    assert {device.name for device in devices} == {"card 0", "card 1"}
    # The pool is for `open_cuda_backend` to close.
    assert not any([*device.streams, *device.buffers] for device in devices)


def test_pages_are_released_on_all_devices(opened: Open) -> None:
    given = opened(0, 1)
    given.load_pages()
    assert all(device.used for device in given.devices.values())
    given.backend.release_pages()
    assert not any(device.used for device in given.devices.values())
    given.load_pages()
    assert given.find() == GENOME.expected(FORWARD)
