"""Matches and alignments of reads or genomes as the content of BAM, with the rows of `sam`.

`compression.BgzfCompressor` makes the file of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.bytes.sequence_text import NUMBERS_FROM, write_qualities
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, store
from mummergpu.output.records.bam_fields import (
    NAME_AT,
    Place,
    pack_bases,
    pack_letters,
    write_fixed_fields,
    write_name,
    write_no_qualities,
)
from mummergpu.output.records.header import binary_header
from mummergpu.output.records.record_format import (
    END_ROW,
    NEEDED_BYTES,
    NEXT_ROW,
    AlignmentHead,
    RecordFormat,
)
from mummergpu.output.records.rows import (
    REVERSE,
    RecordBlock,
    RecordRows,
    RecordSource,
    RowFields,
    fields_of_matches,
    written_flag,
)
from mummergpu.output.records.tags import RowExtent, measure_row, orient, put_own_tags, put_tags
from mummergpu.runtime.arrays import Int32Array, Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)
from mummergpu.sequence.codes import MARGIN

MOST_OPERATIONS: Final = 0xFFFF
"""The most operations that the field of a record can count; more are in the tag CG (section 4.2.2).
"""

_SOFT_CLIP: Final = 4
_SKIP: Final = 3
_LONG_CIGAR: Final = int.from_bytes(b"CGBI", "little")


@inline_without_refcounts
def _place_of(rows: RecordRows, record_ids: Int32Array, row: int) -> Place:
    """Return where a row begins, by the number of its record in the header."""
    record, position = -1, -1
    if row != NO_ROW:
        record, position = as_int64(rows.records[as_index(row)]), rows.positions[as_index(row)]
        if record >= 0:
            record = as_int64(record_ids[as_index(record)])
    return record, position


@inline_without_refcounts
def _put_operations(text: TextArray, at: int, rows: RecordRows, bounds: tuple[int, int]) -> int:
    """Write the operations of a row; return where they end."""
    for operation in range(bounds[0], bounds[1]):
        store(text, at, rows.cigars[as_index(operation)])
        # One without bases is overwritten.
        at += 4 * as_int64(rows.cigars[as_index(operation)] >> 4 > 0)
    return at


@inline_without_refcounts
def _put_sequence(
    text: TextArray, at: int, block: RecordBlock, fields: RowFields, row: int, extent: RowExtent
) -> int:
    """Write the bases of a row, and their qualities; return the end."""
    reads, count = block.reads, extent.shown
    is_reverse = block.rows.flags[as_index(row)] & REVERSE != 0
    end = pack_bases(text, at, reads.codes, MARGIN + extent.begin, count, is_reverse)
    if not fields.matches and reads.has_letters:
        pack_letters(text, at, block.oriented, MARGIN, count)
    if fields.matches or reads.qualities.size == 0:
        return write_no_qualities(text, end, count)
    read = block.rows.reads[as_index(row)]
    bounds = reads.offsets[as_index(read)], reads.offsets[as_index(read + 1)]
    return write_qualities(
        *(text, end, reads.qualities, bounds),
        *(extent.clips[0], count, is_reverse, NUMBERS_FROM),
    )


@jit_without_refcounts
def write_bam_rows(
    text: TextArray,
    state: Int64Array,
    row_ends: Int64Array,
    block: RecordBlock,
    record_ids: Int32Array,
    fields: RowFields,
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state` and `row_ends`.
    """
    return _write_rows(text, state, row_ends, block, record_ids, fields)


@jit_without_refcounts
def write_bam_matches(
    text: TextArray,
    state: Int64Array,
    row_ends: Int64Array,
    block: RecordBlock,
    record_ids: Int32Array,
    fields: RowFields,
) -> int:
    """Do as `write_bam_rows` does for matches: its code leaves out what they never tell."""
    own = fields_of_matches(fields.secondary_bases)
    return _write_rows(text, state, row_ends, block, record_ids, own)


@inline_without_refcounts
def _write_rows(
    text: TextArray,
    state: Int64Array,
    row_ends: Int64Array,
    block: RecordBlock,
    record_ids: Int32Array,
    fields: RowFields,
) -> int:
    reads, rows = block.reads, block.rows
    room = text.size - OVERSHOOT - block.group.size
    at = 0
    row, end_row = state[NEXT_ROW], state[END_ROW]
    while row < end_row:
        read = rows.reads[as_index(row)]
        # No field checks for the end of the text: a record that may not fit waits for the next one.
        extent = measure_row(block, fields, row)
        if at + extent.needed > room:
            state[NEEDED_BYTES] = extent.needed + block.group.size
            break
        bases = extent.shown
        if fields.mismatches or reads.has_letters:
            orient(block, row, extent)
        name = at + NAME_AT
        cigar = write_name(text, name, reads.names, reads.name_offsets, read)
        operations = extent.cigar[1] - extent.cigar[0]
        is_long = not fields.matches and operations > MOST_OPERATIONS
        if is_long:
            # In place of the operations: all bases are clipped, and the reference is skipped.
            store(text, cigar, np.uint32(bases << 4 | _SOFT_CLIP))
            store(text, cigar + 4, np.uint32(extent.span << 4 | _SKIP))
            place = cigar + 8
        else:
            place = _put_operations(text, cigar, rows, extent.cigar)
        mate, template_length = NO_ROW, as_int64(0)
        if not fields.matches:
            mate = rows.mate_rows[as_index(row)]
            template_length = as_int64(rows.template_lengths[as_index(row)])
        write_fixed_fields(
            text,
            at,
            _place_of(rows, record_ids, row),
            max(extent.span, 1),
            cigar - name,
            as_int64(rows.qualities[as_index(row)]),
            written_flag(rows, fields, row),
            (place - cigar) >> 2,
            bases,
            _place_of(rows, record_ids, mate),
            template_length,
        )
        if bases:
            place = _put_sequence(text, place, block, fields, row, extent)
        place = put_tags(text, place, block, fields, row, extent.parts, True)
        if not fields.matches:
            place = put_own_tags(text, place, reads, read)
        if is_long:
            store(text, place, np.uint32(_LONG_CIGAR))
            store(text, place + 4, np.uint32(operations))
            place = _put_operations(text, place + 8, rows, extent.cigar)
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


class AlignmentBam(RecordFormat):
    """Turns the alignments of blocks into BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        source: RecordSource,
        head: AlignmentHead,
        path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, source, head, b"RGZ%b\0", path, piece_bytes)
        self._head = binary_header(self._header, reference)
        self._record_ids = writable(self._header.record_ids)

    def head(self) -> bytes:
        """Return the header, in text and in binary form."""
        return self._head

    def format_block(self, block: Any, alignments: Any) -> Iterator[TextArray]:
        """Yield the records of a block in pieces (`Format.format_block`)."""
        for piece in self.records(block, alignments):
            yield piece.text

    def records(self, block: Any, alignments: Any) -> Iterator[RecordPiece]:
        """Yield the records of a block in pieces, with the end of each record."""
        done = 0
        fields = self._source.fields
        write = write_bam_matches if fields.matches else write_bam_rows
        for rows, count in self._record_blocks(block, alignments):
            row_ends = np.empty(count, dtype=np.int64)
            arguments = row_ends, rows, self._record_ids, fields
            for first, end, text in self._pieces(count, write, *arguments):
                yield RecordPiece(done + first, row_ends[first:end], text)
            done += count
