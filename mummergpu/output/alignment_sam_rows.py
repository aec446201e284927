"""The compiled loop that writes alignments of reads as lines of SAM."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.columns import NO_ROW
from mummergpu.output.alignment_arrays import (
    NO_QUALITY,
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
from mummergpu.output.alignment_tags import (
    NAME_END,
    has_other_parts,
    most_bytes,
    orient,
    put_cigar,
    put_mismatches,
    put_other_parts,
    put_signed,
)
from mummergpu.output.line_rows import RecordTexts
from mummergpu.output.number_fields import copy_padded, put_number, put_small, put_tab
from mummergpu.output.number_text import OVERSHOOT, TextArray, copy_text, digit_words, store
from mummergpu.output.quality_text import LETTERS_FROM, write_qualities
from mummergpu.output.record_lookup import Int64Array
from mummergpu.output.sequence_text import write_bases
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned, widened
from mummergpu.sequence.codes import MARGIN, CodeArray

NEXT_ROW, NEEDED_BYTES = 0, 1
"""The elements of the state between two pieces: the row to go on with, and the bytes that a text
must have for it."""

STATE_SIZE: Final = 2

_STAR: Final = np.uint8(ord("*"))
_LINE_END: Final = np.uint8(ord("\n"))
_NO_PLACE: Final = np.frombuffer(b"*\t0\t", dtype="<u4")[0]
_SAME_RECORD: Final = np.frombuffer(b"=\t", dtype="<u2")[0]
_NO_BASES: Final = np.frombuffer(b"*\t*\t", dtype="<u4")[0]
_TAG_BYTES: Final = len("\tNM:i:")


def _tag(name: str) -> np.uint64:
    return np.frombuffer(b"\t" + name.encode().ljust(7), dtype="<u8")[0]  # type: ignore[no-any-return]


_NM, _MD, _MC, _MQ = _tag("NM:i:"), _tag("MD:Z:"), _tag("MC:Z:"), _tag("MQ:i:")
_AS, _XS, _SA = _tag("AS:i:"), _tag("XS:i:"), _tag("SA:Z:")


@inline_without_refcounts
def _put_place(text: TextArray, at: int, records: RecordTexts, record: int, position: int) -> int:
    """Write a record and a position in it with a tab after each; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    records : tuple of ndarray
        The name of each record and a tab (`line_rows.RecordTexts`).
    record : int
        The record; a negative number for none.
    position : int
        0-based, in the record.

    Returns
    -------
    int
        Where the text ends.
    """
    if record < 0:
        store(text, at, _NO_PLACE)
        return at + 4
    texts, offsets = records
    at = copy_padded(text, at, texts, offsets[unsigned(record)], offsets[unsigned(record + 1)])
    position += 1
    return put_tab(text, put_number(text, at, position, digit_words(position, 0, 0, 0)[0]))


@inline_without_refcounts
def _put_mate(text: TextArray, at: int, rows: RowArrays, records: RecordTexts, row: int) -> int:
    """Write the place of the mate and the length of the template; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    records : tuple of ndarray
        The name of each record and a tab (`line_rows.RecordTexts`).
    row : int
        The row.

    Returns
    -------
    int
        Where the text ends, after a tab.
    """
    _, _, row_records, positions, _, _, _, template_lengths, mate_rows, _, _, _ = rows
    mate = mate_rows[unsigned(row)]
    record, position = -1, -1
    if mate != NO_ROW:
        record, position = widened(row_records[unsigned(mate)]), positions[unsigned(mate)]
    if record >= 0 and record == widened(row_records[unsigned(row)]):
        store(text, at, _SAME_RECORD)
        position += 1
        at = put_number(text, at + 2, position, digit_words(position, 0, 0, 0)[0])
        at = put_tab(text, at)
    else:
        at = _put_place(text, at, records, record, position)
    return put_tab(text, put_signed(text, at, widened(template_lengths[unsigned(row)])))


@inline_without_refcounts
def _put_sequence(
    text: TextArray,
    at: int,
    reads: ReadArrays,
    oriented: CodeArray,
    read: int,
    clips: tuple[int, int],
    is_reverse: bool,
) -> int:
    """Write the bases of a row and their qualities; return where they end.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    reads : tuple of ndarray
        The reads (`alignment_arrays.ReadArrays`).
    oriented : ndarray, dtype=uint8
        The whole read (`alignment_tags.orient`).
    read : int
        The number of the read.
    clips : tuple of int
        The bases that are clipped hard, before and after the others.
    is_reverse : bool
        Whether the read lies on the reverse strand.

    Returns
    -------
    int
        Where the text ends.
    """
    offsets, _, _, _, qualities = reads
    begin, end = offsets[unsigned(read)], offsets[unsigned(read + 1)]
    count = end - begin - clips[0] - clips[1]
    if count <= 0:
        store(text, at, _NO_BASES)
        return at + 3
    at = write_bases(text, at, oriented, 0, end - begin, clips[0], count, False)
    at = put_tab(text, at)
    if qualities[unsigned(begin)] == NO_QUALITY:
        store(text, at, _STAR)
        return at + 1
    return write_qualities(
        text, at, qualities, (begin, end), clips[0], count, is_reverse, LETTERS_FROM
    )


@inline_without_refcounts
def _put_number_tag(text: TextArray, at: int, tag: np.uint64, number: int) -> int:
    """Write a tag with a number; return where it ends.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    tag : uint64
        The tab, the tag and its type.
    number : int
        The number.

    Returns
    -------
    int
        Where the text ends.
    """
    store(text, at, tag)
    return put_signed(text, at + _TAG_BYTES, number)


@inline_without_refcounts
def _put_tags(
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
        The names of the records with a tab, and the tag of the read group.
    row : int
        The row.
    parts : tuple of int
        The rows of its read.

    Returns
    -------
    int
        Where the text ends.
    """
    (_, flags, records, positions, qualities, offsets, cigars, _, mate_rows, scores, seconds) = (
        rows[:11]
    )
    is_mapped = flags[unsigned(row)] & UNMAPPED == 0
    if is_mapped:
        at = _put_number_tag(text, at, _NM, widened(rows[11][unsigned(row)]))
        store(text, at, _MD)
        start = MARGIN + reference[1][unsigned(records[unsigned(row)])] + positions[unsigned(row)]
        begin, end = offsets[unsigned(row)], offsets[unsigned(row + 1)]
        at += _TAG_BYTES
        at = put_mismatches(text, at, oriented, reference[0], start, cigars, begin, end)
    mate = mate_rows[unsigned(row)]
    if mate != NO_ROW and flags[unsigned(mate)] & UNMAPPED == 0:
        store(text, at, _MC)
        begin, end = offsets[unsigned(mate)], offsets[unsigned(mate + 1)]
        at = put_cigar(text, at + _TAG_BYTES, cigars, begin, end, False)
        at = _put_number_tag(text, at, _MQ, widened(qualities[unsigned(mate)]))
    if is_mapped:
        at = _put_number_tag(text, at, _AS, widened(scores[unsigned(row)]))
        at = _put_number_tag(text, at, _XS, widened(seconds[unsigned(row)]))
    at = copy_padded(text, at, texts[1], 0, texts[1].size - OVERSHOOT)
    if parts[1] - parts[0] > 1 and has_other_parts(flags, row, parts[0], parts[1]):
        store(text, at, _SA)
        at += _TAG_BYTES
        at = put_other_parts(text, at, rows, texts[0], NAME_END, row, parts[0], parts[1])
    return at


