"""Arrays that pass through little pinned memory, on a stream that puts everything off."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mummergpu.cuda import pinned_staging as staging
from mummergpu.cuda.pinned_staging import Staging

Array = npt.NDArray[Any]


class LazyMark:
    def __init__(self, stream: LazyStream) -> None:
        self._stream = stream
        self._behind = len(stream.work)
        self.waited = 0

    def wait(self) -> None:
        self.waited += 1
        self._stream.do(self._behind)

    def milliseconds_since(self, earlier: object) -> float:
        raise AssertionError


class LazyStream:
    """Copies nothing before somebody waits: then what is in the pinned memory counts."""

    def __init__(self) -> None:
        self.memory = np.zeros(1 << 12, dtype=np.uint8)
        self.work: list[Callable[[], None]] = []
        self.done = 0
        self.sizes: list[int] = []

    def copy_in(self, address: int, array: Array) -> None:
        self.sizes.append(array.nbytes)

        def copy() -> None:
            self.memory[address : address + array.nbytes] = array

        self.work.append(copy)

    def copy_out(self, array: Array, address: int) -> None:
        self.sizes.append(array.nbytes)

        def copy() -> None:
            array[:] = self.memory[address : address + array.nbytes]

        self.work.append(copy)

    def mark(self) -> LazyMark:
        return LazyMark(self)

    def do(self, behind: int) -> None:
        while self.done < behind:
            self.work[self.done]()
            self.done += 1


class PinnedMemory:
    def pinned(self, count: int, dtype: npt.DTypeLike) -> Array:
        return np.zeros(count, dtype=dtype)


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> LazyStream:
    monkeypatch.setattr(staging, "PIECE_BYTES", 64)
    return LazyStream()


@pytest.mark.parametrize("threads", [0, 3])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 16, 17, 40, 100, 300])
def test_arrays_go_in_and_come_out(stream: LazyStream, count: int, threads: int) -> None:
    """Pieces of 64 bytes are eight numbers."""
    with ThreadPoolExecutor(max(1, threads)) as pool:
        copiers = pool if threads else None
        way: Any = Staging(PinnedMemory(), stream, copiers=copiers)  # type: ignore[arg-type]
        check_ways(way, stream, count)


def check_ways(way: Any, stream: LazyStream, count: int) -> None:
    numbers = np.arange(count, dtype=np.int64) * 0x0102030405060708
    way.copy_in(256, numbers)
    expected = numbers.copy()
    numbers[:] = -1
    found = np.full(count, 7, dtype=np.int64)
    way.copy_out(found, 256)
    assert np.array_equal(found, expected)
    assert max(stream.sizes, default=0) <= 64 and sum(stream.sizes) == 2 * expected.nbytes


@pytest.mark.parametrize("sizes", [(), (0,), (1, 0, 63, 64, 65), (200, 3, 130), (64, 64, 64)])
def test_several_arrays_come_out_of_consecutive_bytes(
    stream: LazyStream, sizes: tuple[int, ...]
) -> None:
    way: Any = Staging(PinnedMemory(), stream)  # type: ignore[arg-type]
    stream.memory[:] = np.arange(stream.memory.size) % 251
    found = [np.full(size, 7, dtype=np.uint8) for size in sizes]
    way.copy_out_all(iter(found), 5)
    joined = np.concatenate([np.empty(0, dtype=np.uint8), *found])
    assert np.array_equal(joined, stream.memory[5 : 5 + sum(sizes)])


def test_one_piece_is_on_its_way_while_another_is_taken_over(stream: LazyStream) -> None:
    way: Any = Staging(PinnedMemory(), stream)  # type: ignore[arg-type]
    stream.memory[:] = np.arange(stream.memory.size) % 251
    asked: list[int] = []
    plain_do = stream.do

    def do(behind: int) -> None:
        asked.append(len(stream.work) - behind)
        plain_do(behind)

    stream.do = do  # type: ignore[method-assign]
    found = np.empty(64 * 5, dtype=np.uint8)
    way.copy_out(found, 3)
    assert np.array_equal(found, stream.memory[3 : 3 + found.size])
    # Whoever waits for a piece has asked for the next before, but for the last.
    assert asked.count(1) >= 4


def test_pieces_can_be_given_back(stream: LazyStream) -> None:
    way: Any = Staging(PinnedMemory(), stream)  # type: ignore[arg-type]
    way.copy_in(0, np.ones(200, dtype=np.uint8))
    way.free()
    assert not way._pieces and not way._marks
