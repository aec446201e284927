"""The files of a run on a cluster: workers prepare their rows, and the driver joins them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np

from mummergpu.errors import OutputError
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES, BgzfCompressor, Compressor
from mummergpu.output.bytes.texts import Piece
from mummergpu.output.formats import FORMATS, RowKind
from mummergpu.output.open_sink import warn_of_names
from mummergpu.output.sink import ByteSink, OpenRequest, OutputContext, SeveralSinks, Sink
from mummergpu.output.targets import BGZF, OutputTarget
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.output_file import OutputFile
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.unfinished_file import parts_folder


class PackedPart(NamedTuple):
    """A part of a file.

    `head` and `tail` are text before the first whole block and after the last one. `body` has the
    `size` bytes of the blocks, unless they are in the file `path`.
    """

    head: bytes
    body: bytes
    path: str | None
    size: int
    tail: bytes


def block_text_bytes(compressor: Compressor | None) -> int:
    """Return the text bytes of an independently compressed block."""
    if compressor is None:
        return 1
    return BGZF_BLOCK_BYTES if isinstance(compressor, BgzfCompressor) else compressor.chunk_bytes


def pack_part(
    text: ByteArray,
    offset: int,
    compressor: Compressor | None,
    folder: str | None,
    *,
    is_synced: bool = True,
) -> PackedPart:
    """Compress a part whose text begins at some byte of the text of the file.

    The blocks go to a file in `folder`, or stay in memory. `is_synced` waits until they are on
    disk.
    """
    block = block_text_bytes(compressor)
    first = min(-offset % block, text.size)
    last = first + (text.size - first) // block * block
    blocks = _blocks(text[first:last], compressor)
    path, body, size = None, b"", 0
    if folder is None:
        body = b"".join(blocks)
        size = len(body)
    elif last > first:
        done = _drop if compressor is None else compressor.take_back
        path, size = _write(blocks, folder, done, is_synced)
    return PackedPart(text[:first].tobytes(), body, path, size, text[last:].tobytes())


def _blocks(text: ByteArray, compressor: Compressor | None) -> Iterator[bytes]:
    if compressor is None:
        yield cast(bytes, text)
        return
    for begin in range(0, text.size, compressor.chunk_bytes):
        packed = compressor.compress_parts([text[begin : begin + compressor.chunk_bytes]])
        yield cast(bytes, packed)


def _write(
    blocks: Iterator[bytes], folder: str, done: Callable[[Piece], None], is_synced: bool
) -> tuple[str, int]:
    """Write blocks to a new file, and give each back; return its path and size."""
    path = os.path.join(folder, os.urandom(12).hex())
    size = 0
    try:
        with open(path, "xb") as file:
            for piece in blocks:
                size += file.write(piece)
                done(piece)
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
        The compressor of the file; until `begin` is called with it, text only waits.
    """

    def __init__(self, file: OutputFile, stats: Stats) -> None:
        self.compressor: Compressor | None = None
        self._file = file
        self._stats = stats
        self._text = bytearray()
        self._has_begun = False

    @property
    def waiting_bytes(self) -> int:
        """The bytes of waiting text."""
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
            # The text before the part has filled its last block.
            assert not self._text
            with self._stats.stage("results_to_disk"):
                self._copy(part)
            self._stats.add_bytes(output=part.size)
        self.add(part.tail)

    def finish(self) -> None:
        """Write the waiting text, and the end of the file."""
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
            # A buffer with a view cannot shrink.
            text = bytes(self._text[:size])
            del self._text[:size]
            self._emit(text if self.compressor is None else self.compressor.compress(text))

    def _emit(self, piece: bytes) -> None:
        with self._stats.stage("results_to_disk"):
            self._file.write(piece)
        self._stats.add_bytes(output=len(piece))


