"""Alignments of reads as columns, the result of mapping."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import (
    BoolArray,
    ByteArray,
    Int32Array,
    Int64Array,
    UInt16Array,
    UInt32Array,
)

NO_RECORD: Final = -1
"""The record of a read that is placed nowhere."""

NO_ROW: Final = -1
"""The row of a mate that there is not."""


class CigarOperation(IntEnum):
    """What an operation of a CIGAR does, as BAM numbers them."""

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
        """Return copies of some rows; a mate that is not among them becomes `NO_ROW`.

        Parameters
        ----------
        is_wanted : ndarray, dtype=bool, shape=(n_rows,)
            Which rows.
        """
        sizes = np.diff(self.cigar_offsets)
        numbers = np.where(is_wanted, np.cumsum(is_wanted) - 1, NO_ROW)
        # The last number is that of no row.
        mates = np.append(numbers, NO_ROW)[self.mate_rows[is_wanted]]
        return AlignmentColumns(
            self.reads[is_wanted],
            self.flags[is_wanted],
            self.records[is_wanted],
            self.positions[is_wanted],
            self.qualities[is_wanted],
            np.concatenate(([0], np.cumsum(sizes[is_wanted]))),
            self.cigars[np.repeat(is_wanted, sizes)],
            self.template_lengths[is_wanted],
            mates,
            self.scores[is_wanted],
            self.second_scores[is_wanted],
            self.edit_distances[is_wanted],
        )

    def first_rows(self, count: int) -> AlignmentColumns:
        """Return the first rows, as views of the columns.

        Parameters
        ----------
        count : int
            How many; their mates are among them.
        """
        return AlignmentColumns(
            self.reads[:count],
            self.flags[:count],
            self.records[:count],
            self.positions[:count],
            self.qualities[:count],
            self.cigar_offsets[: count + 1],
            self.cigars[: self.cigar_offsets[count]],
            self.template_lengths[:count],
            self.mate_rows[:count],
            self.scores[:count],
            self.second_scores[:count],
            self.edit_distances[:count],
        )


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
