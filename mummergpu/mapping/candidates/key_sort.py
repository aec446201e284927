"""Sorts two columns of a few rows in compiled code."""

from __future__ import annotations

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts


@inline_without_refcounts
def sort_by_key(keys: Int64Array, values: Int64Array, count: int) -> None:
    """Sort the first rows of two columns by key, those of one key by value."""
    gap = 1
    while gap < count // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for row in range(gap, count):
            key, value = keys[row], values[row]
            place = row
            while place >= gap and (
                keys[place - gap] > key
                or (keys[place - gap] == key and values[place - gap] > value)
            ):
                keys[place] = keys[place - gap]
                values[place] = values[place - gap]
                place -= gap
            keys[place] = key
            values[place] = value
        gap //= 3
