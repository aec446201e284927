"""Reads the reads of a run ahead of the search, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from typing import Final, Self

from mummergpu.input.queries import QueryRules
from mummergpu.input.read_block import ReadBlock
from mummergpu.input.read_files import ReadSource
from mummergpu.input.read_reader import ReadReader
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.runtime.ordered_map import Prefetcher
from mummergpu.runtime.stats import Stats

BLOCKS_AHEAD: Final = 2
"""The most blocks that wait after they have been read."""


class ReadStream:
    """Reads reads while the index is prepared, and lets the first ones be looked at.

    The stream is a context manager. It begins to read files when the ``with`` block begins. No
    thread reads a pipe until `blocks` is called, for the reason that `QueryStream` gives; the
    thread that asks for the first pairs of a pipe reads them itself.

    Parameters
    ----------
    sources : sequence of ReadFile or MateFiles
        The files.
    block_size : int
        About how many bases a block has.
    stats : Stats
        Collects counts, bytes and times.
    tell : callable
        Receives the number of bases read, and the share of the files that has been read if it is
        known.
    rules : QueryRules, optional
        Which files are accepted.
    threads : ReadingThreads, optional
        They help with large files.

    Raises
    ------
    InputError
        If a file cannot be opened. `first_pairs` and `blocks` raise it if a file is invalid.
    """

    def __init__(
        self,
        sources: tuple[ReadSource, ...],
        block_size: int,
        stats: Stats,
        tell: Callable[[int, float | None], None],
        rules: QueryRules | None = None,
        threads: ReadingThreads | None = None,
    ) -> None:
        self._reader = ReadReader(sources, block_size, rules=rules, threads=threads)
        self._stats = stats
        self._tell = tell
        self._source = self._read()
        self._ahead = Prefetcher(self._source, BLOCKS_AHEAD)
        self._waiting: Iterator[ReadBlock] = self._source
        self._first: list[ReadBlock] = []
        self._stack = ExitStack()
        self._has_started = False

    def __enter__(self) -> Self:
        try:
            self._stack.enter_context(self._reader)
            if self._reader.bytes_total is not None:
                self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *ending: object) -> None:
        self._stack.close()

    def first_pairs(self, count: int) -> list[ReadBlock]:
        """Return the first pairs of the input; the first reads if it begins with single ones.

        Parameters
        ----------
        count : int
            The most pairs.

        Returns
        -------
        list of ReadBlock
            Blocks with `count` pairs together, or all that there are; if the input begins with
            single reads, its first block. `blocks` yields them all the same.
        """
        pairs = 0
        found: list[ReadBlock] = []
        while pairs < count:
            block = next(self._waiting, None)
            if block is None:
                break
            self._first.append(block)
            if not block.paired:
                if not found:
                    found.append(block)
                break
            part = block.part(0, min(block.query_count, 2 * (count - pairs)))
            found.append(part)
            pairs += part.pair_count
        return found

    def blocks(self) -> Iterator[ReadBlock]:
        """Return an iterator over all blocks, in the order of the files; call this once."""
        self._start()
        first, self._first = self._first, []
        return chain(first, self._waiting)

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            self._waiting = iter(self._ahead)
            # In this order, an interrupt while the thread starts ends it.
            self._stack.push(self._ahead)
            self._ahead.__enter__()

    def _read(self) -> Iterator[ReadBlock]:
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
