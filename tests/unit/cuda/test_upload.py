"""Large arrays on their way to a device, on a stream that copies as late as it may."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mummergpu.cuda import upload
from mummergpu.cuda.upload import Uploader, thread_count
from mummergpu.errors import BackendError

Array = npt.NDArray[Any]
PIECE = 64
MEMORY = 1 << 16


class LazyMark:
    def __init__(self, stream: LazyStream, end: int) -> None:
        self._stream = stream
        self._end = end

    def wait(self) -> None:
        self._stream.do(self._end)

    def milliseconds_since(self, earlier: object) -> float:
        raise AssertionError


class LazyStream:
    """Copies nothing before somebody waits; several threads may queue work."""

    def __init__(self) -> None:
        self.memory = np.full(MEMORY, 0xA5, dtype=np.uint8)
        self.work: list[Callable[[], None]] = []
        self.done = 0
        self.sizes: list[int] = []
        self.threads: set[str] = set()
        self.fail_at: int | None = None
        self._lock = threading.Lock()

    def copy_in(self, address: int, array: Array) -> None:
        data = array.reshape(-1).view(np.uint8)

        def copy() -> None:
            self.memory[address : address + data.size] = data

        with self._lock:
            if len(self.work) == self.fail_at:
                raise BackendError("cuda", "the device failed: played")
            self.work.append(copy)
            self.sizes.append(data.size)
            self.threads.add(threading.current_thread().name)

    def mark(self) -> LazyMark:
        with self._lock:
            return LazyMark(self, len(self.work))

    def do(self, end: int) -> None:
        with self._lock:
            while self.done < end:
                self.work[self.done]()
                self.done += 1

    def synchronize(self) -> None:
        self.do(len(self.work))


class PinningDevice:
    """Keeps account of the pinned memory, and of the threads in which it is current."""

    def __init__(self) -> None:
        self.pinned_bytes: list[int] = []
        self.fail = False
        self._current = threading.local()

    @contextmanager
    def current(self) -> Iterator[None]:
        depth = getattr(self._current, "depth", 0)
        self._current.depth = depth + 1
        try:
            yield
        finally:
            self._current.depth = depth

    def pinned(self, count: int, dtype: npt.DTypeLike) -> Array:
        assert self._current.depth > 0
        if self.fail:
            raise BackendError("cuda", "the device failed: no pinned memory")
        found = np.full(count, 0x5A, dtype=dtype)
        self.pinned_bytes.append(found.nbytes)
        return found


class Way:
    """An uploader of small pieces, its stream and its device."""

    def __init__(self, threads: int = 3) -> None:
        self.device, self.stream = PinningDevice(), LazyStream()
        played: Any = self.device, self.stream
        self.uploader = Uploader(*played, threads, PIECE)

    @property
    def lanes(self) -> list[Any]:
        return self.uploader._lanes


@pytest.fixture
def way(monkeypatch: pytest.MonkeyPatch) -> Iterator[Way]:
    monkeypatch.setattr(upload, "BYTES_PER_THREAD", 2 * PIECE)
    monkeypatch.setattr(upload, "LEAST_BYTES", 4 * PIECE)
    made = Way()
    with made.device.current():
        yield made
    assert not any(thread.name.startswith("upload") for thread in threading.enumerate())


def bytes_of(count: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


SIZES = sorted({0, 1, 7, *(PIECE * n + d for n in (1, 2, 3, 4, 5, 6, 7, 40) for d in (-1, 0, 1))})


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_all_bytes_arrive(way: Way, threads: int) -> None:
    for count in SIZES:
        made = Way(threads)
        data = bytes_of(count)
        with made.device.current(), made.uploader.prepared(1 << 20):
            made.uploader.copy_in(128, data)
        expected = np.full(MEMORY, 0xA5, dtype=np.uint8)
        expected[128 : 128 + count] = data
        assert np.array_equal(made.stream.memory, expected), count
        assert max(made.stream.sizes, default=0) <= PIECE
        assert len(made.stream.sizes) == -(-count // PIECE)


def test_arrays_of_any_type_follow_each_other(way: Way) -> None:
    numbers = np.arange(300, dtype=np.int64) * 0x0102030405060708
    codes = bytes_of(1000)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, numbers)
        way.uploader.copy_in(4096, codes[3:])
        # Later arrays may take the place of earlier ones, as in a buffer that is used again.
        way.uploader.copy_in(8, codes[:100])
    expected = numbers.view(np.uint8).copy()
    expected[8:108] = codes[:100]
    assert np.array_equal(way.stream.memory[: expected.size], expected)
    assert np.array_equal(way.stream.memory[4096 : 4096 + 997], codes[3:])


def test_pieces_are_copied_by_several_threads(way: Way) -> None:
    meeting = threading.Barrier(3, timeout=60)
    plain, met = way.stream.copy_in, threading.local()

    def copy_in(address: int, array: Array) -> None:
        if not hasattr(met, "done"):
            met.done = meeting.wait()
        plain(address, array)

    way.stream.copy_in = copy_in  # type: ignore[method-assign]
    data = bytes_of(40 * PIECE)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, data)
    assert len(way.stream.threads) == 3
    assert np.array_equal(way.stream.memory[: data.size], data)


def test_memory_is_pinned_once_and_freed_at_the_end(way: Way) -> None:
    with way.uploader.prepared(1 << 20):
        assert way.device.pinned_bytes == []
        for _ in range(3):
            way.uploader.copy_in(0, bytes_of(50 * PIECE))
        assert len(way.lanes) == 3
        # A thread that found no piece left has pinned nothing.
        assert set(way.device.pinned_bytes) == {PIECE}
        assert 2 <= len(way.device.pinned_bytes) <= 3 * 2
    assert way.lanes == [] and way.stream.done == len(way.stream.work)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(PIECE))
    assert way.lanes == []


def test_small_arrays_pin_nothing(way: Way) -> None:
    data = bytes_of(3 * PIECE)
    with way.uploader.prepared(4 * PIECE - 1):
        way.uploader.copy_in(5, data)
    way.uploader.copy_in(1000, data)
    way.stream.synchronize()
    assert way.device.pinned_bytes == [] and way.stream.sizes == [data.size] * 2
    for begin in (5, 1000):
        assert np.array_equal(way.stream.memory[begin : begin + data.size], data)


def test_copies_are_done_at_the_end(way: Way) -> None:
    for total in (0, 1 << 20):
        with way.uploader.prepared(total):
            way.uploader.copy_in(0, bytes_of(PIECE))
        assert way.stream.done == len(way.stream.work)


@pytest.mark.parametrize("fail_at", [0, 1, 5, 39])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_a_thread_arrives(way: Way, fail_at: int, threads: int) -> None:
    made = Way(threads)
    made.stream.fail_at = fail_at
    with (
        pytest.raises(BackendError, match="played"),
        made.device.current(),
        made.uploader.prepared(1 << 20),
    ):
        made.uploader.copy_in(0, bytes_of(40 * PIECE))
    # The others stopped, all copies are done, and nothing stays pinned.
    assert len(made.stream.work) <= fail_at + threads
    assert made.stream.done == len(made.stream.work)
    assert made.lanes == []


def test_memory_that_cannot_be_pinned_is_an_error(way: Way) -> None:
    way.device.fail = True
    with (
        pytest.raises(BackendError, match="no pinned memory"),
        way.uploader.prepared(1 << 20),
    ):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
    assert way.lanes == []
    way.device.fail = False
    data = bytes_of(40 * PIECE)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, data)
    assert np.array_equal(way.stream.memory[: data.size], data)


def test_an_error_between_copies_frees_the_memory(way: Way) -> None:
    with pytest.raises(KeyError), way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
        raise KeyError
    assert way.lanes == [] and way.stream.done == len(way.stream.work)


def test_a_stream_that_fails_frees_the_memory(way: Way) -> None:
    def synchronize() -> None:
        raise BackendError("cuda", "the device failed: played")

    way.stream.synchronize = synchronize  # type: ignore[method-assign]
    with pytest.raises(BackendError, match="played"), way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
    assert way.lanes == []


@pytest.mark.parametrize(
    ("mebibytes", "most", "expected"),
    [
        (0, 8, 0),
        (255, 8, 0),
        (256, 8, 4),
        (256, 1, 1),
        (511, 8, 7),
        (512, 16, 8),
        (1 << 20, 3, 3),
        (1 << 20, 64, 8),
    ],
)
def test_more_bytes_get_more_threads(mebibytes: int, most: int, expected: int) -> None:
    assert thread_count(mebibytes << 20, most) == expected
