"""Reads blocks ahead of the search, in a thread of its own: what all streams of blocks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import Final, Generic, Protocol, Self, TypeVar

from mummergpu.runtime.ordered_map import Prefetcher
from mummergpu.runtime.stats import Stats

BLOCKS_AHEAD: Final = 2
"""The most blocks that wait after they have been read."""


class CountedBlock(Protocol):
    """What a stream tells of a block."""

    @property
    def query_count(self) -> int:
        """The number of queries."""

    @property
    def base_count(self) -> int:
        """The number of bases."""


Block = TypeVar("Block", bound=CountedBlock)
BlockRead = TypeVar("BlockRead", bound=CountedBlock, covariant=True)


class BlockReader(Protocol[BlockRead]):
    """What a stream reads from, as `input.blocks.queries.QueryReader` describes it."""

    @property
    def bytes_read(self) -> int:
        """The number of bytes read from the files so far, counted before decompression."""

    @property
    def bytes_total(self) -> int | None:
        """The size of all files, None if one of them is not a regular file."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

    def __iter__(self) -> Iterator[BlockRead]: ...

    def __next__(self) -> BlockRead: ...


class BlockStream(Generic[Block]):
    """Reads blocks while the index is prepared.

    The stream is a context manager. It begins to read files when the ``with`` block begins. No
    thread reads a pipe until the blocks are asked for: a pipe can stay without data for a long
    time, and a thread that waits for it could not be stopped if anything else failed.

    Parameters
    ----------
    reader : BlockReader
        Reads the blocks; the stream closes it.
    stats : Stats
        Collects counts, bytes and times.
    tell : callable
        Receives the number of bases read, and the share of the files that has been read if it is
        known.
    """

    def __init__(
        self,
        reader: BlockReader[Block],
        stats: Stats,
        tell: Callable[[int, float | None], None],
    ) -> None:
        self._reader = reader
        self._stats = stats
        self._tell = tell
        source = self._read()
        self._ahead = Prefetcher(source, BLOCKS_AHEAD)
        self._stack = ExitStack()
        self._has_started = False
        # Until the thread starts, whoever draws a block reads it.
        self._waiting: Iterator[Block] = source

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self._reader)
            if self._reader.bytes_total is not None:
                self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        """Start the thread, unless it runs already."""
        if not self._has_started:
            self._has_started = True
            self._waiting = iter(self._ahead)
            # In this order, an interrupt while the thread starts ends it.
            self._stack.push(self._ahead)
            self._ahead.__enter__()

    def _read(self) -> Iterator[Block]:
        """Yield block after block, and report the progress of reading."""
        reader = self._reader
        bases = 0
        while True:
            with self._stats.stage("queries_from_disk"):
                block = next(reader, None)
            if block is None:
                self._stats.add_bytes(queries=reader.bytes_read)
                return
            self._stats.add(queries=block.query_count, query_bases=block.base_count, blocks=1)
            bases += block.base_count
            total = reader.bytes_total
            self._tell(bases, reader.bytes_read / total if total else None)
            yield block
