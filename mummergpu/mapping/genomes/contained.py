"""Finds alignments that lie inside another one, in the reference and in the query, or repeat it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mummergpu.runtime.arrays import BoolArray, Int64Array
from mummergpu.runtime.jit import jit


class Extents(NamedTuple):
    """Where alignments begin and end in the query, and where they do in the reference."""

    query_begins: Int64Array
    query_ends: Int64Array
    reference_begins: Int64Array
    reference_ends: Int64Array


def not_contained(groups: Int64Array, extents: Extents) -> BoolArray:
    """Return which alignments no other one of their group contains; of equal ones the first."""
    begins = extents.reference_begins
    order = np.lexsort((np.arange(groups.size), -extents.reference_ends, begins, groups))
    keep = np.ones(groups.size, dtype=np.bool_)
    _mark_contained(groups, extents, order, np.empty(groups.size, dtype=np.int64), keep)
    return keep


def not_repeated(groups: Int64Array, extents: Extents) -> BoolArray:
    """Return which alignments are the first of their group with their ranges."""
    _, firsts = np.unique(np.stack((groups, *extents)), axis=1, return_index=True)
    keep = np.zeros(groups.size, dtype=np.bool_)
    keep[firsts] = True
    return keep


@jit
def _mark_contained(
    groups: Int64Array,
    extents: Extents,
    order: Int64Array,
    open_rows: Int64Array,
    keep: BoolArray,
) -> None:
    """Mark the rows that others contain; `order` ascends by group and by begin."""
    query_begins, query_ends = extents.query_begins, extents.query_ends
    ends = extents.reference_ends
    count = 0
    for place in range(order.size):
        row = order[place]
        # The rows that end before this one begins contain no later one either.
        still_open = 0
        for number in range(count):
            other = open_rows[number]
            if groups[other] != groups[row] or ends[other] <= extents.reference_begins[row]:
                continue
            open_rows[still_open] = other
            still_open += 1
            if (
                ends[other] >= ends[row]
                and query_begins[other] <= query_begins[row]
                and query_ends[other] >= query_ends[row]
            ):
                keep[row] = False
        count = still_open
        if keep[row]:
            open_rows[count] = row
            count += 1
