"""Reads the queries of a run ahead of the search, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from mummergpu.input.queries import QueryBlock, QueryReader, QueryRules
from mummergpu.input.reading_threads import ReadingThreads
from mummergpu.runtime.ordered_map import Prefetcher
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.input.paired_queries import PairedQueryReader

BLOCKS_AHEAD: Final = 2
"""The most blocks that wait after they have been read."""


class QueryStream:
    """Reads queries while the index is prepared.

    The stream is a context manager. It begins to read files when the ``with`` block begins. It
    does not read a pipe until `blocks` is called: a pipe can stay without data for a long time,
    and a thread that waits for it could not be stopped if anything else failed.

    Parameters
    ----------
    paths : sequence of str
        The files, "-" being standard input.
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
    LibraryError
        If the library for the compression of a file is missing.
    InputError
        If a file cannot be opened. `blocks` raises it if a file is invalid.
    """

    def __init__(
        self,
        paths: Sequence[str],
        block_size: int,
        stats: Stats,
        tell: Callable[[int, float | None], None],
        rules: QueryRules | None = None,
        threads: ReadingThreads | None = None,
    ) -> None:
        self._stats = stats
        self._tell = tell
        self._block_size = block_size
        self._reader = _reader_of(paths, block_size, rules, threads)
        self._ahead = Prefetcher(self._read(), BLOCKS_AHEAD)
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.close()

    def blocks(self, most_bases: int) -> Iterator[QueryBlock]:
        """Yield the queries, once.

        Parameters
        ----------
        most_bases : int
            About the most bases that a block should have. A block that was read with more than
            twice as many is split.

        Yields
        ------
        QueryBlock
            In the order of the files.
        """
        self._start()
        for block in self._ahead:
            if self._block_size <= most_bases:
                yield block
            else:
                yield from _parts(block, most_bases)

    def _start(self) -> None:
        if not self._has_started:
            self._has_started = True
            # In this order, an interrupt while the thread starts ends it.
            self._stack.push(self._ahead)
            self._ahead.__enter__()

    def _read(self) -> Iterator[QueryBlock]:
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


def _reader_of(
    paths: Sequence[str],
    block_size: int,
    rules: QueryRules | None,
    threads: ReadingThreads | None,
) -> QueryReader | PairedQueryReader:
    if rules is None or not rules.paired:
        return QueryReader(paths, block_size, rules=rules, threads=threads)
    # A run without pairs does not wait for this import.
    from mummergpu.input.paired_queries import PairedQueryReader

    return PairedQueryReader(paths, block_size, rules, threads)


def _parts(block: QueryBlock, most_bases: int) -> Iterator[QueryBlock]:
    if block.base_count <= 2 * most_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from _parts(half, most_bases)
