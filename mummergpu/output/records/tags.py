"""Compiled functions that write the tags of an alignment, in text for SAM or in binary for BAM.

Callers pass as a constant which of the two they want, so that no compiled loop asks for it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW
from mummergpu.mapping.candidates.candidates import prefetch_bases
from mummergpu.output.bytes.number_text import put_one_number, put_small
from mummergpu.output.bytes.texts import (
    OVERSHOOT,
    RecordTexts,
    TextArray,
    copy_padded,
    copy_text,
    put_text,
    store,
)
from mummergpu.output.records.rows import (
    MATCH_OPERATIONS,
    REVERSE,
    SECONDARY,
    SUPPLEMENTARY,
    UNMAPPED,
    OtherPlaces,
    ReadColumns,
    RecordBlock,
    RecordRows,
    RowFields,
    rows_of_read,
    spans_of,
)
from mummergpu.output.records.sam_fields import (
    OPERATION_BYTES,
    PARTS,
    divergence,
    put_cigar,
    put_mismatches,
    put_parts,
    put_signed,
)
from mummergpu.runtime.arrays import UInt16Array
from mummergpu.runtime.jit import as_index, as_int64, inline
from mummergpu.sequence.codes import MARGIN, reverse_complement_lanes
from mummergpu.sequence.codes import STEP as LANES

_PLACE_BYTES: Final = 40
"""The most bytes of a place in XA or SA besides the name of the record and the CIGAR."""

_ROWS_AHEAD: Final = 8
_BASES_AHEAD: Final = 192
"""How many rows ahead the reference is fetched, and how much of it: that of most reads."""

_COMMA: Final = np.uint8(ord(","))
_SEMICOLON: Final = np.uint8(ord(";"))
_FORWARD: Final = np.frombuffer(b",+", dtype="<u2")[0]
_BACKWARD: Final = np.frombuffer(b",-", dtype="<u2")[0]


@inline
def _has_alternatives(others: OtherPlaces, row: int) -> bool:
    """Return whether a row has alternatives."""
    offsets = others.offsets
    return offsets.size > 0 and offsets[as_index(row)] < offsets[as_index(row + 1)]


@inline
def _alternative_bytes(others: OtherPlaces, row: int, name_bytes: int) -> int:
    """Return the most bytes of the alternatives of a row."""
    if not _has_alternatives(others, row):
        return as_int64(0)
    offsets, cigar_offsets = others.offsets, others.cigar_offsets
    first, end = offsets[as_index(row)], offsets[as_index(row + 1)]
    operations = cigar_offsets[as_index(end)] - cigar_offsets[as_index(first)]
    return as_int64((end - first) * (name_bytes + _PLACE_BYTES) + OPERATION_BYTES * operations)


@inline
def _put_record(text: TextArray, at: int, names: RecordTexts, record: int) -> int:
    """Write the name of a record without the tab after it; return where the name ends."""
    return put_text(text, at, names, record) - 1


@inline
def _put_alternatives(
    text: TextArray, at: int, others: OtherPlaces, names: RecordTexts, row: int
) -> int:
    """Write the value of XA; return where it ends."""
    cigar_offsets = others.cigar_offsets
    for other in range(others.offsets[as_index(row)], others.offsets[as_index(row + 1)]):
        at = _put_record(text, at, names, as_int64(others.records[as_index(other)]))
        store(text, at, _BACKWARD if others.flags[as_index(other)] & REVERSE else _FORWARD)
        at = put_one_number(text, at + 2, others.positions[as_index(other)] + 1)
        store(text, at, _COMMA)
        cigar, cigar_end = cigar_offsets[as_index(other)], cigar_offsets[as_index(other + 1)]
        at = put_cigar(text, at + 1, others.cigars, cigar, cigar_end, False)
        store(text, at, _COMMA)
        at = put_small(text, at + 1, as_int64(others.edit_distances[as_index(other)]))
        store(text, at, _SEMICOLON)
        at += 1
    return at


FIXED_BYTES: Final = 512
"""More than the bytes of a row besides names, CIGARs, bases, qualities, MD, SA and read group."""

_FORWARD_STRAND: Final = np.frombuffer(b",+, ", dtype="<u4")[0]
_REVERSE_STRAND: Final = np.frombuffer(b",-, ", dtype="<u4")[0]
"""The first three bytes count; what follows overwrites the fourth."""


@inline
def _has_other_parts(flags: UInt16Array, row: int, first: int, end: int) -> bool:
    """Return whether the read has other rows that are not secondary, for SA."""
    if flags[as_index(row)] & SECONDARY:
        return False
    for other in range(first, end):
        if other != row and flags[as_index(other)] & SECONDARY == 0:
            return True
    return False


@inline
def _put_other_parts(
    text: TextArray, at: int, rows: RecordRows, names: RecordTexts, row: int, parts: tuple[int, int]
) -> int:
    """Write the value of SA, the primary row first; return where it ends.

    All clips are called soft, as usual: so the CIGAR says where in the whole read a part lies.
    """
    # Reads have their primary row first; queries have theirs anywhere among the others.
    for role in (0, SUPPLEMENTARY):
        for other in range(parts[0], parts[1]):
            flag = as_int64(rows.flags[as_index(other)])
            if other != row and flag & (SECONDARY | SUPPLEMENTARY) == role:
                at = _put_part(text, at, rows, names, other)
    return at


@inline
def _put_part(text: TextArray, at: int, rows: RecordRows, names: RecordTexts, row: int) -> int:
    """Write a row's part of SA; return where it ends."""
    offsets, cigars = rows.part_offsets, rows.part_cigars
    at = _put_record(text, at, names, as_int64(rows.records[as_index(row)]))
    store(text, at, _COMMA)
    at = put_one_number(text, at + 1, rows.positions[as_index(row)] + 1)
    is_reverse = rows.flags[as_index(row)] & REVERSE
    store(text, at, _REVERSE_STRAND if is_reverse else _FORWARD_STRAND)
    at = put_cigar(text, at + 3, cigars, offsets[as_index(row)], offsets[as_index(row + 1)], True)
    store(text, at, _COMMA)
    at = put_small(text, at + 1, as_int64(rows.qualities[as_index(row)]))
    store(text, at, _COMMA)
    at = put_small(text, at + 1, as_int64(rows.edit_distances[as_index(row)]))
    store(text, at, _SEMICOLON)
    return at + 1


