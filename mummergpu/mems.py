"""What happens to matches between the kernels and the text: merging and filtering.

Rows of a query ascend by query start, then by reference start. Every function here keeps
that order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mummergpu.backends.interface import MemColumns, new_columns
from mummergpu.compiled import compiled, inlined
from mummergpu.row_order import ColumnArray, sort_rows

FlagArray = npt.NDArray[np.bool_]


def merge_pages(pages: Sequence[MemColumns]) -> MemColumns:
    """Merge the matches of the same queries on several pages.

    Parameters
    ----------
    pages : sequence of MemColumns
        At least one, in the order of the pages; a match is on one of them only.

    Returns
    -------
    MemColumns
        All rows, query by query.
    """
    merged = list(pages)
    while len(merged) > 1:
        pairs = zip(merged[0::2], merged[1::2], strict=False)
        last = merged[-1:] if len(merged) % 2 else []
        merged = [_merge_two(one, other) for one, other in pairs] + last
    return merged[0]


def _merge_two(one: MemColumns, other: MemColumns) -> MemColumns:
    count = one.count + other.count
    columns = new_columns(count)
    merge_rows(
        (one.offsets, one.query_starts, one.reference_starts, one.lengths),
        (other.offsets, other.query_starts, other.reference_starts, other.lengths),
        columns,
    )
    return MemColumns(one.offsets + other.offsets, *columns)


@compiled
def merge_rows(
    one: tuple[ColumnArray, ColumnArray, ColumnArray, ColumnArray],
    other: tuple[ColumnArray, ColumnArray, ColumnArray, ColumnArray],
    merged: tuple[ColumnArray, ColumnArray, ColumnArray],
) -> None:
    """Merge the rows of each query; at equal query starts those of `one` come first."""
    offsets, starts, reference_starts, lengths = one
    other_offsets, other_starts, other_reference_starts, other_lengths = other
    merged_starts, merged_reference_starts, merged_lengths = merged
    filled = 0
    for query in range(offsets.size - 1):
        row = offsets[query]
        other_row = other_offsets[query]
        while row < offsets[query + 1] or other_row < other_offsets[query + 1]:
            if other_row == other_offsets[query + 1] or (
                row < offsets[query + 1] and starts[row] <= other_starts[other_row]
            ):
                merged_starts[filled] = starts[row]
                merged_reference_starts[filled] = reference_starts[row]
                merged_lengths[filled] = lengths[row]
                row += 1
            else:
                merged_starts[filled] = other_starts[other_row]
                merged_reference_starts[filled] = other_reference_starts[other_row]
                merged_lengths[filled] = other_lengths[other_row]
                other_row += 1
            filled += 1


def keep_long(columns: MemColumns, minimum_length: int) -> MemColumns:
    """Keep the matches of at least so many bases.

    Parameters
    ----------
    columns : MemColumns
        Any matches.
    minimum_length : int
        In bases.

    Returns
    -------
    MemColumns
        The matches that are left.
    """
    keep = columns.lengths >= minimum_length
    kept_before = np.concatenate(([0], np.cumsum(keep, dtype=np.int64)))
    return MemColumns(
        kept_before[columns.offsets],
        columns.query_starts[keep],
        columns.reference_starts[keep],
        columns.lengths[keep],
    )


def keep_unique(columns: MemColumns, in_query: bool) -> MemColumns:
    """Keep the matches whose bases occur just once in the reference.

    Parameters
    ----------
    columns : MemColumns
        All matches of the queries on the whole reference.
    in_query : bool
        Keep only those whose bases also occur just once in their query, on its strand.

    Returns
    -------
    MemColumns
        The matches that are left.

    Notes
    -----
    If the bases of a match occur elsewhere in the reference, that occurrence too extends
    to a maximal match, which is at least as long and so is among the rows: its part of the
    query contains that of the first. So a match is unique in the reference just if its
    query interval lies in that of no other match. The same holds with the roles exchanged
    among the matches that are left.
    """
    keep = np.zeros(columns.count, dtype=np.bool_)
    offsets = np.zeros_like(columns.offsets)
    mark_unique(
        columns.offsets,
        columns.query_starts,
        columns.reference_starts,
        columns.lengths,
        in_query,
        keep,
        offsets,
    )
    return MemColumns(
        offsets,
        columns.query_starts[keep],
        columns.reference_starts[keep],
        columns.lengths[keep],
    )


@compiled
def mark_unique(
    offsets: ColumnArray,
    query_starts: ColumnArray,
    reference_starts: ColumnArray,
    lengths: ColumnArray,
    in_query: bool,
    keep: FlagArray,
    kept_offsets: ColumnArray,
) -> None:
    """Mark the rows to keep, and write where those of each query begin and end."""
    for query in range(offsets.size - 1):
        begin = offsets[query]
        end = offsets[query + 1]
        rows = np.arange(begin, end)
        mark_uncontained(query_starts[begin:end], lengths, rows, keep)
        if in_query:
            rows = rows[keep[begin:end]]
            starts = reference_starts[rows]
            sort_rows(starts, rows, 0, rows.size)
            keep[begin:end] = False
            mark_uncontained(starts, lengths, rows, keep)
        kept_offsets[query + 1] = kept_offsets[query] + np.count_nonzero(keep[begin:end])


@inlined
def mark_uncontained(
    starts: ColumnArray, lengths: ColumnArray, rows: ColumnArray, keep: FlagArray
) -> None:
    """Mark the rows whose interval lies in that of no other row; `starts` must ascend."""
    furthest = -1
    first = 0
    while first < rows.size:
        # Of the intervals that start here only the longest, if it is the only one.
        longest = first
        twice = False
        behind = first + 1
        while behind < rows.size and starts[behind] == starts[first]:
            if lengths[rows[behind]] > lengths[rows[longest]]:
                longest = behind
                twice = False
            elif lengths[rows[behind]] == lengths[rows[longest]]:
                twice = True
            behind += 1
        end = starts[first] + lengths[rows[longest]]
        if end > furthest:
            keep[rows[longest]] = not twice
            furthest = end
        first = behind
