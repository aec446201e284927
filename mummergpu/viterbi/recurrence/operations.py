"""The operations of alignments, and the step back along a path that yields them.

They are packed as BAM packs them: the length above four bits of kind.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.arrays import UInt32Array
from mummergpu.runtime.jit import as_int64, inline
from mummergpu.viterbi.recurrence.model import (
    DELETION,
    INSERTION,
    MATCH,
    PAIRWISE,
    STATE_BITS,
    source_table,
)

OperationArray = UInt32Array

MATCH_OPERATION: Final = MATCH.operation
INSERTION_OPERATION: Final = INSERTION.operation
DELETION_OPERATION: Final = DELETION.operation

_SOURCES: Final = tuple(source_table(PAIRWISE, state) for state in PAIRWISE.states)
_STATE_MASK: Final = (1 << STATE_BITS) - 1


@inline
def kind_of(operations: OperationArray, position: int) -> int:
    """Return the kind of an operation, as BAM numbers it."""
    return np.int64(operations[position]) & 15  # type: ignore[return-value]


@inline
def length_of(operations: OperationArray, position: int) -> int:
    """Return the length of an operation in bases."""
    return np.int64(operations[position]) >> 4  # type: ignore[return-value]


@inline
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


@inline
def reverse_operations(operations: OperationArray, first: int, end: int) -> None:
    """Put the operations from `first` to before `end` into the opposite order."""
    for k in range((end - first) // 2):
        one, other = first + k, end - 1 - k
        operations[one], operations[other] = operations[other], operations[one]


@inline
def source_of(state: int, bits: int) -> int:
    """Return from which state of a cell a path comes into a state of a later one."""
    return _SOURCES[state] >> STATE_BITS * as_int64(bits) & _STATE_MASK


_INSERTION_STATE: Final = PAIRWISE.states.index(INSERTION)
_DELETION_STATE: Final = PAIRWISE.states.index(DELETION)


@inline
def state_before(state: int, bits: int, i: int, j: int) -> int:
    """Return from which state of a cell a path comes into a state of a later one.

    The cell is in row `i` and column `j`. The later state of the last cell is that of a match. The
    bits are those of `departures`, and not used at a border.
    """
    if j == 0:
        return as_int64(_INSERTION_STATE)
    if i == 0:
        return as_int64(_DELETION_STATE)
    return source_of(state, bits)


@inline
def append_backwards(
    state: int, i: int, j: int, operations: OperationArray, first: int, end: int
) -> tuple[int, int, int]:
    """Append the operation of a state; return the cell before, and the end of the operations."""
    # In the first column, only one insertion is left; in the first row, one deletion.
    if state == _INSERTION_STATE:
        length = i if j == 0 else as_int64(1)
        end = append_operation(operations, first, end, INSERTION_OPERATION, length)
        return i - length, j, end
    if state == _DELETION_STATE:
        length = j if i == 0 else as_int64(1)
        end = append_operation(operations, first, end, DELETION_OPERATION, length)
        return i, j - length, end
    end = append_operation(operations, first, end, MATCH_OPERATION, as_int64(1))
    return i - 1, j - 1, end
