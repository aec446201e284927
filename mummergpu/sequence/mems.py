"""Maximal exact matches as columns, the result of every search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mummergpu.runtime.arrays import Int64Array
from mummergpu.sequence.codes import Strand

ColumnArray = Int64Array


@dataclass(frozen=True)
class MemColumns:
    """The matches of a block of queries on one strand.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the rows of each query begin, and where those of the last query end. Within a
        query, rows ascend by query start, then by reference start.
    query_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, on the strand that was searched: on the reverse strand, positions count
        from the first base of the reverse complement.
    reference_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, in the joined reference.
    lengths : ndarray, dtype=int64, shape=(n_mems,)
        In bases.
    """

    offsets: Int64Array
    query_starts: Int64Array
    reference_starts: Int64Array
    lengths: Int64Array

    @property
    def count(self) -> int:
        """The number of matches."""
        return self.lengths.size


BlockMems = Mapping[Strand, MemColumns]
"""The matches of a block of queries, on each strand that was searched."""


def match_count(mems: Mapping[Any, MemColumns]) -> int:
    """Return the number of matches of a block, on all strands."""
    return sum(columns.count for columns in mems.values())


def new_columns(count: int) -> tuple[ColumnArray, ColumnArray, ColumnArray]:
    """Return empty arrays for the query starts, reference starts and lengths of `count` rows."""
    return (
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
    )
