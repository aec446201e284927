"""The compiled loop that writes the lines of SAM."""

from __future__ import annotations

from typing import Final

from mummergpu.output.line_rows import Lookup, QueryColumns, RecordTexts
from mummergpu.output.match_table import StrandRows
from mummergpu.output.number_fields import copy_padded, put_small, put_tab
from mummergpu.output.number_text import OVERSHOOT, TextArray, digit_words
from mummergpu.output.record_lookup import Int64Array
from mummergpu.output.sam_choice import (
    HAS_PRIMARY,
    HITS,
    LEAST,
    LONGEST,
    MATCHES,
    NEXT_QUERY,
    NEXT_ROW,
    NEXT_STRAND,
    NO_ROW,
    NOT_BEGUN,
    STATE_SIZE,
    TIES_LEFT,
    begin_query,
    flag_of,
)
from mummergpu.output.sam_fields import (
    begin_bases,
    begin_unmapped,
    end_unmapped,
    place_of,
    put_flag,
    write_cigar,
    write_hits,
    write_name,
    write_part,
    write_record,
    write_scores,
)
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned
from mummergpu.sequence.codes import CodeArray

NEXT_BASE: Final = STATE_SIZE
"""The element of the state with the first base that is not written, after those of `sam_choice`."""

NO_BASE: Final = -1
"""The next base of a line that has not begun."""


@inline_without_refcounts
def _write_unmapped(
    text: TextArray,
    at: int,
    padded_codes: CodeArray,
    bounds: tuple[int, int],
    name: TextArray,
    name_size: int,
    base: int,
    line_end: tuple[TextArray, int],
    last_start: int,
) -> tuple[int, int]:
    """Write the line of a query without a match from `base` on, as far as there is room.

    Returns where the text ends, and the first base that is not written, or `NO_BASE` if the line is
    complete.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write, at most `last_start`.
    padded_codes : ndarray, dtype=uint8
        The codes of the block with margins.
    bounds : tuple of int
        Where the query begins and ends.
    name : ndarray, dtype=uint8
        The name of the query.
    name_size : int
        The bytes of the name.
    base : int
        The first base to write, `NO_BASE` if the line has not begun.
    line_end : tuple of ndarray, dtype=uint8, and int
        What all lines end with, and its size.
    last_start : int
        Where in the text a line can begin at most.

    Returns
    -------
    at : int
        Where the text ends.
    base : int
        The first base that is not written, `NO_BASE` if the line is complete.
    """
    if base == NO_BASE:
        at = copy_padded(text, at, name, 0, name_size)
        at = begin_unmapped(text, at, bounds[0] == bounds[1])
        base = 0
    at, base = write_part(text, at, padded_codes, bounds, base, False)
    if base < bounds[1] - bounds[0] or at > last_start:
        return at, base
    return copy_padded(text, end_unmapped(text, at), line_end[0], 0, line_end[1]), NO_BASE


@inline_without_refcounts
def _write_rows(
    text: TextArray,
    at: int,
    state: Int64Array,
    columns: StrandRows,
    end: int,
    padded_codes: CodeArray,
    lookup: Lookup,
    records: RecordTexts,
    bounds: tuple[int, int],
    strand: int,
    rooms: tuple[TextArray, TextArray],
    sizes: tuple[int, int],
    line_end: tuple[TextArray, int],
    last_start: int,
) -> int:
    """Write the lines of a query on a strand from `state` on, as far as there is room.

    Returns where the text ends, and updates `state`.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    at : int
        Where in the text to write.
    state : ndarray, dtype=int64, shape=(STATE_SIZE + 1,)
        As for `write_sam`; updated, except for the query and the strand.
    columns : tuple of ndarray, dtype=int64
        The matches on the strand, as `match_table.strand_rows` returns them.
    end : int
        The end of the rows of the query.
    padded_codes, lookup, records, rooms, line_end
        As for `write_sam`.
    bounds : tuple of int
        Where the query begins and ends in the block.
    strand : int
        The strand.
    sizes : tuple of int
        The bytes of the texts in `rooms`.
    last_start : int
        Where in the text a line can begin at most.

    Returns
    -------
    int
        Where the text ends.
    """
    _, starts, positions, lengths = columns
    longest, least = state[LONGEST], state[LEAST]
    query_length = bounds[1] - bounds[0]
    row, base = state[NEXT_ROW], state[NEXT_BASE]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    while row < end and at <= last_start:
        length = lengths[unsigned(row)]
        flag = 0
        if base == NO_BASE:
            # Long before its digits are needed, so that nothing waits for them.
            record, position = place_of(lookup, positions[unsigned(row)])
            digits = digit_words(position, 0, 0, 0)[0]
            clip = starts[unsigned(row)]
            flag = flag_of(length, longest, least, ties_left, has_primary)
            if flag == NO_ROW:
                row += 1
                continue
            ties_left -= length == least
            has_primary |= flag == 0
            hits += 1
            at = copy_padded(text, at, rooms[0], 0, sizes[0])
            at = put_flag(text, at, flag != 0, strand)
            at = write_record(text, at, records, record, position, digits)
            at = write_cigar(text, at, clip, length, query_length - clip - length)
            if flag == 0:
                at = begin_bases(text, at)
                base = 0
        if flag == 0:
            at, base = write_part(text, at, padded_codes, bounds, base, strand == 1)
            if base < query_length or at > last_start:
                break
            base = NO_BASE
        at = write_scores(text, at, flag == 0, length)
        at = copy_padded(text, at, rooms[1], 0, sizes[1])
        at = copy_padded(text, put_small(text, at, hits), line_end[0], 0, line_end[1])
        row += 1
    state[NEXT_ROW], state[NEXT_BASE] = row, base
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
    return at


