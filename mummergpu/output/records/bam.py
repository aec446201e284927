"""Matches and alignments of reads or genomes as the content of BAM, with the rows of `sam`.

`compression.BgzfCompressor` makes the file of it. Sections are those of the SAM format
specification. The four bits of a base are a set of the letters that it can be: A is 1, C is 2, G is
4, T is 8, and N is all of them (section 4.2.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

import numpy as np

from mummergpu.input.reference import Reference
from mummergpu.mapping.alignments.columns import NO_ROW
from mummergpu.output.bytes.compression import BGZF_BLOCK_BYTES
from mummergpu.output.bytes.sequence_text import NUMBERS_FROM, write_qualities
from mummergpu.output.bytes.texts import OVERSHOOT, TextArray, copy_text, store
from mummergpu.output.records.header import AlignmentHead, binary_header
from mummergpu.output.records.rows import (
    END_ROW,
    NEEDED_BYTES,
    NEXT_ROW,
    REVERSE,
    RecordBlock,
    RecordFormat,
    RecordRows,
    RowFields,
    RowMaker,
    fields_of_matches,
    written_flag,
)
from mummergpu.output.records.tags import (
    RowExtent,
    measure_row,
    orient,
    prefetch_reference,
    put_own_tags,
    put_tags,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, inline, jit
from mummergpu.runtime.llvm import address_of, intrinsic, load_from, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BREAK, LETTERS, MARGIN, STEP, CodeArray

_Place = tuple[int, int]
"""A record, by its number in the header, and a 0-based position in it; -1 if unknown."""

_NAME_AT: Final = 36
"""Where the name begins, counted from the length of the record."""

_NO_QUALITIES: Final = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
_NO_NAME: Final = np.frombuffer(b"*\0", dtype="<u2")[0]


@inline
def _bin_of(begin: int, end: int) -> int:
    """Return the smallest bin that has a half-open range of a record."""
    last = end - 1
    shift, first = 14, 4681
    while shift < 29:
        if begin >> shift == last >> shift:
            return first + (begin >> shift)
        shift += 3
        first = (first - 1) >> 3
    return 0


@inline
def _write_name(
    text: TextArray, at: int, names: TextArray, name_offsets: Int64Array, read: int
) -> int:
    """Write a read's name and the zero that ends it; return where that ends."""
    begin, end = name_offsets[as_index(read)], name_offsets[as_index(read + 1)]
    if begin == end:
        store(text, at, _NO_NAME)
        return at + 2
    at = copy_text(text, at, names, begin, end)
    text[as_index(at)] = 0
    return at + 1


@inline
def _write_fixed_fields(
    text: TextArray,
    at: int,
    place: _Place,
    size: int,
    name_bytes: int,
    quality: int,
    flag: int,
    operations: int,
    bases: int,
    mate_place: _Place,
    template_length: int,
) -> None:
    """Write the fields of a record before its name, except for the length of the record."""
    bin_number = _bin_of(place[1], place[1] + size) & 0xFFFF
    store(text, at + 4, np.uint32(place[0]))
    store(text, at + 8, np.uint32(place[1]))
    store(text, at + 12, np.uint32(name_bytes | quality << 8 | bin_number << 16))
    store(text, at + 16, np.uint32(operations | flag << 16))
    store(text, at + 20, np.uint32(bases))
    store(text, at + 24, np.uint32(mate_place[0]))
    store(text, at + 28, np.uint32(mate_place[1]))
    store(text, at + 32, np.uint32(template_length))


@inline
def _write_no_qualities(text: TextArray, at: int, count: int) -> int:
    """Write that the qualities of bases are not known; return where that ends."""
    for place in range(at, at + count, 8):
        store(text, place, _NO_QUALITIES)
    return at + count


_ANY_BASE: Final = 15

_SETS: Final = np.array(["=ACMGRSVTWYHKDBN".index(letter) for letter in LETTERS.decode()], np.uint8)
"""The four bits of each letter."""


