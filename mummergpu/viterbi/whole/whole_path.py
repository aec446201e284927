"""Steps of a path back through a whole matrix whose first row and first column are one gap."""

from __future__ import annotations

from typing import Final

from mummergpu.runtime.jit import as_int64, inline
from mummergpu.viterbi.recurrence.model import DELETION, INSERTION, PAIRWISE
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    source_of,
)

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
    # In the first column, all that is left is one insertion; in the first row, one deletion.
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
