"""Sorts the seeds of a read in compiled code: few of them, or the thousands of a repeat."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit

FEW_ROWS: Final = 64
"""The most rows that are sorted by comparison; more are sorted by the digits of their keys."""

DIGIT_BITS: Final = 8
DIGITS: Final = 1 << DIGIT_BITS


class SortRoom(NamedTuple):
    """Two columns to sort, with as much room again after their rows; and a count of each digit."""

    keys: Int64Array
    values: Int64Array
    digit_counts: Int64Array


def new_sort_room(rows: int) -> SortRoom:
    """Return room for `rows` rows."""
    keys, values = np.empty(2 * rows, dtype=np.int64), np.empty(2 * rows, dtype=np.int64)
    return SortRoom(keys, values, np.empty(DIGITS, dtype=np.int64))


@inline
def sort_by_key(room: SortRoom, count: int) -> None:
    """Sort the first rows of two columns by key, those of one key by value; no key is negative."""
    keys, values = room.keys, room.values
    if count > FEW_ROWS:
        sort_by_digits(room, count)
    # Rows that were sorted by digits are nearly in order: few of them have the same key.
    for row in range(1, count):
        key, value = keys[row], values[row]
        place = row
        while place > 0 and (
            keys[place - 1] > key or (keys[place - 1] == key and values[place - 1] > value)
        ):
            keys[place] = keys[place - 1]
            values[place] = values[place - 1]
            place -= 1
        keys[place] = key
        values[place] = value


@jit
def sort_by_digits(room: SortRoom, count: int) -> None:
    """Sort the first rows of two columns by key.

    Digits are sorted from the lowest to the highest. A digit that all keys share is left out.
    """
    keys, values, counts = room.keys, room.values, room.digit_counts
    differing = as_int64(0)
    for row in range(1, count):
        differing |= keys[row] ^ keys[0]
    # The rows move between both halves of the columns, once for each digit.
    begin, other_begin = as_int64(0), as_int64(count)
    for shift in range(0, 63, DIGIT_BITS):
        if differing >> shift & (DIGITS - 1) == 0:
            continue
        counts[:] = 0
        for row in range(begin, begin + count):
            counts[keys[row] >> shift & (DIGITS - 1)] += 1
        end = other_begin
        for digit in range(DIGITS):
            of_digit = counts[digit]
            counts[digit] = end
            end += of_digit
        for row in range(begin, begin + count):
            digit = keys[row] >> shift & (DIGITS - 1)
            keys[counts[digit]] = keys[row]
            values[counts[digit]] = values[row]
            counts[digit] += 1
        begin, other_begin = other_begin, begin
    # After an odd number of digits they are in the other half.
    if begin > 0:
        for row in range(count):
            keys[row] = keys[begin + row]
            values[row] = values[begin + row]
