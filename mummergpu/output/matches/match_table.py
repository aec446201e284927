"""Matches as a table in the order of the output, with records and forward positions.

A search returns columns for each strand, with positions in the joined reference and on the strand
that was searched (`mems.MemColumns`). Most formats want each match as a row: its query, its
record, and positions in the record and on the forward strand of the query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from mummergpu.input.blocks.queries import QueryBlock
from mummergpu.input.reference import RecordLookup, Reference, record_at, record_lookup
from mummergpu.output.bytes.text_arrays import QueryColumns, RecordTexts, query_columns, texts_of
from mummergpu.output.bytes.text_stores import OVERSHOOT, TextArray
from mummergpu.output.sink import PieceFormat
from mummergpu.runtime.arrays import BoolArray, Int64Array, UInt32Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, jit, writable
from mummergpu.sequence.codes import CodeArray, Strand
from mummergpu.sequence.mems import BlockMems, MemColumns, MemRows, match_count

NumberArray = UInt32Array


BothStrands = tuple[MemColumns, MemColumns]
"""The matches of a block on the forward strand, and on the reverse one."""


class MatchBlock(NamedTuple):
    """What a compiled loop needs to write the matches of a block.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The codes of the queries, with margins.
    records : RecordTexts
        What a line says of each record of the reference.
    """

    queries: QueryColumns
    codes: CodeArray
    rows: BothStrands
    lookup: RecordLookup
    records: RecordTexts


class TableColumns(NamedTuple):
    """The columns of a `MatchTable` that a compiled loop fills."""

    queries: NumberArray
    records: NumberArray
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray


MOST_ROWS: Final = 1 << 17
"""The rows of a table, unless another number is asked for: a few megabytes."""

NEXT_QUERY, NEXT_STRAND, NEXT_ROW = 0, 1, 2
"""The elements of the state of a loop over the rows of a block: where it goes on."""

NOT_BEGUN: Final = -1
"""The next row of a query that has not begun on a strand."""


@frozen
class MatchTable:
    """Matches of some queries of a block: query by query, forward strand before reverse.

    Attributes
    ----------
    first_query, end_query : int
        The queries whose rows begin in this table, or that have no rows. The rows of one that began
        in the table before can go on at the beginning of this one.
    queries : ndarray, dtype=uint32, shape=(n_matches,)
        The number of the query in its block.
    records : ndarray, dtype=uint32, shape=(n_matches,)
        The number of the record of the reference.
    query_starts : ndarray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query, also for matches on the reverse strand.
    reference_starts : ndarray, dtype=int64, shape=(n_matches,)
        0-based, in the record.
    lengths : ndarray, dtype=int64, shape=(n_matches,)
        In bases.
    is_reverse : ndarray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    """

    first_query: int
    end_query: int
    queries: NumberArray
    records: NumberArray
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray

    @property
    def count(self) -> int:
        """The number of matches."""
        return self.lengths.size


def match_tables(
    block: QueryBlock,
    mems: Mapping[Strand, MemColumns],
    lookup: RecordLookup,
    max_rows: int = MOST_ROWS,
) -> Iterator[MatchTable]:
    """Yield all matches of a block, in tables of a limited size."""
    rows = both_strands(mems, block)
    left = match_count(mems)
    state = np.array([0, 0, NOT_BEGUN], dtype=np.int64)
    query_offsets = writable(block.offsets)
    while state[NEXT_QUERY] < block.query_count:
        first = int(state[NEXT_QUERY]) + int(state[NEXT_ROW] != NOT_BEGUN)
        room = min(left, max_rows)
        queries, records = (np.empty(room, dtype=np.uint32) for _ in range(2))
        query_starts, reference_starts, lengths = (np.empty(room, dtype=np.int64) for _ in range(3))
        is_reverse = np.empty(room, dtype=np.bool_)
        columns = TableColumns(
            queries, records, query_starts, reference_starts, lengths, is_reverse
        )
        count = fill_table(state, query_offsets, rows, lookup, columns)
        left -= count
        end = int(state[NEXT_QUERY]) + int(state[NEXT_ROW] != NOT_BEGUN)
        yield MatchTable(
            first,
            end,
            queries[:count],
            records[:count],
            query_starts[:count],
            reference_starts[:count],
            lengths[:count],
            is_reverse[:count],
        )


def match_table(
    block: QueryBlock, mems: Mapping[Strand, MemColumns], lookup: RecordLookup
) -> MatchTable:
    """Return all matches of a block in one table (`match_tables`)."""
    count = match_count(mems)
    tables = list(match_tables(block, mems, lookup, max(1, count)))
    if tables:
        return tables[0]
    none = np.empty(0, dtype=np.int64)
    numbers = np.empty(0, dtype=np.uint32)
    return MatchTable(0, 0, numbers, numbers, none, none, none, np.empty(0, dtype=np.bool_))


def match_counts(block: QueryBlock, mems: Mapping[Strand, MemColumns]) -> Int64Array:
    """Return how many matches each query has: ndarray, dtype=int64, shape=(n_queries,)."""
    counts = np.zeros(block.query_count, dtype=np.int64)
    for columns in mems.values():
        counts += np.diff(columns.offsets)
    return counts


@jit
def fill_table(
    state: Int64Array,
    query_offsets: Int64Array,
    rows: BothStrands,
    lookup: RecordLookup,
    table: TableColumns,
) -> int:
    """Fill a table from `state` on, until the block ends or the table is full.

    Returns the number of rows, and updates `state`.
    """
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    # A query that has no row in this table is left to the next one as a whole.
    has_begun = row >= 0
    at = 0
    while query < query_offsets.size - 1:
        own = rows[strand]
        if row < 0:
            row = own.offsets[as_index(query)]
        end = own.offsets[as_index(query + 1)]
        query_length = query_offsets[as_index(query + 1)] - query_offsets[as_index(query)]
        last = min(end, row + table.lengths.size - at)
        while row < last:
            position, size = own.reference_starts[as_index(row)], own.lengths[as_index(row)]
            start = own.query_starts[as_index(row)]
            record = record_at(lookup.starts, lookup.buckets, lookup.bucket_shift, position)
            table.queries[as_index(at)] = query
            table.records[as_index(at)] = record
            table.query_starts[as_index(at)] = query_length - start - size if strand == 1 else start
            table.reference_starts[as_index(at)] = position - lookup.starts[as_index(record)]
            table.lengths[as_index(at)] = size
            table.is_reverse[as_index(at)] = strand == 1
            row += 1
            at += 1
            has_begun = True
        if row < end:
            if not has_begun:
                strand, row = 0, -1
            break
        row = -1
        strand = 1 - strand
        if strand == 0:
            query += 1
            has_begun = False
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at


class MatchPieces(PieceFormat[QueryBlock, BlockMems]):
    """A format of matches that a compiled loop fills, piece by piece.

    Parameters
    ----------
    record_texts : iterable of bytes
        What rows say of each record of the reference (`MatchBlock`).
    """

    def __init__(
        self, reference: Reference, record_texts: Iterable[bytes], piece_bytes: int
    ) -> None:
        super().__init__(piece_bytes)
        self._lookup = record_lookup(reference.record_starts, reference.codes.size)
        self._records = texts_of(record_texts)
        self._longest_record = int(np.diff(self._records.offsets).max(initial=0))

    def _match_block(self, block: QueryBlock, mems: BlockMems) -> MatchBlock:
        """Return the queries of a block and their matches for a compiled loop."""
        return MatchBlock(
            query_columns(block),
            writable(block.padded_codes),
            both_strands(mems, block),
            self._lookup,
            self._records,
        )

    def _pieces(
        self,
        block: QueryBlock,
        state: Int64Array,
        row_bytes: int,
        fill: Callable[[TextArray], int],
    ) -> Iterator[TextArray]:
        """Yield the text of a block; `fill` goes on from `state`, and needs room for a row."""
        while state[NEXT_QUERY] < block.query_count:
            text = self._pool.room_for(max(row_bytes, self._pool.piece_bytes))
            # A block can end without a row, such as after the matches that are too many.
            if filled := fill(text):
                # Wide stores are not among what numba checks.
                assert filled <= text.size - OVERSHOOT
                yield text[:filled]


def both_strands(mems: Mapping[Strand, MemColumns], block: QueryBlock) -> BothStrands:
    """Return the matches on both strands; there are none on one that was not searched."""
    return strand_rows(mems, Strand.FORWARD, block), strand_rows(mems, Strand.REVERSE, block)


def strand_rows(mems: Mapping[Strand, MemColumns], strand: Strand, block: QueryBlock) -> MemColumns:
    """Return the matches on a strand; there are none on one that was not searched."""
    if strand not in mems:
        none = np.empty(0, dtype=np.int64)
        return MemColumns(np.zeros(block.query_count + 1, dtype=np.int64), none, none, none)
    found = mems[strand]
    return MemColumns(writable(found.offsets), *MemRows(*map(writable, found.rows)))
