"""Decompresses a file ahead of its reader: bgzf in several threads, everything else in one.

Decompression takes five times as long as parsing the text. The blocks of bgzf are independent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from io import BytesIO, RawIOBase
from typing import TYPE_CHECKING, Any, Final

from mummergpu.input.bytes.formats import BGZF_HEAD, Compression, bgzf_block_bytes
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.input.bytes.stream_decoders import DecodedStreams

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE_SIZE: Final = 1 << 20
"""The maximum size of a piece that is decompressed ahead."""

AHEAD_FROM: Final = 2 << 20
"""The bytes of text after which threads begin to help: smaller files need none."""


class Leftover:
    """Data that a reader takes in portions of any size."""

    def __init__(self, data: bytes | memoryview = b"") -> None:
        self._data = memoryview(data)

    def readinto(self, view: memoryview) -> int:
        """Fill a part of the view; return the number of bytes, 0 if no data are left."""
        part = self._data[: len(view)]
        view[: len(part)] = part
        self._data = self._data[len(part) :]
        return len(part)


class InflatedAhead:
    """Reads a compressed regular file, whose next piece a thread decompresses.

    Not for pipes: a thread that waits for one could not be stopped. The thread begins after
    `ahead_from` bytes of text.
    """

    def __init__(
        self,
        inflated: DecodedStreams,
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
            self._next = self._threads.executor.submit(self._inflated.read_some, self._piece_size)
        self._leftover = Leftover(data)
        return self._leftover.readinto(view)

    def _take(self) -> bytes:
        """Return the text from the thread, or raise its error."""
        assert self._next is not None
        future, self._next = self._next, None
        try:
            return future.result()
        finally:
            # The future holds its exception, which holds this frame: a reference cycle.
            del future

    def stop(self) -> None:
        """Wait until the thread has decompressed its piece."""
        if self._next is not None and not self._next.cancel():
            wait([self._next])


COMPRESSED_PIECE_SIZE: Final = 1 << 18
"""The approximate bytes of bgzf blocks that a thread decompresses at once."""

_LONGEST_TEXT_OF_BLOCK: Final = 1 << 16
_BUFFER_SIZE: Final = PIECE_SIZE + _LONGEST_TEXT_OF_BLOCK + 1
_LENGTH_BYTES: Final = 4


class InflatedBlocks:
    """Reads bgzf, and decompresses pieces of several blocks in threads, ahead of the reader.

    If anything is wrong with a piece, `DecodedStreams` goes on from its first byte: it raises the
    errors, and decompresses gzip that is not bgzf. It also checks the end of the file.

    `ignore` receives the number of bytes after the last block. If a read from `source` would block
    (`is_ready`), the available pieces are returned first.
    """

    def __init__(
        self,
        source: RawIOBase,
        threads: ReadingThreads,
        ignore: Callable[[int], None],
        is_ready: Callable[[], bool],
        piece_size: int = COMPRESSED_PIECE_SIZE,
        ahead_from: int = AHEAD_FROM,
    ) -> None:
        self._source = source
        self._threads = threads
        self._ignore = ignore
        self._is_ready = is_ready
        self._piece_size = piece_size
        self._before = ahead_from
        self._compressed = bytearray()
        self._under_way: deque[tuple[bytes, Future[memoryview]]] = deque()
        # Buffers are reused, because page faults of new memory take a fifth of the time.
        self._buffers: list[bytearray] = []
        self._last = bytearray()
        self._is_drained = False
        self._has_text = False
        self._fault: OSError | None = None
        self._rest: DecodedStreams | None = None
        self._leftover = Leftover()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill a part of the buffer; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        while self._rest is None:
            if count := self._leftover.readinto(view):
                return count
            self._leftover = Leftover(self._next_text())
        return self._leftover.readinto(view) or self._rest.readinto(view)

    def stop(self) -> None:
        """Drop the pieces in work; they use no file."""
        for _, future in self._under_way:
            future.cancel()

    def _next_text(self) -> bytes | memoryview:
        """Return the text of the next piece; nothing if it is empty or `_rest` must continue."""
        if self._last:
            self._buffers.append(self._last)
            self._last = bytearray()
        if self._before > 0:
            return self._text_without_threads()
        window = self._threads.window
        while len(self._under_way) < window and (not self._under_way or self._is_ready()):
            piece, size = self._cut()
            if not piece:
                break
            future = self._threads.executor.submit(_inflate, piece, size, self._buffer())
            self._under_way.append((piece, future))
        if not self._under_way:
            self._go_on_from(b"")
            return b""
        piece, future = self._under_way.popleft()
        try:
            return self._keep(future.result())
        except Exception:
            self._go_on_from(piece)
            return b""
        finally:
            del future  # It holds its exception, which holds this frame: a reference cycle.

    def _buffer(self) -> bytearray:
        """Return space for the text of a piece and one byte more."""
        return self._buffers.pop() if self._buffers else bytearray(_BUFFER_SIZE)

    def _keep(self, text: memoryview) -> memoryview:
        """Remember the buffer of a text, to use it again."""
        assert isinstance(text.obj, bytearray)
        self._last = text.obj
        return text

    def _text_without_threads(self) -> bytes | memoryview:
        piece, size = self._cut()
        self._before -= size
        try:
            if piece:
                return self._keep(_inflate(piece, size, self._buffer()))
        except Exception:
            pass
        self._go_on_from(piece)
        return b""

    def _go_on_from(self, piece: bytes) -> None:
        """Pass everything that has not been returned yet to `DecodedStreams`."""
        self.stop()
        parts = [piece, *(later for later, _ in self._under_way)]
        self._under_way.clear()
        self._buffers.clear()
        rest = _Rest(b"".join(parts) + self._compressed, self._fault, self._source)
        ends = {"is_bgzf": True, "has_text": self._has_text}
        self._rest = DecodedStreams(rest, Compression.GZIP, "", ignore=self._ignore, **ends)

    def _cut(self) -> tuple[bytes, int]:
        """Return the next whole blocks, and the size of their text; none if no block follows."""
        data, end, size = self._compressed, 0, 0
        while end < self._piece_size and size < PIECE_SIZE:
            header = bytes(data[end : end + BGZF_HEAD])
            is_whole = len(header) == BGZF_HEAD
            length = bgzf_block_bytes(header)
            if is_whole and not length:
                self._is_drained = True
                break
            if not is_whole or end + length > len(data):
                has_some = end > 0 or self._under_way
                if (has_some and not self._is_ready()) or not self._read_more():
                    break
                continue
            text = int.from_bytes(data[end + length - _LENGTH_BYTES : end + length], "little")
            if text > _LONGEST_TEXT_OF_BLOCK:
                self._is_drained = True
                break
            end += length
            size += text
            self._has_text = text > 0
        piece = bytes(data[:end])
        del data[:end]
        return piece, size

    def _read_more(self) -> bool:
        """Read compressed data; return False at the end, or if a read has failed."""
        if self._is_drained:
            return False
        buffer = bytearray(self._piece_size)
        try:
            count = self._source.readinto(buffer)
        except OSError as error:
            # The pieces before the error come first.
            self._fault, count = error, 0
        self._is_drained = count == 0
        self._compressed += memoryview(buffer)[:count]
        return count > 0


class _Rest(RawIOBase):
    """Some data, followed by an error or by the rest of a file."""

    def __init__(self, data: bytes, fault: OSError | None, source: RawIOBase) -> None:
        super().__init__()
        self._leftover = Leftover(data)
        self._fault = fault
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        if count := self._leftover.readinto(memoryview(buffer)):
            return count
        if self._fault is not None:
            raise self._fault
        return self._source.readinto(buffer)


def _inflate(blocks: bytes, size: int, buffer: bytearray) -> memoryview:
    """Decompress whole bgzf blocks into a buffer that is longer than their text of `size` bytes.

    Any exception means that something is wrong with the blocks.
    """
    from isal import igzip

    open_gzip: Any = igzip.IGzipFile
    with open_gzip(fileobj=BytesIO(blocks), mode="rb") as file:
        # The reader checks the checksum of a block only when more data are requested.
        view, end = memoryview(buffer)[: size + 1], 0
        while count := file.readinto(view[end:]):
            end += count
    if end != size:
        raise EOFError
    return view[:size]