@jit_without_refcounts
def fill_lines(
    text: TextArray,
    state: Int64Array,
    reads: ReadArrays,
    rows: RowArrays,
    oriented: CodeArray,
    reference: ReferenceArrays,
    texts: Texts,
    name_bytes: int,
) -> int:
    """Write the lines of rows from `state` on, until they end or the text is full.

    Returns the number of bytes written, and updates `state`.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    state : ndarray, dtype=int64, shape=(STATE_SIZE,)
        The row to go on with, and the bytes that a text must have for it; updated.
    reads : tuple of ndarray
        The reads (`alignment_arrays.ReadArrays`).
    rows : tuple of ndarray
        The alignments (`alignment_arrays.RowArrays`).
    oriented : ndarray, dtype=uint8
        Room for the codes of a read, with margins.
    reference : tuple of ndarray
        The reference (`alignment_arrays.ReferenceArrays`).
    texts : tuple
        The names of the records with a tab, and the tag of the read group with the tab before it.
    name_bytes : int
        The bytes of the longest name of a record.

    Returns
    -------
    int
        The number of bytes written.
    """
    offsets, names, name_offsets, codes, _ = reads
    row_reads, flags, records, positions, qualities, cigar_offsets, cigars = rows[:7]
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
        orient(oriented, codes, offsets[unsigned(read)], offsets[unsigned(read + 1)], is_reverse)
        name, name_end = name_offsets[unsigned(read)], name_offsets[unsigned(read + 1)]
        if name == name_end:
            store(text, at, _STAR)
            at += 1
        else:
            at = copy_text(text, at, names, name, name_end)
        at = put_tab(text, put_small(text, put_tab(text, at), flag))
        record = widened(records[unsigned(row)])
        at = _put_place(text, at, texts[0], record, positions[unsigned(row)])
        at = put_tab(text, put_small(text, at, widened(qualities[unsigned(row)])))
        if cigar == cigar_end:
            store(text, at, _STAR)
            at += 1
        else:
            at = put_cigar(text, at, cigars, cigar, cigar_end, False)
        at = _put_mate(text, put_tab(text, at), rows, texts[0], row)
        if flag & SECONDARY:
            store(text, at, _NO_BASES)
            at += 3
        else:
            at = _put_sequence(text, at, reads, oriented, read, (before, after), is_reverse)
        at = _put_tags(text, at, rows, oriented, reference, texts, row, parts)
        store(text, at, _LINE_END)
        at += 1
        row += 1
    state[NEXT_ROW] = row
    return at