@inline
def put_own_tags(text: TextArray, at: int, reads: ReadColumns, read: int) -> int:
    """Write the tags that a read came with; return where they end."""
    offsets = reads.tag_offsets
    if offsets.size == 0:
        return at
    return copy_text(text, at, reads.tags, offsets[as_index(read)], offsets[as_index(read + 1)])


class RowExtent(NamedTuple):
    """What a row takes.

    `needed` are the most bytes of the row in text or in binary, without its read group. `begin` and
    `bases` are the bases of the read that are not clipped hard: where they begin in the block, and
    how many there are; the row shows all or none of them (`shown`). `span` counts the bases of the
    reference from the first that is aligned to the last. `cigar` and `parts` are half-open ranges:
    the operations, and the rows of the read (`rows.rows_of_read`). `clips` are the bases that are
    clipped hard, before and after the others.
    """

    needed: int
    begin: int
    bases: int
    shown: int
    span: int
    cigar: tuple[int, int]
    clips: tuple[int, int]
    parts: tuple[int, int]


@inline
def measure_row(block: RecordBlock, fields: RowFields, row: int) -> RowExtent:
    """Return the extent of a row in its text, the reference and the read."""
    reads, rows, name_bytes = block.reads, block.rows, block.name_bytes
    read, flag = rows.reads[as_index(row)], rows.flags[as_index(row)]
    cigar_offsets = rows.cigar_offsets
    begin, end = MATCH_OPERATIONS * row, MATCH_OPERATIONS * (row + 1)
    span, before, after = as_int64(rows.scores[as_index(row)]), as_int64(0), as_int64(0)
    if not fields.matches:
        begin, end = cigar_offsets[as_index(row)], cigar_offsets[as_index(row + 1)]
        span, before, after = spans_of(rows.cigars, begin, end)
    # The CIGAR itself, and MD; and the CIGARs of SA.
    parts, operations = (row, row + 1), 2 * (end - begin)
    if not fields.matches:
        parts = rows_of_read(rows.reads, rows.flags, row)
        operations += rows.part_offsets[as_index(parts[1])] - rows.part_offsets[as_index(parts[0])]
        mate = rows.mate_rows[as_index(row)]
        if mate != NO_ROW:
            operations += cigar_offsets[as_index(mate + 1)] - cigar_offsets[as_index(mate)]
    first = reads.offsets[as_index(read)]
    bases = max(0, reads.offsets[as_index(read + 1)] - first - before - after)
    first += after if flag & REVERSE else before
    is_shown = fields.bases and (fields.secondary_bases or flag & SECONDARY == 0)
    shown = bases if is_shown else as_int64(0)
    name = reads.name_offsets[as_index(read + 1)] - reads.name_offsets[as_index(read)]
    # The bases with their qualities.
    needed: int = FIXED_BYTES + name + 2 * shown + OPERATION_BYTES * operations
    needed += (parts[1] - parts[0] + 1) * (name_bytes + _PLACE_BYTES)
    if fields.mismatches:
        # Each base of the read adds at most two bytes to MD.
        needed += 2 * bases + span
    if not fields.matches:
        needed += _alternative_bytes(block.others, row, name_bytes)
        changes, tags = block.changes.offsets, reads.tag_offsets
        if changes.size > 0:
            needed += changes[as_index(row + 1)] - changes[as_index(row)]
        if tags.size > 0:
            needed += tags[as_index(read + 1)] - tags[as_index(read)]
    return RowExtent(needed, first, bases, shown, span, (begin, end), (before, after), parts)


