"""Copies large arrays to a device at the speed of the bus, through pinned memory.

One thread of the host copies pageable memory for the device, far slower than the bus could.
Here several threads copy pieces of an array to pinned memory, while the device fetches the pieces
before them. If the array is a mapped file, these threads also load it from the page cache.

It takes time to pin memory (`pinned_staging`). Small arrays are therefore copied as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Final

import numpy as np

from mummergpu.cuda.device import AnyArray, Device, Stream
from mummergpu.cuda.pinned_staging import Staging
from mummergpu.runtime.arrays import ByteArray

UPLOAD_PIECE_BYTES: Final = 4 << 20
"""The size of a piece. A thread has `pinned_staging.PIECES` of them: it fills one while the
device fetches the other."""

MOST_THREADS: Final = 8
"""A thread copies some 7 GB a second from the page cache, and a fast bus takes some 55 GB."""

BYTES_PER_THREAD: Final = 64 << 20
"""The bytes for which one more thread, and the time to pin its memory, is worth while."""

LEAST_BYTES: Final = 4 * BYTES_PER_THREAD
"""Arrays of fewer bytes together are not worth any pinned memory."""


class Uploader:
    """Copies large arrays to a device through pinned memory that several threads fill.

    The device must be current in the thread that calls any method. Copies on `stream` follow the
    work already queued, and later work follows them. There are never more threads than
    `MOST_THREADS`.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        threads: int = MOST_THREADS,
        piece_bytes: int | None = None,
    ) -> None:
        self.stream = stream
        self._device = device
        self._max_threads = threads
        self._piece_bytes = UPLOAD_PIECE_BYTES if piece_bytes is None else piece_bytes
        self._lanes: list[_Lane] = []
        self._executor: ThreadPoolExecutor | None = None

    @contextmanager
    def prepared(self, total_bytes: int) -> Iterator[None]:
        """Have pinned memory for the copies of a ``with`` statement, and wait for them at its end.

        The memory is pinned when it is first needed and freed at the end; none is for too few
        bytes.
        """
        threads = thread_count(total_bytes, self._max_threads)
        with ExitStack() as stack:
            stack.callback(self._free)
            # The device must not read memory that is no longer pinned.
            stack.callback(self.stream.synchronize)
            if threads:
                self._lanes = [
                    _Lane(self._device, self.stream, self._piece_bytes) for _ in range(threads)
                ]
                self._executor = ThreadPoolExecutor(threads, thread_name_prefix="upload")
                stack.callback(self._executor.shutdown)
            yield

    def copy_in(self, address: int, array: AnyArray) -> None:
        """Copy a contiguous array to the device.

        It must not change before the stream is synchronized. The first exception of a thread that
        fills pinned memory is raised when all have stopped.
        """
        if self._executor is None:
            self.stream.copy_in(address, array)
            return
        data = array.reshape(-1).view(np.uint8)
        pieces = _Pieces(data.size, self._piece_bytes)
        lanes = self._lanes[: pieces.count]
        if len(lanes) == 1:
            lanes[0].copy_in(pieces, address, data)
            return
        copies = [self._executor.submit(lane.copy_in, pieces, address, data) for lane in lanes]
        wait(copies)
        try:
            for copy in copies:
                copy.result()
        finally:
            # An exception holds this frame: with the futures, which hold it, it would be a circle.
            del copies

    def _free(self) -> None:
        self._executor = None
        for lane in self._lanes:
            lane.free()
        self._lanes = []


def thread_count(total_bytes: int, most: int) -> int:
    """Return how many threads fill pinned memory; 0 if it is not worth while to pin any."""
    if total_bytes < LEAST_BYTES:
        return 0
    return min(most, MOST_THREADS, total_bytes // BYTES_PER_THREAD)


class _Pieces:
    """The pieces of an array that are still to be copied; several threads take them."""

    def __init__(self, size: int, piece_bytes: int) -> None:
        self.count = -(-size // piece_bytes)
        self._piece_bytes = piece_bytes
        self._next = 0
        self._lock = threading.Lock()

    def take(self) -> slice | None:
        """Return the bytes of the next piece, or None if there is none."""
        with self._lock:
            if self._next >= self.count:
                return None
            begin = self._next * self._piece_bytes
            self._next += 1
        return slice(begin, begin + self._piece_bytes)

    def stop(self) -> None:
        """Let no thread take another piece."""
        with self._lock:
            self._next = self.count


class _Lane:
    """The pinned memory of one thread at a time, which is pinned at the first copy."""

    def __init__(self, device: Device, stream: Stream, piece_bytes: int) -> None:
        self._device = device
        self._stream = stream
        self._piece_bytes = piece_bytes
        self._staging: Staging | None = None

    def copy_in(self, pieces: _Pieces, address: int, data: ByteArray) -> None:
        """Copy pieces of an array until none is left."""
        try:
            with self._device.current():
                if self._staging is None:
                    self._staging = Staging(self._device, self._stream, self._piece_bytes)
                while (piece := pieces.take()) is not None:
                    self._staging.copy_in(address + piece.start, data[piece])
        except BaseException:
            pieces.stop()
            raise

    def free(self) -> None:
        """Free the memory, when all copies are done."""
        if self._staging is not None:
            self._staging.free()
            self._staging = None
