"""Alignments of reads as the rows of SAM, BAM, CRAM and PAF.

A row has what samtools, GATK and Picard want: the place of the mate, NM, MD, MC, MQ, AS, XS, the
read group, and SA for a read in several parts. Bases and qualities lie on the forward strand of the
reference. A secondary alignment has none of them, and a supplementary one only those that its CIGAR
does not clip.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

import numpy as np

from mummergpu.input.blocks.read_block import OriginalReads
from mummergpu.input.records.tags import Tags
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns, FoldedColumns, WrittenColumns
from mummergpu.output.bytes.text_stores import TextArray
from mummergpu.output.records.base_pairs import aligned_reads, change_texts
from mummergpu.output.records.record_style import USUAL_STYLE, RecordStyle
from mummergpu.output.records.rows import (
    NO_TEXTS,
    OtherPlaces,
    ReadColumns,
    RecordRows,
    RowFields,
    WrittenRows,
)
from mummergpu.output.sink import Format, Prepared, Sink
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import writable


class ReadsWithQualities(Protocol):
    """What a block of reads must have to be written, as `input.blocks.read_block.ReadBlock` has it.

    The names are without ``/1`` and ``/2``, and each base of a read without qualities has
    `NO_QUALITY`.
    """

    @property
    def as_written(self) -> OriginalReads:
        """The bases and qualities as they are written."""

    @property
    def offsets(self) -> Int64Array:
        """Where each read begins of those that are searched: shape=(n_reads + 1,)."""

    @property
    def names(self) -> TextArray:
        """The names, one after the other."""

    @property
    def name_offsets(self) -> Int64Array:
        """Where each name begins, and where the last one ends: shape=(n_reads + 1,)."""

    @property
    def tags(self) -> Tags:
        """The tags that the records have besides those of a mapper."""

    @property
    def has_groups(self) -> bool:
        """Whether the tags tell the read groups, and not the header's one for all."""

    @property
    def base_qualities(self) -> ByteArray:
        """Phred numbers from 0 to 93, or `NO_QUALITY`, of the bases that are searched."""


AlignmentSink = Sink[ReadsWithQualities, WrittenColumns, Prepared]
"""A sink of alignments of reads."""

AlignmentFormat = Format[ReadsWithQualities, WrittenColumns]
"""A format of alignments of reads."""


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

    def written_rows(
        self, block: ReadsWithQualities, alignments: WrittenColumns
    ) -> Iterator[WrittenRows]:
        """Yield all rows of a block (`RowMaker`)."""
        written = block.as_written
        reads = ReadColumns(
            writable(written.offsets),
            writable(block.names),
            writable(block.name_offsets),
            writable(written.padded_codes),
            writable(written.base_qualities),
            written.has_letters,
            writable(block.tags.content),
            writable(block.tags.offsets),
        )
        columns = columns_of(alignments)
        # SA tells whole CIGARs of reads.
        rows = RecordRows(
            **columns._asdict(),
            part_offsets=columns.cigar_offsets,
            part_cigars=columns.cigars,
        )
        changes = NO_TEXTS
        if self._with_changes:
            changes = change_texts(columns, aligned_reads(written, self._reference))
        count = columns.row_count
        others = _other_places(alignments)
        yield WrittenRows(reads, rows, others, count, block.has_groups, changes)


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
    return OtherPlaces(
        writable(offsets),
        writable(others.flags),
        writable(others.records),
        writable(others.positions),
        writable(others.cigar_offsets),
        writable(others.cigars),
        writable(others.edit_distances),
    )
