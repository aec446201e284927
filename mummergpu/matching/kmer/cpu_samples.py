"""The samples of the k-mer search on the processor: their lists, and their extension to MEMs."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.kmer_table import PositionArray
from mummergpu.input.blocks.queries import OffsetArray
from mummergpu.matching.row_order import START_BITS, ColumnArray, sort_rows
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, prefetch
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.extension import (
    WORD_STEP,
    extend_left,
    extend_right,
    extend_word_left,
)

PLACES_AHEAD: Final = 4
"""The occurrences of a list that are prefetched before the first is compared."""

ROWS_FULL_HERE: Final = -1
DAMAGED_HERE: Final = -2
"""Returned in place of a row number."""

RowArrays = tuple[ColumnArray, ColumnArray, ColumnArray]


@inline_without_refcounts
def find_lists(
    table_offsets: PositionArray,
    positions: PositionArray,
    part_begin: int,
    reference: CodeArray,
    batch: Int64Array,
    size: int,
) -> bool:
    """Replace the k-mer of each sample by its list, and prefetch the first occurrences.

    Return False if a list is not inside the table's positions: the table is damaged.
    """
    for sample in range(size):
        kmer = as_index(batch[sample, 2])
        begin = as_int64(table_offsets[kmer])
        end = as_int64(table_offsets[kmer + np.uint64(1)])
        if begin > end or end > positions.size:
            return False
        batch[sample, 2] = begin
        batch[sample, 3] = end
        prefetch(positions, begin)
    for sample in range(size):
        begin = batch[sample, 2]
        for place in range(begin, min(batch[sample, 3], begin + PLACES_AHEAD)):
            prefetch(reference, MARGIN + part_begin + as_int64(positions[as_index(place)]))
    return True


@inline_without_refcounts
def extend_sample(
    positions: PositionArray,
    last_position: int,
    kmer_length: int,
    part_begin: int,
    reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    period: int,
    longest_whole: int,
    batch: Int64Array,
    sample: int,
    filled: int,
    rows: RowArrays,
) -> int:
    """Write the MEMs for which this is the first sample; return where their rows end.

    `ROWS_FULL_HERE` is returned if not all of them fit, and `DAMAGED_HERE` if a position is larger
    than `last_position`.
    """
    query_starts, reference_starts, lengths = rows
    at = batch[sample, 1]
    query_begin = offsets[batch[sample, 0]]
    query_end = offsets[batch[sample, 0] + 1]
    list_end = batch[sample, 3]
    row = filled
    list_begin = batch[sample, 2]
    is_sorted_by_bases = list_end - list_begin > longest_whole
    skipped_begin = skipped_end = list_end
    if is_sorted_by_bases and at - query_begin >= period:
        skipped_begin = place_by_bases(
            positions, last_position, part_begin, reference,
            codes, at, period, list_begin, list_end, False,
        )  # fmt: skip
        skipped_end = place_by_bases(
            positions, last_position, part_begin, reference,
            codes, at, period, skipped_begin, list_end, True,
        )  # fmt: skip
    place, stop = list_begin, skipped_begin
    while place < list_end:
        for one in range(place, stop):
            if one + PLACES_AHEAD < list_end:
                coming = as_int64(positions[as_index(one + PLACES_AHEAD)])
                prefetch(reference, MARGIN + part_begin + coming)
            position = as_int64(positions[as_index(one)])
            if position > last_position:
                return DAMAGED_HERE
            found = part_begin + position
            most_left = min(period, at - query_begin)
            if period <= WORD_STEP:
                left = extend_word_left(codes, MARGIN + at, reference, MARGIN + found)
                left = min(left, most_left)
            else:
                left = extend_left(codes, MARGIN + at, reference, MARGIN + found, most_left)
            if left == period:
                continue
            behind = at + kmer_length
            length = left + kmer_length
            length += extend_right(
                codes, MARGIN + behind, reference, MARGIN + found + kmer_length, query_end - behind
            )
            if length < minimum_length:
                continue
            if row == lengths.size:
                return ROWS_FULL_HERE
            # The key sorts by query start, then by reference start; the last loop decodes it.
            query_starts[row] = at - query_begin
            reference_starts[row] = (period - 1 - left) << START_BITS | (found - left)
            lengths[row] = length
            row += 1
        place, stop = (skipped_end, list_end) if stop < list_end else (list_end, list_end)
    if row - filled > 1 and (period > 1 or is_sorted_by_bases):
        sort_rows(reference_starts, lengths, filled, row)
    for one in range(filled, row):
        key = reference_starts[one]
        query_starts[one] -= period - 1 - (key >> START_BITS)
        reference_starts[one] = key & ((1 << START_BITS) - 1)
    return row


@inline_without_refcounts
def place_by_bases(
    positions: PositionArray,
    last_position: int,
    part_begin: int,
    reference: CodeArray,
    codes: CodeArray,
    at: int,
    period: int,
    list_begin: int,
    list_end: int,
    behind_equal: bool,
) -> int:
    """Return the first place of a list that is sorted by bases whose bases come after a sample's.

    With `behind_equal` it is the first place after those with the same bases, and else the first of
    these. If a break is among the sample's bases, no place has the same bases, and the result does
    not depend on `behind_equal`.
    """
    low, high = list_begin, list_end
    while low < high:
        middle = (low + high) // 2
        found = part_begin + min(as_int64(positions[as_index(middle)]), last_position)
        left = extend_left(codes, MARGIN + at, reference, MARGIN + found, period)
        is_before = behind_equal
        if left < period:
            mine = codes[as_index(MARGIN + at - 1 - left)]
            is_before = reference[as_index(MARGIN + found - 1 - left)] < mine
        if is_before:
            low = middle + 1
        else:
            high = middle
    return low
