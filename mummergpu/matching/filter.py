"""Filters for matches, applied after the kernels and before the text is made.

The rows of a query ascend by query start, then by reference start, also after the filters.
"""

from __future__ import annotations

import numpy as np

from mummergpu.matching.row_order import ColumnArray
from mummergpu.runtime.arrays import BoolArray
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.row_sort import sort_rows
from mummergpu.sequence.mems import MemColumns, MemRows


def keep_long(columns: MemColumns, minimum_length: int) -> MemColumns:
    """Keep the matches that are long enough."""
    keep = columns.lengths >= minimum_length
    kept_before = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
    rows = MemRows(*(column[keep] for column in columns.rows))
    return MemColumns(kept_before[columns.offsets], *rows)


def keep_unique(
    columns: MemColumns, in_query: bool = False, keeps_witnesses: bool = False
) -> MemColumns:
    """Of all matches on the whole reference, keep those whose bases occur exactly once in it.

    With `in_query` they must also occur exactly once in the query, on the same strand.

    If the bases of a match occur a second time in the reference, the second occurrence also extends
    to a maximal match. That match is at least as long, so it is among the rows, and its query
    interval contains that of the first match. A match is therefore unique in the reference if and
    only if no other match's query interval contains its own. Among the remaining matches, the same
    holds with query and reference exchanged.

    With `keeps_witnesses`, those are kept whose query interval lies in no larger one, but at most
    two with the same interval. If parts of the matches are filtered in this way first, this filter
    finds the same among the remaining ones as among all.
    """
    keep = np.zeros(columns.count, dtype=np.bool_)
    offsets = np.zeros_like(columns.offsets)
    most = int(np.diff(columns.offsets).max(initial=0))
    mark_unique(
        columns.offsets,
        columns.rows,
        in_query,
        keeps_witnesses,
        (np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)),
        keep,
        offsets,
    )
    return MemColumns(offsets, *MemRows(*(column[keep] for column in columns.rows)))


@jit
def mark_unique(
    offsets: ColumnArray,
    columns: MemRows,
    in_query: bool,
    keeps_witnesses: bool,
    room: tuple[ColumnArray, ColumnArray],
    keep: BoolArray,
    kept_offsets: ColumnArray,
) -> None:
    """Mark the rows to keep, and write where the kept rows of each query begin and end.

    The outputs begin with zeros. `room` has two numbers for each row of the query with the most.
    """
    lengths = columns.lengths
    starts, rows = room
    for query in range(offsets.size - 1):
        begin = offsets[query]
        end = offsets[query + 1]
        for row in range(begin, end):
            starts[row - begin], rows[row - begin] = columns.query_starts[row], row
        _mark_uncontained(starts, lengths, rows, end - begin, keeps_witnesses, keep)
        if in_query:
            # Of the rows that are unique in the reference, those whose copies on the reference's
            # side contain no other's: the same test with both sides exchanged.
            count = 0
            for row in range(begin, end):
                if keep[row]:
                    starts[count], rows[count] = columns.reference_starts[row], row
                    keep[row] = False
                    count += 1
            sort_rows(starts, rows, 0, count)
            _mark_uncontained(starts, lengths, rows, count, False, keep)
        kept = 0
        for row in range(begin, end):
            kept += keep[row]
        kept_offsets[query + 1] = kept_offsets[query] + kept


@inline
def _mark_uncontained(
    starts: ColumnArray,
    lengths: ColumnArray,
    rows: ColumnArray,
    count: int,
    keeps_two: bool,
    keep: BoolArray,
) -> None:
    """Mark the rows whose interval no other row's interval contains; starts ascend.

    Of an interval that occurs twice or more, two rows are kept or none.
    """
    furthest = -1
    first = 0
    while first < count:
        # Of all intervals with this start, keep the longest, unless two are equally long.
        longest, twin, end = first, -1, first + 1
        while end < count and starts[end] == starts[first]:
            if lengths[rows[end]] > lengths[rows[longest]]:
                longest, twin = end, -1
            elif lengths[rows[end]] == lengths[rows[longest]]:
                twin = end
            end += 1
        if starts[first] + lengths[rows[longest]] > furthest:
            keep[rows[longest]] = keeps_two or twin < 0
            if keeps_two and twin >= 0:
                keep[rows[twin]] = True
            furthest = starts[first] + lengths[rows[longest]]
        first = end
