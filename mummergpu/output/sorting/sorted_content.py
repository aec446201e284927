"""The content of a BAM in its final order, part by part, and its index."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np

from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.sorting.bam_index import RowIndexer
from mummergpu.output.sorting.merging import MergedRows, RowRanges
from mummergpu.output.sorting.record_store import RecordStore
from mummergpu.output.sorting.row_tables import NUMBER, RowTable
from mummergpu.runtime.arrays import ByteArray

_RANGES_AHEAD: Final = 4
"""How many ranges are merged before a part needs them."""

Part = tuple[int, int, Sequence[Future[MergedRows]]]
"""Where a part of the content begins and ends, and the ranges of its rows."""


class SortedContent:
    """The content of a BAM: a header, and the records in the order of their ranges."""

    def __init__(
        self,
        head: bytes,
        store: RecordStore,
        ranges: RowRanges,
        marks: ByteArray,
        indexer: RowIndexer | None,
    ) -> None:
        self._head = np.frombuffer(bytearray(head), dtype=np.uint8)
        self._store = store
        self._ranges = ranges
        self._marks = marks
        self._indexer = indexer

    def parts(self, part_bytes: int, pool: ThreadPoolExecutor) -> Iterator[Part]:
        """Yield parts of the same size one after the other; the last one may be smaller."""
        size = int(self._ranges.begins[-1])
        waiting = deque(range(self._ranges.count))
        under_way: deque[tuple[int, Future[MergedRows]]] = deque()
        for begin in range(0, size, part_bytes):
            end = min(begin + part_bytes, size)
            needed = int(np.searchsorted(self._ranges.begins, end)) + _RANGES_AHEAD
            while waiting and waiting[0] < needed:
                number = waiting.popleft()
                under_way.append((number, pool.submit(self._merge, number)))
            while under_way and self._ranges.begins[under_way[0][0] + 1] <= begin:
                under_way.popleft()
            begins = self._ranges.begins
            yield begin, end, [own for number, own in under_way if begins[number] < end]

    def text(self, part: Part) -> TextArray:
        """Return a part; a thread of the pool may call this."""
        begin, end, ranges = part
        head = self._head[begin:end]
        if begin + head.size == end:
            return head
        records = self._records(begin + head.size, end, [merged.result() for merged in ranges])
        return np.concatenate([head, records]) if head.size else records

    def _merge(self, number: int) -> MergedRows:
        merged = self._ranges.merged(number)
        if self._indexer is not None:
            self._indexer.add(merged)
        return merged

    def _records(self, begin: int, end: int, ranges: Sequence[MergedRows]) -> TextArray:
        """Return a part of the records, which lie in some ranges one after the other."""
        chosen: list[RowTable] = []
        skipped = 0
        for merged in ranges:
            first = int(np.searchsorted(merged.ends, begin, side="right"))
            last = int(np.searchsorted(merged.ends, end, side="left")) + 1
            if first < merged.ends.size and not chosen:
                skipped = begin - (int(merged.ends[first - 1]) if first else merged.begin)
            chosen.append(merged.rows[first:last])
        rows = np.concatenate(chosen)
        return self._store.read(rows, end - begin, skipped, self._marks[rows[:, NUMBER]])
