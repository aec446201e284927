"""Keeps the records of a whole file of BAM until their order is known.

Records stay where they were made as long as memory lasts. Then those in memory are sorted and
appended to a temporary file, as a run: what a part of the output needs of a run lies together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import BinaryIO, Final, cast

import numpy as np

from mummergpu.errors import OutputError
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.sorting.merging import MergedRows, RowRanges, Spread
from mummergpu.output.sorting.radix_order import MOST_KEYS
from mummergpu.output.sorting.row_tables import (
    KEY,
    NUMBER,
    PLACE,
    RowTable,
    gather_records,
    sizes_of,
)
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.scratch import ThreadArray
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

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
    """Yield rows whose records have about so many bytes, at least one row each, and the bytes."""
    first, before, ends = 0, merged.begin, merged.ends
    while first < ends.size:
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        end = int(ends[last - 1])
        yield merged.rows[first:last], end - before
        first, before = last, end
