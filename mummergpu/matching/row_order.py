"""Rows of matches: sorted in place, merged from several pages, joined of consecutive blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit
from mummergpu.runtime.row_sort import sort_rows
from mummergpu.sequence.mems import MemColumns, MemRows, join_rows, new_rows

ColumnArray = Int64Array

LEFT_BITS: Final = 20
"""The bits of a key's upper part: a left extension, or a start in a query, in bases."""

START_BITS: Final = 62 - LEFT_BITS
"""The bits of a key's lower part: a position in the reference."""


@jit
def sort_rows_of_queries(offsets: ColumnArray, rows: MemRows) -> None:
    """Sort the rows of each query by query start, then by reference start, in place.

    A k-mer finds MEMs that begin before those of earlier k-mers if the reference step is more
    than one base, because the sampling step is then longer than the step from k-mer to k-mer.
    Query starts are less than ``1 << LEFT_BITS``.
    """
    query_starts, reference_starts = rows.query_starts, rows.reference_starts
    mask = (1 << START_BITS) - 1
    for query in range(offsets.size - 1):
        begin, end = offsets[query], offsets[query + 1]
        # Both starts share a number while the rows are sorted: it is the key.
        is_sorted = True
        for row in range(begin, end):
            reference_starts[row] |= query_starts[row] << START_BITS
            is_sorted &= row == begin or reference_starts[row - 1] < reference_starts[row]
        if not is_sorted:
            sort_rows(reference_starts, rows.lengths, begin, end)
        for row in range(begin, end):
            query_starts[row] = reference_starts[row] >> START_BITS
            reference_starts[row] &= mask


@inline
def decode_rows(rows: MemRows, begin: int, end: int, left_limit: int) -> None:
    """Turn the keys of rows, by which they were sorted, into their starts."""
    for row in range(begin, end):
        key = rows.reference_starts[row]
        rows.query_starts[row] -= left_limit - 1 - (key >> START_BITS)
        rows.reference_starts[row] = key & ((1 << START_BITS) - 1)


def merge_pages(pages: Sequence[MemColumns]) -> MemColumns:
    """Merge the matches of the same queries on at least one page; no match is on two."""
    merged = list(pages)
    while len(merged) > 1:
        pairs = zip(merged[0::2], merged[1::2], strict=False)
        last = merged[-1:] if len(merged) % 2 else []
        merged = [_merge_two(one, other) for one, other in pairs] + last
    return merged[0]


def _merge_two(one: MemColumns, other: MemColumns) -> MemColumns:
    rows = new_rows(one.count + other.count)
    merge_rows(one.offsets, one.rows, other.offsets, other.rows, rows)
    return MemColumns(one.offsets + other.offsets, *rows)


@jit
def merge_rows(
    offsets: ColumnArray,
    rows: MemRows,
    other_offsets: ColumnArray,
    other_rows: MemRows,
    merged: MemRows,
) -> None:
    """Merge the rows of each query by query start, and by reference start if these are equal."""
    # Names of arrays: each access to a field within the loop would count its references.
    starts, reference_starts, lengths = rows
    other_starts, other_reference_starts, other_lengths = other_rows
    merged_starts, merged_reference_starts, merged_lengths = merged
    filled = 0
    for query in range(offsets.size - 1):
        row = offsets[query]
        other_row = other_offsets[query]
        while row < offsets[query + 1] or other_row < other_offsets[query + 1]:
            takes_one = other_row == other_offsets[query + 1]
            if not takes_one and row < offsets[query + 1]:
                takes_one = starts[row] < other_starts[other_row] or (
                    starts[row] == other_starts[other_row]
                    and reference_starts[row] < other_reference_starts[other_row]
                )
            if takes_one:
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


def join_all(parts: Sequence[MemColumns]) -> MemColumns:
    """Join the matches of consecutive blocks of queries, at least one."""
    begins = np.cumsum([0, *(part.count for part in parts)], dtype=np.int64).tolist()
    offsets = [part.offsets[1:] + begin for part, begin in zip(parts, begins, strict=False)]
    rows = join_rows(part.rows for part in parts)
    return MemColumns(np.concatenate([np.zeros(1, dtype=np.int64), *offsets]), *rows)
