"""Compresses a stream of bytes with several threads, always to the same bytes.

What is compressed together must not depend on the pieces in which the bytes come: these follow the
blocks of queries, whose size depends on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, Compressor, Piece

ByteArray = npt.NDArray[np.uint8]

CHUNK_BYTES: Final = 32 * BGZF_BLOCK_BYTES
"""The bytes that a thread compresses at once; whole blocks of bgzf."""

MOST_THREADS: Final = 32
"""More threads would wait for the one that fills the chunks."""


class CompressedStream:
    """Takes bytes in pieces of any size, and passes them on in compressed form, in order.

    One thread calls all methods.

    Parameters
    ----------
    compressor : Compressor
        Compresses the chunks.
    threads : int
        The number of threads that compress, besides the one that calls.
    write : callable
        Receives the compressed bytes.
    """

    def __init__(
        self, compressor: Compressor, threads: int, write: Callable[[bytes], None]
    ) -> None:
        self._compressor = compressor
        self._write = write
        self._window = 2 * min(threads, MOST_THREADS)
        # A thread starts when there is a chunk for it.
        self._executor = ThreadPoolExecutor(
            min(threads, MOST_THREADS), thread_name_prefix="compress"
        )
        self._under_way: deque[tuple[Future[bytes], ByteArray]] = deque()
        self._free: list[ByteArray] = []
        self._chunk = np.empty(CHUNK_BYTES, dtype=np.uint8)
        self._filled = 0

    def add(self, piece: Piece) -> None:
        """Take a piece, which may be changed as soon as this returns."""
        data = np.frombuffer(piece, dtype=np.uint8)
        while data.size:
            count = min(data.size, CHUNK_BYTES - self._filled)
            self._chunk[self._filled : self._filled + count] = data[:count]
            self._filled += count
            data = data[count:]
            if self._filled == CHUNK_BYTES:
                self._submit()

    def finish(self) -> None:
        """Pass on all that is left, and the end of the compressed file."""
        if self._filled:
            self._submit()
        while self._under_way:
            self._take_first()
        self._write(self._compressor.end())

    def close(self) -> None:
        """End the threads, also after a failure."""
        self._executor.shutdown(wait=True, cancel_futures=True)
        self._under_way.clear()

    def _submit(self) -> None:
        filled = self._executor.submit(self._compressor.compress, self._chunk[: self._filled])
        self._under_way.append((filled, self._chunk))
        while len(self._under_way) > self._window:
            self._take_first()
        # The system needs longer to provide new memory than this thread to fill it.
        self._chunk = self._free.pop() if self._free else np.empty(CHUNK_BYTES, dtype=np.uint8)
        self._filled = 0

    def _take_first(self) -> None:
        filled, chunk = self._under_way.popleft()
        self._write(filled.result())
        self._free.append(chunk)
