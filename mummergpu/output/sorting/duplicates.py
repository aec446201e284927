"""Finds duplicates: templates that were copied before they were sequenced.

As Picard and samtools define it: pairs are duplicates of each other if both of their ends, with the
clipped bases, lie at the same places on the same strands; a read without a mapped mate is one of
every pair with an end there, or of another such read. Of each set of duplicates, the one with the
largest sum of base qualities stays, of those of at least 15; of several, the first one of the
input. Only primary alignments decide, and only they are flagged; all reads are of one library.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.alignments.columns import AlignmentColumns
from mummergpu.output.alignments.read_rows import ReadsWithQualities
from mummergpu.output.records.rows import NO_QUALITY
from mummergpu.output.sorting.places import Axis
from mummergpu.output.sorting.radix_order import KeyArray, OrderArray, radix_order
from mummergpu.output.sorting.templates import (
    BUCKETS,
    MOST_CLIPPED,
    Buckets,
    MapFunction,
    TemplateArrays,
    TemplatePart,
    empty_templates,
    list_templates,
    spread,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, jit, writable

MarkArray = ByteArray


@jit
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


@jit
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


@jit
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


@jit
def flag_rows(found: MarkArray, rows: Int64Array, marks: MarkArray) -> None:
    """Mark the rows of the templates that are found."""
    for template in range(found.size):
        if found[as_index(template)]:
            marks[as_index(rows[as_index(template)])] = 1


LEAST_QUALITY: Final = 15
"""The least quality that counts in the score of a template."""


class DuplicateFinder:
    """Takes the templates of all blocks, and finds duplicates among them at the end."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        longest = int(axis.lengths.max(initial=0))
        # An end may lie before its record or after it, by the bases that are clipped.
        self._bits = (longest + 2 * MOST_CLIPPED).bit_length() + 1
        self._key_bits = self._bits + int(axis.by_reference.size).bit_length()
        self._parts: list[TemplatePart] = []
        self._row_count = 0

    def templates_of(self, reads: ReadsWithQualities, columns: AlignmentColumns) -> TemplateArrays:
        """Return the templates of a block; any thread may call this."""
        room = empty_templates(reads.offsets.size - 1)
        count = list_templates(columns, _scores_of(reads), self._bits, room)
        # Of pairs there are half as many as reads; only what is copied is kept.
        first_ends, second_ends, first_rows, second_rows, scores = room
        return (
            first_ends[:count].copy(),
            second_ends[:count].copy(),
            first_rows[:count].copy(),
            second_rows[:count].copy(),
            scores[:count].copy(),
        )

    def add(self, templates: TemplateArrays, row_count: int) -> None:
        """Take the templates of a block of so many rows, in the order of the input."""
        self._parts.append(TemplatePart(templates, self._row_count))
        self._row_count += row_count

    def mark(self, marks: ByteArray, map_function: MapFunction) -> None:
        """Find the duplicates, after the last block."""
        if not self._parts:
            return
        buckets = spread(self._parts, map_function)
        self._parts = []

        def mark_bucket(bucket: int) -> None:
            self._mark_bucket(buckets, bucket, marks)

        list(map_function(mark_bucket, range(BUCKETS)))

    def _mark_bucket(self, buckets: Buckets, bucket: int, marks: ByteArray) -> None:
        """Find the duplicates of a bucket; no other bucket has their rows."""
        first, second, first_rows, second_rows, scores = buckets.templates(bucket, True)
        order, _ = radix_order(second, self._key_bits)
        order, _ = radix_order(first, self._key_bits, order)
        is_duplicate = np.zeros(first.size, dtype=np.uint8)
        mark_equal(order, first, second, scores, is_duplicate)
        flag_rows(is_duplicate, first_rows, marks)
        flag_rows(is_duplicate, second_rows, marks)
        ends, _, rows, _, scores = buckets.templates(bucket, False)
        order, sorted_ends = radix_order(ends, self._key_bits)
        is_duplicate = np.zeros(ends.size, dtype=np.uint8)
        mark_equal(order, ends, ends, scores, is_duplicate)
        for others in (first, buckets.second_ends(bucket)):
            found = np.zeros(ends.size, dtype=np.uint8)
            mark_among(sorted_ends, order, others, found, is_duplicate)
        flag_rows(is_duplicate, rows, marks)


def _scores_of(reads: ReadsWithQualities) -> UInt32Array:
    """Return the sum of the good qualities of each read."""
    scores = np.empty(reads.offsets.size - 1, dtype=np.uint32)
    add_good_qualities(
        writable(reads.base_qualities), writable(reads.offsets), scores, LEAST_QUALITY
    )
    return scores
