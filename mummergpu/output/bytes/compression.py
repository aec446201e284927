"""Compresses output piece by piece; the compressed pieces, one after the other, are the file.

Several threads compress a stream, always to the same bytes: what is compressed together must not
depend on the pieces in which the bytes come. These follow the blocks of queries, whose size depends
on the number of threads.
"""

from __future__ import annotations

import struct
import threading
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from typing import Any, Final, cast

import numpy as np

from mummergpu.errors import LibraryError
from mummergpu.output.bytes.bgzf_blocks import (
    FAILED,
    LEVEL_BYTES,
    PACKED_BYTES,
    STREAM_BYTES,
    STREAM_STARTS_BYTES,
    compress_blocks,
    isal_functions,
)
from mummergpu.output.bytes.texts import Piece, PiecePool
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import flattened, writable
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.runtime.stats import Stats

BGZF_BLOCK_BYTES: Final = 0xFF00
"""The bytes of a block of bgzf before compression, as in htslib: even if they do not compress, the
block is less than 64 KiB long."""

BGZF_END: Final = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
"""The empty block that ends a bgzf file (SAM format specification, section 4.1.2)."""

_BGZF_HEAD: Final = struct.Struct("<4sIBBHBBHH")
_BGZF_TAIL: Final = struct.Struct("<II")
_STORED: Final = struct.Struct("<BHH")

_BGZF_LEVEL: Final = 1
_ZSTD_LEVEL: Final = 3


class Compressor(ABC):
    """Compresses pieces of a file; any thread may call `compress` and `compress_parts`.

    Attributes
    ----------
    chunk_bytes : int
        The bytes that are best compressed at once; whole blocks of bgzf.
    max_threads : int
        How many threads may gainfully compress at the same time.
    """

    chunk_bytes = 64 * BGZF_BLOCK_BYTES
    # More threads would wait for the one that passes the bytes on.
    max_threads = 32

    def __init__(self) -> None:
        self._joined = ThreadArray(np.uint8)

    def compress_parts(self, parts: Sequence[ByteArray]) -> Piece:
        """Compress a piece that lies in several arrays (`compress`)."""
        return self.compress(self._join(parts))

    def _join(self, parts: Sequence[ByteArray]) -> ByteArray:
        """Return a piece as one array, which is valid until the thread joins the next one."""
        if len(parts) == 1:
            return parts[0]
        size = sum(part.size for part in parts)
        return np.concatenate(parts, out=self._joined.of_size(size))

    def take_back(self, packed: Piece) -> None:
        """Receive what `compress_parts` returned, so that its memory can be used again."""
        return None

    @abstractmethod
    def compress(self, piece: Piece) -> bytes:
        """Return a piece in compressed form, which does not depend on the other pieces."""

    @abstractmethod
    def end(self) -> bytes:
        """Return the bytes that end the file."""


class _Room(threading.local):
    """The memory in which each thread compresses: `rooms` of `compress_blocks`, `flattened`."""

    def __init__(self) -> None:
        self.stream = np.zeros(STREAM_BYTES + STREAM_STARTS_BYTES, dtype=np.uint8)
        level, joined = (np.zeros(size, dtype=np.uint8) for size in (LEVEL_BYTES, BGZF_BLOCK_BYTES))
        self.flattened = flattened((self.stream, level, joined))


