"""Aligns two sequences from end to end, with the whole matrix, row by row.

This is for the few tiles that no band of vector registers covers: those that are very long, or
whose sides differ much in length.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, widened
from mummergpu.sequence.codes import BREAK, CodeArray
from mummergpu.viterbi.leaving import leaving
from mummergpu.viterbi.model import DELETION, INSERTION, PAIRWISE, CostTuple
from mummergpu.viterbi.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    reverse_operations,
)
from mummergpu.viterbi.recurrence import STATE_BITS, source_table

MatrixScratch = tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]
"""What leaves the cells of a row, two numbers for each column, and the directions of all cells."""

MOST_CELLS: Final = 1 << 24
"""The largest matrix: its directions take so many bytes."""

MOST_COLUMNS: Final = 1 << 14
"""The most bases of the reference that a matrix may have, and one more."""

_NEVER: Final = -(1 << 60)
_SOURCES: Final = tuple(source_table(PAIRWISE, state) for state in PAIRWISE.states)
_STATE_MASK: Final = (1 << STATE_BITS) - 1
_INSERTION_STATE: Final = PAIRWISE.states.index(INSERTION)
_DELETION_STATE: Final = PAIRWISE.states.index(DELETION)


def new_matrix() -> MatrixScratch:
    """Return the memory that one thread needs; what is not used takes none."""
    return np.empty(2 * MOST_COLUMNS, dtype=np.int64), np.empty(MOST_CELLS, dtype=np.uint8)


@inline_without_refcounts
def fits_matrix(length: int, reference_length: int) -> bool:
    """Return whether there is memory for the matrix of two sequences."""
    columns = reference_length + 1
    return columns <= MOST_COLUMNS and (length + 1) * columns <= MOST_CELLS


@inline_without_refcounts
def pair_score(base: int, other: int, costs: CostTuple) -> int:
    """Return what a base of the query scores on a base of the reference."""
    if base >= BREAK:
        return -costs[2]
    return costs[0] if base == other else -costs[1]


@jit_without_refcounts
def align_whole(
    query: CodeArray,
    query_at: int,
    length: int,
    reference: CodeArray,
    reference_at: int,
    reference_length: int,
    costs: CostTuple,
    scratch: MatrixScratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int]:
    """Align two sequences from end to end; write the operations of the best alignment.

    Parameters
    ----------
    query, reference : ndarray, dtype=uint8
        Codes.
    query_at, reference_at : int
        The index of the first base of each.
    length, reference_length : int
        The bases of each; the matrix has at most `MOST_CELLS` cells.
    costs : tuple of int
        `Costs.as_tuple()`; nothing is scored for an end.
    scratch : tuple of ndarray
        From `new_matrix`, or room for two numbers for each column and a byte for each cell.
    operations : ndarray, dtype=uint32
        Output: the operations as BAM packs them; at most ``length + reference_length``.
    operations_at : int
        Where in `operations` the first one is written.

    Returns
    -------
    tuple of int
        The score, and the number of operations. Of several paths with the best score, the one is
        taken that, seen from the end, stays longest in a match, then prefers a deletion to an
        insertion, and a shorter gap to a longer one.
    """
    rows, directions = scratch
    columns = reference_length + 1
    # From the row before: what leaves each cell for a match, and for an insertion.
    for column in range(2 * columns):
        rows[column] = _NEVER
    score = 0
    for i in range(length + 1):
        diagonal, to_deletion = _NEVER, _NEVER
        if i == 0:
            # The corner is entered from the match before it.
            diagonal = 0
        for j in range(columns):
            match = diagonal
            if i > 0 and j > 0:
                base, other = query[query_at + i - 1], reference[reference_at + j - 1]
                match += pair_score(base, other, costs)
            insertion = rows[columns + j]
            deletion = to_deletion
            diagonal = rows[j]
            to_match, to_insertion, to_deletion, bits = leaving(match, insertion, deletion, costs)
            rows[j] = to_match
            rows[columns + j] = to_insertion
            directions[i * columns + j] = bits
            score = to_match
    count = _write_back(length, reference_length, directions, operations, operations_at)
    return score, count


@inline_without_refcounts
def _write_back(
    i: int,
    j: int,
    directions: npt.NDArray[np.uint8],
    operations: OperationArray,
    operations_at: int,
) -> int:
    """Write the operations of the path to the last cell; return how many there are."""
    columns = j + 1
    end = operations_at
    state = _source(0, directions[i * columns + j])
    while i > 0 or j > 0:
        kind = MATCH_OPERATION
        if state == _INSERTION_STATE:
            kind = INSERTION_OPERATION
        elif state == _DELETION_STATE:
            kind = DELETION_OPERATION
        end = append_operation(operations, operations_at, end, kind, 1)
        i -= kind != DELETION_OPERATION
        j -= kind != INSERTION_OPERATION
        state = _source(state, directions[i * columns + j])
    reverse_operations(operations, operations_at, end)
    return end - operations_at


@inline_without_refcounts
def _source(state: int, bits: int) -> int:
    """Return from which state of a cell a path comes into a state of a later one."""
    return _SOURCES[state] >> STATE_BITS * widened(bits) & _STATE_MASK