@inline
def edits_of(rows: RecordRows, fields: RowFields, row: int) -> int:
    """Return the edit distance of a row, 0 if it is not mapped."""
    return as_int64(0 if fields.matches else rows.edit_distances[as_index(row)])


@inline
def prefetch_reference(block: RecordBlock, fields: RowFields, row: int, end_row: int) -> None:
    """Prefetch the reference for MD of a row a little after one, if that has differences."""
    rows, later = block.rows, min(row + _ROWS_AHEAD, end_row - 1)
    if fields.mismatches and edits_of(rows, fields, later) > 0:
        start = block.reference.starts[as_index(rows.records[as_index(later)])]
        start += MARGIN + rows.positions[as_index(later)]
        prefetch_bases(block.reference.codes, start, _BASES_AHEAD)


@inline
def orient(block: RecordBlock, fields: RowFields, row: int, extent: RowExtent) -> None:
    """Copy the bases of a row as they lie on the strand of the reference, if they are needed.

    A row without differences needs neither them nor the reference for MD.
    """
    reads, oriented = block.reads, block.oriented
    has_differences = fields.mismatches and edits_of(block.rows, fields, row) > 0
    if not has_differences and not reads.has_letters:
        return
    begin, end = MARGIN + extent.begin, MARGIN + extent.begin + extent.bases
    if block.rows.flags[as_index(row)] & REVERSE:
        for done in range(0, extent.bases, LANES):
            reverse_complement_lanes(reads.codes, end - done - LANES, oriented, MARGIN + done)
    else:
        copy_padded(oriented, MARGIN, reads.codes, begin, end)


