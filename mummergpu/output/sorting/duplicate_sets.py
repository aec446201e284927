"""The compiled loops that find equal templates among sorted ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mummergpu.input.record_lookup import Int64Array
from mummergpu.output.alignments.arrays import NO_QUALITY
from mummergpu.output.sorting.radix_order import KeyArray, OrderArray
from mummergpu.runtime.jit import jit_without_refcounts, unsigned, widened

MarkArray = npt.NDArray[np.uint8]


@jit_without_refcounts
def add_good_qualities(
    qualities: npt.NDArray[np.uint8],
    offsets: Int64Array,
    sums: npt.NDArray[np.uint32],
    least: int,
) -> None:
    """Sum the qualities of each read that are not too small.

    Parameters
    ----------
    qualities : ndarray, dtype=uint8
        The qualities of all reads.
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where those of each read begin, and where the last ones end.
    sums : ndarray, dtype=uint32, shape=(n_reads,)
        Receives the sums; 0 for a read without qualities.
    least : int
        The smallest quality that counts.
    """
    for read in range(sums.size):
        total = 0
        for base in range(offsets[unsigned(read)], offsets[unsigned(read + 1)]):
            quality = widened(qualities[unsigned(base)])
            total += quality if quality >= least and quality != NO_QUALITY else 0
        sums[unsigned(read)] = total


@jit_without_refcounts
def mark_equal(
    order: OrderArray,
    firsts: KeyArray,
    seconds: KeyArray,
    scores: npt.NDArray[np.uint32],
    marks: MarkArray,
) -> None:
    """Mark all templates but the best one of each set of equal ones.

    Parameters
    ----------
    order : ndarray, dtype=uint32, shape=(n,)
        The order in which equal templates are neighbours, in the order of the input.
    firsts, seconds : ndarray, dtype=uint64, shape=(n,)
        Two numbers, which equal templates share.
    scores : ndarray, dtype=uint32, shape=(n,)
        The template with the largest one stays, of several the first.
    marks : ndarray, dtype=uint8, shape=(n,)
        Receives 1 for each other template.
    """
    place = 0
    while place < order.size:
        best = order[unsigned(place)]
        first, second = firsts[unsigned(best)], seconds[unsigned(best)]
        place += 1
        while place < order.size:
            other = order[unsigned(place)]
            if firsts[unsigned(other)] != first or seconds[unsigned(other)] != second:
                break
            if scores[unsigned(other)] > scores[unsigned(best)]:
                marks[unsigned(best)] = 1
                best = other
            else:
                marks[unsigned(other)] = 1
            place += 1


@jit_without_refcounts
def mark_found(
    order: OrderArray, keys: KeyArray, other_order: OrderArray, others: KeyArray, marks: MarkArray
) -> None:
    """Mark the keys that are among others.

    Parameters
    ----------
    order : ndarray, dtype=uint32, shape=(n,)
        The order that sorts `keys`.
    keys : ndarray, dtype=uint64, shape=(n,)
        The keys.
    other_order : ndarray, dtype=uint32, shape=(n_others,)
        The order that sorts `others`.
    others : ndarray, dtype=uint64, shape=(n_others,)
        The others.
    marks : ndarray, dtype=uint8, shape=(n,)
        Receives 1 for each key that is among them.
    """
    other = 0
    for place in range(order.size):
        index = order[unsigned(place)]
        key = keys[unsigned(index)]
        while other < other_order.size and others[unsigned(other_order[unsigned(other)])] < key:
            other += 1
        if other < other_order.size and others[unsigned(other_order[unsigned(other)])] == key:
            marks[unsigned(index)] = 1
