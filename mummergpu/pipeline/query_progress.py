"""Tells how many queries are done, from what is read, searched and written.

Queries are done when their matches are written. A long query may take minutes, so of those queries
that are searched in parts, the bases that are searched already count.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.runtime.progress import Phase, Work


class QueryProgress:
    """Turns what happens to blocks of queries into progress; any thread may call all methods."""

    def __init__(self, tell: Callable[[Work], None], strand_count: int) -> None:
        self._tell = tell
        self._strand_count = strand_count
        self._lock = threading.Lock()
        self._group, self._group_count = 0, 1
        self._groups_before = self._groups_behind = 0
        self._reads = self._bases = self._read_bases = 0
        # The blocks that are searched in parts, each with its searched bases on all strands.
        self._searched: dict[int, int] = {}
        # How much of the files has been read after how many bases, in ascending order.
        self._shares: deque[tuple[int, float]] = deque()
        self._last_share = (0, 0.0)
        self._knows_share = True

    def read(self, bases: int, share: float | None) -> None:
        """Record how many bases have been read, and which share of the files, if that is known."""
        with self._lock:
            self._read_bases = bases
            if share is None:
                self._knows_share = False
            else:
                self._shares.append((bases, share))

    def expect_groups(self, before: int, behind: int) -> None:
        """Record that queries are searched on so many groups before and after those to come."""
        with self._lock:
            self._groups_before, self._groups_behind = before, behind

    def begin_group(self, number: int, count: int) -> None:
        """Record that all queries are now searched on a group of pages."""
        with self._lock:
            self._group = self._groups_before + number
            self._group_count = self._groups_before + count + self._groups_behind
            self._reads = self._bases = 0
            if number > 0:
                # All queries have been read.
                self._knows_share = True
                self._shares = deque([(self._read_bases, 1.0)])
                self._last_share = (0, 0.0)
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
        share = self._share(bases)
        if self._group + 1 == self._group_count:
            self._tell(Work(Phase.READS, (self._reads,), bases, share))
            return
        numbers = (self._reads, self._group + 1, self._group_count)
        self._tell(Work(Phase.READS_OF_GROUP, numbers, bases, share))

    def _share(self, bases: int) -> float | None:
        """Return the share of the work on all groups that is done; None if it is not known."""
        if not self._knows_share:
            return None
        while self._shares and self._shares[0][0] <= bases:
            self._last_share = self._shares.popleft()
        before, share = self._last_share
        if self._shares:
            behind, next_share = self._shares[0]
            share += (next_share - share) * (bases - before) / (behind - before)
        return (self._group + share) / self._group_count
