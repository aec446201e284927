"""The compiled loop that lays out alignments of reads as records of BAM."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.columns import NO_ROW
from mummergpu.output.alignment_arrays import (
    REVERSE,
    SECONDARY,
    ReadArrays,
    ReferenceArrays,
    RowArrays,
    Texts,
)
from mummergpu.output.alignment_row_tags import put_tags
from mummergpu.output.alignment_sam_rows import NEEDED_BYTES, NEXT_ROW
from mummergpu.output.alignment_tags import measure_row, orient
from mummergpu.output.bam_bases import pack_bases
from mummergpu.output.bam_rows import bin_of
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
        needed, span, clips, parts = measure_row(reads, rows, row, name_bytes)
        if at + needed > room:
            state[NEEDED_BYTES] = needed + texts[1].size
            break
        is_reverse = flag & REVERSE != 0
        begin, end = offsets[unsigned(read)], offsets[unsigned(read + 1)]
        orient(oriented, codes, begin, end, is_reverse)
        bases = 0 if flag & SECONDARY else max(0, end - begin - clips[0] - clips[1])
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
            place = pack_bases(text, place, oriented, MARGIN + clips[0], bases, False)
            bounds = begin, end
            place = write_qualities(
                text, place, base_qualities, bounds, clips[0], bases, is_reverse, NUMBERS_FROM
            )
        place = put_tags(text, place, rows, oriented, reference, texts, row, parts, True)
        store(text, at, np.uint32(place - at - 4))
        at = place
        row_ends[unsigned(row)] = at
        row += 1
    state[NEXT_ROW] = row
    return at
