"""Merging of matches: those of several pages, and those of consecutive blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mummergpu.matching.row_order import ColumnArray
from mummergpu.runtime.jit import jit
from mummergpu.sequence.mems import MemColumns, MemRows, join_rows, new_rows


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


def join_blocks(one: MemColumns, other: MemColumns) -> MemColumns:
    """Append the matches of a block to those of the block before it."""
    return join_all((one, other))


def join_all(parts: Sequence[MemColumns]) -> MemColumns:
    """Join the matches of consecutive blocks of queries, at least one, as `join_blocks` does."""
    begins = np.cumsum([0, *(part.count for part in parts)], dtype=np.int64).tolist()
    offsets = [part.offsets[1:] + begin for part, begin in zip(parts, begins, strict=False)]
    rows = join_rows(part.rows for part in parts)
    return MemColumns(np.concatenate([np.zeros(1, dtype=np.int64), *offsets]), *rows)