def _packing(is_reverse: bool, codes: Any, text: Any) -> Any:
    """Return the signature and the generator of a function that packs `STEP` codes."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes, half = Vectors(builder, 8, STEP), Vectors(builder, 8, STEP // 2)
        codes = load_from(context, builder, lanes.kind, signature.args[0], *arguments[:2])
        is_break = builder.icmp_unsigned(">=", codes, lanes.constant(BREAK))
        if is_reverse:
            codes = builder.sub(lanes.constant(3), codes)
        # The lower bit of a code moves the bit of its base by one place, the higher bit by two.
        bases = builder.add(builder.and_(codes, lanes.constant(1)), lanes.constant(1))
        high = builder.and_(codes, lanes.constant(2))
        is_high = builder.icmp_unsigned("!=", high, lanes.constant(0))
        bases = builder.select(is_high, builder.shl(bases, lanes.constant(2)), bases)
        bases = builder.select(is_break, lanes.constant(_ANY_BASE), bases)
        if is_reverse:
            bases = lanes.shuffled(bases, bases, range(STEP - 1, -1, -1))
        first, second = (lanes.shuffled(bases, bases, range(one, STEP, 2)) for one in (0, 1))
        pairs = builder.or_(builder.shl(first, half.constant(4)), second)
        target = address_of(context, builder, half.kind, signature.args[2], *arguments[2:])
        builder.store(pairs, target, align=1)
        return context.get_dummy_value()

    return types.void(codes, types.int64, text, types.int64), generate


def _forward(typing_context: Any, codes: Any, at: Any, text: Any, to: Any) -> Any:
    """Pack `STEP` codes into half as many bytes."""
    return _packing(False, codes, text)


def _reverse(typing_context: Any, codes: Any, at: Any, text: Any, to: Any) -> Any:
    """Pack the reverse complement of `STEP` codes into half as many bytes."""
    return _packing(True, codes, text)


_Pack = Callable[[CodeArray, int, TextArray, int], None]
_pack_lanes = cast(_Pack, intrinsic(_forward))
_pack_reverse_lanes = cast(_Pack, intrinsic(_reverse))


@inline
def _pack_bases(
    text: TextArray, at: int, codes: CodeArray, begin: int, length: int, is_reverse: bool
) -> int:
    """Write a sequence, or its reverse complement; return where it ends.

    `begin` counts the margin of the codes; the last four bits of an odd number of bases are 0.
    """
    for done in range(0, length, STEP):
        to = at + (done >> 1)
        if is_reverse:
            _pack_reverse_lanes(codes, begin + length - done - STEP, text, to)
        else:
            _pack_lanes(codes, begin + done, text, to)
    if length & 1:
        last = as_index(at + (length >> 1))
        text[last] &= 0xF0
    return at + ((length + 1) >> 1)


@inline
def _pack_letters(text: TextArray, at: int, codes: CodeArray, begin: int, length: int) -> None:
    """Put letters that stand for several bases where `_pack_bases` has written others."""
    for base in range(length):
        code = codes[as_index(begin + base)]
        if code > BREAK:
            shift = 0 if base & 1 else 4
            kept = as_int64(text[as_index(at + (base >> 1))]) & (15 << 4 - shift)
            text[as_index(at + (base >> 1))] = kept | as_int64(_SETS[code & 15]) << shift


MOST_OPERATIONS: Final = 0xFFFF
"""The most operations that the field of a record can count; more are in the tag CG (section 4.2.2).
"""

_SOFT_CLIP: Final = 4
_SKIP: Final = 3
_LONG_CIGAR: Final = int.from_bytes(b"CGBI", "little")


@inline
def _place_of(block: RecordBlock, row: int) -> _Place:
    """Return where a row begins, by the number of its record in the header."""
    rows, record_ids = block.rows, block.record_ids
    record, position = -1, -1
    if row != NO_ROW:
        record, position = as_int64(rows.records[as_index(row)]), rows.positions[as_index(row)]
        if record >= 0:
            record = as_int64(record_ids[as_index(record)])
    return record, position


@inline
def _put_operations(text: TextArray, at: int, rows: RecordRows, bounds: tuple[int, int]) -> int:
    """Write the operations of a row; return where they end."""
    for operation in range(bounds[0], bounds[1]):
        store(text, at, rows.cigars[as_index(operation)])
        # One without bases is overwritten.
        at += 4 * as_int64(rows.cigars[as_index(operation)] >> 4 > 0)
    return at


@inline
def _put_sequence(
    text: TextArray, at: int, block: RecordBlock, fields: RowFields, row: int, extent: RowExtent
) -> int:
    """Write the bases of a row, and their qualities; return the end."""
    reads, count = block.reads, extent.shown
    is_reverse = block.rows.flags[as_index(row)] & REVERSE != 0
    end = _pack_bases(text, at, reads.codes, MARGIN + extent.begin, count, is_reverse)
    if not fields.matches and reads.has_letters:
        _pack_letters(text, at, block.oriented, MARGIN, count)
    if fields.matches or reads.qualities.size == 0:
        return _write_no_qualities(text, end, count)
    read = block.rows.reads[as_index(row)]
    bounds = reads.offsets[as_index(read)], reads.offsets[as_index(read + 1)]
    return write_qualities(
        *(text, end, reads.qualities, bounds), *(extent.clips[0], count, is_reverse, NUMBERS_FROM)
    )


@jit
def write_bam_rows(
    text: TextArray, state: Int64Array, row_ends: Int64Array, block: RecordBlock, fields: RowFields
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state` and `row_ends`.
    """
    return _write_rows(text, state, row_ends, block, fields)


