"""The compiled loop that writes the lines of SAM."""

from __future__ import annotations

from typing import Final

from mummergpu.output.bytes.text_arrays import QueryColumns, RecordTexts
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray, copy_padded
from mummergpu.output.matches.line_rows import Lookup
from mummergpu.output.matches.match_table import StrandRows
from mummergpu.output.matches.sam_choice import (
    HAS_PRIMARY,
    HITS,
    LEAST,
    LONGEST,
    MATCHES,
    NEXT_QUERY,
    NEXT_ROW,
    NO_ROW,
    NOT_BEGUN,
    STATE_SIZE,
    TIES_LEFT,
    begin_query,
    flag_of,
)
from mummergpu.output.matches.sam_fields import (
    begin_bases,
    begin_unmapped,
    end_unmapped,
    place_of,
    put_hits,
    put_name,
    write_cigar,
    write_part,
    write_record,
    write_scores,
)
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
)
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
    names: TextArray,
    name_bounds: tuple[int, int],
    base: int,
    line_end: tuple[TextArray, int],
    last_start: int,
) -> tuple[int, int]:
    """Write the line of a query without a match from `base` on, as far as there is room.

    Returns where the text ends, and the first base that is not written, or `NO_BASE` if the line is
    complete.
    """
    if base == NO_BASE:
        at = put_name(text, at, names, name_bounds[0], name_bounds[1])
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
    rows: tuple[StrandRows, StrandRows],
    query: int,
    padded_codes: CodeArray,
    lookup: Lookup,
    records: RecordTexts,
    bounds: tuple[int, int],
    names: TextArray,
    name_bounds: tuple[int, int],
    line_end: tuple[TextArray, int],
    with_bases: bool,
    last_start: int,
) -> int:
    """Write the lines of a query with matches from `state` on, as far as there is room.

    Returns where the text ends, and updates `state`.
    """
    forward, reverse = rows
    count, longest, least = state[MATCHES], state[LONGEST], state[LEAST]
    query_length = bounds[1] - bounds[0]
    place, base = state[NEXT_ROW], state[NEXT_BASE]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    # The rows on both strands are one range for one loop, without a branch for the strand.
    begin = forward[0][as_index(query)]
    forward_count = forward[0][as_index(query + 1)] - begin
    reverse_begin = reverse[0][as_index(query)] - forward_count
    while place < count and at <= last_start:
        strand = as_int64(place >= forward_count)
        starts, positions, lengths = reverse[1:] if strand == 1 else forward[1:]
        row = place + (reverse_begin if strand == 1 else begin)
        length = lengths[as_index(row)]
        has_bases = True
        if base == NO_BASE:
            flag = flag_of(length, longest, least, ties_left, has_primary)
            if flag == NO_ROW:
                place += 1
                continue
            record, position = place_of(lookup, positions[as_index(row)])
            clip = starts[as_index(row)]
            ties_left -= length == least
            has_primary |= flag == 0
            hits += 1
            at = put_name(text, at, names, name_bounds[0], name_bounds[1])
            kind = 2 * (flag != 0) + strand
            at = write_record(text, at, records, record, kind, position)
            at = write_cigar(text, at, clip, length, query_length - clip - length)
            has_bases = with_bases or flag == 0
            if has_bases:
                at = begin_bases(text, at)
                base = 0
        if has_bases:
            at, base = write_part(text, at, padded_codes, bounds, base, strand == 1)
            if base < query_length or at > last_start:
                break
            base = NO_BASE
        at = write_scores(text, at, has_bases, length)
        at = put_hits(text, at, count, hits)
        at = copy_padded(text, at, line_end[0], 0, line_end[1])
        place += 1
    state[NEXT_ROW], state[NEXT_BASE] = place, base
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
    line_end: tuple[TextArray, int],
    with_bases: bool,
    row_bytes: int,
) -> int:
    """Write lines from `state` on, until the block ends or the text is full.

    Returns the number of bytes written, and updates `state`. A line with bases may lie in several
    texts.
    """
    query_offsets, names, name_offsets = queries
    query = state[NEXT_QUERY]
    last_start = text.size - OVERSHOOT - row_bytes
    at = 0
    while query < query_offsets.size - 1 and at <= last_start:
        bounds = query_offsets[as_index(query)], query_offsets[as_index(query + 1)]
        name_bounds = name_offsets[as_index(query)], name_offsets[as_index(query + 1)]
        if state[NEXT_ROW] == NOT_BEGUN:
            begin_query(state, heap, rows, query)
            state[NEXT_ROW] = 0
        if state[MATCHES] == 0:
            at, base = _write_unmapped(
                *(text, at, padded_codes, bounds, names, name_bounds, state[NEXT_BASE]),
                *(line_end, last_start),
            )
            state[NEXT_BASE] = base
            if base != NO_BASE:
                break
        else:
            at = _write_rows(
                *(text, at, state, rows, query, padded_codes, lookup, records),
                *(bounds, names, name_bounds, line_end, with_bases, last_start),
            )
            if state[NEXT_ROW] < state[MATCHES]:
                break
        state[NEXT_ROW] = NOT_BEGUN
        query += 1
    state[NEXT_QUERY] = query
    return at
