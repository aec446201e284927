"""Copies arrays of any size to and from a device through pinned memory.

The system needs as long to pin memory as a device needs to fill it many times, and pinning
blocks all other threads. A stream therefore pins little memory and reuses it: the host copies
one piece while the device transfers another. A processor copies more slowly than a device takes;
with a pool, several threads copy pieces to the device side by side. If the array is a mapped file,
these threads also load it from the page cache.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Final, NamedTuple

import numpy as np

from mummergpu.cuda.device import AnyArray, Device, Mark, Stream

PIECE_BYTES: Final = 1 << 22
PIECES: Final = 2
POOL_PIECES: Final = 8
"""With a pool that copies."""

MOST_THREADS: Final = 8
"""A thread copies some 7 GB a second from the page cache, and a fast bus takes some 55 GB."""

BYTES_PER_THREAD: Final = 64 << 20
"""The bytes for which one more thread, and the time to pin its memory, is worth while."""

LEAST_BYTES: Final = 4 * BYTES_PER_THREAD
"""Arrays of fewer bytes together are not worth any pinned memory."""


class _Filled(NamedTuple):
    """A piece of pinned memory that is full when it is `done`, and where on the device it goes."""

    number: int
    piece: AnyArray
    address: int
    done: Future[None] | None


class Staging:
    """The pinned memory of one stream, for copies to and from the device.

    The device must be current in the thread that calls any method. The copies follow the work that
    is already queued. There are `count` pieces of `PIECE_BYTES`, each pinned when it is first
    needed; the threads of `copiers` copy to the device.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        copiers: ThreadPoolExecutor | None = None,
        count: int | None = None,
    ) -> None:
        self._device = device
        self._stream = stream
        self._copiers = copiers
        self._count = count or (PIECES if copiers is None else POOL_PIECES)
        self._pieces: list[AnyArray] = []
        self._marks: list[Mark | None] = []
        self._next = 0

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device; it may be changed as soon as this returns."""
        data = array.reshape(-1).view(np.uint8)
        # Pieces on their way into pinned memory; the device gets them in their order.
        filled: deque[_Filled] = deque()
        for begin in range(0, data.size, PIECE_BYTES):
            if len(filled) == self._count:
                self._send(filled.popleft())
            number = self._take_piece()
            part = data[begin : begin + PIECE_BYTES]
            piece = self._pieces[number][: part.size]
            if self._copiers is None or part.size == data.size:
                piece[:] = part
                self._send(_Filled(number, piece, address + begin, None))
            else:
                done = self._copiers.submit(np.copyto, piece, part)
                filled.append(_Filled(number, piece, address + begin, done))
        for piece_of_array in filled:
            self._send(piece_of_array)

    def copy_out(self, array: AnyArray, address: int) -> None:
        """Fill a contiguous array from the device, and wait until that is done."""
        self.copy_out_all((array,), address)

    def copy_out_all(self, arrays: Iterable[AnyArray], address: int) -> None:
        """Fill contiguous arrays from consecutive bytes of the device, and wait until that is done.

        Each array is drawn when the copy into it begins.
        """
        on_its_way: tuple[AnyArray, int] | None = None
        for array in arrays:
            data = array.reshape(-1).view(np.uint8)
            for begin in range(0, data.size, PIECE_BYTES):
                number = self._take_piece()
                part = data[begin : begin + PIECE_BYTES]
                self._stream.copy_out(self._pieces[number][: part.size], address)
                self._marks[number] = self._stream.mark()
                address += part.size
                if on_its_way is not None:
                    self._take_over(*on_its_way)
                on_its_way = part, number
        if on_its_way is not None:
            self._take_over(*on_its_way)

    def free(self) -> None:
        """Free the memory, when all copies are done."""
        # The pinned memory must be freed before its context is destroyed.
        self._pieces.clear()
        self._marks.clear()
        self._next = 0

    def _send(self, filled: _Filled) -> None:
        if filled.done is not None:
            filled.done.result()
        self._stream.copy_in(filled.address, filled.piece)
        self._marks[filled.number] = self._stream.mark()

    def _take_piece(self) -> int:
        """Wait for the least recently used piece to become free, and return its number."""
        number = self._next
        if number == len(self._pieces):
            self._pieces.append(self._device.pinned(PIECE_BYTES, np.uint8))
            self._marks.append(None)
        self._next = (number + 1) % self._count
        mark = self._marks[number]
        if mark is not None:
            mark.wait()
        return number

    def _take_over(self, part: AnyArray, number: int) -> None:
        mark = self._marks[number]
        assert mark is not None
        mark.wait()
        part[:] = self._pieces[number][: part.size]


class Uploader:
    """Copies large arrays to a device at the speed of the bus; small ones as they are.

    The device must be current in the thread that calls any method. Copies on `stream` follow the
    work already queued, and later work follows them.
    """

    def __init__(self, device: Device, stream: Stream, threads: int = MOST_THREADS) -> None:
        self.stream = stream
        self._device = device
        self._max_threads = threads
        self._staging: Staging | None = None

    @contextmanager
    def prepared(self, total_bytes: int) -> Iterator[None]:
        """Have pinned memory for the copies of a ``with`` statement, and wait for them at its end.

        None is pinned for too few bytes.
        """
        threads = thread_count(total_bytes, self._max_threads)
        with ExitStack() as stack:
            stack.callback(self._free)
            # The device must not read memory that is no longer pinned.
            stack.callback(self.stream.synchronize)
            if threads:
                pool = stack.enter_context(ThreadPoolExecutor(threads, "upload"))
                # A thread fills a piece while the device fetches another.
                self._staging = Staging(self._device, self.stream, pool, 2 * threads)
            yield

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array, which must not change before the stream is synchronized."""
        if self._staging is None:
            self.stream.copy_in(address, array)
        else:
            self._staging.copy_in(address, array)

    def _free(self) -> None:
        if self._staging is not None:
            self._staging.free()
            self._staging = None


def thread_count(total_bytes: int, most: int) -> int:
    """Return how many threads fill pinned memory; 0 if it is not worth while to pin any."""
    if total_bytes < LEAST_BYTES:
        return 0
    return min(most, MOST_THREADS, total_bytes // BYTES_PER_THREAD)
