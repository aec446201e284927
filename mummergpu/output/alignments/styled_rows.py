"""Alignments as the style of their user has them, before any format writes them."""

from __future__ import annotations

import numpy as np

from mummergpu.input.blocks.read_block import ReadBlock
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import (
    AlignmentColumns,
    CigarOperation,
    FoldedColumns,
    SamFlag,
    WrittenColumns,
)
from mummergpu.output.records.base_pairs import aligned_reads, with_equal_bases
from mummergpu.output.records.record_style import RecordStyle
from mummergpu.runtime.arrays import BoolArray
from mummergpu.runtime.jit import writable


def styled(
    told: WrittenColumns, block: ReadBlock, reference: Reference, style: RecordStyle
) -> WrittenColumns:
    """Return the alignments of a block as they are written.

    What XA tells stays as it is: those CIGARs are of places that have no rows.
    """
    if not (style.mapped_only or style.soft_clips or style.equal_bases):
        return told
    rows = told.rows if isinstance(told, FoldedColumns) else told
    is_kept = _is_placed(rows)
    if not style.mapped_only:
        is_kept[:] = True
    shown = rows.taken(is_kept)
    if style.soft_clips:
        shown = _with_soft_clips(shown)
    if style.equal_bases:
        bases = aligned_reads(block.as_written, reference)
        arrays = AlignmentColumns._make(writable(column) for column in shown)
        shown = with_equal_bases(arrays, bases)
    if not isinstance(told, FoldedColumns):
        return shown
    # Rows that are left out are of unmapped reads, which have no alternatives.
    offsets = told.alternative_offsets
    offsets = np.append(offsets[:-1][is_kept], offsets[-1])
    return told._replace(rows=shown, alternative_offsets=offsets)


def _is_placed(rows: AlignmentColumns) -> BoolArray:
    """Return which rows are of reads that are placed themselves, or whose mates are."""
    flags = rows.flags.astype(np.int64)
    has_mate = flags & SamFlag.PAIRED != 0
    is_mate_placed = has_mate & (flags & SamFlag.MATE_UNMAPPED == 0)
    return np.asarray((flags & SamFlag.UNMAPPED == 0) | is_mate_placed)


def _with_soft_clips(rows: AlignmentColumns) -> AlignmentColumns:
    """Return rows that clip nothing hard, so that they have all bases of their reads."""
    is_hard = rows.cigars & 15 == CigarOperation.HARD_CLIP
    change = CigarOperation.HARD_CLIP - CigarOperation.SOFT_CLIP
    return rows._replace(cigars=(rows.cigars - is_hard * np.uint32(change)).astype(np.uint32))
