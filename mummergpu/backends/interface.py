"""What every backend takes and gives: a page and a block of queries in, match columns out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mummergpu.index import IndexedPage
from mummergpu.reads import QueryBlock
from mummergpu.sequence import CodeArray

ColumnArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemColumns:
    """The matches of a block of queries on one strand.

    Attributes
    ----------
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the rows of each query begin, and where those of the last end. Within a
        query, rows ascend by query start, then by reference start.
    query_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, on the strand that was searched: on the reverse strand, positions count
        from the first base of the reverse complement.
    reference_starts : ndarray, dtype=int64, shape=(n_mems,)
        0-based, in the joined reference.
    lengths : ndarray, dtype=int64, shape=(n_mems,)
        In bases.
    """

    offsets: npt.NDArray[np.int64]
    query_starts: npt.NDArray[np.int64]
    reference_starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        """The number of matches."""
        return self.lengths.size


def new_columns(count: int) -> tuple[ColumnArray, ColumnArray, ColumnArray]:
    """Return room for the query starts, reference starts and lengths of `count` rows."""
    return (
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
        np.empty(count, dtype=np.int64),
    )


class Backend(Protocol):
    """What finds the MEMs of a block of queries on a page; shared by several threads."""

    name: str

    def find_mems(
        self, indexed: IndexedPage, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs between one page and a block of queries on one strand.

        Parameters
        ----------
        indexed : IndexedPage
            The page to search.
        block : QueryBlock
            The queries.
        codes : ndarray, dtype=uint8, shape=(block.base_count,)
            Their bases on the strand that is to be searched, at the block's offsets.
        most : int
            The most rows to make room for.

        Returns
        -------
        MemColumns or None
            The MEMs that start in the owned part of the page, or None if there are more
            than `most`: cut the block and ask again.
        """
        ...
