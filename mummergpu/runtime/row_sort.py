"""Sorts rows of two columns in compiled code, in place."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline

SHORT_LIST: Final = 16
"""Lists of at most this many rows are sorted by insertion."""


@inline
def sort_rows(keys: Int64Array, values: Int64Array, begin: int, end: int) -> None:
    """Sort a range of rows by key, with insertion sort if they are few, else with heap sort."""
    count = end - begin
    if count <= SHORT_LIST:
        for row in range(begin + 1, end):
            key = keys[row]
            value = values[row]
            place = row
            while place > begin and keys[place - 1] > key:
                keys[place] = keys[place - 1]
                values[place] = values[place - 1]
                place -= 1
            keys[place] = key
            values[place] = value
        return
    for root in range(count // 2 - 1, -1, -1):
        sift_down(keys, values, begin, root, count)
    for last in range(count - 1, 0, -1):
        swap_rows(keys, values, begin, begin + last)
        sift_down(keys, values, begin, 0, last)


@inline
def swap_rows(keys: Int64Array, values: Int64Array, one: int, other: int) -> None:
    """Exchange two rows."""
    keys[one], keys[other] = keys[other], keys[one]
    values[one], values[other] = values[other], values[one]


@inline
def sift_down(keys: Int64Array, values: Int64Array, begin: int, root: int, count: int) -> None:
    """Move a row down in a heap of `count` rows from `begin` on until no row below it is larger."""
    while 2 * root + 1 < count:
        largest = 2 * root + 1
        if largest + 1 < count and keys[begin + largest] < keys[begin + largest + 1]:
            largest += 1
        if keys[begin + root] >= keys[begin + largest]:
            return
        swap_rows(keys, values, begin + root, begin + largest)
        root = largest
