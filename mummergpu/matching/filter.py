"""What happens to matches between the kernels and the text: filtering.

Rows of a query ascend by query start, then by reference start. Every function here keeps
that order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mummergpu.matching.columns import MemColumns
from mummergpu.matching.row_order import ColumnArray, sort_rows
from mummergpu.runtime.jit import inline, jit

FlagArray = npt.NDArray[np.bool_]


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


@jit
def mark_unique(
    offsets: ColumnArray,
    query_starts: ColumnArray,
    reference_starts: ColumnArray,
    lengths: ColumnArray,
    in_query: bool,
    keep: FlagArray,
    kept_offsets: ColumnArray,
) -> None:
    """Mark the rows to keep, and write where those of each query begin and end.

    Parameters
    ----------
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the rows of each query begin, and where the last end.
    query_starts, reference_starts, lengths : ndarray, dtype=int64, shape=(n_rows,)
        0-based positions in the query, in bases, and in the reference, and the bases of
        each match.
    in_query : bool
        Whether matches have to be unique in their query as well.
    keep : ndarray, dtype=bool, shape=(n_rows,)
        Output, zeroed before: the rows to keep.
    kept_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Output, its first element 0: `offsets` once the other rows are gone.
    """
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


@inline
def mark_uncontained(
    starts: ColumnArray, lengths: ColumnArray, rows: ColumnArray, keep: FlagArray
) -> None:
    """Mark the rows whose interval lies in that of no other row; `starts` must ascend.

    Parameters
    ----------
    starts : ndarray, dtype=int64, shape=(n,)
        Where the intervals begin, in ascending order.
    lengths : ndarray, dtype=int64, shape=(n_rows,)
        The length of each row of the block.
    rows : ndarray, dtype=int64, shape=(n,)
        The row that each interval belongs to.
    keep : ndarray, dtype=bool, shape=(n_rows,)
        Output: True is written for the rows to keep, False for rows that occur twice.
    """
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
