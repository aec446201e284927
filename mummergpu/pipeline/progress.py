"""Reports how many pages of an index are ready, and how many queries are done.

Queries are done when their matches are written. A long query may take minutes, so for queries that
are searched in parts, the bases searched so far count.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from mummergpu.index.pages import Page
from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.runtime.progress import Phase, Work


class PageProgress:
    """Reports pages that become ready as progress; any thread may call all methods."""

    def __init__(
        self, tell: Callable[[Work], None], pages: Sequence[Page], writes: bool = False
    ) -> None:
        self._tell = tell
        self._writes = writes
        self._lock = threading.Lock()
        self._sizes = [page.owned_end - page.begin for page in pages]
        self._ready_count = 0
        self.share_of_next(0.0)

    def share_of_next(self, share: float) -> None:
        """Record the finished share of the next page, 0 to 1."""
        with self._lock:
            self._count(share)

    def page_is_ready(self) -> None:
        """Record that one more page is ready."""
        with self._lock:
            self._ready_count += 1
            if self._writes and self._ready_count == len(self._sizes):
                self._tell(Work(Phase.WRITING_INDEX))
            else:
                self._count(0.0)

    def end(self) -> None:
        """Record that all pages are ready, and written if they have to be."""
        self.share_of_next(0.0)

    def _count(self, share: float) -> None:
        count, sizes = self._ready_count, self._sizes
        # Pages that are built at the same time have about the same size.
        bases = sum(sizes[:count]) + int(share * sum(sizes[count : count + 1]))
        numbers = (count, len(sizes))
        self._tell(Work(Phase.PAGES, numbers, bases, bases / max(1, sum(sizes))))


class QueryProgress:
    """Reports the progress of blocks of queries; any thread may call all methods."""

    def __init__(self, tell: Callable[[Work], None], strand_count: int) -> None:
        self._tell = tell
        self._strand_count = strand_count
        self._lock = threading.Lock()
        self._group, self._group_count = 0, 1
        self._groups_before = self._groups_behind = 0
        self._reads = self._bases = 0
        # The blocks that are searched in parts, each with its searched bases on all strands.
        self._searched: dict[int, int] = {}
        # The bases read so far, and their share of the files.
        self._read: tuple[int, float | None] = 0, 0.0
        self._share = 0.0

    def read(self, bases: int, share: float | None) -> None:
        """Record the bases read so far, and their share of the files, None if unknown."""
        self._read = bases, share

    @property
    def expected_bases(self) -> int | None:
        """About how many bases there are in all, None if that is not known."""
        bases, share = self._read
        return int(bases / share) if bases and share else None

    def expect_groups(self, before: int, behind: int) -> None:
        """Record further groups, searched before and after those of the coming search."""
        self._groups_before, self._groups_behind = before, behind

    def begin_group(self, number: int, count: int) -> None:
        """Record that all queries are now searched on a group of pages."""
        with self._lock:
            self._group = self._groups_before + number
            self._group_count = self._groups_before + count + self._groups_behind
            self._reads = self._bases = 0
            if number > 0:
                # All queries have been read.
                self._read = self._read[0], 1.0
            self._count()

    def searched(self, block: QueryBlock, bases: int) -> None:
        """Record that a part of a long query has been searched on one strand."""
        with self._lock:
            self._searched[id(block)] = self._searched.get(id(block), 0) + bases
            self._count()

    def done(self, block: QueryBlock) -> None:
        """Record that the matches of a block are written, to a spill file or to the output."""
        with self._lock:
            self._searched.pop(id(block), None)
            self._reads += block.query_count
            self._bases += block.base_count
            self._count()

    def _count(self) -> None:
        bases = self._bases + sum(self._searched.values()) // self._strand_count
        read, share = self._read
        if share is not None:
            # In a compressed file, the share read so far may grow faster than the bases.
            done = self._group + share * (bases / read if read else 1.0)
            share = self._share = max(self._share, done / self._group_count)
        bases += self._group * read
        if self._group + 1 == self._group_count:
            self._tell(Work(Phase.READS, (self._reads,), bases, share))
            return
        numbers = (self._reads, self._group + 1, self._group_count)
        self._tell(Work(Phase.READS_OF_GROUP, numbers, bases, share))
