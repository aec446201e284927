"""The compiled loop over sorted rows that finds the bins and the windows of an index."""

from __future__ import annotations

from typing import Final

from mummergpu.output.sorting.places import NOT_MAPPED
from mummergpu.output.sorting.row_tables import KEY, SIZES, SPAN_SHIFT, RowTable
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, inline_without_refcounts, jit_without_refcounts

NEXT_ROW, NEXT_RECORD = 0, 1
"""The elements of the state between two calls."""

STATE_SIZE: Final = 2

RUN_FIELDS: Final = 4
"""The record, the bin, and the start and the end of a run."""

COUNTS: Final = 4
"""The begin and the end of the rows of a record, the mapped ones, and the others."""

WINDOW_BITS: Final = 14
"""The bits of the length of a window, and of a bin of the lowest level."""


@inline_without_refcounts
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


@jit_without_refcounts
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
