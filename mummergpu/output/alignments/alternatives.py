"""Compiled functions for the tag XA: the other places of a read, as bwa mem writes them."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.alignments.arrays import REVERSE, OtherArrays
from mummergpu.output.bytes.number_fields import put_one_number, put_small
from mummergpu.output.bytes.text_arrays import RecordTexts
from mummergpu.output.bytes.text_stores import TextArray, copy_padded, store
from mummergpu.output.records.cigars import OPERATION_BYTES, put_cigar
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts

_PLACE_BYTES: Final = 40
"""The most bytes of a place besides the name of the record and the CIGAR."""

_COMMA: Final = np.uint8(ord(","))
_SEMICOLON: Final = np.uint8(ord(";"))
_FORWARD: Final = np.frombuffer(b",+", dtype="<u2")[0]
_BACKWARD: Final = np.frombuffer(b",-", dtype="<u2")[0]


@inline_without_refcounts
def has_alternatives(others: OtherArrays, row: int) -> bool:
    """Return whether a row has alternatives."""
    offsets = others[0]
    return offsets.size > 0 and offsets[as_index(row)] < offsets[as_index(row + 1)]


@inline_without_refcounts
def alternative_bytes(others: OtherArrays, row: int, name_bytes: int) -> int:
    """Return the most bytes of the alternatives of a row."""
    if not has_alternatives(others, row):
        return as_int64(0)
    offsets, cigar_offsets = others[0], others[4]
    first, end = offsets[as_index(row)], offsets[as_index(row + 1)]
    operations = cigar_offsets[as_index(end)] - cigar_offsets[as_index(first)]
    return as_int64((end - first) * (name_bytes + _PLACE_BYTES) + OPERATION_BYTES * operations)


@inline_without_refcounts
def put_record(text: TextArray, at: int, names: RecordTexts, record: int) -> int:
    """Write the name of a record without the tab after it; return where the name ends."""
    texts, offsets = names
    begin, end = offsets[as_index(record)], offsets[as_index(record + 1)]
    return copy_padded(text, at, texts, begin, end - 1)


@inline_without_refcounts
def put_alternatives(
    text: TextArray, at: int, others: OtherArrays, names: RecordTexts, row: int
) -> int:
    """Write the value of XA; return where it ends."""
    offsets, flags, records, positions, cigar_offsets, cigars, distances = others
    for other in range(offsets[as_index(row)], offsets[as_index(row + 1)]):
        at = put_record(text, at, names, as_int64(records[as_index(other)]))
        store(text, at, _BACKWARD if flags[as_index(other)] & REVERSE else _FORWARD)
        at = put_one_number(text, at + 2, positions[as_index(other)] + 1)
        store(text, at, _COMMA)
        cigar, cigar_end = cigar_offsets[as_index(other)], cigar_offsets[as_index(other + 1)]
        at = put_cigar(text, at + 1, cigars, cigar, cigar_end, False)
        store(text, at, _COMMA)
        at = put_small(text, at + 1, as_int64(distances[as_index(other)]))
        store(text, at, _SEMICOLON)
        at += 1
    return at
