"""Alignments, their reads and their reference as arrays, for the compiled loops that write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

import numpy as np

from mummergpu.input.blocks.read_block import WrittenReads
from mummergpu.input.records.tags import Tags
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import AlignmentColumns, SamFlag
from mummergpu.mapping.alignments.xa_columns import FoldedColumns, ToldColumns
from mummergpu.output.bytes.text_arrays import RecordTexts, texts_of
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.records.cigars import HARD_CLIP, TAKES_REFERENCE, ReferenceLetters
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array, UInt16Array, UInt32Array
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, writable
from mummergpu.sequence.codes import CodeArray

PAIRED: Final = int(SamFlag.PAIRED)
UNMAPPED: Final = int(SamFlag.UNMAPPED)
MATE_UNMAPPED: Final = int(SamFlag.MATE_UNMAPPED)
REVERSE: Final = int(SamFlag.REVERSE)
SECONDARY: Final = int(SamFlag.SECONDARY)
SUPPLEMENTARY: Final = int(SamFlag.SUPPLEMENTARY)

NO_QUALITY: Final = 0xFF
"""The quality of every base of a read that came without qualities."""

NEXT_ROW, NEEDED_BYTES = 0, 1
"""The elements of the state between two pieces: the row to go on with, and the bytes that a text
must have for it."""

STATE_SIZE: Final = 2


class ReadColumns(NamedTuple):
    """The reads of a block, as they are written.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where each read begins in the block, and where the last one ends.
    names : ndarray, dtype=uint8
        The names, one after the other.
    name_offsets : ndarray, dtype=int64, shape=(n_reads + 1,)
        Where each name begins, and where the last one ends.
    codes : ndarray, dtype=uint8
        With margins.
    qualities : ndarray, dtype=uint8
        Phred numbers, or `NO_QUALITY`.
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


class BlockArrays(NamedTuple):
    """What a compiled loop needs to write the alignments of a block.

    Attributes
    ----------
    oriented : ndarray, dtype=uint8
        Room for the codes of a read on the strand of the reference, with margins.
    names : RecordTexts
        The name of each record and a tab.
    name_bytes : int
        The most bytes of the name of a record.
    group : ndarray, dtype=uint8
        The tag of the read group, with `OVERSHOOT` bytes after it.
    """

    reads: ReadColumns
    rows: AlignmentColumns
    others: OtherPlaces
    oriented: CodeArray
    reference: ReferenceColumns
    names: RecordTexts
    name_bytes: int
    group: TextArray


class ReadsWithQualities(Protocol):
    """What a block of reads must have to be written, as `input.blocks.read_block.ReadBlock` has it.

    The names are without ``/1`` and ``/2``, and each base of a read without qualities has
    `NO_QUALITY`.
    """

    @property
    def as_written(self) -> WrittenReads:
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


def read_columns(reads: ReadsWithQualities, tags: Tags) -> ReadColumns:
    """Return a block of reads for a compiled loop, with their tags as the format has them."""
    written = reads.as_written
    return ReadColumns(
        writable(written.offsets),
        writable(reads.names),
        writable(reads.name_offsets),
        writable(written.padded_codes),
        writable(written.base_qualities),
        written.has_letters,
        writable(tags.content),
        writable(tags.offsets),
    )


def row_arrays(columns: ToldColumns) -> AlignmentColumns:
    """Return alignments for a compiled loop."""
    rows = columns.rows if isinstance(columns, FoldedColumns) else columns
    return AlignmentColumns._make(writable(column) for column in rows)


def other_places(columns: ToldColumns) -> OtherPlaces:
    """Return the alternatives of alignments for a compiled loop."""
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


def reference_columns(reference: Reference) -> ReferenceColumns:
    """Return a reference for a compiled loop."""
    letters = reference.letters
    return ReferenceColumns(
        writable(reference.padded_codes),
        writable(reference.record_starts),
        (writable(letters.positions), writable(letters.codes)),
    )


def padded_text(text: bytes) -> TextArray:
    """Return a text with `OVERSHOOT` bytes after it, as an array."""
    return np.frombuffer(bytearray(text) + bytes(OVERSHOOT), dtype=np.uint8)


def record_texts(names: Iterable[bytes], end: bytes) -> RecordTexts:
    """Return the names of records, each with `end` after it, for a compiled loop."""
    return texts_of(name + end for name in names)


@inline_without_refcounts
def spans_of(cigars: UInt32Array, begin: int, end: int) -> tuple[int, int, int]:
    """Return what a CIGAR takes of a reference, and what it cuts off at both ends of the read."""
    reference_bases, before, after = 0, 0, 0
    for place in range(begin, end):
        operation = as_int64(cigars[as_index(place)])
        kind, length = operation & 15, operation >> 4
        if TAKES_REFERENCE >> kind & 1:
            reference_bases += length
        elif kind == HARD_CLIP:
            if place == begin:
                before = length
            else:
                after = length
    return reference_bases, before, after


@inline_without_refcounts
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
