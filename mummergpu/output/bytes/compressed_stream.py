"""Compresses a stream of bytes with several threads, always to the same bytes.

What is compressed together must not depend on the pieces in which the bytes come: these follow the
blocks of queries, whose size depends on the number of threads.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from mummergpu.output.bytes.compression import Compressor, Piece
from mummergpu.runtime.arrays import ByteArray

TakeBack = Callable[[Piece], None]
"""Receives a piece that nothing will read again."""


def _keep(piece: Piece) -> None:
    """Leave a piece alone."""


class CompressedStream:
    """Takes bytes in pieces of any size, and passes them on in compressed form, in order.

    One thread calls all methods. It cuts the pieces, and the threads that compress join them.

    Parameters
    ----------
    threads : int
        The number of threads that compress, besides the one that calls.
    take_back : callable, optional
        Receives each piece when it has been compressed.
    """

    def __init__(
        self,
        compressor: Compressor,
        threads: int,
        write: Callable[[bytes], None],
        take_back: TakeBack = _keep,
    ) -> None:
        self._compressor = compressor
        self._write = write
        self._take_back = take_back
        threads = min(threads, compressor.most_threads)
        self._window = 2 * threads
        # A thread starts when there is a chunk for it.
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="compress")
        self._under_way: deque[tuple[Future[bytes], list[Piece]]] = deque()
        self._parts: list[ByteArray] = []
        self._ended: list[Piece] = []
        self._filled = 0

    def add(self, piece: Piece) -> None:
        """Take a piece, which must stay as it is until it is given back."""
        data = np.frombuffer(piece, dtype=np.uint8)
        chunk_bytes = self._compressor.chunk_bytes
        while data.size:
            count = min(data.size, chunk_bytes - self._filled)
            self._parts.append(data[:count])
            self._filled += count
            data = data[count:]
            if data.size == 0:
                self._ended.append(piece)
            if self._filled == chunk_bytes:
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
        packed = self._executor.submit(self._compressor.compress_parts, self._parts)
        self._under_way.append((packed, self._ended))
        self._parts, self._ended, self._filled = [], [], 0
        while len(self._under_way) > self._window:
            self._take_first()

    def _take_first(self) -> None:
        packed, ended = self._under_way.popleft()
        self._write(packed.result())
        for piece in ended:
            self._take_back(piece)