class JoinedFiles:
    """The files, as the driver writes them.

    `begins` are the bytes of text in each file before the first row, `compressions` how workers
    compress each file, `folders` the folders for parts next to the files (None if workers send the
    parts).
    """

    def __init__(
        self,
        targets: Sequence[OutputTarget],
        files: Sequence[OutputFile],
        facts: OutputContext,
        stats: Stats,
        rows: RowKind,
        indexes: Sequence[OutputFile | None],
        stack: ExitStack,
    ) -> None:
        self._joiners: list[PartJoiner] = []
        self._sinks: list[Sink[Any, Any, Any]] = []
        compressions, folders = [], []
        for target, file, index in zip(
            targets, files, indexes or [None] * len(targets), strict=True
        ):
            joiner = PartJoiner(file, stats)
            opening = OpenRequest(target, facts, joiner.add, stats, index, is_raw=True)
            sink = FORMATS[target.format].open(opening, rows)
            stack.callback(sink.close)
            takes_bytes = isinstance(sink, ByteSink)
            has_folder = takes_bytes and file.is_file
            folders.append(_folder(target.path, stack) if has_folder else None)
            compressions.append(
                (BGZF if target.has_bgzf else target.compression) if takes_bytes else None
            )
            self._joiners.append(joiner)
            self._sinks.append(sink)
        self.begins = tuple(joiner.waiting_bytes for joiner in self._joiners)
        for joiner, target, sink in zip(self._joiners, targets, self._sinks, strict=True):
            opening = OpenRequest(target, facts, joiner.add, stats)
            joiner.begin(opening.compressor() if isinstance(sink, ByteSink) else None)
        self.compressions, self.folders = tuple(compressions), tuple(folders)
        warn_of_names(targets, facts)

    def write(self, packed: Sequence[PackedPart | list[Any]]) -> None:
        """Write the rows of a part, as packed by workers."""
        for joiner, sink, own in zip(self._joiners, self._sinks, packed, strict=True):
            if isinstance(own, PackedPart):
                joiner.add_part(own)
                continue
            for prepared in own:
                sink.write(iter(prepared) if isinstance(prepared, _Pieces) else prepared)

    def finish(self) -> None:
        """Write what follows the last row."""
        for joiner, sink in zip(self._joiners, self._sinks, strict=True):
            sink.finish()
            joiner.finish()


class _Pieces(list[Any]):
    """The items of an iterator on a worker."""


class PreparedFiles:
    """The same files on a worker, which prepares their rows."""

    def __init__(
        self, targets: Sequence[OutputTarget], facts: OutputContext, rows: RowKind
    ) -> None:
        stats = Stats()
        self._sinks = [
            FORMATS[target.format].open(
                OpenRequest(replace(target, path=os.devnull), facts, _drop, stats, is_raw=True),
                rows,
            )
            for target in targets
        ]
        self.sink: SeveralSinks[Any, Any] = SeveralSinks(self._sinks)

    def joined(self, prepared: Iterable[list[Any]]) -> list[Any]:
        """Return the bytes of each file as an array, or the rows prepared by its sink as a list."""
        found: list[list[Any]] = [[] for _ in self._sinks]
        for of_block in prepared:
            for sink, whole, own in zip(self._sinks, found, of_block, strict=True):
                if isinstance(sink, ByteSink):
                    whole += own
                else:
                    whole.append(_Pieces(own) if hasattr(own, "__next__") else own)
        return [
            _text_of(sink, whole) if isinstance(sink, ByteSink) else whole
            for sink, whole in zip(self._sinks, found, strict=True)
        ]

    def close(self) -> None:
        """Close the sinks."""
        self.sink.close()


def _text_of(sink: ByteSink[Any, Any], pieces: Sequence[Piece]) -> ByteArray:
    """Return a text in one array, and give its pieces back; other threads run meanwhile."""
    arrays = [np.frombuffer(piece, dtype=np.uint8) for piece in pieces]
    text: ByteArray = np.concatenate([np.empty(0, dtype=np.uint8), *arrays])
    for piece in pieces:
        sink.take_back(piece)
    return text


def _drop(_piece: Piece) -> None:
    """Ignore a piece: only the driver writes it, or its memory belongs to a text."""


def _folder(path: str, stack: ExitStack) -> str:
    try:
        return stack.enter_context(parts_folder(path))
    except OSError as error:
        raise OutputError(f"no folder for its parts: {error.strerror}", path) from error