@jit_without_refcounts
def write_sam(
    text: TextArray,
    state: Int64Array,
    queries: QueryColumns,
    padded_codes: CodeArray,
    rows: tuple[StrandRows, StrandRows],
    lookup: Lookup,
    records: RecordTexts,
    heap: Int64Array,
    rooms: tuple[TextArray, TextArray],
    line_end: tuple[TextArray, int],
    row_bytes: int,
) -> int:
    """Write lines from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`. A line with bases may lie in several
    texts.

    Parameters
    ----------
    text : ndarray, dtype=uint8
        Output; up to `OVERSHOOT` bytes after the end may be overwritten.
    state : ndarray, dtype=int64, shape=(STATE_SIZE + 1,)
        Where to go on (`sam_rows.new_state`), and the first base to go on with (`NEXT_BASE`);
        updated.
    queries : tuple of ndarray
        The queries of the block (`line_rows.QueryColumns`).
    padded_codes : ndarray, dtype=uint8
        The codes of the block with margins.
    rows : tuple of tuple of ndarray, dtype=int64
        The matches on each strand, as `match_table.strand_rows` returns them.
    lookup : tuple
        The records of the reference (`line_rows.Lookup`).
    records : tuple of ndarray
        The name of each record and a tab (`line_rows.RecordTexts`).
    heap : ndarray, dtype=int64
        Room for the lengths of the most rows of a query (`sam_rows.hit_heap`).
    rooms : tuple of ndarray, dtype=uint8
        Room for what the lines of a query share, at their start and before the number of a match.
    line_end : tuple of ndarray, dtype=uint8, and int
        What all lines end with, with `OVERSHOOT` bytes after it, and its size.
    row_bytes : int
        The most bytes of a line without bases.

    Returns
    -------
    int
        The number of bytes written.
    """
    query_offsets = queries[0]
    query, strand = state[NEXT_QUERY], state[NEXT_STRAND]
    last_start = text.size - OVERSHOOT - row_bytes
    at = 0
    while query < query_offsets.size - 1 and at <= last_start:
        bounds = query_offsets[unsigned(query)], query_offsets[unsigned(query + 1)]
        name_size = write_name(rooms[0], queries, query)
        if strand == 0 and state[NEXT_ROW] == NOT_BEGUN and state[NEXT_BASE] == NO_BASE:
            begin_query(state, heap, rows, query)
        if state[MATCHES] == 0:
            at, base = _write_unmapped(
                *(text, at, padded_codes, bounds, rooms[0], name_size, state[NEXT_BASE]),
                *(line_end, last_start),
            )
            state[NEXT_BASE] = base
            if base != NO_BASE:
                break
            query += 1
            continue
        sizes = put_tab(rooms[0], name_size), write_hits(rooms[1], state[MATCHES])
        while strand < 2:
            offsets = rows[strand][0]
            end = offsets[unsigned(query + 1)]
            if state[NEXT_ROW] == NOT_BEGUN:
                state[NEXT_ROW] = offsets[unsigned(query)]
            at = _write_rows(
                *(text, at, state, rows[strand], end, padded_codes, lookup, records),
                *(bounds, strand, rooms, sizes, line_end, last_start),
            )
            if state[NEXT_ROW] < end:
                break
            state[NEXT_ROW] = NOT_BEGUN
            strand += 1
        if strand < 2:
            break
        strand = 0
        query += 1
    state[NEXT_QUERY], state[NEXT_STRAND] = query, strand
    return at
