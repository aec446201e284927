"""Alignments of reads as columns, the result of mapping.

`replace_reads` replaces the alignments of some reads, and `fold` lets rows report their secondary
alignments in the tag XA.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    UInt16Array,
    UInt32Array,
)
from mummergpu.runtime.jit import inline, jit

NO_RECORD: Final = -1
"""The record of a read that is placed nowhere."""

NO_ROW: Final = -1
"""The mate row of a read without a mate."""


class CigarOperation(IntEnum):
    """The operations of a CIGAR, as BAM numbers them."""

    MATCH = 0
    INSERTION = 1
    DELETION = 2
    SOFT_CLIP = 4
    HARD_CLIP = 5


class SamFlag(IntFlag):
    """The flags of an alignment, as SAM defines them."""

    PAIRED = 1
    PROPER_PAIR = 2
    UNMAPPED = 4
    MATE_UNMAPPED = 8
    REVERSE = 16
    MATE_REVERSE = 32
    FIRST = 64
    LAST = 128
    SECONDARY = 256
    FAILED_QUALITY = 512
    DUPLICATE = 1024
    SUPPLEMENTARY = 2048


OF_PAIRS: Final = int(
    SamFlag.PAIRED
    | SamFlag.PROPER_PAIR
    | SamFlag.MATE_UNMAPPED
    | SamFlag.MATE_REVERSE
    | SamFlag.FIRST
    | SamFlag.LAST
)
"""The flags of reads that have mates."""


class AlignmentColumns(NamedTuple):
    """The alignments of a block of reads, in the order in which they are written.

    Every read has one primary row; its supplementary and its secondary ones follow. Reads are in
    the order of the block; the mates of a pair follow each other.

    Attributes
    ----------
    reads : ndarray, dtype=int64, shape=(n_rows,)
        The number of the read in its block, counted from 0.
    flags : ndarray, dtype=uint16, shape=(n_rows,)
        The flags of SAM (`SamFlag`).
    records : ndarray, dtype=int32, shape=(n_rows,)
        The record of the reference, counted from 0. An unmapped read has the record and the
        position of its mate if that is mapped, else `NO_RECORD`.
    positions : ndarray, dtype=int64, shape=(n_rows,)
        The leftmost base of the reference that is aligned, 0-based in its record; -1 if the read
        has no record.
    qualities : ndarray, dtype=uint8, shape=(n_rows,)
        The mapping qualities, 0 to 60; 0 for unmapped reads.
    cigar_offsets : ndarray, dtype=int64, shape=(n_rows + 1,)
        Where the operations of each row begin in `cigars`, and where the last ones end.
    cigars : ndarray, dtype=uint32, shape=(n_operations,)
        The operations as BAM packs them: the length in bases in the upper 28 bits, the operation
        (`CigarOperation`) in the lower four. An unmapped read has none.
    template_lengths : ndarray, dtype=int32, shape=(n_rows,)
        The length of the template in bases with its sign, as SAM's TLEN; 0 if it is not known.
    mate_rows : ndarray, dtype=int64, shape=(n_rows,)
        The primary row of the mate; `NO_ROW` for reads that are not paired.
    scores : ndarray, dtype=int32, shape=(n_rows,)
        The scores of the alignments (AS).
    second_scores : ndarray, dtype=int32, shape=(n_rows,)
        The best score of another place (XS), 0 if there is none.
    edit_distances : ndarray, dtype=int32, shape=(n_rows,)
        The number of bases that differ, are inserted or are deleted (NM).
    """

    reads: Int64Array
    flags: UInt16Array
    records: Int32Array
    positions: Int64Array
    qualities: ByteArray
    cigar_offsets: Int64Array
    cigars: UInt32Array
    template_lengths: Int32Array
    mate_rows: Int64Array
    scores: Int32Array
    second_scores: Int32Array
    edit_distances: Int32Array

    @property
    def row_count(self) -> int:
        """The number of alignments, those of unmapped reads included."""
        return self.reads.size

    def taken(self, is_wanted: BoolArray) -> AlignmentColumns:
        """Return copies of some rows; a mate that is not among them becomes `NO_ROW`."""
        sizes = np.diff(self.cigar_offsets)
        numbers = np.where(is_wanted, np.cumsum(is_wanted) - 1, NO_ROW)
        # The last number is that of no row.
        mates = np.append(numbers, NO_ROW)[self.mate_rows[is_wanted]]
        return AlignmentColumns(
            **self._picked(is_wanted)
            | {
                "mate_rows": mates,
                "cigar_offsets": np.concatenate(([0], np.cumsum(sizes[is_wanted]))),
                "cigars": self.cigars[np.repeat(is_wanted, sizes)],
            }
        )

    def first_rows(self, count: int) -> AlignmentColumns:
        """Return the first rows, as views of the columns; their mates are among them."""
        return AlignmentColumns(
            **self._picked(slice(count))
            | {
                "cigar_offsets": self.cigar_offsets[: count + 1],
                "cigars": self.cigars[: self.cigar_offsets[count]],
            }
        )

    def _picked(self, rows: BoolArray | slice) -> dict[str, Any]:
        """Return some elements of each column that has one element per row."""
        columns = self._asdict().items()
        return {name: one[rows] for name, one in columns if not name.startswith("cigar")}


def new_columns(rows: int, operations: int) -> AlignmentColumns:
    """Return unfilled columns; the first offset of CIGARs is 0."""
    return AlignmentColumns(
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.uint16),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.uint8),
        np.zeros(rows + 1, dtype=np.int64),
        np.empty(operations, dtype=np.uint32),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int64),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
        np.empty(rows, dtype=np.int32),
    )


ROWS, OPERATIONS, _NEXT_ROW = 0, 1, 2
"""The elements of the state of `replace_rows`: rows, operations, and the next row of `other`."""


def replace_reads(
    columns: AlignmentColumns, reads: Int64Array, other: AlignmentColumns
) -> AlignmentColumns:
    """Return alignments with those of some reads replaced, in the order of the reads.

    The reads ascend; of pairs, both mates are replaced. `other` has their alignments, numbered from
    0.
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


_SECONDARY: Final = int(SamFlag.SECONDARY)


class FoldedColumns(NamedTuple):
    """Alignments without their secondary rows, which the rows before them report."""

    rows: AlignmentColumns  # The rows that are not secondary.
    # Where the alternatives of each row begin, and where those of the last one end; (n_rows + 1,).
    alternative_offsets: Int64Array
    alternatives: AlignmentColumns  # The secondary rows, in their order; those have no mates.


WrittenColumns = AlignmentColumns | FoldedColumns
"""Alignments as they are written: with secondary rows, or with alternatives that rows report."""


def fold(columns: AlignmentColumns) -> FoldedColumns:
    """Return alignments whose secondary rows become alternatives of the rows that they follow.

    Each secondary row comes after the one that reports it (`secondary.list_alternatives`).
    """
    is_kept = columns.flags & _SECONDARY == 0
    # Mates are never secondary rows, so secondary rows lose theirs.
    kept, others = columns.taken(is_kept), columns.taken(~is_kept)
    owners = (np.cumsum(is_kept, dtype=np.int64) - 1)[~is_kept]
    offsets = np.zeros(kept.row_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=kept.row_count), out=offsets[1:])
    return FoldedColumns(kept, offsets, others)