_TEXT_BYTES: Final = len("\tNM:i:")
_BINARY_BYTES: Final = len("NMC")
_END: Final = np.uint8(0)


def _tag(name: str) -> np.uint64:
    return np.frombuffer(b"\t" + name.encode().ljust(7), dtype="<u8")[0]  # type: ignore[no-any-return]


_NM, _MD, _MC, _MQ = _tag("NM:i:"), _tag("MD:Z:"), _tag("MC:Z:"), _tag("MQ:i:")
_TP, _DE, _CS = _tag("tp:A:P"), _tag("de:f:"), _tag("cs:Z:")
_TP_BINARY: Final = np.frombuffer(b"tpAP", dtype="<u4")[0]
_NH, _HI = _tag("NH:i:"), _tag("HI:i:")
_AS, _XS, _SA, _XA = _tag("AS:i:"), _tag("XS:i:"), _tag("SA:Z:"), _tag("XA:Z:")


@inline
def _letters_of(tag: np.uint64) -> int:
    """Return the two letters of a tag, the first in the lower byte."""
    return as_int64(tag >> np.uint64(8)) & 0xFFFF  # type: ignore[arg-type]


@inline
def _write_tag(text: TextArray, at: int, letters: int, number: int) -> int:
    """Write a tag with a number in as few bytes as hold it; return where it ends."""
    if number < 1 << 8:
        kind, size = ord("C"), 1
    elif number < 1 << 16:
        kind, size = ord("S"), 2
    else:
        kind, size = ord("I"), 4
    store(text, at, np.uint64(letters | kind << 16 | number << 24))
    return at + _BINARY_BYTES + size


@inline
def _write_negative_tag(text: TextArray, at: int, letters: int, number: int) -> int:
    """Write a tag with a negative number in as few bytes as hold it; return where it ends."""
    if number >= -(1 << 7):
        kind, size = ord("c"), 1
    elif number >= -(1 << 15):
        kind, size = ord("s"), 2
    else:
        kind, size = ord("i"), 4
    store(text, at, np.uint64(letters | kind << 16 | (number & 0xFFFF_FFFF) << 24))
    return at + _BINARY_BYTES + size


@inline
def _put_number_tag(text: TextArray, at: int, tag: np.uint64, number: int, is_binary: bool) -> int:
    """Write a tag with a number; return where it ends."""
    if not is_binary:
        store(text, at, tag)
        return put_signed(text, at + _TEXT_BYTES, number)
    if number >= 0:
        return _write_tag(text, at, _letters_of(tag), number)
    return _write_negative_tag(text, at, _letters_of(tag), number)


@inline
def _begin_text_tag(text: TextArray, at: int, tag: np.uint64, is_binary: bool) -> int:
    """Write what comes before the value of a tag with a text; return where that ends."""
    if not is_binary:
        store(text, at, tag)
        return at + _TEXT_BYTES
    store(text, at, np.uint32(_letters_of(tag) | ord("Z") << 16))
    return at + _BINARY_BYTES


@inline
def _end_text_tag(text: TextArray, at: int, is_binary: bool) -> int:
    """End a tag with a text, after its value; return where it ends."""
    if not is_binary:
        return at
    store(text, at, _END)
    return at + 1


