"""Maximal exact matches as columns, the result of every search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.sequence.strand import Strand

ColumnArray = Int64Array


ALL_SEEDS: Final = 255
"""The number of seeds of a query of which no match was left out."""

NOTHING_LEFT_OUT: Final = np.zeros(0, dtype=np.uint8)
"""The seeds of queries of which no match was left out."""


class MemRows(NamedTuple):
    """The columns with one number per match, for compiled functions (`MemColumns`)."""

    query_starts: ColumnArray
    reference_starts: ColumnArray
    lengths: ColumnArray


class MemColumns(NamedTuple):
    """The matches of a block of queries on one strand, also for compiled functions.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the rows of each query begin, and where those of the last query end. Within a query,
        rows ascend by query start, then by reference start; in the matches of a mapper they are in
        any order.
    query_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, on the strand that was searched: on the reverse strand, positions count from the
        first base of the reverse complement.
    reference_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, in the joined reference.
    lengths : ndarray, dtype=int64, shape=(n_mems,)
        In bases.
    seeds : ndarray, dtype=uint8, shape=(n_queries,)
        For each query with matches left out, the number of disjoint seeds whose matches were all
        kept (`seed_rule`); otherwise `ALL_SEEDS`. Empty if no query had matches left out.
    """

    offsets: Int64Array
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array
    seeds: ByteArray = NOTHING_LEFT_OUT

    @property
    def count(self) -> int:  # type: ignore[override]
        """The number of matches."""
        return self.lengths.size

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return self.offsets.size - 1

    @property
    def rows(self) -> MemRows:
        """The columns without the offsets."""
        return MemRows(self.query_starts, self.reference_starts, self.lengths)

    def part(self, first: int, end: int) -> MemColumns:
        """Return the matches of a range of the queries, as views of the arrays."""
        offsets = self.offsets[first : end + 1]
        rows = MemRows(*(column[offsets[0] : offsets[-1]] for column in self.rows))
        return MemColumns(offsets - offsets[0], *rows, self.seeds[first:end])


BlockMems = Mapping[Strand, MemColumns]
"""The matches of a block of queries, on each strand that was searched."""


def match_count(mems: Mapping[Any, MemColumns]) -> int:
    """Return the number of matches of a block, on all strands."""
    return sum(columns.count for columns in mems.values())


def longer_rows(rows: MemRows, filled: int, count: int) -> MemRows:
    """Return columns for `count` matches, with the filled rows copied."""
    longer = new_rows(count)
    for column, longer_column in zip(rows, longer, strict=True):
        longer_column[:filled] = column[:filled]
    return longer


def join_rows(parts: Iterable[MemRows]) -> MemRows:
    """Return the columns of all parts, one after the other."""
    return MemRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def new_rows(count: int) -> MemRows:
    """Return empty columns for `count` matches."""
    return MemRows(*(np.empty(count, dtype=np.int64) for _ in MemRows._fields))
