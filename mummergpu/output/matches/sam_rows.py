"""The rows that SAM, BAM and CRAM have for matches: which there are, and their flags and numbers.

Every match of a query is an alignment; a query without a match is an unmapped row. The longest
match of a query, the first of them if several are equally long, is its primary alignment, and the
others are secondary. If there may be at most so many alignments of a query, they are its longest
matches, and of equally long ones the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, record_at
from mummergpu.output.matches.match_table import (
    MOST_ROWS,
    BothStrands,
    NumberArray,
    both_strands,
    match_counts,
)
from mummergpu.output.matches.match_table import (
    NEXT_QUERY as NEXT_QUERY,
)
from mummergpu.output.matches.match_table import (
    NEXT_ROW as NEXT_ROW,
)
from mummergpu.output.matches.match_table import (
    NEXT_STRAND as NEXT_STRAND,
)
from mummergpu.output.matches.match_table import (
    NOT_BEGUN as NOT_BEGUN,
)
from mummergpu.runtime.arrays import Int32Array, Int64Array, UInt16Array
from mummergpu.runtime.jit import (
    as_index,
    as_int64,
    inline_without_refcounts,
    jit_without_refcounts,
    writable,
)
from mummergpu.sequence.codes import Strand
from mummergpu.sequence.mems import MemColumns, match_count

UNMAPPED: Final = 4
REVERSE: Final = 16
SECONDARY: Final = 256
"""The flags of a row (SAM format specification, section 1.4)."""

NO_ROW: Final = -1
"""What `flag_of` returns for a match that is no row."""

MATCHES, LONGEST, LEAST = 3, 4, 5
"""The elements of the state, after where a loop goes on, with what is known of the query: how many
matches it has, and the longest and the least length of its rows; the latter is 0 if all matches are
rows."""

HITS, TIES_LEFT, HAS_PRIMARY = 6, 7, 8
"""The elements with what has become of its matches so far: the number of rows, how many matches of
the least length may still become rows, and whether there was the primary row."""

STATE_SIZE: Final = 9

_STEP: Final = 8


@inline_without_refcounts
def begin_query(state: Int64Array, heap: Int64Array, rows: BothStrands, query: int) -> None:
    """Find what decides on the rows of a query."""
    count, longest = 0, 0
    for strand in range(2):
        own = rows[strand]
        begin, end = own.offsets[as_index(query)], own.offsets[as_index(query + 1)]
        count += end - begin
        longest = max(longest, _longest(own.lengths, begin, end))
    state[MATCHES], state[LONGEST], state[LEAST] = count, longest, 0
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = 0, 0, 0
    if 0 < heap.size < count:
        _fill_heap(heap, rows, query)
        state[LEAST] = heap[0]
        for place in range(heap.size):
            state[TIES_LEFT] += heap[place] == heap[0]


@inline_without_refcounts
def _longest(sizes: Int64Array, begin: int, end: int) -> int:
    """Return the largest of some sizes."""
    longest = 0
    # The first step is taken for an empty range too: most queries have few matches on a strand, and
    # the processor cannot predict which of them have none.
    first = begin
    while True:
        if first + _STEP <= sizes.size:
            for lane in range(_STEP):
                in_range = as_int64(first + lane < end)
                longest = max(longest, sizes[as_index(first + lane)] & -in_range)
        else:
            for row in range(first, end):
                longest = max(longest, sizes[as_index(row)])
        first += _STEP
        if first >= end:
            break
    return longest


@inline_without_refcounts
def flag_of(size: int, longest: int, least: int, ties_left: int, has_primary: int) -> int:
    """Return the flag of a match without its strand, `NO_ROW` if it is no row."""
    if size <= least and (size < least or ties_left == 0):
        return NO_ROW
    return 0 if size == longest and has_primary == 0 else SECONDARY


@inline_without_refcounts
def _fill_heap(heap: Int64Array, rows: BothStrands, query: int) -> None:
    """Put the lengths of the longest matches of a query into a heap, as many as it holds."""
    used = 0
    for strand in range(2):
        own = rows[strand]
        for row in range(own.offsets[query], own.offsets[query + 1]):
            size = own.lengths[row]
            if used < heap.size:
                _add(heap, used, size)
                used += 1
            elif size > heap[0]:
                _replace_least(heap, size)


@inline_without_refcounts
def _add(heap: Int64Array, used: int, number: int) -> None:
    """Add a number to a heap, whose first element is the least."""
    place = used
    while place > 0 and heap[(place - 1) >> 1] > number:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = number


@inline_without_refcounts
def _replace_least(heap: Int64Array, number: int) -> None:
    """Put a number into a full heap in place of the least one."""
    place = 0
    while 2 * place + 1 < heap.size:
        child = 2 * place + 1
        if child + 1 < heap.size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= number:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = number


NO_RECORD: Final = -1
"""The record and the position of an unmapped row."""

FlagArray = UInt16Array
RecordArray = Int32Array


class AlignmentTable(NamedTuple):
    """Rows of some queries of a block, in the order of the output.

    Attributes
    ----------
    queries : ndarray, dtype=uint32, shape=(n_rows,)
        The number of the query in its block.
    records : ndarray, dtype=int32, shape=(n_rows,)
        The number of the record of the reference; `NO_RECORD` in an unmapped row.
    positions : ndarray, dtype=int64, shape=(n_rows,)
        0-based, in the record; `NO_RECORD` in an unmapped row.
    clips : ndarray, dtype=int64, shape=(n_rows,)
        The bases of the query before the match, on the forward strand of the reference.
    lengths : ndarray, dtype=int64, shape=(n_rows,)
        The bases of the match; 0 in an unmapped row.
    flags : ndarray, dtype=uint16, shape=(n_rows,)
        `UNMAPPED`, or the sum of `REVERSE` and `SECONDARY`, or 0. A row has the bases of its query
        if it is not secondary.
    hit_counts : ndarray, dtype=uint32, shape=(n_rows,)
        How many matches the query has, on both strands, also those without a row (NH).
    hit_numbers : ndarray, dtype=uint32, shape=(n_rows,)
        The number of the row among those of its query, from 1 (HI); 0 in an unmapped row.
    """

    queries: NumberArray
    records: RecordArray
    positions: Int64Array
    clips: Int64Array
    lengths: Int64Array
    flags: FlagArray
    hit_counts: NumberArray
    hit_numbers: NumberArray

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.lengths.size


def alignment_tables(
    block: QueryBlock,
    mems: Mapping[Strand, MemColumns],
    lookup: RecordLookup,
    most_hits: int | None = None,
    most_rows: int = MOST_ROWS,
) -> Iterator[AlignmentTable]:
    """Yield the rows of a block, in tables of a limited size."""
    rows = both_strands(mems, block)
    offsets = writable(block.offsets)
    heap = hit_heap(mems, most_hits)
    left = int(np.maximum(match_counts(block, mems), 1).sum())
    state = new_state()
    while state[NEXT_QUERY] < block.query_count:
        # A block can end without a row, such as after the matches that are too many.
        table = _new_table(max(1, min(left, most_rows)))
        filled = list_match_rows(state, offsets, rows, lookup, heap, table)
        left -= filled
        if filled:
            yield AlignmentTable._make(column[:filled] for column in table)


def hit_heap(mems: Mapping[Strand, MemColumns], most_hits: int | None) -> Int64Array:
    """Return the room that `begin_query` needs for the most rows of a query."""
    count = match_count(mems)
    return np.empty(0 if most_hits is None else min(most_hits, count), dtype=np.int64)


def new_state(*more: int) -> Int64Array:
    """Return the state of a loop over the rows of a block, with some elements more."""
    state = np.array([0] * STATE_SIZE + list(more), dtype=np.int64)
    state[NEXT_ROW] = NOT_BEGUN
    return state


@jit_without_refcounts
def list_match_rows(
    state: Int64Array,
    query_offsets: Int64Array,
    rows: BothStrands,
    lookup: RecordLookup,
    heap: Int64Array,
    table: AlignmentTable,
) -> int:
    """Fill a table from `state` on, until the block ends or the table is full.

    Returns the number of rows, and updates `state`.
    """
    most = table.lengths.size
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    at = 0
    while query < query_offsets.size - 1 and at < most:
        own = rows[strand]
        if row == NOT_BEGUN:
            row = own.offsets[as_index(query)]
            if strand == 0:
                begin_query(state, heap, rows, query)
        count, longest, least = state[MATCHES], state[LONGEST], state[LEAST]
        if count == 0:
            _set_row(table, at, query, NO_RECORD, NO_RECORD, UNMAPPED)
            _set_match(table, at, 0, 0, 0, 0)
            at += 1
            query += 1
            row = NOT_BEGUN
            continue
        end = own.offsets[as_index(query + 1)]
        # What the choice depends on stays in registers during a query.
        hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
        while row < end and at < most:
            size, position = own.lengths[as_index(row)], own.positions[as_index(row)]
            # On the strand that was searched, the query lies as the reference does.
            clip = own.starts[as_index(row)]
            flag = flag_of(size, longest, least, ties_left, has_primary)
            row += 1
            if flag == NO_ROW:
                continue
            ties_left -= size == least
            has_primary |= flag == 0
            hits += 1
            record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position)
            in_record = position - lookup.starts[as_index(record)]
            _set_row(table, at, query, record, in_record, flag + REVERSE * strand)
            _set_match(table, at, clip, size, count, hits)
            at += 1
        state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
        if row < end:
            break
        row = NOT_BEGUN
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at


@inline_without_refcounts
def _set_row(
    table: AlignmentTable, at: int, query: int, record: int, position: int, flag: int
) -> None:
    """Set the query, the place and the flag of a row."""
    table.queries[as_index(at)] = query
    table.records[as_index(at)] = record
    table.positions[as_index(at)] = position
    table.flags[as_index(at)] = flag


@inline_without_refcounts
def _set_match(
    table: AlignmentTable, at: int, clip: int, length: int, hit_count: int, hit_number: int
) -> None:
    """Set the match of a row, and its number among those of the query."""
    table.clips[as_index(at)] = clip
    table.lengths[as_index(at)] = length
    table.hit_counts[as_index(at)] = hit_count
    table.hit_numbers[as_index(at)] = hit_number


def _new_table(room: int) -> AlignmentTable:
    queries, hit_counts, hit_numbers = (np.empty(room, dtype=np.uint32) for _ in range(3))
    positions, clips, lengths = (np.empty(room, dtype=np.int64) for _ in range(3))
    records, flags = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.uint16)
    return AlignmentTable(
        queries, records, positions, clips, lengths, flags, hit_counts, hit_numbers
    )