@inline
def put_tags(
    text: TextArray,
    at: int,
    block: RecordBlock,
    fields: RowFields,
    row: int,
    extent: RowExtent,
    is_binary: bool,
) -> int:
    """Write the tags of a row; return where they end."""
    parts = extent.parts
    rows, reference, group = block.rows, block.reference, block.group
    flags, offsets, cigars = rows.flags, rows.cigar_offsets, rows.cigars
    is_mapped = flags[as_index(row)] & UNMAPPED == 0
    # The order is that of bwa mem: files of both can be compared line by line.
    edits = edits_of(rows, fields, row)
    if is_mapped:
        at = _put_number_tag(text, at, _NM, edits, is_binary)
    if is_mapped and fields.mismatches:
        at = _begin_text_tag(text, at, _MD, is_binary)
        if edits == 0:
            at = put_small(text, at, extent.span)
        else:
            start = reference.starts[as_index(rows.records[as_index(row)])]
            start += MARGIN + rows.positions[as_index(row)]
            begin, end = offsets[as_index(row)], offsets[as_index(row + 1)]
            at = put_mismatches(
                *(text, at, block.oriented, MARGIN, reference.codes, start),
                *(cigars, begin, end, reference.letters),
            )
        at = _end_text_tag(text, at, is_binary)
    mate = NO_ROW if fields.matches else rows.mate_rows[as_index(row)]
    if mate != NO_ROW and flags[as_index(mate)] & UNMAPPED == 0:
        begin, end = offsets[as_index(mate)], offsets[as_index(mate + 1)]
        at = _begin_text_tag(text, at, _MC, is_binary)
        at = put_cigar(text, at, cigars, begin, end, False)
        at = _end_text_tag(text, at, is_binary)
        at = _put_number_tag(text, at, _MQ, as_int64(rows.qualities[as_index(mate)]), is_binary)
    if is_mapped:
        at = _put_number_tag(text, at, _AS, as_int64(rows.scores[as_index(row)]), is_binary)
        if fields.matches:
            count = as_int64(rows.hit_counts[as_index(row)])
            at = _put_number_tag(text, at, _NH, count, is_binary)
            number = as_int64(rows.hit_numbers[as_index(row)])
            at = _put_number_tag(text, at, _HI, number, is_binary)
        elif rows.second_scores.size > 0:
            second = as_int64(rows.second_scores[as_index(row)])
            at = _put_number_tag(text, at, _XS, second, is_binary)
    at = copy_padded(text, at, group, 0, group.size - OVERSHOOT)
    if fields.matches:
        return at
    if parts[1] - parts[0] > 1 and _has_other_parts(flags, row, parts[0], parts[1]):
        at = _begin_text_tag(text, at, _SA, is_binary)
        at = _put_other_parts(text, at, rows, block.names, row, parts)
        at = _end_text_tag(text, at, is_binary)
    if _has_alternatives(block.others, row):
        at = _begin_text_tag(text, at, _XA, is_binary)
        at = _put_alternatives(text, at, block.others, block.names, row)
        at = _end_text_tag(text, at, is_binary)
    return _put_extra_tags(text, at, block, fields, row, is_binary) if is_mapped else at


@inline
def _put_extra_tags(
    text: TextArray, at: int, block: RecordBlock, fields: RowFields, row: int, is_binary: bool
) -> int:
    """Write the tags of minimap2 that are asked for; return where they end."""
    rows, changes = block.rows, block.changes
    if fields.types:
        is_secondary = rows.flags[as_index(row)] & SECONDARY
        store(text, at, _TP_BINARY if is_binary else _TP)
        at += len("tpAP") if is_binary else len("\ttp:A:P")
        if is_secondary:
            text[as_index(at - 1)] = np.uint8(ord("S"))
    if fields.divergences:
        begin, end = rows.cigar_offsets[as_index(row)], rows.cigar_offsets[as_index(row + 1)]
        parts = divergence(rows.cigars, begin, end, as_int64(rows.edit_distances[as_index(row)]))
        if is_binary:
            store(text, at, np.uint32(_letters_of(_DE) | ord("f") << 16))
            store(text, at + _BINARY_BYTES, np.float32(parts / PARTS).view(np.uint32))
            at += _BINARY_BYTES + 4
        else:
            store(text, at, _DE)
            at = put_parts(text, at + _TEXT_BYTES, parts)
    if changes.offsets.size > 0:
        at = _begin_text_tag(text, at, _CS, is_binary)
        at = put_text(text, at, changes, row)
        at = _end_text_tag(text, at, is_binary)
    return at
