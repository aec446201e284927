"""Keeps the records of a whole file of BAM until their order is known, and merges sorted ones.

Records stay where they were made as long as memory lasts. Then those in memory are sorted and
appended to a temporary file, as a run: what a part of the output needs of a run lies together.
Sorted tables are merged range by range, each range by itself, in any thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, BinaryIO, Final, cast

import numpy as np

from mummergpu.errors import OutputError
from mummergpu.output.bytes.texts import OVERSHOOT, TextArray
from mummergpu.output.sorting.row_tables import (
    FIELDS,
    KEY,
    MOST_KEYS,
    NUMBER,
    PLACE,
    RowTable,
    collect_rows,
    cut_rows,
    gather_records,
    order_rows,
    radix_order,
    sizes_of,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

Spread = Callable[[Callable[[int], None], Iterable[int]], Iterator[Any]]
"""Calls a function for each of some numbers: `map`, or that of a pool of threads."""

_RANGE_ROWS: Final = 1 << 16
"""About the rows of a range: what sorts them fits the second cache."""

_MOST_RANGES: Final = 1 << 12

_SAMPLES: Final = 32
"""How many keys are looked at for each range, to choose where it begins."""


@frozen
class MergedRows:
    """The rows of a range in the order of their keys.

    `ends` says where the record of each one ends, if those of all ranges are joined, and `begin`
    where the first one begins.
    """

    rows: RowTable
    ends: Int64Array
    begin: int


class RowRanges:
    """The rows of sorted tables, divided into ranges; equal ones stay in the order of the tables.

    The ranges have about as many rows each, also if many rows are equal. `begins` has where the
    first record of each range begins, and the last one of all ends.
    """

    def __init__(self, tables: Sequence[RowTable], begin: int, spread: Spread) -> None:
        # Their memory must stay where the addresses are.
        self._tables = tables
        keys, owners = _bounds_of(tables)
        cuts = np.empty((len(tables), keys.size + 1), dtype=np.int64)
        sizes = np.empty((len(tables), keys.size), dtype=np.int64)

        def cut(table: int) -> None:
            cut_rows(tables[table], table, keys, owners, cuts[table], sizes[table])

        for _ in spread(cut, range(len(tables))):
            pass
        self._keys = keys
        self._cuts = np.ascontiguousarray(cuts.T)
        self._addresses = np.array([table.ctypes.data for table in tables], dtype=np.int64)
        self.begins = np.full(keys.size + 1, begin, dtype=np.int64)
        self.begins[1:] += np.cumsum(sizes.sum(axis=0))

    @property
    def count(self) -> int:
        """The number of ranges, at least 1."""
        return self._keys.size

    def merged(self, number: int) -> MergedRows:
        """Return the rows of a range in order; any thread may call this."""
        firsts, lasts = self._cuts[number : number + 2]
        rows = np.empty((int((lasts - firsts).sum()), FIELDS), dtype=np.int64)
        collect_rows(rows.reshape(-1).view(np.uint8), self._addresses, firsts, lasts)
        keys = (rows[:, KEY] - self._keys[number]).view(np.uint64)
        order, _ = radix_order(keys, int(keys.max(initial=0)).bit_length())
        ordered, ends = np.empty_like(rows), np.empty(rows.shape[0], dtype=np.int64)
        begin = int(self.begins[number])
        order_rows(ordered, ends, rows, order, begin)
        return MergedRows(ordered, ends, begin)


def _bounds_of(tables: Sequence[RowTable]) -> tuple[Int64Array, Int64Array]:
    """Return the first key of each range, and the first table that has rows of this key in it."""
    firsts = np.cumsum([0, *(table.shape[0] for table in tables)])
    ranges = min(int(firsts[-1]) // _RANGE_ROWS + 1, _MOST_RANGES)
    step = int(firsts[-1]) // (ranges * _SAMPLES) + 1
    # Every `step`th row of all tables: of many small ones, not always the first row.
    samples = [
        table[-first % step :: step, KEY]
        for table, first in zip(tables, firsts[:-1].tolist(), strict=True)
    ]
    keys = np.concatenate([np.empty(0, dtype=np.int64), *samples])
    owners = np.repeat(np.arange(len(tables)), [sample.size for sample in samples])
    order = np.argsort(keys, kind="stable")
    chosen = order[np.arange(1, ranges) * order.size // ranges]
    bounds = np.zeros((2, ranges), dtype=np.int64)
    bounds[:, 1:] = keys[chosen], owners[chosen]
    is_new = np.append(True, np.any(bounds[:, 1:] != bounds[:, :-1], axis=0))
    first, second = np.ascontiguousarray(bounds[:, is_new])
    return first, second


_RUN_PIECE_BYTES: Final = 8 << 20

MarkArray = ByteArray


class RecordStore:
    """Takes the records of a file in the order of the input, and gives them back in any order.

    Besides its record, a row takes the memory of a row of a table (`row_tables.ROW_BYTES`).
    """

    def __init__(self, by_key: bool, memory_bytes: int, folder: str | None = None) -> None:
        self._by_key = by_key
        self._memory_bytes = memory_bytes
        self._folder = folder
        self._file: BinaryIO | None = None
        self._run_ends: list[int] = [0]
        self._spilled: list[RowTable] = []
        self._kept: list[RowTable] = []
        self._texts: list[TextArray] = []
        self._text_bytes = 0
        self._row_count = 0
        self._room = ThreadArray(np.uint8)

    def add(self, texts: Sequence[TextArray], rows: RowTable) -> None:
        """Take the records of a block; one thread calls this, in the order of the input."""
        rows[:, NUMBER] += self._row_count
        if not self._by_key:
            rows[:, KEY] = rows[:, NUMBER]
        self._kept.append(rows)
        self._texts += texts
        for text in texts:
            base = text.base
            self._text_bytes += base.nbytes if isinstance(base, np.ndarray) else text.nbytes
        self._row_count += rows.shape[0]
        if self._row_count >= MOST_KEYS:
            raise OutputError("more than 4,294,967,295 alignments cannot be sorted", "BAM")
        if self._text_bytes > self._memory_bytes:
            self._spill()

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._row_count

    def finish(self, begin: int, spread: Spread) -> RowRanges:
        """Return all rows, after the last block."""
        return RowRanges(self._spilled + self._kept, begin, spread)

    def read(self, rows: RowTable, size: int, skipped: int, marks: MarkArray) -> TextArray:
        """Return records one after the other; several threads may call this after `finish`."""
        addresses, sizes = rows[:, PLACE].copy(), sizes_of(rows)
        offsets = ~addresses
        buffers = []
        for begin, end in pairwise(self._run_ends):
            in_run = np.flatnonzero((offsets >= begin) & (offsets < end))
            if in_run.size:
                first, last = offsets[in_run[0]], offsets[in_run[-1]] + sizes[in_run[-1]]
                buffers.append(self._read_file(int(first), int(last)))
                addresses[in_run] = offsets[in_run] + (buffers[-1].ctypes.data - first)
        # The system needs longer to provide new memory than this thread to fill it.
        text = self._room.of_size(size + OVERSHOOT)
        gather_records(text, size, skipped, addresses, sizes, marks)
        return text[:size]

    def close(self) -> None:
        """Remove the temporary file, also after a failure."""
        if self._file is not None:
            # Closing can fail when it writes the last bytes; nobody will read them.
            with suppress(OSError):
                self._file.close()

    def _spill(self) -> None:
        """Write the records in memory to a run."""
        with temporary_data(self._folder):
            if self._file is None:
                self._file = open_temporary_file(self._folder)
        ranges = RowRanges(self._kept, self._run_ends[-1], map)
        for number in range(ranges.count):
            merged = ranges.merged(number)
            self._write(merged)
            merged.rows[:, PLACE] = ~(merged.ends - sizes_of(merged.rows))
            self._spilled.append(merged.rows)
        with temporary_data(self._folder):
            self._file.flush()
        self._run_ends.append(int(ranges.begins[-1]))
        self._kept, self._texts, self._text_bytes = [], [], 0

    def _write(self, merged: MergedRows) -> None:
        """Write the records of rows to the file."""
        assert self._file is not None
        for rows, size in _pieces(merged, _RUN_PIECE_BYTES):
            marks = np.zeros(rows.shape[0], dtype=np.uint8)
            text = self.read(rows, size, 0, marks)
            with temporary_data(self._folder):
                self._file.write(cast(bytes, text))

    def _read_file(self, first: int, last: int) -> TextArray:
        assert self._file is not None
        buffer = np.empty(last - first + OVERSHOOT, dtype=np.uint8)
        done = 0
        while done < last - first:
            with temporary_data(self._folder):
                rest = memoryview(cast(bytes, buffer))[done : last - first]
                count = os.preadv(self._file.fileno(), [rest], first + done)
                if count == 0:
                    raise OSError("temporary data were cut short")
            done += count
        return buffer


def _pieces(merged: MergedRows, size: int) -> Iterator[tuple[RowTable, int]]:
    """Yield rows whose records have about `size` bytes, at least one row each, and the bytes."""
    first, before, ends = 0, merged.begin, merged.ends
    while first < ends.size:
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        end = int(ends[last - 1])
        yield merged.rows[first:last], end - before
        first, before = last, end
