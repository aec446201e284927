"""Reads blocks ahead of the search, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from types import TracebackType
from typing import Final, Generic, Self

from mummergpu.input.blocks.reader import Block, ReadReader
from mummergpu.runtime.ordered_map import Prefetcher
from mummergpu.runtime.stats import Stats

BLOCKS_AHEAD: Final = 2
"""The most blocks that wait after they have been read."""


class ReadStream(Generic[Block]):
    """Reads blocks while the index is prepared, and lets the first reads be looked at.

    The stream is a context manager. It begins to read files when the ``with`` block begins. No
    thread reads a pipe until the blocks are asked for: a pipe can stay without data for a long
    time, and a thread that waits for it could not be stopped if anything else failed. Whoever asks
    for the first templates of a pipe reads them itself.

    Parameters
    ----------
    reader : ReadReader
        Reads the blocks; the stream closes it.
    stats : Stats
        Receives the counts, bytes and times of reading.
    tell : callable
        Receives the number of bases read, and the share of the files that has been read if it is
        known.
    """

    def __init__(
        self,
        reader: ReadReader[Block],
        stats: Stats,
        tell: Callable[[int, float | None], None],
    ) -> None:
        self.reader: ReadReader[Block] = reader
        self._stats = stats
        self._tell = tell
        source = self._read()
        self._ahead: Prefetcher[Block] = Prefetcher(source, BLOCKS_AHEAD)
        self._stack = ExitStack()
        self._has_started = False
        # Until the thread starts, whoever draws a block reads it.
        self._waiting: Iterator[Block] = source
        self._first: list[Block] = []

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self.reader)
            if self.reader.bytes_total is not None:
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

    def first_templates(self, count: int, skipped: int = 0) -> list[Block]:
        """Return the first templates of the input: pairs, or single reads.

        Returns
        -------
        list
            Blocks with `count` templates together behind those that are skipped, or all that there
            are. `blocks` yields them all the same.
        """
        found: list[Block] = []
        at, end = 0, skipped + count
        for block in chain(tuple(self._first), self._drawn()):
            reads = block.reads_of_template
            templates = block.query_count // reads
            begin, behind = max(skipped - at, 0), min(templates, end - at)
            if begin < behind:
                found.append(block.part(reads * begin, reads * behind))
            at += templates
            if at >= end:
                break
        return found

    def _drawn(self) -> Iterator[Block]:
        """Yield further blocks, which `blocks` yields once more."""
        for block in self._waiting:
            self._first.append(block)
            yield block

    def blocks(self, max_bases: int | None = None) -> Iterator[Block]:
        """Return an iterator over all blocks, in the order of the files; call this once.

        Parameters
        ----------
        max_bases : int, optional
            About the most bases that a block should have. A block that was read with more than
            twice as many is split.
        """
        self._start()
        first, self._first = self._first, []
        blocks = chain(first, self._waiting)
        if max_bases is None or self.reader.block_size <= max_bases:
            return blocks
        return (part for block in blocks for part in _parts(block, max_bases))

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
        reader = self.reader
        bases = 0
        while True:
            with self._stats.stage("queries_from_disk"):
                block = next(reader, None)
            if block is None:
                self._stats.add_bytes(queries=reader.bytes_read)
                return
            self._stats.add(queries=block.read_count, query_bases=block.base_count, blocks=1)
            bases += block.base_count
            total = reader.bytes_total
            self._tell(bases, reader.bytes_read / total if total else None)
            yield block


def _parts(block: Block, max_bases: int) -> Iterator[Block]:
    if block.base_count <= 2 * max_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from _parts(half, max_bases)
