"""Parts of a file, compressed apart and joined to the bytes that one machine would have written.

A compressed file consists of blocks of the same size of text. Where one begins depends on all text
before it. So who knows how much that is compresses the whole blocks of a part, and the text at both
ends of it is compressed when the parts are joined.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, cast

from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BgzfCompressor, Compressor
from mummergpu.output.bytes.texts import Piece
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats


class PackedPart(NamedTuple):
    """A part of a file.

    Attributes
    ----------
    head, tail : bytes
        Text before the first whole block, and after the last one.
    body : bytes
        The blocks, unless they are in a file.
    path : str or None
        The file that has the blocks.
    size : int
        The bytes of the blocks.
    """

    head: bytes
    body: bytes
    path: str | None
    size: int
    tail: bytes


def block_text_bytes(compressor: Compressor | None) -> int:
    """Return the bytes of text of a block that does not depend on others."""
    if compressor is None:
        return 1
    return BGZF_BLOCK_BYTES if isinstance(compressor, BgzfCompressor) else compressor.chunk_bytes


def pack_part(
    text: bytes | bytearray,
    offset: int,
    compressor: Compressor | None,
    folder: str | None,
    *,
    is_synced: bool = True,
) -> PackedPart:
    """Compress a part whose text begins at some byte of that of the file.

    Parameters
    ----------
    folder : str or None
        Where to write the blocks; None to keep them.
    is_synced : bool
        Whether to wait until the file system has them.

    Raises
    ------
    OSError
        If they cannot be written.
    """
    block = block_text_bytes(compressor)
    first = min(-offset % block, len(text))
    last = first + (len(text) - first) // block * block
    blocks = _blocks(memoryview(text)[first:last], compressor)
    path, body, size = None, b"", 0
    if folder is None:
        body = b"".join(blocks)
        size = len(body)
    elif last > first:
        path, size = _write(blocks, folder, is_synced)
    return PackedPart(bytes(text[:first]), body, path, size, bytes(text[last:]))


def _blocks(text: memoryview, compressor: Compressor | None) -> Iterator[bytes]:
    if compressor is None:
        yield cast(bytes, text)
        return
    for begin in range(0, len(text), compressor.chunk_bytes):
        yield compressor.compress(cast(bytes, text[begin : begin + compressor.chunk_bytes]))


def _write(blocks: Iterator[bytes], folder: str, is_synced: bool) -> tuple[str, int]:
    """Write blocks to a new file; return its path and size."""
    path = os.path.join(folder, os.urandom(12).hex())
    size = 0
    try:
        with open(path, "xb") as file:
            for piece in blocks:
                size += file.write(piece)
            file.flush()
            if is_synced:
                os.fsync(file.fileno())
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    return path, size


class PartJoiner:
    """Joins text and packed parts to a file; one thread calls all methods.

    Attributes
    ----------
    compressor : Compressor or None
        What compresses the file; until it is told, and `begin` is called, text only waits.
    """

    def __init__(self, file: OutputFile, stats: Stats) -> None:
        self.compressor: Compressor | None = None
        self._file = file
        self._stats = stats
        self._text = bytearray()
        self._has_begun = False

    @property
    def waiting_bytes(self) -> int:
        """The bytes of text that wait."""
        return len(self._text)

    def begin(self, compressor: Compressor | None) -> None:
        """Begin to write."""
        self.compressor = compressor
        self._has_begun = True
        self._write_blocks()

    def add(self, piece: Piece) -> None:
        """Take text."""
        self._text += memoryview(cast(bytes, piece))
        if self._has_begun:
            self._write_blocks()

    def add_part(self, part: PackedPart) -> None:
        """Take a part, and remove its file."""
        self.add(part.head)
        if part.size:
            # The text before it has filled its last block.
            assert not self._text
            with self._stats.stage("results_to_disk"):
                self._copy(part)
            self._stats.add_bytes(output=part.size)
        self.add(part.tail)

    def finish(self) -> None:
        """Write the text that waits, and the end of the file."""
        if self.compressor is not None:
            if self._text:
                self._emit(self.compressor.compress(bytes(self._text)))
            self._emit(self.compressor.end())
        self._text.clear()

    def _copy(self, part: PackedPart) -> None:
        if part.path is None:
            self._file.write(part.body)
            return
        descriptor = os.open(part.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._file.copy_from(descriptor, part.size)
        finally:
            os.close(descriptor)
        with suppress(OSError):
            os.unlink(part.path)

    def _write_blocks(self) -> None:
        block = block_text_bytes(self.compressor)
        size = len(self._text) // block * block
        if size:
            # No view of it may be left when it shrinks.
            text = bytes(self._text[:size])
            del self._text[:size]
            self._emit(text if self.compressor is None else self.compressor.compress(text))

    def _emit(self, piece: bytes) -> None:
        with self._stats.stage("results_to_disk"):
            self._file.write(piece)
        self._stats.add_bytes(output=len(piece))
