"""The rows of SAM, BAM, CRAM and PAF as arrays, whatever is aligned: matches, reads or genomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from mummergpu.input.records.record_arrays import Spans
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import SamFlag
from mummergpu.output.bytes.text_arrays import RecordTexts
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.records.sam_fields import HARD_CLIP, TAKES_REFERENCE, ReferenceLetters
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array, UInt16Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline, writable
from mummergpu.sequence.codes import CodeArray

UNMAPPED: Final = int(SamFlag.UNMAPPED)
REVERSE: Final = int(SamFlag.REVERSE)
SECONDARY: Final = int(SamFlag.SECONDARY)
SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)

MATCH_OPERATIONS: Final = 3
"""The operations of a row that is a match: a clip, the match, and a clip, some without bases."""

NO_QUALITY: Final = 0xFF
"""The quality of every base of a read that came without qualities."""


class ReadColumns(NamedTuple):
    """The reads or queries of a block, as they are written.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where each read begins in the block, and where the last one ends.
    names : ndarray, dtype=uint8
        The names, one after the other.
    name_offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where each name begins, and where the last one ends.
    codes : ndarray, dtype=uint8
        With margins; empty if no row shall have bases.
    qualities : ndarray, dtype=uint8
        Phred numbers, or `NO_QUALITY`; empty if no read has qualities.
    has_letters : bool
        Whether letters that stand for several bases are among the codes (`codes.LETTERS`).
    tags : ndarray, dtype=uint8
        The tags that the reads came with, as the format has them.
    tag_offsets : ndarray, dtype=int64, shape=(n_reads + 1,) or (0,)
        Where those of each read begin, and where the last ones end; empty if there are none at all.
    """

    offsets: Int64Array
    names: TextArray
    name_offsets: Int64Array
    codes: CodeArray
    qualities: ByteArray
    has_letters: bool
    tags: TextArray
    tag_offsets: Int64Array

    def with_tags(self, turned: Callable[[Spans], Spans]) -> ReadColumns:
        """Return the same with the tags of the reads in another form."""
        tags = turned(Spans(self.tags, self.tag_offsets))
        return self._replace(tags=writable(tags.content), tag_offsets=writable(tags.offsets))


NO_HITS: Final = np.empty(0, dtype=np.uint32)
"""For rows that do not tell how many alignments there are."""


class RecordRows(NamedTuple):
    """Alignments as rows, those of a read together (`AlignmentColumns`).

    Attributes
    ----------
    cigars : ndarray, dtype=uint32
        Operations without bases are not written.
    part_offsets, part_cigars : ndarray
        The CIGARs that SA tells, as `cigar_offsets` and `cigars`, which they may be.
    second_scores : ndarray, dtype=int32, shape=(n_rows,) or (0,)
        The best score of another place (XS); empty if the rows do not tell it.
    hit_counts, hit_numbers : ndarray, dtype=uint32, shape=(n_rows,)
        How many alignments there are of the read, and the number of this one (NH, HI); empty if the
        rows do not tell it.
    """

    reads: Int64Array
    flags: UInt16Array
    records: Int32Array
    positions: Int64Array
    qualities: ByteArray
    cigar_offsets: Int64Array
    cigars: UInt32Array
    part_offsets: Int64Array
    part_cigars: UInt32Array
    template_lengths: Int32Array
    mate_rows: Int64Array
    scores: Int32Array
    second_scores: Int32Array
    edit_distances: Int32Array
    hit_counts: UInt32Array = NO_HITS
    hit_numbers: UInt32Array = NO_HITS


class OtherPlaces(NamedTuple):
    """The alternatives of rows, which their tag XA tells.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_rows + 1,) or (0,)
        Where those of each row begin, and where the last ones end; empty if there are none at all.
    """

    offsets: Int64Array
    flags: UInt16Array
    records: Int32Array
    positions: Int64Array
    cigar_offsets: Int64Array
    cigars: UInt32Array
    edit_distances: Int32Array


NO_TEXTS: Final = RecordTexts(np.zeros(OVERSHOOT, np.uint8), np.zeros(0, np.int64))

NO_PLACES: Final = OtherPlaces(
    np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.uint16),
    np.empty(0, dtype=np.int32),
    np.empty(0, dtype=np.int64),
    np.zeros(1, dtype=np.int64),
    np.empty(0, dtype=np.uint32),
    np.empty(0, dtype=np.int32),
)


class RowFields(NamedTuple):
    """What rows tell, and how, as far as those of reads, genomes and matches differ in it.

    Attributes
    ----------
    bases : bool
        Whether rows have bases.
    secondary_bases : bool
        Whether secondary rows have bases, too.
    mismatches : bool
        Whether rows have the tag MD.
    matches : bool
        Whether rows are exact matches. They have NH and HI and `MATCH_OPERATIONS`; there are no
        mates, no other parts, no alternatives, and no qualities or tags of the reads, and the
        columns for what all rows then have in common are not looked at.
    splits_as_secondary : bool
        Whether supplementary rows are written with the flag of secondary ones.
    types, divergences : bool
        Whether rows have the tags tp and de.
    """

    bases: bool = True
    secondary_bases: bool = False
    mismatches: bool = True
    matches: bool = False
    splits_as_secondary: bool = False
    types: bool = False
    divergences: bool = False


@inline
def fields_of_matches(secondary_bases: bool) -> RowFields:
    """Return the fields of matches. To their compiled caller, all but the one are constants."""
    return RowFields(True, secondary_bases, False, True, False, False, False)


class WrittenRows(NamedTuple):
    """Rows of a block with all that they tell of.

    Attributes
    ----------
    row_count : int
        How many rows there are; the columns may have room for more.
    has_groups : bool
        Whether the tags of the reads tell their read groups, and not the header's one for all.
    changes : RecordTexts
        The differences of each row with their bases, as the tag cs of PAF has them; without offsets
        if nothing asks for them.
    """

    reads: ReadColumns
    rows: RecordRows
    others: OtherPlaces
    row_count: int
    has_groups: bool = False
    changes: RecordTexts = NO_TEXTS


class RowMaker(Protocol):
    """Turns blocks and their alignments into rows."""

    @property
    def needs_bases(self) -> bool:
        """Whether blocks of genomes must keep the bases of their queries."""

    @property
    def fields(self) -> RowFields:
        """What the rows tell in SAM and BAM."""

    def written_rows(self, block: Any, alignments: Any) -> Iterator[WrittenRows]:
        """Yield the rows of a block in pieces.

        All have the reads and the columns of the first, whose rows are filled once more.
        """


class ReferenceColumns(NamedTuple):
    """The reference.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        With margins.
    starts : ndarray, dtype=int64
        Where each record begins, without the margin.
    letters : tuple of ndarray
        The letters that stand for several bases.
    """

    codes: CodeArray
    starts: Int64Array
    letters: ReferenceLetters

    @classmethod
    def of(cls, reference: Reference) -> ReferenceColumns:
        """Return a reference for a compiled loop."""
        letters = reference.letters
        return cls(
            writable(reference.padded_codes),
            writable(reference.record_starts),
            (writable(letters.positions), writable(letters.codes)),
        )


class RecordBlock(NamedTuple):
    """What a compiled loop needs to write the rows of a block.

    Attributes
    ----------
    oriented : ndarray, dtype=uint8
        Room for the codes of a read on the strand of the reference, with margins.
    record_ids : ndarray, dtype=int32, shape=(n_records,)
        The number of each record of the reference in the header (`header.SamHeader`).
    names : RecordTexts
        The name of each record and a tab.
    name_bytes : int
        The most bytes of the name of a record.
    group : ndarray, dtype=uint8
        The tag of the read group, with `OVERSHOOT` bytes after it.
    changes : RecordTexts
        The values of cs (`WrittenRows.changes`).
    """

    reads: ReadColumns
    rows: RecordRows
    others: OtherPlaces
    oriented: CodeArray
    reference: ReferenceColumns
    record_ids: Int32Array
    names: RecordTexts
    name_bytes: int
    group: TextArray
    changes: RecordTexts


@inline
def written_flag(rows: RecordRows, fields: RowFields, row: int) -> int:
    """Return the flags of a row as SAM and BAM have them."""
    flag = as_int64(rows.flags[as_index(row)])
    if fields.splits_as_secondary and flag & SUPPLEMENTARY:
        # The row keeps its bases and SA, as from bwa mem -M.
        flag = flag & ~SUPPLEMENTARY | SECONDARY
    return flag


@inline
def spans_of(cigars: UInt32Array, begin: int, end: int) -> tuple[int, int, int]:
    """Return what a CIGAR takes of a reference, and what it cuts off at both ends of the read."""
    reference_bases, before, after = 0, 0, 0
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        reference_bases += length * (TAKES_REFERENCE >> kind & 1)
        if kind == HARD_CLIP:
            if place == begin:
                before = length
            else:
                after = length
    return reference_bases, before, after


@inline
def rows_of_read(reads: Int64Array, flags: UInt16Array, row: int) -> tuple[int, int]:
    """Return the rows of the read of a row, as a half-open range; of a secondary row, only itself.

    A read may have thousands of secondary rows, and none of them tells of the others.
    """
    read = reads[as_index(row)]
    first, end = row, row + 1
    if flags[as_index(row)] & SECONDARY:
        return first, end
    while first > 0 and reads[as_index(first - 1)] == read:
        first -= 1
    while end < reads.size and reads[as_index(end)] == read:
        end += 1
    return first, end
