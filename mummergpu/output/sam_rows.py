"""The rows that SAM, BAM and CRAM have for matches: which there are, and their flags and numbers.

Every match of a query is an alignment; a query without a match is an unmapped row. The longest
match of a query, the first of them if several are equally long, is its primary alignment, and the
others are secondary. If there may be at most so many alignments of a query, they are its longest
matches, and of equally long ones the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.input.queries import QueryBlock
from mummergpu.matching.columns import MemColumns
from mummergpu.output.match_table import (
    MOST_ROWS,
    NumberArray,
    StrandRows,
    match_counts,
    strand_rows,
)
from mummergpu.output.record_lookup import BucketArray, Int64Array, RecordLookup, record_at
from mummergpu.runtime.jit import inline_without_refcounts, jit_without_refcounts, unsigned
from mummergpu.sequence.codes import Strand

UNMAPPED: Final = 4
REVERSE: Final = 16
SECONDARY: Final = 256
"""The flags of a row (SAM format specification, section 1.4)."""

NO_RECORD: Final = -1
"""The record and the position of an unmapped row."""

FlagArray = npt.NDArray[np.uint16]
RecordArray = npt.NDArray[np.int32]

# The elements of the state between two tables.
NEXT_QUERY, NEXT_STRAND, NEXT_ROW, HITS, TIES_LEFT, HAS_PRIMARY = 0, 1, 2, 3, 4, 5
_NOT_BEGUN: Final = -1


@dataclass(frozen=True)
class AlignmentTable:
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
    def count(self) -> int:
        """The number of rows."""
        return self.lengths.size


def alignment_tables(
    block: QueryBlock,
    mems: Mapping[Strand, MemColumns],
    lookup: RecordLookup,
    most_hits: int | None = None,
    most_rows: int = MOST_ROWS,
) -> Iterator[AlignmentTable]:
    """Yield the rows of a block, in tables of a limited size.

    Parameters
    ----------
    block : QueryBlock
        The queries.
    mems : mapping of Strand to MemColumns
        Their matches on each strand that was searched.
    lookup : RecordLookup
        The records of the reference.
    most_hits : int or None
        The most alignments of a query, at least 1; None for all.
    most_rows : int
        The most rows of a table, at least 1. A query with more of them goes on in the next table.

    Yields
    ------
    AlignmentTable
        Together they have every row of the block once; none is empty.
    """
    count = block.query_count
    rows = (strand_rows(mems, Strand.FORWARD, block), strand_rows(mems, Strand.REVERSE, block))
    offsets = np.require(block.offsets, requirements=["C", "W"])
    counts = match_counts(block, mems)
    longest, least, ties = (np.empty(count, dtype=np.int64) for _ in range(3))
    left = int(np.maximum(counts, 1).sum())
    heap = np.empty(0 if most_hits is None else min(most_hits, left), dtype=np.int64)
    choose_hits(rows, counts, heap, longest, least, ties)
    state = np.array([0, 0, _NOT_BEGUN, 0, 0, 0], dtype=np.int64)
    while state[NEXT_QUERY] < count:
        # A block can end without a row, such as after the matches that are too many.
        table = _new_table(max(1, min(left, most_rows)))
        filled = fill_alignments(
            state,
            offsets,
            rows,
            *lookup,
            (counts, longest, least, ties),
            (table.queries, table.hit_counts, table.hit_numbers),
            (table.positions, table.clips, table.lengths),
            table.records,
            table.flags,
        )
        left -= filled
        if filled:
            yield _first_rows(table, filled)


@jit_without_refcounts
def choose_hits(
    rows: tuple[StrandRows, StrandRows],
    counts: Int64Array,
    heap: Int64Array,
    longest: Int64Array,
    least: Int64Array,
    ties: Int64Array,
) -> None:
    """Find the lengths that decide which matches of each query are rows, and which is primary.

    Parameters
    ----------
    rows : tuple of tuple of ndarray, dtype=int64
        The matches on each strand, as `match_table.strand_rows` returns them.
    counts : ndarray, dtype=int64, shape=(n_queries,)
        The number of matches of each query.
    heap : ndarray, dtype=int64
        Room for the lengths of the most alignments of a query; empty if there may be any number.
    longest : ndarray, dtype=int64, shape=(n_queries,)
        Receives the length of the longest match; 0 if there is none.
    least : ndarray, dtype=int64, shape=(n_queries,)
        Receives the length of the shortest match that is a row; 0 if all are.
    ties : ndarray, dtype=int64, shape=(n_queries,)
        Receives how many matches of just that length are rows.
    """
    for query in range(counts.size):
        is_limited = 0 < heap.size < counts[query]
        most, used = 0, 0
        for strand in range(2):
            offsets, _, _, sizes = rows[strand]
            for row in range(offsets[query], offsets[query + 1]):
                size = sizes[unsigned(row)]
                most = max(most, size)
                if not is_limited:
                    continue
                if used < heap.size:
                    _add(heap, used, size)
                    used += 1
                elif size > heap[0]:
                    _replace_least(heap, size)
        longest[query] = most
        least[query] = heap[0] if is_limited else 0
        equal = 0
        for place in range(used):
            equal += heap[place] == heap[0]
        ties[query] = equal


@inline_without_refcounts
def _add(heap: Int64Array, used: int, number: int) -> None:
    """Add a number to a heap, whose first element is the least.

    Parameters
    ----------
    heap : ndarray, dtype=int64
        The heap, in its first `used` elements, and room for one more.
    used : int
        How many numbers the heap has.
    number : int
        The number to add.
    """
    place = used
    while place > 0 and heap[(place - 1) >> 1] > number:
        heap[place] = heap[(place - 1) >> 1]
        place = (place - 1) >> 1
    heap[place] = number


@inline_without_refcounts
def _replace_least(heap: Int64Array, number: int) -> None:
    """Put a number into a full heap in place of the least one.

    Parameters
    ----------
    heap : ndarray, dtype=int64
        The heap, whose first element is the least.
    number : int
        The number to put in.
    """
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


@inline_without_refcounts
def _set_row(
    numbers: tuple[NumberArray, NumberArray, NumberArray],
    places: tuple[Int64Array, Int64Array, Int64Array],
    at: int,
    query: int,
    hit_count: int,
    hit_number: int,
    position: int,
    clip: int,
    length: int,
) -> None:
    """Set the numbers of a row.

    Parameters
    ----------
    numbers : tuple of ndarray, dtype=uint32
        Receive the query, the hit count and the hit number.
    places : tuple of ndarray, dtype=int64
        Receive the position, the clip and the length.
    at : int
        The row.
    query, hit_count, hit_number, position, clip, length : int
        As in `AlignmentTable`.
    """
    queries, hit_counts, hit_numbers = numbers
    positions, clips, lengths = places
    queries[unsigned(at)] = query
    hit_counts[unsigned(at)] = hit_count
    hit_numbers[unsigned(at)] = hit_number
    positions[unsigned(at)] = position
    clips[unsigned(at)] = clip
    lengths[unsigned(at)] = length


@jit_without_refcounts
def fill_alignments(
    state: Int64Array,
    query_offsets: Int64Array,
    rows: tuple[StrandRows, StrandRows],
    record_starts: Int64Array,
    buckets: BucketArray,
    bucket_shift: int,
    choice: tuple[Int64Array, Int64Array, Int64Array, Int64Array],
    numbers: tuple[NumberArray, NumberArray, NumberArray],
    places: tuple[Int64Array, Int64Array, Int64Array],
    records: RecordArray,
    flags: FlagArray,
) -> int:
    """Fill a table from `state` on, until the block ends or the table is full.

    Returns the number of rows, and updates `state`.

    Parameters
    ----------
    state : ndarray, dtype=int64, shape=(6,)
        The query, the strand and the row to go on with, the rows of the query so far, how many of
        its matches of the least length may still become rows, and whether it has its primary row.
        The row is -1 if the query has not begun.
    query_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each query begins in the block.
    rows : tuple of tuple of ndarray, dtype=int64
        The matches on each strand, as `match_table.strand_rows` returns them.
    record_starts, buckets, bucket_shift
        The records of the reference (`record_lookup.RecordLookup`).
    choice : tuple of ndarray, dtype=int64
        The number of matches of each query, and what `choose_hits` has found: the longest and the
        least length, and the rows of the least length.
    numbers : tuple of ndarray, dtype=uint32
        Receive the queries, the hit counts and the hit numbers.
    places : tuple of ndarray, dtype=int64
        Receive the positions, the clips and the lengths.
    records : ndarray, dtype=int32
        Receives the records.
    flags : ndarray, dtype=uint16
        Receives the flags.

    Returns
    -------
    int
        The number of rows.
    """
    counts, longest, least, ties = choice
    lengths = places[2]
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    hits, ties_left, has_primary = state[HITS], state[TIES_LEFT], state[HAS_PRIMARY]
    at = 0
    while query < query_offsets.size - 1 and at < lengths.size:
        count, most, fewest = counts[unsigned(query)], longest[unsigned(query)], least[query]
        if count == 0:
            _set_row(numbers, places, at, query, 0, 0, NO_RECORD, 0, 0)
            records[unsigned(at)] = NO_RECORD
            flags[unsigned(at)] = UNMAPPED
            at += 1
            query += 1
            continue
        offsets, starts, joined_positions, sizes = rows[strand]
        if row == _NOT_BEGUN:
            row = offsets[unsigned(query)]
            if strand == 0:
                hits, ties_left, has_primary = 0, ties[unsigned(query)], 0
        end = offsets[unsigned(query + 1)]
        while row < end and at < lengths.size:
            size = sizes[unsigned(row)]
            if size <= fewest:
                if size < fewest or ties_left == 0:
                    row += 1
                    continue
                ties_left -= 1
            flag = REVERSE * strand
            if size == most and has_primary == 0:
                has_primary = 1
            else:
                flag += SECONDARY
            hits += 1
            position = joined_positions[unsigned(row)]
            record = record_at(record_starts, buckets, bucket_shift, position)
            in_record = position - record_starts[unsigned(record)]
            # On the strand that was searched, the query lies as the reference does.
            clip = starts[unsigned(row)]
            _set_row(numbers, places, at, query, count, hits, in_record, clip, size)
            records[unsigned(at)] = record
            flags[unsigned(at)] = flag
            row += 1
            at += 1
        if row < end:
            break
        row = _NOT_BEGUN
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    state[HITS], state[TIES_LEFT], state[HAS_PRIMARY] = hits, ties_left, has_primary
    return at


def _new_table(room: int) -> AlignmentTable:
    queries, hit_counts, hit_numbers = (np.empty(room, dtype=np.uint32) for _ in range(3))
    positions, clips, lengths = (np.empty(room, dtype=np.int64) for _ in range(3))
    records, flags = np.empty(room, dtype=np.int32), np.empty(room, dtype=np.uint16)
    return AlignmentTable(
        queries, records, positions, clips, lengths, flags, hit_counts, hit_numbers
    )


def _first_rows(table: AlignmentTable, count: int) -> AlignmentTable:
    return AlignmentTable(
        table.queries[:count],
        table.records[:count],
        table.positions[:count],
        table.clips[:count],
        table.lengths[:count],
        table.flags[:count],
        table.hit_counts[:count],
        table.hit_numbers[:count],
    )
