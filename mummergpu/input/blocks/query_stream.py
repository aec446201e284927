"""Reads the queries of a run ahead of the search, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from mummergpu.input.blocks.block_stream import BlockStream
from mummergpu.input.blocks.queries import QueryBlock, QueryReader, QueryRules
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.stats import Stats

if TYPE_CHECKING:
    from mummergpu.input.blocks.paired_queries import PairedQueryReader


class QueryStream(BlockStream[QueryBlock]):
    """Reads queries while the index is prepared; `blocks` asks for them.

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
        self._block_size = block_size
        super().__init__(_reader_of(paths, block_size, rules, threads), stats, tell)

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
        for block in self._waiting:
            if self._block_size <= most_bases:
                yield block
            else:
                yield from _parts(block, most_bases)


def _reader_of(
    paths: Sequence[str],
    block_size: int,
    rules: QueryRules | None,
    threads: ReadingThreads | None,
) -> QueryReader | PairedQueryReader:
    if rules is None or not rules.paired:
        return QueryReader(paths, block_size, rules=rules, threads=threads)
    # A run without pairs does not wait for this import.
    from mummergpu.input.blocks.paired_queries import PairedQueryReader

    return PairedQueryReader(paths, block_size, rules, threads)


def _parts(block: QueryBlock, most_bases: int) -> Iterator[QueryBlock]:
    if block.base_count <= 2 * most_bases or block.query_count == 1:
        yield block
        return
    for half in block.halves():
        yield from _parts(half, most_bases)
