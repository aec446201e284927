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
from mummergpu.output.bytes.texts import (
    QueryColumns,
    RecordTexts,
    TextArray,
    query_columns,
    texts_of,
)
from mummergpu.output.sink import PieceFormat
from mummergpu.runtime.arrays import BoolArray, Int64Array, UInt32Array
from mummergpu.runtime.jit import as_index, jit, writable
from mummergpu.sequence.codes import CodeArray
from mummergpu.sequence.mems import BlockMems, MemColumns, MemRows, match_count
from mummergpu.sequence.strand import Strand

NumberArray = UInt32Array


BothStrands = tuple[MemColumns, MemColumns]
"""The matches of a block on the forward strand, and on the reverse one."""


class MatchBlock(NamedTuple):
    """What a compiled loop needs to write the matches of a block.

    `codes` are those of the queries, with margins; `records` is what a line says of each record.
    """

    queries: QueryColumns
    codes: CodeArray
    rows: BothStrands
    lookup: RecordLookup
    records: RecordTexts


MOST_ROWS: Final = 1 << 17
"""The rows of a table, unless another number is asked for: a few megabytes."""

NEXT_QUERY, NEXT_STRAND, NEXT_ROW = 0, 1, 2
"""The elements of the state of a loop over the rows of a block: where it goes on."""

NOT_BEGUN: Final = -1
"""The next row of a query that has not begun on a strand."""


class MatchTable(NamedTuple):
    """Matches of a block, query by query, forward strand before reverse; a compiled loop fills it.

    Attributes
    ----------
    queries, records : ndarray, dtype=uint32, shape=(n_matches,)
        The numbers of the query in its block, and of the record of the reference.
    query_starts, reference_starts, lengths : ndarray, dtype=int64, shape=(n_matches,)
        0-based, on the forward strand of the query whatever the strand, and in the record.
    is_reverse : ndarray, dtype=bool, shape=(n_matches,)
        Whether the reverse complement of the query matches.
    """

    queries: NumberArray
    records: NumberArray
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array
    is_reverse: BoolArray

    @classmethod
    def of_size(cls, rows: int) -> MatchTable:
        """Return a table to be filled."""
        kinds = (np.uint32, np.uint32, np.int64, np.int64, np.int64, np.bool_)
        return cls._make(np.empty(rows, dtype=kind) for kind in kinds)


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
        table = MatchTable.of_size(min(left, max_rows))
        count = fill_table(state, query_offsets, rows, lookup, table)
        left -= count
        yield MatchTable._make(column[:count] for column in table)


def match_table(
    block: QueryBlock, mems: Mapping[Strand, MemColumns], lookup: RecordLookup
) -> MatchTable:
    """Return all matches of a block in one table (`match_tables`)."""
    tables = match_tables(block, mems, lookup, max(1, match_count(mems)))
    return next(tables, MatchTable.of_size(0))


@jit
def fill_table(
    state: Int64Array,
    query_offsets: Int64Array,
    rows: BothStrands,
    lookup: RecordLookup,
    table: MatchTable,
) -> int:
    """Fill a table from `state` on, until the block ends or the table is full.

    Returns the number of rows, and updates `state`.
    """
    query, strand, row = state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW]
    at = 0
    while query < query_offsets.size - 1:
        own = rows[strand]
        row = own.offsets[as_index(query)] if row == NOT_BEGUN else row
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
        if row < end:
            break
        row = NOT_BEGUN
        strand = 1 - strand
        query += 1 - strand
    state[NEXT_QUERY], state[NEXT_STRAND], state[NEXT_ROW] = query, strand, row
    return at


class MatchPieces(PieceFormat[QueryBlock, BlockMems]):
    """A format of matches that a compiled loop fills, piece by piece.

    `record_texts` are what rows say of each record of the reference.
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
        self, block: QueryBlock, state: Int64Array, row_bytes: int, fill: Callable[[TextArray], int]
    ) -> Iterator[TextArray]:
        """Yield the text of a block; `fill` goes on from `state`, and needs room for a row."""
        while state[NEXT_QUERY] < block.query_count:
            # A block can end without a row, such as after the matches that are too many.
            if (text := self._piece(row_bytes, fill)).size:
                yield text


def both_strands(mems: Mapping[Strand, MemColumns], block: QueryBlock) -> BothStrands:
    """Return the matches on both strands; there are none on one that was not searched."""
    return _strand_rows(mems, Strand.FORWARD, block), _strand_rows(mems, Strand.REVERSE, block)


def _strand_rows(
    mems: Mapping[Strand, MemColumns], strand: Strand, block: QueryBlock
) -> MemColumns:
    if strand not in mems:
        none = np.empty(0, dtype=np.int64)
        return MemColumns(np.zeros(block.query_count + 1, dtype=np.int64), none, none, none)
    found = mems[strand]
    return MemColumns(writable(found.offsets), *MemRows(*map(writable, found.rows)))