@jit
def write_bam_matches(
    text: TextArray, state: Int64Array, row_ends: Int64Array, block: RecordBlock, fields: RowFields
) -> int:
    """Do as `write_bam_rows` does, for matches, without the fields that they never have."""
    own = fields_of_matches(fields.secondary_bases)
    return _write_rows(text, state, row_ends, block, own)


@inline
def _write_rows(
    text: TextArray, state: Int64Array, row_ends: Int64Array, block: RecordBlock, fields: RowFields
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
        prefetch_reference(block, fields, row, end_row)
        orient(block, fields, row, extent)
        name = at + _NAME_AT
        cigar = _write_name(text, name, reads.names, reads.name_offsets, read)
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
        _write_fixed_fields(
            text,
            at,
            _place_of(block, row),
            max(extent.span, 1),
            cigar - name,
            as_int64(rows.qualities[as_index(row)]),
            written_flag(rows, fields, row),
            (place - cigar) >> 2,
            bases,
            _place_of(block, mate),
            template_length,
        )
        if bases:
            place = _put_sequence(text, place, block, fields, row, extent)
        place = put_tags(text, place, block, fields, row, extent, True)
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


PIECE_BYTES: Final = 128 * BGZF_BLOCK_BYTES
"""The records of a block are made in pieces of at most about this size: each takes the lock of the
interpreter."""


@frozen
class RecordPiece:
    """Records of rows from `first_row` on, one after the other, and where in the text each ends."""

    first_row: int
    ends: Int64Array
    text: TextArray


class AlignmentBam(RecordFormat):
    """Turns the alignments of blocks into BAM; several threads may share one."""

    def __init__(
        self,
        reference: Reference,
        source: RowMaker,
        head: AlignmentHead,
        path: str,
        piece_bytes: int = PIECE_BYTES,
    ) -> None:
        super().__init__(reference, source, head, b"RGZ%b\0", path, piece_bytes)
        self._head = binary_header(self._header, reference)

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
            for first, end, text in self._pieces(count, write, row_ends, rows, fields):
                yield RecordPiece(done + first, row_ends[first:end], text)
            done += count
