"""The index of sorted BAM: BAI, and CSI where a record is too long for it.

Section 5 of the SAM format specification, and the CSI format specification, describe them.

The bins and the windows of all rows are found in one pass over each range of sorted rows, before it
is known where the compressed blocks begin; the index is made of them afterwards.
"""

from __future__ import annotations

import struct
import threading
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.sorting.record_store import MergedRows
from mummergpu.output.sorting.row_tables import KEY, NOT_MAPPED, SIZES, SPAN_SHIFT, Axis, RowTable
from mummergpu.runtime.arrays import Int64Array, UInt64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, inline, jit

NEXT_ROW, NEXT_RECORD = 0, 1
"""The elements of the state between two calls."""

STATE_SIZE: Final = 2

RUN_FIELDS: Final = 4
"""The record, the bin, and the start and the end of a run."""

COUNTS: Final = 4
"""The begin and the end of the rows of a record, the mapped ones, and the others."""

WINDOW_BITS: Final = 14
"""The bits of the length of a window, and of a bin of the lowest level."""


@inline
def bin_at_depth(begin: int, end: int, depth: int) -> int:
    """Return the smallest bin that has a half-open range of a record."""
    last = end - 1
    shift, level = WINDOW_BITS, depth
    while level > 0:
        if begin >> shift == last >> shift:
            return ((1 << 3 * level) - 1) // 7 + (begin >> shift)
        shift += 3
        level -= 1
    return 0


@jit
def find_runs(
    runs: Int64Array,
    state: Int64Array,
    rows: RowTable,
    ends: Int64Array,
    first_begin: int,
    starts: Int64Array,
    window_starts: Int64Array,
    windows: Int64Array,
    counts: Int64Array,
    depth: int,
) -> int:
    """Find runs of rows with one bin from `state` on, until the rows end or `runs` is full.

    Returns the number of runs, and updates `state`, `windows` and `counts`.
    """
    row, record = state[NEXT_ROW], state[NEXT_RECORD]
    records = starts.size - 1
    filled = 0
    last_record, last_bin = -1, -1
    while row < ends.size:
        key, span = rows[as_index(row), KEY], rows[as_index(row), SIZES] >> SPAN_SHIFT
        # Rows come by place, so records only go up; those without a place follow the last record.
        while record < records and key >= starts[as_index(record + 1)]:
            record += 1
        begin = ends[as_index(row - 1)] if row else first_begin
        end = ends[as_index(row)]
        if record < records:
            position = key - starts[as_index(record)]
            last = position + max(span, 1)
            number_of_bin = bin_at_depth(position, last, depth)
            if record != last_record or number_of_bin != last_bin:
                if filled == runs.shape[0]:
                    break
                runs[filled, 0], runs[filled, 1], runs[filled, 2] = record, number_of_bin, begin
                last_record, last_bin = record, number_of_bin
                filled += 1
            runs[filled - 1, 3] = end
            first_window = window_starts[as_index(record)] + (position >> WINDOW_BITS)
            last_window = window_starts[as_index(record)] + (last - 1 >> WINDOW_BITS)
            # A row may say that it reaches beyond the end of its record.
            last_window = min(last_window, window_starts[as_index(record + 1)] - 1)
            for window in range(first_window, last_window + 1):
                windows[as_index(window)] = min(windows[as_index(window)], begin)
        if counts[record, 2] + counts[record, 3] == 0 or begin < counts[record, 0]:
            counts[record, 0] = begin
        counts[record, 1] = max(counts[record, 1], end)
        counts[record, 3 if span == NOT_MAPPED else 2] += 1
        row += 1
    state[NEXT_ROW], state[NEXT_RECORD] = row, record
    return filled


BAI, CSI = ".bai", ".csi"
"""What the name of an index ends with, after the name of the BAM."""

BAI_DEPTH: Final = 5
_MOST_BAI_BASES: Final = 1 << 29
_RUNS: Final = 1 << 14
_NOTHING: Final = np.iinfo(np.int64).max

_NUMBER: Final = struct.Struct("<i")
_COUNT: Final = struct.Struct("<Q")


