"""SAM of matches, reads and genomes: the loop that writes lines, and the tags of the reads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Any, Final

import numpy as np

from mummergpu.input.records.record_arrays import Spans
from mummergpu.input.records.tags import end_of_tag
from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW
from mummergpu.output.bytes.number_text import number_words, put_one_number, put_tab, put_word
from mummergpu.output.bytes.sequence_text import (
    LETTERS_FROM,
    write_bases,
    write_letters,
    write_qualities,
)
from mummergpu.output.bytes.texts import (
    LINE_END,
    OVERSHOOT,
    PIECE_BYTES,
    RecordTexts,
    TextArray,
    copy_text,
    put_text,
    store,
)
from mummergpu.output.records.header import AlignmentHead
from mummergpu.output.records.rows import (
    END_ROW,
    NEEDED_BYTES,
    NEXT_BASE,
    NEXT_ROW,
    NO_QUALITY,
    REVERSE,
    RecordBlock,
    RecordFormat,
    RecordRows,
    RowFields,
    RowMaker,
    fields_of_matches,
    written_flag,
)
from mummergpu.output.records.sam_fields import put_cigar, put_name, put_signed
from mummergpu.output.records.tags import (
    FIXED_BYTES,
    RowExtent,
    measure_row,
    orient,
    prefetch_reference,
    put_own_tags,
    put_tags,
)
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, writable
from mummergpu.sequence.codes import MARGIN

_TEXT_BYTES: Final = 5
"""The most bytes of text for each byte of a tag: a byte of an array may become ``,-128``."""

_FLOAT_BYTES: Final = 4
_A, _F, _H, _I, _Z = map(ord, "AfHiZ")
_ARRAY: Final = ord("B")
_TAB, _COLON, _COMMA = map(ord, "\t:,")

_SIZES: Final = np.zeros(128, dtype=np.int64)
_SIGNED: Final = np.zeros(128, dtype=np.int64)
for _kind, _size in zip(b"cCsSiIf", (1, 1, 2, 2, 4, 4, 4), strict=True):
    _SIZES[_kind] = _size
    _SIGNED[_kind] = _kind in b"csi"
"""The bytes of each type of a number, and whether it can be negative."""


def text_tags(tags: Spans) -> Spans:
    """Return tags as SAM has them, each with the tab before it.

    Numbers with a fraction have six digits, as ``%g`` of C and htslib write them.
    """
    if not tags.are_kept:
        return tags
    content, offsets = writable(tags.content), writable(tags.offsets)
    floats = np.empty(content.size // _FLOAT_BYTES + 1, dtype=np.float32)
    count = _list_floats(content, offsets, floats.view(np.uint8))
    shown = [b"%g" % number for number in floats[:count].tolist()]
    ends = np.array([0, *accumulate(map(len, shown))], dtype=np.int64)
    texts = np.frombuffer(bytearray(b"".join(shown) + bytes(OVERSHOOT)), dtype=np.uint8)
    text = np.empty(_TEXT_BYTES * content.size + texts.size + OVERSHOOT, dtype=np.uint8)
    text_offsets = np.zeros_like(offsets)
    size = _write_tags(content, offsets, (texts, ends), text, text_offsets)
    return Spans(text[:size].copy(), text_offsets)


@jit
def _list_floats(content: TextArray, offsets: Int64Array, floats: ByteArray) -> int:
    """List the bytes of all numbers with a fraction, in their order; return how many there are."""
    count = 0
    at, end = offsets[0], offsets[offsets.size - 1]
    while at < end:
        after = end_of_tag(content, at, end)
        kind, begin = as_int64(content[as_index(at + 2)]), at + 3
        if kind == _ARRAY:
            kind, begin = as_int64(content[as_index(at + 3)]), at + 8
        elif kind != _F:
            begin = after
        if kind == _F:
            for place in range(begin, after):
                floats[as_index(_FLOAT_BYTES * count + place - begin)] = content[as_index(place)]
            count += (after - begin) // _FLOAT_BYTES
        at = after
    return count


@jit
def _write_tags(
    content: TextArray,
    offsets: Int64Array,
    floats: tuple[TextArray, Int64Array],
    text: TextArray,
    text_offsets: Int64Array,
) -> int:
    """Write all tags; return where the text ends."""
    to, done = 0, 0
    for read in range(offsets.size - 1):
        at, end = offsets[read], offsets[read + 1]
        while at < end:
            after = end_of_tag(content, at, end)
            kind, value = as_int64(content[as_index(at + 2)]), at + 3
            text[as_index(to)] = _TAB
            text[as_index(to + 1)] = content[as_index(at)]
            text[as_index(to + 2)] = content[as_index(at + 1)]
            text[as_index(to + 3)] = text[as_index(to + 5)] = _COLON
            is_number = kind < 128 and _SIZES[as_index(kind)] > 0
            # Text has one type for the integers of all sizes.
            text[as_index(to + 4)] = _I if is_number and kind != _F else kind
            to += 6
            if kind == _A:
                text[as_index(to)] = content[as_index(value)]
                to += 1
            elif kind == _Z or kind == _H:
                to = copy_text(text, to, content, value, after - 1)
            elif kind == _ARRAY:
                kind = as_int64(content[as_index(value)])
                text[as_index(to)] = kind
                to += 1
                for element in range(value + 5, after, _SIZES[as_index(kind)]):
                    text[as_index(to)] = _COMMA
                    to, done = _put_value(text, to + 1, content, element, kind, floats, done)
            else:
                to, done = _put_value(text, to, content, value, kind, floats, done)
            at = after
        text_offsets[read + 1] = to
    return to


@inline
def _put_value(
    text: TextArray,
    to: int,
    content: TextArray,
    at: int,
    kind: int,
    floats: tuple[TextArray, Int64Array],
    done: int,
) -> tuple[int, int]:
    """Write a number; return where it ends, and how many with a fraction are written now."""
    if kind == _F:
        texts, ends = floats
        to = copy_text(text, to, texts, ends[as_index(done)], ends[as_index(done + 1)])
        return to, done + 1
    size, number = _SIZES[as_index(kind)], 0
    for byte in range(size):
        number |= as_int64(content[as_index(at + byte)]) << (8 * byte)
    if _SIGNED[as_index(kind)] and number >> (8 * size - 1):
        number -= 1 << (8 * size)
    return put_signed(text, to, number), done


_FLAGS: Final = number_words(1 << 12, b"\t", b"\t")
_QUALITIES: Final = number_words(1 << 8, b"", b"\t")
_STAR: Final = np.uint8(ord("*"))
_NO_PLACE: Final = np.frombuffer(b"*\t0\t", dtype="<u4")[0]
_NO_MATE_TEXT: Final = b"\t*\t0\t0\t"
_NO_MATE: Final = np.uint64(int.from_bytes(_NO_MATE_TEXT, "little") | len(_NO_MATE_TEXT) << 56)
_SAME_RECORD: Final = np.frombuffer(b"=\t", dtype="<u2")[0]
_NO_BASES: Final = np.frombuffer(b"*\t*\t", dtype="<u4")[0]

PART_BASES: Final = 1 << 12
"""Fewer bases of a match are never divided between two texts."""

TAIL_BYTES: Final = FIXED_BYTES // 2
"""More than the bytes of the line of a match after its bases, without its read group."""


@inline
def _put_place(text: TextArray, at: int, records: RecordTexts, record: int, position: int) -> int:
    """Write a record and a position in it with a tab after each; return where they end."""
    if record < 0:
        store(text, at, _NO_PLACE)
        return at + 4
    at = put_text(text, at, records, record)
    return put_tab(text, put_one_number(text, at, position + 1))


@inline
def _put_mate(text: TextArray, at: int, rows: RecordRows, records: RecordTexts, row: int) -> int:
    """Write the place of the mate and the length of the template; return where they end."""
    row_records, positions = rows.records, rows.positions
    template_lengths, mate_rows = rows.template_lengths, rows.mate_rows
    mate = mate_rows[as_index(row)]
    record, position = -1, -1
    if mate != NO_ROW:
        record, position = as_int64(row_records[as_index(mate)]), positions[as_index(mate)]
    if record >= 0 and record == as_int64(row_records[as_index(row)]):
        store(text, at, _SAME_RECORD)
        at = put_tab(text, put_one_number(text, at + 2, position + 1))
    else:
        at = _put_place(text, at, records, record, position)
    return put_tab(text, put_signed(text, at, as_int64(template_lengths[as_index(row)])))


@inline
def _put_head(
    text: TextArray,
    at: int,
    block: RecordBlock,
    fields: RowFields,
    row: int,
    cigar: tuple[int, int],
) -> int:
    """Write the fields of a row before its bases; return where they end."""
    reads, rows, names = block.reads, block.rows, block.names
    at = put_name(text, at, reads.names, reads.name_offsets, rows.reads[as_index(row)])
    at = put_word(text, at, _FLAGS[as_index(written_flag(rows, fields, row))])
    record = as_int64(rows.records[as_index(row)])
    at = _put_place(text, at, names, record, rows.positions[as_index(row)])
    at = put_word(text, at, _QUALITIES[as_index(rows.qualities[as_index(row)])])
    begin = at
    at = put_cigar(text, at, rows.cigars, cigar[0], cigar[1], False)
    store(text, at, _STAR)
    at += as_int64(at == begin)
    if fields.matches:
        return put_word(text, at, _NO_MATE)
    return _put_mate(text, put_tab(text, at), rows, names, row)


@inline
def _put_bases(
    text: TextArray,
    at: int,
    block: RecordBlock,
    fields: RowFields,
    row: int,
    extent: RowExtent,
    bounds: tuple[int, int],
) -> int:
    """Write a range of the bases that a row shows; return where they end."""
    reads, (first, last) = block.reads, bounds
    is_reverse = block.rows.flags[as_index(row)] & REVERSE != 0
    begin, end = extent.begin, extent.begin + extent.shown
    after = write_bases(text, at, reads.codes, begin, end, first, last - first, is_reverse)
    if not fields.matches and reads.has_letters:
        write_letters(text, at, block.oriented, MARGIN + first, last - first)
    return after


@inline
def _put_qualities(
    text: TextArray, at: int, block: RecordBlock, fields: RowFields, row: int, extent: RowExtent
) -> int:
    """Write the qualities of the bases that a row shows; return where they end."""
    reads, read = block.reads, block.rows.reads[as_index(row)]
    bounds = reads.offsets[as_index(read)], reads.offsets[as_index(read + 1)]
    has_none = fields.matches or reads.qualities.size == 0
    if has_none or reads.qualities[as_index(bounds[0])] == NO_QUALITY:
        store(text, at, _STAR)
        return at + 1
    is_reverse = block.rows.flags[as_index(row)] & REVERSE != 0
    return write_qualities(
        *(text, at, reads.qualities, bounds),
        *(extent.clips[0], extent.shown, is_reverse, LETTERS_FROM),
    )


@jit
def write_sam_rows(
    text: TextArray, state: Int64Array, block: RecordBlock, fields: RowFields
) -> int:
    """Write the lines of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.
    """
    return _write_rows(text, state, block, fields)


@jit
def write_sam_matches(
    text: TextArray, state: Int64Array, block: RecordBlock, fields: RowFields
) -> int:
    """Do as `write_sam_rows` does, for matches, without the fields that they never have."""
    return _write_rows(text, state, block, fields_of_matches(fields.secondary_bases))


@inline
def _write_rows(text: TextArray, state: Int64Array, block: RecordBlock, fields: RowFields) -> int:
    reads, rows = block.reads, block.rows
    room = text.size - OVERSHOOT - block.group.size
    at = 0
    row, end_row = state[NEXT_ROW], state[END_ROW]
    while row < end_row:
        # No field checks for the end of the text: a line that may not fit waits for the next one.
        extent = measure_row(block, fields, row)
        needed, base = extent.needed, as_int64(0)
        # A query may be a genome: then the line of its match goes on in the next text.
        is_long = fields.matches and extent.shown > PART_BASES
        if is_long:
            needed -= 2 * (extent.shown - PART_BASES)
            base = state[NEXT_BASE]
        if at + needed > room:
            state[NEEDED_BYTES] = needed + block.group.size
            break
        prefetch_reference(block, fields, row, end_row)
        orient(block, fields, row, extent)
        if base == 0:
            at = _put_head(text, at, block, fields, row, extent.cigar)
        if extent.shown == 0:
            store(text, at, _NO_BASES)
            at += 3
        else:
            if is_long:
                end = min(extent.shown, base + room - at - TAIL_BYTES)
                at = _put_bases(text, at, block, fields, row, extent, (base, end))
                state[NEXT_BASE] = end if end < extent.shown else 0
                if end < extent.shown:
                    break
            else:
                at = _put_bases(text, at, block, fields, row, extent, (0, extent.shown))
            at = _put_qualities(text, put_tab(text, at), block, fields, row, extent)
        at = put_tags(text, at, block, fields, row, extent, False)
        if not fields.matches:
            at = put_own_tags(text, at, reads, rows.reads[as_index(row)])
        store(text, at, LINE_END)
        at += 1
        row += 1
    state[NEXT_ROW] = row
    return at


class AlignmentSam(RecordFormat):
    """Turns the alignments of blocks into SAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        source: RowMaker,
        head: AlignmentHead,
        path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, source, head, b"\tRG:Z:%b", path, piece_bytes)

    def head(self) -> bytes:
        """Return the header."""
        return self._header.text

    def format_block(self, block: Any, alignments: Any) -> Iterator[TextArray]:
        """Yield the lines of a block in pieces (`Format.format_block`)."""
        fields = self._source.fields
        write = write_sam_matches if fields.matches else write_sam_rows
        for rows, count in self._record_blocks(block, alignments, text_tags):
            for _, _, text in self._pieces(count, write, rows, fields):
                yield text
