"""Keeps the records of a whole file of BAM until their order is known.

Records stay where they were made as long as memory lasts. Then those in memory are sorted and
appended to a temporary file, as a run: what a part of the output needs of a run lies together.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import numpy as np
import numpy.typing as npt

from mummergpu.errors import OutputError
from mummergpu.input.record_lookup import Int64Array
from mummergpu.output.alignments.bam import RecordPiece
from mummergpu.output.bytes.number_text import OVERSHOOT, TextArray
from mummergpu.output.sorting.places import SpanArray
from mummergpu.output.sorting.radix_order import MOST_KEYS, KeyArray, OrderArray, radix_order
from mummergpu.output.sorting.record_gather import gather_records
from mummergpu.runtime.temporary_file import open_temporary_file, temporary_data

BYTES_PER_ROW: Final = 24
"""The memory of a row besides its record, until all rows have come: its key (8 bytes), where its
record lies (8), how long it is (4), and its span (4)."""

SORTING_BYTES_PER_ROW: Final = 24
"""The memory of a row that it takes besides to sort them: two keys and two numbers."""

_RUN_PIECE_BYTES: Final = 8 << 20

SizeArray = npt.NDArray[np.uint32]
MarkArray = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class KeptRows:
    """What is kept of every row, in the order of the input.

    Attributes
    ----------
    keys : ndarray, dtype=uint64, shape=(n_rows,)
        Where the rows lie (`places.keys_of`).
    spans : ndarray, dtype=uint32, shape=(n_rows,)
        The bases of the reference that they take (`places.spans_of_rows`).
    sizes : ndarray, dtype=uint32, shape=(n_rows,)
        The bytes of their records.
    places : ndarray, dtype=int64, shape=(n_rows,)
        Where their records begin: in memory, or in the temporary file.
    """

    keys: KeyArray
    spans: SpanArray
    sizes: SizeArray
    places: Int64Array


class RecordStore:
    """Takes the records of a file in the order of the input, and gives them back in any order.

    Parameters
    ----------
    key_bits : int
        The bits of the largest key.
    memory_bytes : int
        About the most memory that the records may take.
    folder : str or None
        The folder for temporary files; None for that of the system.
    """

    def __init__(self, key_bits: int, memory_bytes: int, folder: str | None = None) -> None:
        self._key_bits = key_bits
        self._memory_bytes = memory_bytes
        self._folder = folder
        self._file: BinaryIO | None = None
        self._file_bytes = 0
        self._run_ends: list[int] = []
        self._spilled: list[KeptRows] = []
        self._kept: list[KeptRows] = []
        self._pieces: list[TextArray] = []
        self._piece_bytes = 0
        self._row_count = 0

    def add(self, piece: RecordPiece, keys: KeyArray, spans: SpanArray) -> None:
        """Take records; one thread calls this, in the order of the input.

        Parameters
        ----------
        piece : RecordPiece
            The records; they stay in their memory, which nothing may reuse.
        keys : ndarray, dtype=uint64, shape=(n_rows,)
            The keys of the rows of the piece.
        spans : ndarray, dtype=uint32, shape=(n_rows,)
            Their spans.

        Raises
        ------
        OutputError
            If a temporary file cannot take the records, or there are too many of them.
        """
        begins = np.concatenate([np.zeros(1, dtype=np.int64), piece.ends[:-1]])
        sizes = (piece.ends - begins).astype(np.uint32)
        self._kept.append(KeptRows(keys, spans, sizes, begins + piece.text.ctypes.data))
        self._pieces.append(piece.text)
        base = piece.text.base
        self._piece_bytes += base.nbytes if isinstance(base, np.ndarray) else piece.text.nbytes
        self._row_count += keys.size
        if self._row_count >= MOST_KEYS:
            raise OutputError("more than 4,294,967,295 alignments cannot be sorted", "BAM")
        if self._piece_bytes > self._memory_bytes:
            self._spill()

    @property
    def run_count(self) -> int:
        """The number of times that memory was full."""
        return len(self._run_ends)

    def finish(self) -> KeptRows:
        """Return what is known of all rows, after the last piece."""
        rows = _joined(self._spilled + self._kept)
        self._spilled, self._kept = [], []
        return rows

    def read(
        self, rows: KeptRows, chosen: OrderArray, size: int, skipped: int, marks: MarkArray
    ) -> TextArray:
        """Return records one after the other; several threads may call this after `finish`.

        Parameters
        ----------
        rows : KeptRows
            What `finish` returned.
        chosen : ndarray, dtype=uint32
            The numbers of the rows; those of a run are in the order of `rows.keys`.
        size, skipped : int
            The bytes to return, and those of the first record to leave out.
        marks : ndarray, dtype=uint8
            1 for a row to flag as a duplicate, for each of `chosen`.

        Returns
        -------
        ndarray, dtype=uint8, shape=(size,)
            The records; the last one may be cut.

        Raises
        ------
        OutputError
            If a temporary file cannot be read.
        """
        addresses, sizes = rows.places[chosen], rows.sizes[chosen]
        buffers = []
        begin = 0
        for end in self._run_ends:
            in_run = np.flatnonzero((chosen >= begin) & (chosen < end))
            begin = end
            if in_run.size:
                first, last = addresses[in_run[0]], addresses[in_run[-1]] + sizes[in_run[-1]]
                buffers.append(self._read_file(int(first), int(last)))
                addresses[in_run] += buffers[-1].ctypes.data - first
        text = np.empty(size + OVERSHOOT, dtype=np.uint8)
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
        rows = _joined(self._kept)
        order, _ = radix_order(rows.keys, self._key_bits)
        with temporary_data(self._folder):
            if self._file is None:
                self._file = open_temporary_file(self._folder)
        self._run_ends.append(self._row_count)
        sizes = rows.sizes[order].astype(np.int64)
        ends = np.cumsum(sizes)
        for first, last in _ranges(ends, _RUN_PIECE_BYTES):
            size = int(ends[last - 1] - ends[first] + sizes[first])
            text = np.empty(size + OVERSHOOT, dtype=np.uint8)
            part = order[first:last]
            marks = np.zeros(part.size, dtype=np.uint8)
            gather_records(text, size, 0, rows.places[part], rows.sizes[part], marks)
            with temporary_data(self._folder):
                self._file.write(cast(bytes, text[:size]))
        with temporary_data(self._folder):
            self._file.flush()
        rows.places[order] = ends - sizes + self._file_bytes
        self._file_bytes += int(ends[-1])
        self._spilled.append(rows)
        self._kept, self._pieces, self._piece_bytes = [], [], 0

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


def _joined(parts: list[KeptRows]) -> KeptRows:
    """Join rows, column by column to save memory."""
    if not parts:
        nothing = np.empty(0, dtype=np.uint32)
        return KeptRows(nothing.astype(np.uint64), nothing, nothing, nothing.astype(np.int64))
    return KeptRows(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.spans for part in parts]),
        np.concatenate([part.sizes for part in parts]),
        np.concatenate([part.places for part in parts]),
    )


def _ranges(ends: Int64Array, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows of about so many bytes, at least one row each."""
    first, before = 0, 0
    while first < ends.size:
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