@frozen
class IndexedRows:
    """What an index has, with places in the content of the BAM in place of those in the file.

    `depth` is the number of levels of bins below the first one. `runs` have the record, the bin,
    and the start and the end in the content of each run of rows in a bin. `windows` are the first
    byte of the rows that overlap each window, of all records one after the other, and
    `window_starts` the first window of each record. `counts` have the begin and the end in the
    content of the rows of each record, and how many are mapped and not; for the last one, of the
    rows without a place.
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
    """Finds the bins and the windows of sorted rows; several threads may share one."""

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
        """Take a range of rows; the ranges may come in any order."""
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
        """Return the content of the index, after the last range."""
        runs = [np.empty((0, RUN_FIELDS), dtype=np.int64)]
        runs += [self._runs[begin] for begin in sorted(self._runs)]
        return IndexedRows(
            self._depth, np.concatenate(runs), self._windows, self._window_starts, self._counts
        )


def index_bytes(found: IndexedRows, kind: str, block_starts: Int64Array) -> bytes:
    """Return the content of an index; that of a CSI is still to be compressed."""

    def virtual(places: Int64Array) -> UInt64Array:
        blocks = places // BGZF_BLOCK_BYTES
        inside = places - blocks * BGZF_BLOCK_BYTES
        return (block_starts[blocks] << 16 | inside).astype(np.uint64)

    records = found.counts.shape[0] - 1
    if kind == BAI:
        head, no_rows = b"BAI\1", _NUMBER.pack(0) * 2
    else:
        head = b"CSI\1" + struct.pack("<iii", WINDOW_BITS, found.depth, 0)
        no_rows = _NUMBER.pack(0)
    parts = [head, _NUMBER.pack(records)]
    runs = found.runs[np.lexsort((found.runs[:, 1], found.runs[:, 0]))]
    bins = _bins_of(runs, virtual(runs[:, 2]), virtual(runs[:, 3]))
    chunks = bins.chunks.astype("<u8").tobytes()
    own_records, first_bins = np.unique(bins.records, return_index=True)
    windows = _filled(found, own_records)
    known = windows != _NOTHING
    known_before = np.concatenate(([0], np.cumsum(known)))[found.window_starts]
    offsets = virtual(windows[known])
    bounds = virtual(found.counts[:-1, :2])
    after = 0
    bin_bounds = pairwise([*first_bins.tolist(), bins.records.size])
    for record, (first_bin, end_bin) in zip(own_records.tolist(), bin_bounds, strict=True):
        own = offsets[known_before[record] : known_before[record + 1]]
        parts += (no_rows * (record - after), _NUMBER.pack(end_bin - first_bin + 1))
        after = record + 1
        for place in range(first_bin, end_bin):
            first, last = bins.offsets[place : place + 2]
            number = bins.numbers[place]
            parts.append(struct.pack("<I", number))
            if kind == CSI:
                window = _first_window(number, found.depth)
                parts.append(_COUNT.pack(int(own[window]) if window < own.size else 0))
            parts += (_NUMBER.pack(last - first), chunks[16 * first : 16 * last])
        parts.append(_counts_of(found, record, bounds[record], kind))
        if kind == BAI:
            parts.append(_NUMBER.pack(own.size) + own.astype("<u8").tobytes())
    parts.append(no_rows * (records - after))
    parts.append(_COUNT.pack(int(found.counts[-1, 2:].sum())))
    return b"".join(parts)


def _depth_of(axis: Axis) -> int:
    depth, bases = BAI_DEPTH, _MOST_BAI_BASES
    while bases < int(axis.lengths.max(initial=0)):
        depth += 1
        bases <<= 3
    return depth


def _filled(found: IndexedRows, records: Int64Array) -> Int64Array:
    """Return the windows; those of `records` without a row have the start of the row after them."""
    windows = found.windows.copy()
    starts = found.window_starts
    several = records[starts[records + 1] - starts[records] > 1]
    for first, last in zip(starts[several].tolist(), starts[several + 1].tolist(), strict=True):
        own = windows[first:last]
        np.minimum.accumulate(own[::-1], out=own[::-1])
    return windows


class _Bins(NamedTuple):
    """The bins of all records: the record and the number of each, and where its chunks begin."""

    records: Int64Array
    numbers: list[int]
    offsets: list[int]
    chunks: UInt64Array


def _bins_of(runs: Int64Array, begins: UInt64Array, ends: UInt64Array) -> _Bins:
    """Return each bin with its chunks; those that meet in a block are joined."""
    is_bin = np.ones(runs.shape[0], dtype=np.bool_)
    is_bin[1:] = (runs[1:, :2] != runs[:-1, :2]).any(axis=1)
    is_new = is_bin.copy()
    is_new[1:] |= begins[1:] >> 16 > ends[:-1] >> 16
    firsts = np.flatnonzero(is_new)
    lasts = np.append(firsts, is_new.size)[1:] - 1
    chunks = np.stack([begins[firsts], ends[lasts]], axis=1)
    offsets = np.append(np.flatnonzero(is_bin[firsts]), firsts.size)
    own = runs[is_bin]
    return _Bins(own[:, 0], own[:, 1].tolist(), offsets.tolist(), chunks)


def _counts_of(found: IndexedRows, record: int, bounds: UInt64Array, kind: str) -> bytes:
    """Return the pseudo-bin, which holds the range and the counts of a record."""
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
