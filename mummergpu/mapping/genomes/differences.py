"""Counts the differences of traced alignments."""

from __future__ import annotations

import numpy as np

from mummergpu.mapping.genomes.links import Sequences
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.operations import (
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    kind_of,
    length_of,
)


@jit_without_refcounts
def count_differences(
    operations: OperationArray,
    offsets: Int64Array,
    query_begins: Int64Array,
    reference_begins: Int64Array,
    sequences: Sequences,
    first: int,
    end: int,
    mismatches: Int64Array,
    gap_bases: Int64Array,
    gaps: Int64Array,
) -> None:
    """Count the differences of some alignments."""
    query, reference = sequences
    for row in range(first, end):
        i, j = query_begins[row], reference_begins[row]
        different, gap_length, gap_count = 0, 0, 0
        for position in range(offsets[row], offsets[row + 1]):
            kind, length = kind_of(operations, position), length_of(operations, position)
            if kind == MATCH_OPERATION:
                different += _differences(query, i, reference, j, length)
                i += length
                j += length
                continue
            gap_count += 1
            gap_length += length
            if kind == INSERTION_OPERATION:
                i += length
            else:
                j += length
        mismatches[row], gap_bases[row], gaps[row] = different, gap_length, gap_count


@inline_without_refcounts
def _differences(query: CodeArray, i: int, reference: CodeArray, j: int, length: int) -> int:
    """Return how many pairs of bases are not equal; a break equals nothing."""
    count = 0
    for k in range(length):
        base, other = query[np.uint64(i + k)], reference[np.uint64(j + k)]
        count += (base != other) | (base > 3)
    return count
