"""Reads the reads of a run ahead of the search, in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from mummergpu.input.blocks.block_stream import BlockStream
from mummergpu.input.blocks.queries import QueryRules
from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.blocks.read_files import ReadSource
from mummergpu.input.blocks.read_reader import ReadReader
from mummergpu.input.bytes.reading_threads import ReadingThreads
from mummergpu.runtime.stats import Stats


class ReadStream(BlockStream[ReadBlock]):
    """Reads reads while the index is prepared, and lets the first ones be looked at.

    `blocks` asks for the blocks; the thread that asks for the first templates of a pipe reads them
    itself.
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
        reader = ReadReader(sources, block_size, rules=rules, threads=threads)
        super().__init__(reader, stats, tell)
        self._files = reader
        self._first: list[ReadBlock] = []

    @property
    def read_groups(self) -> tuple[bytes, ...]:
        """The read groups that headers tell of (`ReadReader`), after a look at the first reads."""
        return self._files.read_groups

    @property
    def needs_own_group(self) -> bool:
        """Whether reads may be of no such group (`ReadReader`), after a look at the first reads."""
        return self._files.needs_own_group

    def first_templates(self, count: int) -> list[ReadBlock]:
        """Return the first `count` templates, or all; `blocks` yields them all the same."""
        found: list[ReadBlock] = []
        while count > 0:
            block = next(self._waiting, None)
            if block is None:
                break
            self._first.append(block)
            reads = 2 if block.paired else 1
            found.append(block.part(0, min(block.query_count, reads * count)))
            count -= found[-1].query_count // reads
        return found

    def blocks(self) -> Iterator[ReadBlock]:
        """Return an iterator over all blocks, in the order of the files; call this once."""
        self._start()
        first, self._first = self._first, []
        return chain(first, self._waiting)
