"""The compiled loop that lays out alignments of reads as records of BAM."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.columns import NO_ROW
from mummergpu.output.alignment_arrays import (
    REVERSE,
    SECONDARY,
    UNMAPPED,
    ReadArrays,
    ReferenceArrays,
    RowArrays,
    Texts,
    rows_of_read,
    spans_of,
)
from mummergpu.output.alignment_sam_rows import NEEDED_BYTES, NEXT_ROW
from mummergpu.output.alignment_tags import (
    NAME_END,
    has_other_parts,
    most_bytes,
    orient,
    put_cigar,
    put_mismatches,
    put_other_parts,
)
from mummergpu.output.bam_bases import pack_bases
from mummergpu.output.bam_rows import bin_of, write_tag
from mummergpu.output.number_fields import copy_padded
from mummergpu.output.number_text import OVERSHOOT, TextArray, copy_text, store
from mummergpu.output.quality_text import NUMBERS_FROM, write_qualities
from mummergpu.output.record_lookup import Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import MARGIN, CodeArray

MOST_OPERATIONS: Final = 0xFFFF
"""The most operations of the CIGAR of a record."""

_NAME: Final = 36
"""Where the name begins, counted from the length of the record."""

_NO_NAME: Final = np.frombuffer(b"*\0", dtype="<u2")[0]
_END: Final = np.uint8(0)
_TAG_BYTES: Final = 3


def _tag(name: bytes) -> int:
    return int.from_bytes(name, "little")


_NM, _MQ, _AS, _XS = (_tag(name) for name in (b"NM", b"MQ", b"AS", b"XS"))
_MD, _MC, _SA = (np.uint32(_tag(name)) for name in (b"MDZ", b"MCZ", b"SAZ"))


@inline_without_refcounts
def _write_score(text: TextArray, at: int, tag: int, number: int) -> int:
    """Write a tag with a number of either sign in as few bytes as hold it; return the end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    tag : int
        The two letters of the tag, the first in the lower byte.
    number : int
        The number, which fits 32 bits.

    Returns
    -------
    int
        Where the tag ends.
    """
    if number >= 0:
        return write_tag(text, at, tag, number)
    if number >= -(1 << 7):
        kind, size = ord("c"), 1
    elif number >= -(1 << 15):
        kind, size = ord("s"), 2
    else:
        kind, size = ord("i"), 4
    store(text, at, np.uint64(tag | kind << 16 | (number & 0xFFFF_FFFF) << 24))
    return at + _TAG_BYTES + size


@inline_without_refcounts
def _write_tags(
    text: TextArray,
    at: int,
    rows: RowArrays,
    oriented: CodeArray,
    reference: ReferenceArrays,
    texts: Texts,
    row: int,
    parts: tuple[int, int],
) -> int:
    """Write the tags of a row; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    oriented : ndarray, dtype=uint8
        The whole read (`alignment_tags.orient`).
    reference : tuple of ndarray
        The reference (`alignment_arrays.ReferenceArrays`).
    texts : tuple
        The names of the records with a byte after each, and the tag of the read group.
    row : int
        The row.
    parts : tuple of int
        The rows of its read.

    Returns
    -------
    int
        Where the tags end.
    """
    (_, flags, records, positions, qualities, offsets, cigars, _, mate_rows, scores, seconds) = (
        rows[:11]
    )
    is_mapped = flags[unsigned(row)] & UNMAPPED == 0
    if is_mapped:
        at = _write_score(text, at, _NM, widened(rows[11][unsigned(row)]))
        store(text, at, _MD)
        start = MARGIN + reference[1][unsigned(records[unsigned(row)])] + positions[unsigned(row)]
        begin, end = offsets[unsigned(row)], offsets[unsigned(row + 1)]
        at += _TAG_BYTES
        at = put_mismatches(text, at, oriented, reference[0], start, cigars, begin, end)
        store(text, at, _END)
        at += 1
    mate = mate_rows[unsigned(row)]
    if mate != NO_ROW and flags[unsigned(mate)] & UNMAPPED == 0:
        store(text, at, _MC)
        begin, end = offsets[unsigned(mate)], offsets[unsigned(mate + 1)]
        at = put_cigar(text, at + _TAG_BYTES, cigars, begin, end, False)
        store(text, at, _END)
        at = write_tag(text, at + 1, _MQ, widened(qualities[unsigned(mate)]))
    if is_mapped:
        at = _write_score(text, at, _AS, widened(scores[unsigned(row)]))
        at = _write_score(text, at, _XS, widened(seconds[unsigned(row)]))
    at = copy_padded(text, at, texts[1], 0, texts[1].size - OVERSHOOT)
    if parts[1] - parts[0] > 1 and has_other_parts(flags, row, parts[0], parts[1]):
        store(text, at, _SA)
        at += _TAG_BYTES
        at = put_other_parts(text, at, rows, texts[0], NAME_END, row, parts[0], parts[1])
        store(text, at, _END)
        at += 1
    return at


@inline_without_refcounts
def _write_start(
    text: TextArray,
    at: int,
    rows: RowArrays,
    record_ids: npt.NDArray[np.int32],
    row: int,
    span: int,
    name_bytes: int,
    bases: int,
) -> None:
    """Write the fields of fixed size, except for the length of the record.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output.
    at : int
        Where in the text the record begins.
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    record_ids : ndarray, dtype=int32, shape=(n_records,)
        The number of each record among those of the header.
    row : int
        The row.
    span : int
        The bases of the reference that it takes.
    name_bytes : int
        The bytes of the name, with the zero that ends it.
    bases : int
        The bases that are written.
    """
    _, flags, records, positions, qualities, offsets, _, template_lengths, mate_rows = rows[:9]
    flag = widened(flags[unsigned(row)])
    record, position = widened(records[unsigned(row)]), positions[unsigned(row)]
    bin_number = bin_of(position, position + max(span, 1)) & 0xFFFF
    if record >= 0:
        record = widened(record_ids[unsigned(record)])
    mate = mate_rows[unsigned(row)]
    mate_record, mate_position = -1, -1
    if mate != NO_ROW:
        mate_record, mate_position = widened(records[unsigned(mate)]), positions[unsigned(mate)]
        if mate_record >= 0:
            mate_record = widened(record_ids[unsigned(mate_record)])
    operations = offsets[unsigned(row + 1)] - offsets[unsigned(row)]
    quality = widened(qualities[unsigned(row)])
    store(text, at + 4, np.uint32(record))
    store(text, at + 8, np.uint32(position))
    store(text, at + 12, np.uint32(name_bytes | quality << 8 | bin_number << 16))
    store(text, at + 16, np.uint32(operations | flag << 16))
    store(text, at + 20, np.uint32(bases))
    store(text, at + 24, np.uint32(mate_record))
    store(text, at + 28, np.uint32(mate_position))
    store(text, at + 32, np.uint32(widened(template_lengths[unsigned(row)])))


@jit_without_refcounts
def fill_alignments(
    text: TextArray,
    state: Int64Array,
    row_ends: Int64Array,
    reads: ReadArrays,
    rows: RowArrays,
    oriented: CodeArray,
    reference: ReferenceArrays,
    texts: Texts,
    name_bytes: int,
    record_ids: npt.NDArray[np.int32],
) -> int:
    """Write the records of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    state : ndarray, dtype=int64, shape=(alignment_sam_rows.STATE_SIZE,)
        The row to go on with, and the bytes that a text must have for it; updated.
    row_ends : ndarray, dtype=int64, shape=(n_rows,)
        Receives where in the text each record ends that is written.
    reads : tuple of ndarray
        The reads (`alignment_arrays.ReadArrays`).
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    oriented : ndarray, dtype=uint8
        Room for the codes of a read, with margins.
    reference : tuple of ndarray
        The reference (`alignment_arrays.ReferenceArrays`).
    texts : tuple
        The names of the records with a byte after each, and the tag of the read group.
    name_bytes : int
        The bytes of the longest name of a record.
    record_ids : ndarray, dtype=int32, shape=(n_records,)
        The number of each record among those of the header.

    Returns
    -------
    int
        The number of bytes written.
    """
    offsets, names, name_offsets, codes, base_qualities = reads
    row_reads, flags, cigar_offsets, cigars = rows[0], rows[1], rows[5], rows[6]
    room = text.size - OVERSHOOT - texts[1].size
    at = 0
    row = state[NEXT_ROW]
    while row < flags.size:
        read = row_reads[unsigned(row)]
        flag = widened(flags[unsigned(row)])
        cigar, cigar_end = cigar_offsets[unsigned(row)], cigar_offsets[unsigned(row + 1)]
        span, before, after = spans_of(cigars, cigar, cigar_end)
        parts = rows_of_read(row_reads, flags, row)
        needed = most_bytes(reads, rows, row, span, parts, name_bytes)
        if at + needed > room:
            state[NEEDED_BYTES] = needed + texts[1].size
            break
        is_reverse = flag & REVERSE != 0
        begin, end = offsets[unsigned(read)], offsets[unsigned(read + 1)]
        orient(oriented, codes, begin, end, is_reverse)
        bases = 0 if flag & SECONDARY else max(0, end - begin - before - after)
        name = at + _NAME
        name_begin, name_end = name_offsets[unsigned(read)], name_offsets[unsigned(read + 1)]
        if name_begin == name_end:
            store(text, name, _NO_NAME)
            place = name + 2
        else:
            place = copy_text(text, name, names, name_begin, name_end)
            store(text, place, _END)
            place += 1
        _write_start(text, at, rows, record_ids, row, span, place - name, bases)
        for operation in range(cigar, cigar_end):
            store(text, place, cigars[unsigned(operation)])
            place += 4
        if bases:
            place = pack_bases(text, place, oriented, MARGIN + before, bases, False)
            bounds = begin, end
            place = write_qualities(
                text, place, base_qualities, bounds, before, bases, is_reverse, NUMBERS_FROM
            )
        place = _write_tags(text, place, rows, oriented, reference, texts, row, parts)
        store(text, at, np.uint32(place - at - 4))
        at = place
        row_ends[unsigned(row)] = at
        row += 1
    state[NEXT_ROW] = row
    return at
