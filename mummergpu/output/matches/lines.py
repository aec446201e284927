"""The compiled loop that writes the lines of PAF, BED and TSV, one for each match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import Reference, record_at
from mummergpu.output.bytes.number_text import (
    MOST_DIGITS,
    digit_words,
    put_number,
    put_small,
    put_tab,
)
from mummergpu.output.bytes.texts import (
    LINE_END,
    OVERSHOOT,
    PIECE_BYTES,
    QueryColumns,
    RecordTexts,
    TextArray,
    check_names,
    copy_padded,
    copy_text,
    names_and_lengths,
    put_text,
    store,
)
from mummergpu.output.matches.match_table import (
    NEXT_QUERY,
    NEXT_ROW,
    NEXT_STRAND,
    NOT_BEGUN,
    MatchBlock,
    MatchPieces,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import as_index, inline, jit
from mummergpu.sequence.mems import BlockMems

PAF, BED, TSV = 0, 1, 2
"""The formats."""

OTHER_BYTES: Final = 8 * MOST_DIGITS + len("\t" * 12 + "+255cg:Z:=\n")
"""The most bytes of a line besides the name of the query and the text of the record."""

START_BYTES: Final = MOST_DIGITS + len("\t\t") + OVERSHOOT
"""The most bytes that the lines of a query share, besides its name."""

_MOST_SCORE: Final = 1000
_DOT: Final = np.uint8(ord("."))
_MINUS: Final = np.uint8(ord("-"))
_PLUS: Final = np.uint8(ord("+"))
_ALIGNMENT: Final = np.frombuffer(bytearray(b"\t255\tcg:Z:".ljust(OVERSHOOT)), dtype=np.uint8)
_ALIGNMENT_BYTES: Final = len(b"\t255\tcg:Z:")
_ALIGNMENT_END: Final = np.frombuffer(b"=\n", dtype="<u2")[0]


@inline
def _write_start(start: TextArray, queries: QueryColumns, query: int, with_length: bool) -> int:
    """Write the name and length of a query, which its lines share; return where they end."""
    begin, end = queries.name_offsets[as_index(query)], queries.name_offsets[as_index(query + 1)]
    at = put_tab(start, copy_text(start, 0, queries.names, begin, end))
    if not with_length and begin == end:
        # BED writes a dot in a field that has no value.
        store(start, 0, _DOT)
        at = put_tab(start, 1)
    if with_length:
        length = queries.offsets[as_index(query + 1)] - queries.offsets[as_index(query)]
        at = put_tab(start, put_small(start, at, length))
    return at


class _Match(NamedTuple):
    """A match in its record and on the forward strand of its query."""

    record: int
    query_start: int
    position: int
    length: int
    sign: np.uint8


@inline
def _put_places(text: TextArray, at: int, match: _Match) -> int:
    """Write where a match begins and ends in its record, with a tab after each; return the end."""
    words = digit_words(match.position, match.position + match.length, 0, 0)
    at = put_tab(text, put_number(text, at, match.position, words[0]))
    return put_tab(text, put_number(text, at, match.position + match.length, words[1]))


@inline
def _write_bed(
    text: TextArray, at: int, start: TextArray, start_size: int, records: RecordTexts, match: _Match
) -> int:
    """Write a line of BED; return where it ends."""
    at = _put_places(text, put_text(text, at, records, match.record), match)
    at = copy_padded(text, at, start, 0, start_size)
    at = put_tab(text, put_small(text, at, min(match.length, _MOST_SCORE)))
    store(text, at, match.sign)
    store(text, at + 1, LINE_END)
    return at + 2


@inline
def _write_pair(
    text: TextArray, at: int, start: TextArray, start_size: int, records: RecordTexts, match: _Match
) -> int:
    """Write what PAF and TSV share: the places in the query and in the record, and the length."""
    at = copy_padded(text, at, start, 0, start_size)
    at = put_tab(text, put_small(text, at, match.query_start))
    at = put_tab(text, put_small(text, at, match.query_start + match.length))
    store(text, at, match.sign)
    at = _put_places(text, put_text(text, at + 1, records, match.record), match)
    return put_small(text, at, match.length)


@inline
def _write_alignment(text: TextArray, at: int, length: int) -> int:
    """Write the rest of a line of PAF; return where it ends."""
    at = put_small(text, put_tab(text, at), length)
    at = copy_padded(text, at, _ALIGNMENT, 0, _ALIGNMENT_BYTES)
    at = put_small(text, at, length)
    store(text, at, _ALIGNMENT_END)
    return at + 2


@jit
def write_lines(
    text: TextArray,
    state: Int64Array,
    block: MatchBlock,
    start_text: TextArray,
    row_bytes: int,
    kind: int,
) -> int:
    """Write lines from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`; `start_text` is room for what the
    lines of a query share.
    """
    query_offsets, lookup, records = block.queries.offsets, block.lookup, block.records
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    last_start = text.size - OVERSHOOT - row_bytes
    at = 0
    while query < query_offsets.size - 1:
        own = block.rows[strand]
        end = own.offsets[as_index(query + 1)]
        row = own.offsets[as_index(query)] if row == NOT_BEGUN else row
        if row < end:
            start_size = _write_start(start_text, block.queries, query, kind != BED)
            query_length = query_offsets[as_index(query + 1)] - query_offsets[as_index(query)]
            sign = _MINUS if strand == 1 else _PLUS
            # A line begins only where the longest one fits.
            while row < end and at <= last_start:
                position, length = own.reference_starts[as_index(row)], own.lengths[as_index(row)]
                start = own.query_starts[as_index(row)]
                start = query_length - start - length if strand == 1 else start
                record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position)
                position -= lookup.starts[as_index(record)]
                match = _Match(record, start, position, length, sign)
                if kind == BED:
                    at = _write_bed(text, at, start_text, start_size, records, match)
                else:
                    at = _write_pair(text, at, start_text, start_size, records, match)
                    if kind == PAF:
                        at = _write_alignment(text, at, length)
                    else:
                        store(text, at, LINE_END)
                        at += 1
                row += 1
            if row < end:
                break
        row = NOT_BEGUN
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at


COLUMNS: Final = (
    *("query", "query_length", "query_start", "query_end", "strand"),
    *("reference", "reference_length", "reference_start", "reference_end", "length"),
)
"""The names of the columns of TSV."""


class LineFormat(MatchPieces):
    """A format with a line for each match, `PAF`, `BED` or `TSV`; several threads may share one."""

    def __init__(self, kind: int, reference: Reference, piece_bytes: int = PIECE_BYTES) -> None:
        if kind == BED:
            check_names(reference, "BED")
            texts: Iterable[bytes] = (b"%b\t" % name for name in reference.names)
        else:
            texts = names_and_lengths(reference)
        super().__init__(reference, texts, piece_bytes)
        self._kind = kind
        self._max_bytes = OTHER_BYTES + self._longest_record

    def head(self) -> bytes:
        """Return the line of column names that a table has."""
        return "\t".join(COLUMNS).encode() + b"\n" if self._kind == TSV else b""

    def format_block(self, block: QueryBlock, matches: BlockMems) -> Iterator[TextArray]:
        """Yield the lines of a block's matches in pieces (`Format.format_block`)."""
        arrays = self._match_block(block, matches)
        name_bytes = int(np.diff(block.name_offsets).max(initial=0))
        start_text = np.empty(name_bytes + START_BYTES, dtype=np.uint8)
        row_bytes = self._max_bytes + name_bytes
        state = np.array([0, 0, NOT_BEGUN], dtype=np.int64)

        def fill(text: TextArray) -> int:
            return write_lines(text, state, arrays, start_text, row_bytes, self._kind)

        yield from self._pieces(block, state, row_bytes, fill)
