"""Aligns two sequences from end to end, with the whole matrix, row by row.

This is for the few tiles that no band of vector registers covers: those that are very long, or
whose sides differ much in length. Given a score that some alignment reaches, a cell is left out if
no path through it can reach that score, even if all remaining bases match.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.cell_recurrence import pair_score, scalar_recurrence
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.operations import (
    OperationArray,
    append_backwards,
    reverse_operations,
    state_before,
)
from mummergpu.viterbi.recurrence.tile import Tile


class MatrixScratch(NamedTuple):
    """The memory in which a whole matrix is computed."""

    rows: Int64Array  # The scores that leave the cells of a row, two numbers for each column
    directions: ByteArray  # Of all cells that are computed
    begins: Int64Array  # Where the directions of each row would begin if it had all columns


MOST_CELLS: Final = 1 << 24
"""The largest matrix, and the bytes of its directions."""

MOST_COLUMNS: Final = 1 << 14
"""The most bases of the reference that a matrix may have, and one more."""

MOST_ROWS: Final = 1 << 15
"""The most bases of the query that a matrix may have, and one more."""

NO_MEMORY: Final = -1
"""The number of operations if the matrix has too many cells."""

_NEVER: Final = -(1 << 60)


def new_matrix() -> MatrixScratch:
    """Return the memory of one thread; unused parts take no physical memory."""
    return MatrixScratch(
        np.empty(2 * MOST_COLUMNS, dtype=np.int64),
        np.empty(MOST_CELLS, dtype=np.uint8),
        np.empty(MOST_ROWS, dtype=np.int64),
    )


@inline
def fits_matrix(length: int, reference_length: int) -> bool:
    """Return whether there is memory for the matrix of two sequences."""
    columns = reference_length + 1
    cells = (length + 1) * columns
    return length < MOST_ROWS and columns <= MOST_COLUMNS and cells <= MOST_CELLS


@jit
def align_whole(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    min_score: int,
    scratch: MatrixScratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int]:
    """Align two sequences from end to end; return the score and the number of operations.

    The tile has direction 1; an end scores nothing. Some alignment has at least `min_score`: the
    higher it is, the fewer cells are computed. The operations are written from `operations_at` on:
    at most the bases of both sequences. Their number is `NO_MEMORY` if there are too many cells,
    never with a matrix that `fits_matrix`.

    Of several paths with the best score, the one is taken that, seen from the end, stays longest in
    a match, then prefers a deletion to an insertion, and a shorter gap to a longer one.
    """
    rows, directions, begins = scratch
    query_at, length, reference_at, reference_length, _ = tile
    columns = reference_length + 1
    if 2 * columns > rows.size or length >= begins.size:
        return as_int64(_NEVER), as_int64(NO_MEMORY)
    # From the row before: the scores that leave each cell for a match, and for an insertion.
    for column in range(2 * columns):
        rows[column] = _NEVER
    score, filled = _NEVER, 0
    # The computed cells of a row: those reached from a cell of the row before, or by a deletion.
    first, end = 0, 0
    for i in range(length + 1):
        diagonal, to_deletion = _NEVER, _NEVER
        if i == 0:
            # The corner is entered from the match before it.
            diagonal = 0
        if filled + columns - first > directions.size:
            return as_int64(_NEVER), as_int64(NO_MEMORY)
        begins[i] = filled - first
        kept_first, kept_end = columns, first
        j = first
        while j < columns and (j <= end or kept_end == j):
            match = diagonal
            if i > 0 and j > 0:
                base, other = query[query_at + i - 1], reference[reference_at + j - 1]
                match += pair_score(base, other, costs)
            insertion = rows[columns + j]
            deletion = to_deletion
            diagonal = rows[j]
            to_match, to_insertion, to_deletion, bits = scalar_recurrence(
                match, insertion, deletion, costs
            )
            directions[filled] = bits
            filled += 1
            best_after = _best_score(length - i, reference_length - j, costs)
            # No path through this cell has the score, so none needs to leave it.
            if to_match + best_after < min_score:
                to_match, to_insertion, to_deletion = _NEVER, _NEVER, _NEVER
            else:
                kept_first = min(kept_first, j)
                kept_end = j + 1
            rows[j] = to_match
            rows[columns + j] = to_insertion
            score = to_match
            j += 1
        first, end = kept_first, kept_end
    return score, _write_back(length, columns, directions, begins, operations, operations_at)


@inline
def _best_score(length: int, reference_length: int, costs: Costs) -> int:
    """Return an upper bound of the score of an alignment, if a gap may be open before it."""
    more = reference_length - length
    if more >= 0:
        return costs.match * length - costs.deletion_extend * more
    return costs.match * reference_length + costs.insertion_extend * more


@inline
def _write_back(
    i: int,
    columns: int,
    directions: ByteArray,
    begins: Int64Array,
    operations: OperationArray,
    operations_at: int,
) -> int:
    """Write the operations of the path to the last cell; return their number."""
    j = columns - 1
    end = operations_at
    state = as_int64(0)
    while i > 0 or j > 0:
        state = state_before(state, directions[begins[i] + j], i, j)
        i, j, end = append_backwards(state, i, j, operations, operations_at, end)
    reverse_operations(operations, operations_at, end)
    return end - operations_at
