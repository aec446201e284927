"""Compiled functions that write the tags of an alignment, in text for SAM or in binary for BAM.

Callers pass as a constant which of the two they want, so that no compiled loop asks for it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.mapping.alignments.columns import NO_ROW, AlignmentColumns
from mummergpu.output.alignments.alternatives import has_alternatives, put_alternatives
from mummergpu.output.alignments.arrays import (
    UNMAPPED,
    OtherArrays,
    ReferenceArrays,
    Texts,
)
from mummergpu.output.alignments.tags import has_other_parts, put_other_parts, put_signed
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_padded, store
from mummergpu.output.records.bam_fields import write_tag
from mummergpu.output.records.cigars import put_cigar, put_mismatches
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts
from mummergpu.sequence.codes import MARGIN, CodeArray

_TEXT_BYTES: Final = len("\tNM:i:")
_BINARY_BYTES: Final = len("NMC")
_END: Final = np.uint8(0)


def _tag(name: str) -> np.uint64:
    return np.frombuffer(b"\t" + name.encode().ljust(7), dtype="<u8")[0]  # type: ignore[no-any-return]


_NM, _MD, _MC, _MQ = _tag("NM:i:"), _tag("MD:Z:"), _tag("MC:Z:"), _tag("MQ:i:")
_AS, _XS, _SA, _XA = _tag("AS:i:"), _tag("XS:i:"), _tag("SA:Z:"), _tag("XA:Z:")


@inline_without_refcounts
def _letters_of(tag: np.uint64) -> int:
    """Return the two letters of a tag, the first in the lower byte."""
    return as_int64(tag >> np.uint64(8)) & 0xFFFF  # type: ignore[arg-type]


@inline_without_refcounts
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


@inline_without_refcounts
def _put_number_tag(text: TextArray, at: int, tag: np.uint64, number: int, is_binary: bool) -> int:
    """Write a tag with a number; return where it ends."""
    if not is_binary:
        store(text, at, tag)
        return put_signed(text, at + _TEXT_BYTES, number)
    if number >= 0:
        return write_tag(text, at, _letters_of(tag), number)
    return _write_negative_tag(text, at, _letters_of(tag), number)


@inline_without_refcounts
def _begin_text_tag(text: TextArray, at: int, tag: np.uint64, is_binary: bool) -> int:
    """Write what comes before the value of a tag with a text; return where that ends."""
    if not is_binary:
        store(text, at, tag)
        return at + _TEXT_BYTES
    store(text, at, np.uint32(_letters_of(tag) | ord("Z") << 16))
    return at + _BINARY_BYTES


@inline_without_refcounts
def _end_text_tag(text: TextArray, at: int, is_binary: bool) -> int:
    """End a tag with a text, after its value; return where it ends."""
    if not is_binary:
        return at
    store(text, at, _END)
    return at + 1


@inline_without_refcounts
def put_tags(
    text: TextArray,
    at: int,
    rows: AlignmentColumns,
    others: OtherArrays,
    oriented: CodeArray,
    reference: ReferenceArrays,
    texts: Texts,
    row: int,
    parts: tuple[int, int],
    is_binary: bool,
) -> int:
    """Write the tags of a row; return where they end."""
    flags, records, positions, qualities = rows.flags, rows.records, rows.positions, rows.qualities
    offsets, cigars, mate_rows = rows.cigar_offsets, rows.cigars, rows.mate_rows
    scores, seconds = rows.scores, rows.second_scores
    is_mapped = flags[as_index(row)] & UNMAPPED == 0
    if is_mapped:
        at = _put_number_tag(text, at, _NM, as_int64(rows.edit_distances[as_index(row)]), is_binary)
        start = MARGIN + reference[1][as_index(records[as_index(row)])] + positions[as_index(row)]
        begin, end = offsets[as_index(row)], offsets[as_index(row + 1)]
        at = _begin_text_tag(text, at, _MD, is_binary)
        at = put_mismatches(
            text, at, oriented, MARGIN, reference[0], start, cigars, begin, end, reference[2]
        )
        at = _end_text_tag(text, at, is_binary)
    mate = mate_rows[as_index(row)]
    if mate != NO_ROW and flags[as_index(mate)] & UNMAPPED == 0:
        begin, end = offsets[as_index(mate)], offsets[as_index(mate + 1)]
        at = _begin_text_tag(text, at, _MC, is_binary)
        at = put_cigar(text, at, cigars, begin, end, False)
        at = _end_text_tag(text, at, is_binary)
        at = _put_number_tag(text, at, _MQ, as_int64(qualities[as_index(mate)]), is_binary)
    if is_mapped:
        at = _put_number_tag(text, at, _AS, as_int64(scores[as_index(row)]), is_binary)
        at = _put_number_tag(text, at, _XS, as_int64(seconds[as_index(row)]), is_binary)
    at = copy_padded(text, at, texts[1], 0, texts[1].size - OVERSHOOT)
    if parts[1] - parts[0] > 1 and has_other_parts(flags, row, parts[0], parts[1]):
        at = _begin_text_tag(text, at, _SA, is_binary)
        at = put_other_parts(text, at, rows, texts[0], row, parts[0], parts[1])
        at = _end_text_tag(text, at, is_binary)
    if has_alternatives(others, row):
        at = _begin_text_tag(text, at, _XA, is_binary)
        at = put_alternatives(text, at, others, texts[0], row)
        at = _end_text_tag(text, at, is_binary)
    return at
