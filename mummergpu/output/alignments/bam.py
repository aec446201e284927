"""Alignments of reads as the content of BAM, with the rows of `sam`.

`compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from mummergpu.errors import InputError
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns
from mummergpu.mapping.alignments.xa_columns import ToldColumns
from mummergpu.output.alignments.arrays import (
    NEEDED_BYTES,
    NEXT_ROW,
    REVERSE,
    SECONDARY,
    BlockArrays,
    ReadsWithQualities,
)
from mummergpu.output.alignments.format import AlignmentHead, PiecewiseFormat
from mummergpu.output.alignments.tags import measure_row, orient, put_own_tags, put_tags
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.bytes.quality_text import NUMBERS_FROM, write_qualities
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, store
from mummergpu.output.records.bam_fields import (
    NAME_AT,
    Place,
    pack_bases,
    pack_letters,
    write_fixed_fields,
    write_name,
)
from mummergpu.output.records.header import binary_header, check_queries
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.offsets import longest_of

MOST_OPERATIONS: Final = 0xFFFF
"""The most operations of the CIGAR of a record."""


@inline_without_refcounts
def _place_of(rows: AlignmentColumns, record_ids: Int32Array, row: int) -> Place:
    """Return where a row begins, by the number of its record in the header."""
    record, position = -1, -1
    if row != NO_ROW:
        record, position = as_int64(rows.records[as_index(row)]), rows.positions[as_index(row)]
        if record >= 0:
            record = as_int64(record_ids[as_index(record)])
    return record, position


@jit_without_refcounts
def write_bam_records(
    text: TextArray,
    state: Int64Array,
    row_ends: Int64Array,
    block: BlockArrays,
    record_ids: Int32Array,
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state` and `row_ends`.
    """
    reads, rows = block.reads, block.rows
    room = text.size - OVERSHOOT - block.group.size
    at = 0
    row = state[NEXT_ROW]
    while row < rows.flags.size:
        read = rows.reads[as_index(row)]
        flag = as_int64(rows.flags[as_index(row)])
        cigar, cigar_end = rows.cigar_offsets[as_index(row)], rows.cigar_offsets[as_index(row + 1)]
        # No field checks for the end of the text: a record that may not fit waits for the next one.
        extent = measure_row(block, row)
        clips = extent.clips
        if at + extent.needed > room:
            state[NEEDED_BYTES] = extent.needed + block.group.size
            break
        is_reverse = flag & REVERSE != 0
        begin, end = reads.offsets[as_index(read)], reads.offsets[as_index(read + 1)]
        orient(block.oriented, reads.codes, begin, end, is_reverse)
        bases = 0 if flag & SECONDARY else max(0, end - begin - clips[0] - clips[1])
        name = at + NAME_AT
        place = write_name(text, name, reads.names, reads.name_offsets, read)
        write_fixed_fields(
            text,
            at,
            _place_of(rows, record_ids, row),
            max(extent.span, 1),
            place - name,
            as_int64(rows.qualities[as_index(row)]),
            flag,
            cigar_end - cigar,
            bases,
            _place_of(rows, record_ids, rows.mate_rows[as_index(row)]),
            as_int64(rows.template_lengths[as_index(row)]),
        )
        for operation in range(cigar, cigar_end):
            store(text, place, rows.cigars[as_index(operation)])
            place += 4
        if bases:
            first = place
            place = pack_bases(text, first, block.oriented, MARGIN + clips[0], bases, False)
            if reads.has_letters:
                pack_letters(text, first, block.oriented, MARGIN + clips[0], bases)
            place = write_qualities(
                *(text, place, reads.qualities, (begin, end)),
                *(clips[0], bases, is_reverse, NUMBERS_FROM),
            )
        place = put_tags(text, place, block, row, extent.parts, True)
        place = put_own_tags(text, place, reads, read)
        # The size of a record comes before it, and is known now.
        store(text, at, np.uint32(place - at - 4))
        at = place
        row_ends[as_index(row)] = at
        row += 1
    state[NEXT_ROW] = row
    return at


PIECE_BYTES: Final = 64 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size."""


@dataclass(frozen=True)
class RecordPiece:
    """Records of consecutive rows.

    Attributes
    ----------
    first_row : int
        The first of the rows.
    ends : ndarray, dtype=int64, shape=(n_rows,)
        Where in `text` each record ends.
    text : ndarray, dtype=uint8, shape=(n_bytes,)
        The records, one after the other.
    """

    first_row: int
    ends: Int64Array
    text: TextArray


class AlignmentBamFormat(PiecewiseFormat):
    """Turns the alignments of blocks of reads into BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        head: AlignmentHead,
        read_path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, head, b"RGZ%b\0", read_path, piece_bytes)
        self._head = binary_header(self._header, reference)
        self._record_ids = writable(self._header.record_ids)

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[TextArray]:
        """Yield the records of a block in pieces (`Format.format_block`)."""
        for piece in self.records(reads, columns):
            yield piece.text

    def records(self, reads: ReadsWithQualities, columns: ToldColumns) -> Iterator[RecordPiece]:
        """Yield the records of a block in pieces, with the end of each record."""
        check_queries(reads, self._read_path, reads.as_written.offsets)
        block = self._block_arrays(reads, columns, reads.tags)
        if longest_of(block.rows.cigar_offsets) > MOST_OPERATIONS:
            message = f"BAM has alignments of at most {MOST_OPERATIONS:,} operations; write SAM"
            raise InputError(message, self._read_path)
        row_ends = np.empty(block.rows.row_count, dtype=np.int64)

        def fill(text: TextArray, state: Int64Array) -> int:
            return write_bam_records(text, state, row_ends, block, self._record_ids)

        for first, end, text in self._pieces(block.rows.row_count, fill):
            yield RecordPiece(first, row_ends[first:end], text)
