"""Arrays that pass through pinned memory, on a stream that copies as late as it may."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mummergpu.cuda import pinned_staging
from mummergpu.cuda.pinned_staging import Staging, Uploader, thread_count
from mummergpu.errors import BackendError

PIECE = 64
MEMORY = 1 << 16


class LazyMark:
    def __init__(self, stream):
        self._stream = stream
        self._end = len(stream.work)

    def wait(self):
        self._stream.do(self._end)

    def milliseconds_since(self, earlier):
        raise AssertionError


class LazyStream:
    """Copies nothing before somebody waits: then what is in the pinned memory counts."""

    def __init__(self):
        self.memory = np.full(MEMORY, 0xA5, dtype=np.uint8)
        self.work = []
        self.done = 0
        self.sizes = []
        self.fail_at = None

    def copy_in(self, address, array):
        if len(self.work) == self.fail_at:
            raise BackendError("cuda", "the device failed: played")
        data = array.reshape(-1).view(np.uint8)
        self.sizes.append(data.size)

        def copy():
            self.memory[address : address + data.size] = data

        self.work.append(copy)

    def copy_out(self, array, address):
        self.sizes.append(array.nbytes)

        def copy():
            array[:] = self.memory[address : address + array.nbytes]

        self.work.append(copy)

    def mark(self):
        return LazyMark(self)

    def do(self, end):
        while self.done < end:
            self.work[self.done]()
            self.done += 1

    def synchronize(self):
        self.do(len(self.work))


class PinningDevice:
    """Keeps account of the pinned memory, which one thread takes."""

    def __init__(self):
        self.pinned_bytes = []
        self.fail = False

    def pinned(self, count, dtype):
        assert threading.current_thread() is threading.main_thread()
        if self.fail:
            raise BackendError("cuda", "the device failed: no pinned memory")
        found = np.full(count, 0x5A, dtype=dtype)
        self.pinned_bytes.append(found.nbytes)
        return found


@pytest.fixture
def stream(monkeypatch):
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", PIECE)
    return LazyStream()


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 16, 17, 40, 100, 300])
def test_arrays_go_in_and_come_out(stream, count, threads):
    """Pieces of 64 bytes are eight numbers."""
    with ThreadPoolExecutor(max(1, threads)) as pool:
        copiers = pool if threads else None
        check_ways(Staging(PinningDevice(), stream, copiers=copiers), stream, count)


def check_ways(way, stream, count):
    numbers = np.arange(count, dtype=np.int64) * 0x0102030405060708
    way.copy_in(256, numbers)
    expected = numbers.copy()
    numbers[:] = -1
    found = np.full(count, 7, dtype=np.int64)
    way.copy_out(found, 256)
    assert np.array_equal(found, expected)
    assert max(stream.sizes, default=0) <= 64 and sum(stream.sizes) == 2 * expected.nbytes


@pytest.mark.parametrize("sizes", [(), (0,), (1, 0, 63, 64, 65), (200, 3, 130), (64, 64, 64)])
def test_several_arrays_come_out_of_consecutive_bytes(stream, sizes):
    way = Staging(PinningDevice(), stream)
    stream.memory[:] = np.arange(stream.memory.size) % 251
    found = [np.full(size, 7, dtype=np.uint8) for size in sizes]
    way.copy_out_all(iter(found), 5)
    joined = np.concatenate([np.empty(0, dtype=np.uint8), *found])
    assert np.array_equal(joined, stream.memory[5 : 5 + sum(sizes)])


def test_one_piece_is_on_its_way_while_another_is_taken_over(stream):
    way = Staging(PinningDevice(), stream)
    stream.memory[:] = np.arange(stream.memory.size) % 251
    asked = []
    plain_do = stream.do

    def do(behind):
        asked.append(len(stream.work) - behind)
        plain_do(behind)

    stream.do = do
    found = np.empty(64 * 5, dtype=np.uint8)
    way.copy_out(found, 3)
    assert np.array_equal(found, stream.memory[3 : 3 + found.size])
    # Whoever waits for a piece has asked for the next before, but for the last.
    assert asked.count(1) >= 4


def test_a_piece_that_could_not_be_pinned_is_pinned_later(stream):
    device = PinningDevice()
    way = Staging(device, stream)
    data = np.arange(PIECE, dtype=np.uint8)
    device.fail = True
    with pytest.raises(BackendError):
        way.copy_in(0, data)
    device.fail = False
    way.copy_in(0, data)
    stream.synchronize()
    assert np.array_equal(stream.memory[:PIECE], data)


def test_pieces_can_be_given_back(stream):
    way = Staging(PinningDevice(), stream)
    way.copy_in(0, np.ones(200, dtype=np.uint8))
    way.free()
    assert not way._pieces and not way._marks


class Way:
    """An uploader of small pieces, its stream and its device."""

    def __init__(self, threads=3):
        self.device, self.stream = PinningDevice(), LazyStream()
        self.uploader = Uploader(*(self.device, self.stream), threads)

    @property
    def is_prepared(self):
        return self.uploader._staging is not None


@pytest.fixture
def way(monkeypatch):
    monkeypatch.setattr(pinned_staging, "PIECE_BYTES", PIECE)
    monkeypatch.setattr(pinned_staging, "BYTES_PER_THREAD", 2 * PIECE)
    monkeypatch.setattr(pinned_staging, "LEAST_BYTES", 4 * PIECE)
    yield Way()
    assert not any(thread.name.startswith("upload") for thread in threading.enumerate())


def bytes_of(count, seed=1):
    return np.random.default_rng(seed).integers(0, 256, count, dtype=np.uint8)


SIZES = sorted({0, 1, 7, *(PIECE * n + d for n in (1, 2, 3, 4, 5, 6, 7, 40) for d in (-1, 0, 1))})


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_all_bytes_arrive(way, threads):
    for count in SIZES:
        made = Way(threads)
        data = bytes_of(count)
        with made.uploader.prepared(1 << 20):
            made.uploader.copy_in(128, data)
        expected = np.full(MEMORY, 0xA5, dtype=np.uint8)
        expected[128 : 128 + count] = data
        assert np.array_equal(made.stream.memory, expected), count
        assert max(made.stream.sizes, default=0) <= PIECE
        assert len(made.stream.sizes) == -(-count // PIECE)


def test_arrays_of_any_type_follow_each_other(way):
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


def test_memory_is_pinned_once_and_freed_at_the_end(way):
    with way.uploader.prepared(1 << 20):
        assert way.device.pinned_bytes == []
        for _ in range(3):
            way.uploader.copy_in(0, bytes_of(50 * PIECE))
        assert way.device.pinned_bytes == [PIECE] * 3 * 2
    assert not way.is_prepared and way.stream.done == len(way.stream.work)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(PIECE))
    assert not way.is_prepared


def test_small_arrays_pin_nothing(way):
    data = bytes_of(3 * PIECE)
    with way.uploader.prepared(4 * PIECE - 1):
        way.uploader.copy_in(5, data)
    way.uploader.copy_in(1000, data)
    way.stream.synchronize()
    assert way.device.pinned_bytes == [] and way.stream.sizes == [data.size] * 2
    for begin in (5, 1000):
        assert np.array_equal(way.stream.memory[begin : begin + data.size], data)


def test_copies_are_done_at_the_end(way):
    for total in (0, 1 << 20):
        with way.uploader.prepared(total):
            way.uploader.copy_in(0, bytes_of(PIECE))
        assert way.stream.done == len(way.stream.work)


@pytest.mark.parametrize("fail_at", [0, 1, 5, 39])
@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_of_a_thread_arrives(way, fail_at, threads):
    made = Way(threads)
    made.stream.fail_at = fail_at
    with pytest.raises(BackendError, match="played"), made.uploader.prepared(1 << 20):
        made.uploader.copy_in(0, bytes_of(40 * PIECE))
    # All copies are done, and nothing stays pinned.
    assert len(made.stream.work) == fail_at and made.stream.done == len(made.stream.work)
    assert not made.is_prepared


def test_memory_that_cannot_be_pinned_is_an_error(way):
    way.device.fail = True
    with pytest.raises(BackendError, match="no pinned memory"), way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
    assert not way.is_prepared
    way.device.fail = False
    data = bytes_of(40 * PIECE)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, data)
    assert np.array_equal(way.stream.memory[: data.size], data)


def test_an_error_between_copies_frees_the_memory(way):
    with pytest.raises(KeyError), way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
        raise KeyError
    assert not way.is_prepared and way.stream.done == len(way.stream.work)


def test_a_stream_that_fails_frees_the_memory(way):
    def synchronize():
        raise BackendError("cuda", "the device failed: played")

    way.stream.synchronize = synchronize
    with pytest.raises(BackendError, match="played"), way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, bytes_of(40 * PIECE))
    assert not way.is_prepared


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
def test_more_bytes_get_more_threads(mebibytes, most, expected):
    assert thread_count(mebibytes << 20, most) == expected


def test_pieces_are_filled_by_several_threads(way, monkeypatch):
    meeting, met, plain = threading.Barrier(3, timeout=60), threading.local(), np.copyto

    def copyto(piece, part):
        if not hasattr(met, "done"):
            met.done = meeting.wait()
        plain(piece, part)

    monkeypatch.setattr(np, "copyto", copyto)
    data = np.arange(40 * PIECE, dtype=np.int64).astype(np.uint8)
    with way.uploader.prepared(1 << 20):
        way.uploader.copy_in(0, data)
    assert np.array_equal(way.stream.memory[: data.size], data)
