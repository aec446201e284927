"""Sorts numbers by their digits: the order in which equal ones stay as they were."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import Int64Array, UInt32Array, UInt64Array
from mummergpu.runtime.jit import as_index, as_int64, jit

KeyArray = UInt64Array
OrderArray = UInt32Array

MOST_KEYS: Final = 1 << 32
"""The most numbers that can be sorted."""

_DIGIT_BITS: Final = 11
"""The bits of a digit: the places of its values fit the first cache."""

_DIGIT_VALUES: Final = 1 << _DIGIT_BITS


def radix_order(
    keys: KeyArray, bits: int, order: OrderArray | None = None
) -> tuple[OrderArray, KeyArray]:
    """Return the order that sorts numbers; equal ones stay in the order in which they are.

    Notes
    -----
    So long as it sorts, it needs 24 bytes for each number.
    """
    if order is None:
        order = np.arange(keys.size, dtype=np.uint32)
        source = keys.copy()
    else:
        # Indexing would keep the lock of the interpreter.
        source = np.take(keys, order)
    target, target_order = np.empty_like(source), np.empty_like(order)
    for shift in range(0, bits, _DIGIT_BITS):
        places = np.zeros(_DIGIT_VALUES, dtype=np.int64)
        if scatter_by_digit(source, order, target, target_order, places, shift):
            source, target = target, source
            order, target_order = target_order, order
    return order, source


@jit
def scatter_by_digit(
    keys: KeyArray,
    order: OrderArray,
    target: KeyArray,
    target_order: OrderArray,
    places: Int64Array,
    shift: int,
) -> bool:
    """Sort numbers by one digit; return whether that changes anything."""
    bits = np.uint64(shift)
    last = np.uint64(places.size - 1)
    for key in range(keys.size):
        places[keys[as_index(key)] >> bits & last] += 1
    total = 0
    for digit in range(places.size):
        count = places[as_index(digit)]
        if count == keys.size:
            return False
        places[as_index(digit)] = total
        total += count
    for key in range(keys.size):
        number = keys[as_index(key)]
        digit = as_int64(number >> bits & last)
        place = places[as_index(digit)]
        places[as_index(digit)] = place + 1
        target[as_index(place)] = number
        target_order[as_index(place)] = order[as_index(key)]
    return True
