"""Alignments of reads as the rows of SAM, BAM, CRAM and PAF, in the style of their user.

A row has what samtools, GATK and Picard want: the place of the mate, NM, MD, MC, MQ, AS, XS, the
read group, and SA for a read in several parts. Bases and qualities lie on the forward strand of the
reference. A secondary alignment has none of them, and a supplementary one only those that its CIGAR
does not clip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
from mummergpu.output.options import USUAL_STYLE, RecordStyle
from mummergpu.output.records.base_pairs import aligned_reads, change_texts, with_equal_bases
from mummergpu.output.records.rows import (
    NO_TEXTS,
    OtherPlaces,
    ReadColumns,
    RecordRows,
    RowFields,
    WrittenRows,
)
from mummergpu.output.sink import Prepared, Sink
from mummergpu.runtime.arrays import BoolArray
from mummergpu.runtime.jit import writable

AlignmentSink = Sink[ReadBlock, WrittenColumns, Prepared]
"""A sink of alignments of reads."""


class ReadRows:
    """Turns blocks of reads and their alignments into rows (`rows.RowMaker`)."""

    needs_bases: Final = True

    def __init__(self, reference: Reference, style: RecordStyle = USUAL_STYLE) -> None:
        self._reference = reference
        self._with_changes = "cs" in style.tags
        self.fields = RowFields(
            secondary_bases=style.secondary_bases,
            splits_as_secondary=style.splits_as_secondary,
            types="tp" in style.tags,
            divergences="de" in style.tags,
        )

    def written_rows(self, block: ReadBlock, alignments: WrittenColumns) -> Iterator[WrittenRows]:
        """Yield all rows of a block (`RowMaker`)."""
        written = block.as_written
        reads = ReadColumns(
            writable(written.offsets),
            writable(block.names),
            writable(block.name_offsets),
            writable(written.padded_codes),
            writable(written.qualities),
            block.has_letters,
            writable(block.tags.content),
            writable(block.tags.offsets),
        )
        columns = columns_of(alignments)
        # SA has the whole CIGARs of reads.
        rows = RecordRows(
            **columns._asdict(), part_offsets=columns.cigar_offsets, part_cigars=columns.cigars
        )
        changes = NO_TEXTS
        if self._with_changes:
            changes = change_texts(columns, aligned_reads(written, self._reference))
        others = _other_places(alignments)
        yield WrittenRows(reads, rows, others, columns.row_count, block.has_groups, changes)


def columns_of(alignments: WrittenColumns) -> AlignmentColumns:
    """Return the columns of the rows that are written, for a compiled loop."""
    rows = alignments.rows if isinstance(alignments, FoldedColumns) else alignments
    return AlignmentColumns._make(writable(column) for column in rows)


def _other_places(columns: WrittenColumns) -> OtherPlaces:
    """Return the alternatives of alignments."""
    if isinstance(columns, FoldedColumns):
        offsets, others = columns.alternative_offsets, columns.alternatives
    else:
        offsets, others = np.empty(0, dtype=np.int64), columns.first_rows(0)
    named = (getattr(others, name) for name in OtherPlaces._fields[1:])
    return OtherPlaces(writable(offsets), *map(writable, named))


def apply_style(
    alignments: WrittenColumns, block: ReadBlock, reference: Reference, style: RecordStyle
) -> WrittenColumns:
    """Return the alignments of a block as they are written.

    XA stays as it is: its CIGARs are of places that have no rows.
    """
    if not (style.mapped_only or style.soft_clips or style.equal_bases):
        return alignments
    rows = alignments.rows if isinstance(alignments, FoldedColumns) else alignments
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
    if not isinstance(alignments, FoldedColumns):
        return shown
    # Rows that are left out are of unmapped reads, which have no alternatives.
    offsets = alignments.alternative_offsets
    offsets = np.append(offsets[:-1][is_kept], offsets[-1])
    return alignments._replace(rows=shown, alternative_offsets=offsets)


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
