"""The index of sorted BAM: BAI, and CSI where a record is too long for it.

Section 5 of the SAM format specification, and the CSI format specification, describe them.

The bins and the windows of all rows are found in one pass over each range of sorted rows, before it
is known where the compressed blocks begin; the index is made of them afterwards.
"""

from __future__ import annotations

import struct
import threading
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.input.record_lookup import Int64Array
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.sorting.bam_index_rows import (
    COUNTS,
    NEXT_RECORD,
    NEXT_ROW,
    RUN_FIELDS,
    STATE_SIZE,
    WINDOW_BITS,
    find_runs,
)
from mummergpu.output.sorting.merging import MergedRows
from mummergpu.output.sorting.places import Axis
from mummergpu.output.sorting.row_tables import KEY

BAI, CSI = ".bai", ".csi"
"""What the name of an index ends with, after the name of the BAM."""

BAI_DEPTH: Final = 5
_MOST_BAI_BASES: Final = 1 << 29
_RUNS: Final = 1 << 14
_NOTHING: Final = np.iinfo(np.int64).max

_NUMBER: Final = struct.Struct("<i")
_COUNT: Final = struct.Struct("<Q")


@dataclass(frozen=True)
class IndexedRows:
    """What an index tells, with places in the content of the BAM in place of those in the file.

    Attributes
    ----------
    depth : int
        The levels of bins below the first one.
    runs : ndarray, dtype=int64, shape=(n_runs, RUN_FIELDS)
        The record, the bin, and the start and the end in the content, of each run of rows in a bin.
    windows : ndarray, dtype=int64, shape=(n_windows,)
        The first byte of the rows that overlap each window, of all records one after the other.
    window_starts : ndarray, dtype=int64, shape=(n_records + 1,)
        The first window of each record.
    counts : ndarray, dtype=int64, shape=(n_records + 1, COUNTS)
        The begin and the end in the content of the rows of each record, and how many are mapped
        and not; for the last one, of the rows without a place.
    """

    depth: int
    runs: Int64Array
    windows: Int64Array
    window_starts: Int64Array
    counts: Int64Array


def index_kind(axis: Axis) -> str:
    """Return which index the records need: `BAI` or `CSI`."""
    return BAI if int(axis.lengths.max(initial=0)) <= _MOST_BAI_BASES else CSI


class RowIndexer:
    """Finds the bins and the windows of sorted rows; several threads may share one.

    Parameters
    ----------
    axis : Axis
        The records.
    """

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._depth = _depth_of(axis)
        self._runs: dict[int, Int64Array] = {}
        window_counts = (axis.lengths + (1 << WINDOW_BITS) - 1) >> WINDOW_BITS
        self._window_starts = np.zeros(axis.lengths.size + 1, dtype=np.int64)
        np.cumsum(window_counts, out=self._window_starts[1:])
        self._windows = np.full(int(self._window_starts[-1]), _NOTHING, dtype=np.int64)
        self._counts = np.zeros((axis.lengths.size + 1, COUNTS), dtype=np.int64)
        self._lock = threading.Lock()

    def add(self, merged: MergedRows) -> None:
        """Take a range of rows; the ranges may come in any order.

        Parameters
        ----------
        merged : MergedRows
            The rows in the order of the file, and their places in its content.
        """
        state = np.zeros(STATE_SIZE, dtype=np.int64)
        if merged.ends.size:
            first = np.searchsorted(self._axis.starts, merged.rows[0, KEY], side="right") - 1
            state[NEXT_RECORD] = first
        runs = []
        while state[NEXT_ROW] < merged.ends.size:
            part = np.empty((_RUNS, RUN_FIELDS), dtype=np.int64)
            with self._lock:
                filled = find_runs(
                    part, state, merged.rows, merged.ends, merged.begin, self._axis.starts,
                    self._window_starts, self._windows, self._counts, self._depth,
                )  # fmt: skip
            runs.append(part[:filled])
        if runs:
            self._runs[merged.begin] = np.concatenate(runs)

    def found(self) -> IndexedRows:
        """Return all that the index tells, after the last range."""
        runs = [np.empty((0, RUN_FIELDS), dtype=np.int64)]
        runs += [self._runs[begin] for begin in sorted(self._runs)]
        return IndexedRows(
            self._depth, np.concatenate(runs), self._windows, self._window_starts, self._counts
        )


