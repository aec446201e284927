"""Decompresses a file while it is read, or ahead of the reader.

Decompression takes five times as long as parsing what comes out. A thread can do it while the text
before it is parsed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, Final, Protocol

from mummergpu.input.bytes.reading_threads import ReadingThreads

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE_SIZE: Final = 1 << 20
"""The most bytes that are decompressed ahead at once."""

AHEAD_FROM: Final = 2 << 20
"""The bytes of text after which threads begin to help: smaller files need none."""


class Decompressor(Protocol):
    """What decompresses a file."""

    def readinto(self, buffer: Any, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        ...

    def stop(self) -> None:
        """Wait until no thread uses the file any more."""
        ...


class PieceReader(ABC):
    """Decompresses a file piece by piece; a read returns what is at hand and waits for no more."""

    @abstractmethod
    def read_some(self, size: int) -> bytes:
        """Return some of the data, at most `size` bytes; none at the end.

        Raises
        ------
        OSError or EOFError
            If the file cannot be read, or is corrupt or truncated.
        """

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        data = self.read_some(len(view))
        view[: len(data)] = data
        return len(data)

    def stop(self) -> None:
        """Do nothing: no thread uses the file."""
        return None


class Leftover:
    """Data of which a reader takes as many bytes as it has space for."""

    def __init__(self, data: bytes | memoryview = b"") -> None:
        self._data = memoryview(data)

    def readinto(self, view: memoryview) -> int:
        """Fill a part of the view; return the number of bytes, 0 if no data are left."""
        part = self._data[: len(view)]
        view[: len(part)] = part
        self._data = self._data[len(part) :]
        return len(part)


class InflatedAhead:
    """Reads a regular file that is compressed, but the next piece is decompressed in a thread.

    A thread that waits for a pipe could not be stopped. The thread begins after `ahead_from` bytes
    of text.
    """

    def __init__(
        self,
        inflated: PieceReader,
        threads: ReadingThreads,
        piece_size: int = PIECE_SIZE,
        ahead_from: int = AHEAD_FROM,
    ) -> None:
        self._inflated = inflated
        self._threads = threads
        self._piece_size = piece_size
        self._before = ahead_from
        self._next: Future[bytes] | None = None
        self._leftover = Leftover()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        if count := self._leftover.readinto(view):
            return count
        if self._next is None:
            data = self._inflated.read_some(self._piece_size)
            self._before -= len(data)
        else:
            data = self._take()
        if data and self._before <= 0:
            self._next = self._threads.submit(self._inflated.read_some, self._piece_size)
        self._leftover = Leftover(data)
        return self._leftover.readinto(view)

    def _take(self) -> bytes:
        """Return what the thread has decompressed, or raise its error."""
        assert self._next is not None
        future, self._next = self._next, None
        try:
            return future.result()
        finally:
            # The future holds its exception, which holds this frame: a circle.
            del future

    def stop(self) -> None:
        """Wait until the thread has decompressed its piece."""
        if self._next is not None and not self._next.cancel():
            wait([self._next])
