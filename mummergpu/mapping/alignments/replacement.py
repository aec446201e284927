"""Puts the alignments of some reads in the place of earlier ones."""

from __future__ import annotations

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, new_columns
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import inline, jit

ROWS, OPERATIONS, _NEXT_ROW = 0, 1, 2
"""The elements of the state of `replace_rows`."""


def replace_reads(
    columns: AlignmentColumns, reads: Int64Array, other: AlignmentColumns
) -> AlignmentColumns:
    """Return alignments with those of some reads replaced, in the order of the reads.

    Parameters
    ----------
    reads : ndarray, dtype=int64, shape=(n_reads,)
        The reads whose alignments are replaced, ascending; of pairs, both mates.
    other : AlignmentColumns
        The alignments of these reads, which are numbered from 0.
    """
    rows = columns.row_count + other.row_count
    operations = columns.cigars.size + other.cigars.size
    joined = new_columns(rows, operations)
    state = np.zeros(3, dtype=np.int64)
    replace_rows(
        columns,
        reads,
        other,
        np.empty(columns.row_count, dtype=np.int64),
        np.empty(other.row_count, dtype=np.int64),
        state,
        joined,
    )
    return joined.first_rows(int(state[ROWS]))


@jit
def replace_rows(
    columns: AlignmentColumns,
    reads: Int64Array,
    other: AlignmentColumns,
    places: Int64Array,
    other_places: Int64Array,
    state: Int64Array,
    joined: AlignmentColumns,
) -> None:
    """Join the rows of two sets of alignments, in the order of their reads."""
    row = 0
    for replaced in range(reads.size):
        while row < columns.reads.size and columns.reads[row] < reads[replaced]:
            copy_row(columns, row, columns.reads[row], places, state, joined)
            row += 1
        while row < columns.reads.size and columns.reads[row] == reads[replaced]:
            row += 1
        while state[_NEXT_ROW] < other.reads.size and other.reads[state[_NEXT_ROW]] == replaced:
            number = state[_NEXT_ROW]
            copy_row(other, number, reads[replaced], other_places, state, joined)
            state[_NEXT_ROW] += 1
    while row < columns.reads.size:
        copy_row(columns, row, columns.reads[row], places, state, joined)
        row += 1
    # The mates of replaced reads are replaced too, so mates are always of one set.
    replaced = 0
    mates = joined.mate_rows
    for row in range(state[ROWS]):
        while replaced < reads.size and reads[replaced] < joined.reads[row]:
            replaced += 1
        if mates[row] != NO_ROW:
            is_replaced = replaced < reads.size and reads[replaced] == joined.reads[row]
            mates[row] = other_places[mates[row]] if is_replaced else places[mates[row]]


@inline
def copy_row(
    columns: AlignmentColumns,
    row: int,
    read: int,
    places: Int64Array,
    state: Int64Array,
    joined: AlignmentColumns,
) -> None:
    """Copy a row as the next one that is joined; its mate is still that of the old row."""
    end, operations_end = state[ROWS], state[OPERATIONS]
    places[row] = end
    joined.reads[end] = read
    joined.flags[end] = columns.flags[row]
    joined.records[end] = columns.records[row]
    joined.positions[end] = columns.positions[row]
    joined.qualities[end] = columns.qualities[row]
    for operation in range(columns.cigar_offsets[row], columns.cigar_offsets[row + 1]):
        joined.cigars[operations_end] = columns.cigars[operation]
        operations_end += 1
    joined.cigar_offsets[end + 1] = operations_end
    joined.template_lengths[end] = columns.template_lengths[row]
    joined.mate_rows[end] = columns.mate_rows[row]
    joined.scores[end] = columns.scores[row]
    joined.second_scores[end] = columns.second_scores[row]
    joined.edit_distances[end] = columns.edit_distances[row]
    state[ROWS], state[OPERATIONS] = end + 1, operations_end