class BgzfCompressor(Compressor):
    """Compresses into the blocks of bgzf, which `gzip`, `bgzip`, samtools and tabix read.

    ISA-L compresses; where its library hides its functions, zlib does, which needs longer.
    """

    def __init__(self, level: int = _BGZF_LEVEL) -> None:
        super().__init__()
        self._level = level
        self._room = _Room()
        self._packed = PiecePool(_room_of_blocks(self.chunk_bytes // BGZF_BLOCK_BYTES))
        found = isal_functions()
        functions = None if found is None else np.array(found, dtype=np.int64)
        self._functions = functions if functions is not None and self._agrees(functions) else None

    def compress(self, piece: Piece) -> bytes:
        """Return the blocks of a piece (`Compressor.compress`)."""
        packed = self.compress_parts([np.frombuffer(piece, dtype=np.uint8)])
        content = bytes(packed)
        self.take_back(packed)
        return content

    def compress_parts(self, parts: Sequence[ByteArray]) -> Piece:
        """Compress a piece that lies in several arrays (`Compressor.compress_parts`)."""
        if self._functions is not None:
            packed = self._compress_without_lock(parts, self._functions)
            if packed is not None:
                return packed
        return self._compress_by_blocks(self._join(parts))

    def take_back(self, packed: Piece) -> None:
        """Receive what `compress_parts` returned (`Compressor.take_back`)."""
        self._packed.take_back(packed)

    def end(self) -> bytes:
        """Return the empty block that ends the file."""
        return BGZF_END

    def _agrees(self, functions: Int64Array) -> bool:
        """Return whether the library compresses through both of its interfaces alike."""
        from isal import igzip_lib

        # Its first bytes never come again, so it is compressed to the same wherever the library
        # keeps its state (`bgzf_blocks`).
        text = np.arange(3000, dtype=np.uint16).view(np.uint8)
        packed = igzip_lib.compress(text.data, self._level, igzip_lib.COMP_DEFLATE)
        block = _block_of(memoryview(text.data), packed)
        packed_again = self._compress_without_lock([text], functions)
        return packed_again is not None and packed_again.tobytes() == block

    def _compress_without_lock(
        self, parts: Sequence[ByteArray], functions: Int64Array
    ) -> ByteArray | None:
        """Return the blocks of a piece, None if the library fails."""
        first = writable(parts[0])
        rest = writable(self._join(parts[1:])) if len(parts) > 1 else first[:0]
        blocks = -(-(first.size + rest.size) // BGZF_BLOCK_BYTES)
        packed = self._packed.room_for(_room_of_blocks(blocks))
        rooms, level = self._room.flattened, self._level
        size = compress_blocks(packed, (first, rest), functions, rooms, level, BGZF_BLOCK_BYTES)
        return None if size == FAILED else packed[:size]

    def _compress_by_blocks(self, piece: Piece) -> bytes:
        """Return the blocks of a piece, compressed by zlib.

        The functions that the package `isal` has for Python do not let the caller say where the
        library keeps its state, and so, now and then, make another block of the same text.
        """
        view = memoryview(cast(bytes, piece)).cast("B")
        blocks = []
        for begin in range(0, len(view), BGZF_BLOCK_BYTES):
            text = view[begin : begin + BGZF_BLOCK_BYTES]
            deflate = zlib.compressobj(max(1, self._level), zlib.DEFLATED, -zlib.MAX_WBITS)
            blocks.append(_block_of(text, deflate.compress(text) + deflate.flush()))
        return b"".join(blocks)


def _room_of_blocks(blocks: int) -> int:
    """Return the bytes that blocks of bgzf need while they are made."""
    return (blocks << 16) + PACKED_BYTES


def _block_of(text: memoryview, packed: bytes) -> bytes:
    """Return the block of bgzf of a text and its deflated form, which is left out if longer."""
    if len(packed) > len(text):
        packed = _STORED.pack(1, len(text), len(text) ^ 0xFFFF) + bytes(text)
    size = _BGZF_HEAD.size + len(packed) + _BGZF_TAIL.size
    head = _BGZF_HEAD.pack(b"\x1f\x8b\x08\x04", 0, 0, 0xFF, 6, 66, 67, 2, size - 1)
    return head + packed + _BGZF_TAIL.pack(zlib.crc32(text), len(text))


class ZstdCompressor(Compressor):
    """Compresses every piece into a frame of Zstandard; a file may have many of them."""

    def __init__(self, level: int = _ZSTD_LEVEL) -> None:
        super().__init__()
        self._level = level
        self._module = _zstd_module()

    def compress(self, piece: Piece) -> bytes:
        """Return a piece as a frame (`Compressor.compress`)."""
        packed: bytes = self._module.compress(memoryview(cast(bytes, piece)), self._level)
        return packed

    def end(self) -> bytes:
        """Return nothing: the last frame ends the file."""
        return b""


def compressor_of(name: str | None) -> Compressor | None:
    """Return a new compressor, or None for None; raise LibraryError if its library is missing."""
    if name is None:
        return None
    return BgzfCompressor() if name == "bgzf" else ZstdCompressor()


def _zstd_module() -> Any:
    """Return the module of Python for Zstandard, new in 3.14, or the library of that name."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        pass
    else:
        return zstd
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise LibraryError("output in .zst", "zstandard", "zstd", str(error)) from error
    return zstandard


TakeBack = Callable[[Piece], None]
"""Receives a piece that nothing will read again."""


def _keep(piece: Piece) -> None:
    """Leave a piece alone."""


class CompressedStream:
    """Takes bytes in pieces of any size, and passes them on in compressed form, in order.

    One thread calls all methods. It cuts the pieces, and `threads` others join and compress them:
    those of `executor`, if the run has some, or its own. `take_back` receives each piece when it
    has been compressed.
    """

    def __init__(
        self,
        compressor: Compressor,
        threads: int,
        write: Callable[[Piece], None],
        stats: Stats,
        take_back: TakeBack = _keep,
        executor: Executor | None = None,
    ) -> None:
        self._compressor = compressor
        self._stats = stats
        self._write = write
        self._take_back = take_back
        threads = min(threads, compressor.max_threads)
        # Threads with other tasks begin with a chunk when those before it are done.
        self._window = 2 * threads if executor is None else threads
        # A thread starts when there is a chunk for it.
        own = ThreadPoolExecutor(threads, thread_name_prefix="compress")
        self._own, self._executor = own, executor or own
        self._under_way: deque[tuple[Future[Piece], list[Piece]]] = deque()
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
        """Drop the chunks that wait, and end the stream's own threads, also after a failure."""
        wait([packed for packed, _ in self._under_way if not packed.cancel()])
        self._under_way.clear()
        self._own.shutdown()

    def _submit(self) -> None:
        packed = self._executor.submit(self._compress, self._parts)
        self._under_way.append((packed, self._ended))
        self._parts, self._ended, self._filled = [], [], 0
        while len(self._under_way) > self._window:
            self._take_first()

    def _compress(self, parts: Sequence[ByteArray]) -> Piece:
        with self._stats.stage("compression"):
            return self._compressor.compress_parts(parts)

    def _take_first(self) -> None:
        waited_for, ended = self._under_way.popleft()
        packed = waited_for.result()
        self._write(packed)
        self._compressor.take_back(packed)
        for piece in ended:
            self._take_back(piece)