def index_bytes(found: IndexedRows, kind: str, block_starts: Int64Array) -> bytes:
    """Return the content of an index; that of a CSI is still to be compressed.

    Parameters
    ----------
    found : IndexedRows
        What it tells.
    kind : str
        `BAI` or `CSI`.
    block_starts : ndarray, dtype=int64, shape=(n_blocks + 1,)
        Where in the file each block of bgzf begins, and where the last one ends; each but the last
        one holds `BGZF_BLOCK_BYTES` bytes of the content.

    Returns
    -------
    bytes
        The index.
    """

    def virtual(places: Int64Array) -> npt.NDArray[np.uint64]:
        blocks = places // BGZF_BLOCK_BYTES
        inside = places - blocks * BGZF_BLOCK_BYTES
        return (block_starts[blocks] << 16 | inside).astype(np.uint64)

    records = found.counts.shape[0] - 1
    if kind == BAI:
        head = b"BAI\1"
    else:
        head = b"CSI\1" + struct.pack("<iii", WINDOW_BITS, found.depth, 0)
    parts = [head, _NUMBER.pack(records)]
    runs = found.runs[np.lexsort((found.runs[:, 1], found.runs[:, 0]))]
    borders = np.searchsorted(runs[:, 0], np.arange(records + 1))
    windows = _filled(found)
    for record in range(records):
        own = runs[borders[record] : borders[record + 1]]
        first, last = found.window_starts[record : record + 2].tolist()
        known = windows[first:last]
        offsets = virtual(known[known != _NOTHING])
        bins = _bins_of(own, virtual(own[:, 2]), virtual(own[:, 3]))
        has_rows = own.size > 0
        parts.append(_NUMBER.pack(len(bins) + has_rows))
        for number, chunks in bins:
            parts.append(struct.pack("<I", number))
            if kind == CSI:
                window = _first_window(number, found.depth)
                parts.append(_COUNT.pack(int(offsets[window]) if window < offsets.size else 0))
            parts.append(_NUMBER.pack(len(chunks)) + chunks.astype("<u8").tobytes())
        if has_rows:
            parts.append(_counts_of(found, record, virtual(found.counts[record, :2]), kind))
        if kind == BAI:
            parts.append(_NUMBER.pack(offsets.size) + offsets.astype("<u8").tobytes())
    parts.append(_COUNT.pack(int(found.counts[-1, 2:].sum())))
    return b"".join(parts)


def _depth_of(axis: Axis) -> int:
    depth, bases = BAI_DEPTH, _MOST_BAI_BASES
    while bases < int(axis.lengths.max(initial=0)):
        depth += 1
        bases <<= 3
    return depth


def _filled(found: IndexedRows) -> Int64Array:
    """Return the windows; one without a row has the start of the first row after it."""
    windows = found.windows.copy()
    for first, last in zip(found.window_starts[:-1], found.window_starts[1:], strict=True):
        own = windows[first:last]
        np.minimum.accumulate(own[::-1], out=own[::-1])
    return windows


def _bins_of(
    runs: Int64Array, begins: npt.NDArray[np.uint64], ends: npt.NDArray[np.uint64]
) -> list[tuple[int, npt.NDArray[np.uint64]]]:
    """Return each bin with its chunks; those that meet in a block are joined."""
    if not runs.size:
        return []
    numbers = runs[:, 1]
    is_new = np.ones(numbers.size, dtype=np.bool_)
    is_new[1:] = (numbers[1:] != numbers[:-1]) | (begins[1:] >> 16 > ends[:-1] >> 16)
    firsts = np.flatnonzero(is_new)
    lasts = np.append(firsts[1:], numbers.size) - 1
    chunks = np.stack([begins[firsts], ends[lasts]], axis=1)
    bins, places = np.unique(numbers[firsts], return_index=True)
    return list(zip(bins.tolist(), np.split(chunks, places[1:]), strict=True))


def _counts_of(found: IndexedRows, record: int, bounds: npt.NDArray[np.uint64], kind: str) -> bytes:
    """Return the bin that is none: it tells the range and the counts of a record."""
    number = ((1 << 3 * (found.depth + 1)) - 1) // 7 + 1
    loffset = b"" if kind == BAI else _COUNT.pack(0)
    text = struct.pack("<I", number) + loffset + _NUMBER.pack(2)
    mapped, unmapped = found.counts[record, 2:].tolist()
    return text + bounds.astype("<u8").tobytes() + struct.pack("<QQ", mapped, unmapped)


def _first_window(number: int, depth: int) -> int:
    """Return the first window of a bin."""
    level, first = 0, 0
    while number >= first + (1 << 3 * level):
        first += 1 << 3 * level
        level += 1
    return (number - first) << 3 * (depth - level)
