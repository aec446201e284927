"""Compiled functions for VCF: the order of its rows, and their text."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.output.bytes.number_fields import MOST_DIGITS, put_one_number, put_tab
from mummergpu.output.bytes.text_stores import TextArray, copy_text, store
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import BASES, MARGIN, CodeArray

Texts = tuple[TextArray, Int64Array]

_LETTERS: Final = np.frombuffer(BASES, dtype=np.uint8)
_NO_ID: Final = np.frombuffer(b"\t.\t\0", dtype="<u4")[0]
_PASSED: Final = np.frombuffer(b"PASS\t\0\0\0", dtype="<u8")[0]
_AMBIGUOUS: Final = np.frombuffer(b"ambiguou", dtype="<u8")[0]
_AMBIGUOUS_END: Final = np.frombuffer(b"s\t", dtype="<u2")[0]
_NAME: Final = np.frombuffer(b"QNAME=\0\0", dtype="<u8")[0]
_START: Final = np.frombuffer(b";QSTART=", dtype="<u8")[0]
_STRAND: Final = np.frombuffer(b";QSTRAND", dtype="<u8")[0]
_FORWARD: Final = np.frombuffer(b"=+\tGT\t1\n", dtype="<u8")[0]
_REVERSE: Final = np.frombuffer(b"=-\tGT\t1\n", dtype="<u8")[0]

ROW_BYTES: Final = 2 * MOST_DIGITS + len(
    "\t\t.\t\t\t.\tambiguous\tQNAME=;QSTART=;QSTRAND=+\tGT\t1\n"
)
"""The most bytes of a row besides names and bases."""


def order_rows(
    positions: Int64Array, lengths: Int64Array, alternatives: CodeArray, offsets: Int64Array
) -> Int64Array:
    """Return the order of differences in VCF, without those that repeat another one."""
    order = np.lexsort((np.diff(offsets), lengths, positions))
    kept = _sort_and_drop(order, positions, lengths, alternatives, offsets)
    return order[:kept]


@inline_without_refcounts
def _compare(one: int, other: int, alternatives: CodeArray, offsets: Int64Array) -> int:
    """Return whether the bases of a difference come before those of one as long, or after."""
    begin, other_begin = offsets[one], offsets[other]
    for base in range(offsets[one + 1] - begin):
        code, other_code = alternatives[begin + base], alternatives[other_begin + base]
        if code != other_code:
            return -1 if code < other_code else 1
    return 0


@jit_without_refcounts
def _sort_and_drop(
    order: Int64Array,
    positions: Int64Array,
    lengths: Int64Array,
    alternatives: CodeArray,
    offsets: Int64Array,
) -> int:
    """Sort rows that differ in their bases only, and drop equal ones; return how many are left."""
    kept = 0
    group = 0
    for place in range(order.size):
        row = order[place]
        first = order[group] if group < kept else row
        is_new = (
            positions[first] != positions[row]
            or lengths[first] != lengths[row]
            or offsets[first + 1] - offsets[first] != offsets[row + 1] - offsets[row]
        )
        if is_new:
            group = kept
        at = kept
        relation = 1
        while at > group:
            relation = _compare(order[at - 1], row, alternatives, offsets)
            if relation <= 0:
                break
            at -= 1
        if at > group and relation == 0:
            continue
        for later in range(kept, at, -1):
            order[later] = order[later - 1]
        order[at] = row
        kept += 1
    return kept


@inline_without_refcounts
def _put_bases(text: TextArray, at: int, codes: CodeArray, begin: int, end: int) -> int:
    """Write bases; return where they end."""
    for place in range(begin, end):
        text[at] = _LETTERS[codes[place]]
        at += 1
    return at


@jit_without_refcounts
def write_rows(
    rows: Int64Array,
    is_ambiguous: ByteArray,
    references: tuple[Int64Array, Int64Array, Int64Array],
    queries: tuple[Int64Array, Int64Array],
    strands: ByteArray,
    alternatives: CodeArray,
    offsets: Int64Array,
    padded_codes: CodeArray,
    record_starts: Int64Array,
    record_texts: Texts,
    query_texts: Texts,
    text: TextArray,
) -> int:
    """Write rows of VCF; return where they end."""
    records, positions, lengths = references
    at = 0
    for place in range(rows.size):
        row = rows[place]
        record, position = records[row], positions[row]
        names, name_offsets = record_texts
        at = copy_text(text, at, names, name_offsets[record], name_offsets[record + 1])
        at = put_tab(text, at)
        at = put_one_number(text, at, position - record_starts[record] + 1)
        store(text, at, _NO_ID)
        begin = position + MARGIN
        at = _put_bases(text, at + 3, padded_codes, begin, begin + lengths[row])
        at = put_tab(text, at)
        at = _put_bases(text, at, alternatives, offsets[row], offsets[row + 1])
        store(text, at, _NO_ID)
        at += 3
        if is_ambiguous[place]:
            store(text, at, _AMBIGUOUS)
            store(text, at + 8, _AMBIGUOUS_END)
            at += 10
        else:
            store(text, at, _PASSED)
            at += 5
        store(text, at, _NAME)
        query = queries[0][row]
        names, name_offsets = query_texts
        at = copy_text(text, at + 6, names, name_offsets[query], name_offsets[query + 1])
        store(text, at, _START)
        at = put_one_number(text, at + 8, queries[1][row] + 1)
        store(text, at, _STRAND)
        store(text, at + 8, _REVERSE if strands[row] else _FORWARD)
        at += 16
    return at
