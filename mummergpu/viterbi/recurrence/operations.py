"""The operations of alignments, packed as BAM packs them: the length above four bits of kind."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import UInt32Array
from mummergpu.runtime.jit import inline_without_refcounts
from mummergpu.viterbi.recurrence.model import DELETION, INSERTION, MATCH

OperationArray = UInt32Array

MATCH_OPERATION: Final = MATCH.operation
INSERTION_OPERATION: Final = INSERTION.operation
DELETION_OPERATION: Final = DELETION.operation


@inline_without_refcounts
def kind_of(operations: OperationArray, position: int) -> int:
    """Return what an operation does, as BAM numbers it."""
    return np.int64(operations[position]) & 15  # type: ignore[return-value]


@inline_without_refcounts
def length_of(operations: OperationArray, position: int) -> int:
    """Return the length of an operation in bases."""
    return np.int64(operations[position]) >> 4  # type: ignore[return-value]


@inline_without_refcounts
def append_operation(
    operations: OperationArray, first: int, end: int, kind: int, length: int
) -> int:
    """Write an operation after others, or make the last one longer; return the place after it.

    The operations of the alignment are those from `first` to before `end`. Nothing is written for a
    length of 0.
    """
    if length == 0:
        return end
    if end > first and kind_of(operations, end - 1) == kind:
        operations[end - 1] += np.uint32(length << 4)
        return end
    operations[end] = np.uint32(length << 4 | kind)
    return end + 1


@inline_without_refcounts
def reverse_operations(operations: OperationArray, first: int, end: int) -> None:
    """Put the operations from `first` to before `end` into the opposite order."""
    for k in range((end - first) // 2):
        one, other = first + k, end - 1 - k
        operations[one], operations[other] = operations[other], operations[one]
