"""Alignments of which the secondary ones are told of by the others, in the tag XA."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns, SamFlag

_SECONDARY: Final = int(SamFlag.SECONDARY)


@dataclass(frozen=True)
class FoldedColumns(AlignmentColumns):
    """Alignments without their secondary rows, which are told of by the rows before them.

    Attributes
    ----------
    alternative_offsets : ndarray, dtype=int64, shape=(n_rows + 1,)
        Where the alternatives of each row begin, and where those of the last one end.
    alternatives : AlignmentColumns
        The secondary rows, in their order; those have no mates.
    """

    alternative_offsets: npt.NDArray[np.int64]
    alternatives: AlignmentColumns


def fold(columns: AlignmentColumns) -> FoldedColumns:
    """Return alignments whose secondary rows become alternatives of the rows that they follow.

    Parameters
    ----------
    columns : AlignmentColumns
        The alignments, each secondary one after the one that tells of it
        (`alternatives.list_alternatives`).

    Returns
    -------
    FoldedColumns
        The same alignments.
    """
    is_kept = columns.flags & _SECONDARY == 0
    kept, others = _rows_of(columns, is_kept), _rows_of(columns, ~is_kept)
    numbers = np.cumsum(is_kept, dtype=np.int64) - 1
    has_mate = kept.mate_rows != NO_ROW
    kept.mate_rows[has_mate] = numbers[kept.mate_rows[has_mate]]
    others.mate_rows[:] = NO_ROW
    offsets = np.zeros(kept.row_count + 1, dtype=np.int64)
    owners = numbers[~is_kept]
    np.cumsum(np.bincount(owners, minlength=kept.row_count), out=offsets[1:])
    return FoldedColumns(*kept.arrays, alternative_offsets=offsets, alternatives=others)


def _rows_of(columns: AlignmentColumns, is_wanted: npt.NDArray[np.bool_]) -> AlignmentColumns:
    """Return copies of some rows; their mates are still rows of all."""
    sizes = np.diff(columns.cigar_offsets)
    offsets = np.zeros(int(np.count_nonzero(is_wanted)) + 1, dtype=np.int64)
    np.cumsum(sizes[is_wanted], out=offsets[1:])
    arrays: list[npt.NDArray[Any]] = []
    for field in fields(AlignmentColumns):
        if field.name == "cigar_offsets":
            arrays.append(offsets)
        elif field.name == "cigars":
            arrays.append(columns.cigars[np.repeat(is_wanted, sizes)])
        else:
            arrays.append(getattr(columns, field.name)[is_wanted])
    return AlignmentColumns(*arrays)
