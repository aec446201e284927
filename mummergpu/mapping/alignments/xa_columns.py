"""Alignments of which the secondary ones are told of by the others, in the tag XA."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.alignments.columns import AlignmentColumns, SamFlag
from mummergpu.runtime.arrays import Int64Array

_SECONDARY: Final = int(SamFlag.SECONDARY)


class FoldedColumns(NamedTuple):
    """Alignments without their secondary rows, which are told of by the rows before them.

    Attributes
    ----------
    rows : AlignmentColumns
        The rows that are not secondary.
    alternative_offsets : ndarray, dtype=int64, shape=(n_rows + 1,)
        Where the alternatives of each row begin, and where those of the last one end.
    alternatives : AlignmentColumns
        The secondary rows, in their order; those have no mates.
    """

    rows: AlignmentColumns
    alternative_offsets: Int64Array
    alternatives: AlignmentColumns


WrittenColumns = AlignmentColumns | FoldedColumns
"""Alignments as they are written: with or without alternatives that others tell of."""


def fold(columns: AlignmentColumns) -> FoldedColumns:
    """Return alignments whose secondary rows become alternatives of the rows that they follow.

    Each secondary one comes after the one that tells of it (`secondary.list_alternatives`).
    """
    is_kept = columns.flags & _SECONDARY == 0
    # Mates are no secondary rows, so these lose theirs.
    kept, others = columns.taken(is_kept), columns.taken(~is_kept)
    owners = (np.cumsum(is_kept, dtype=np.int64) - 1)[~is_kept]
    offsets = np.zeros(kept.row_count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=kept.row_count), out=offsets[1:])
    return FoldedColumns(kept, offsets, others)
