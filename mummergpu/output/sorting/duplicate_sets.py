"""The compiled loops that find equal templates among sorted ones."""

from __future__ import annotations

from mummergpu.output.alignments.arrays import NO_QUALITY
from mummergpu.output.sorting.radix_order import KeyArray, OrderArray
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, jit_without_refcounts

MarkArray = ByteArray


@jit_without_refcounts
def add_good_qualities(
    qualities: ByteArray,
    offsets: Int64Array,
    sums: UInt32Array,
    least: int,
) -> None:
    """Sum the qualities of each read that are not too small."""
    for read in range(sums.size):
        total = 0
        for base in range(offsets[as_index(read)], offsets[as_index(read + 1)]):
            quality = as_int64(qualities[as_index(base)])
            total += quality if quality >= least and quality != NO_QUALITY else 0
        sums[as_index(read)] = total


@jit_without_refcounts
def mark_equal(
    order: OrderArray,
    firsts: KeyArray,
    seconds: KeyArray,
    scores: UInt32Array,
    marks: MarkArray,
) -> None:
    """Mark all templates but the best one of each set of equal ones."""
    place = 0
    while place < order.size:
        best = order[as_index(place)]
        first, second = firsts[as_index(best)], seconds[as_index(best)]
        place += 1
        while place < order.size:
            other = order[as_index(place)]
            if firsts[as_index(other)] != first or seconds[as_index(other)] != second:
                break
            if scores[as_index(other)] > scores[as_index(best)]:
                marks[as_index(best)] = 1
                best = other
            else:
                marks[as_index(other)] = 1
            place += 1


@jit_without_refcounts
def mark_among(
    keys: KeyArray, order: OrderArray, others: KeyArray, found: MarkArray, marks: MarkArray
) -> None:
    """Mark the keys that are among others."""
    for other in range(others.size if keys.size else 0):
        wanted = others[as_index(other)]
        low, high = 0, keys.size
        while low < high:
            middle = (low + high) >> 1
            if keys[as_index(middle)] < wanted:
                low = middle + 1
            else:
                high = middle
        if low < keys.size and keys[as_index(low)] == wanted:
            # The first one stands for all equal ones, which may be many, as may the others.
            found[as_index(low)] = 1
    for place in range(keys.size):
        if place > 0 and keys[as_index(place)] == keys[as_index(place - 1)]:
            found[as_index(place)] = found[as_index(place - 1)]
        if found[as_index(place)]:
            marks[as_index(order[as_index(place)])] = 1


@jit_without_refcounts
def flag_rows(found: MarkArray, rows: Int64Array, marks: MarkArray) -> None:
    """Mark the rows of the templates that are found."""
    for template in range(found.size):
        if found[as_index(template)]:
            marks[as_index(rows[as_index(template)])] = 1
