"""Blocks of queries: what the reader hands to the backends.

Queries are read from files in order and handed on in blocks of about equally many bases;
a block is a few arrays, whatever the number of its reads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mummergpu.sequence import CodeArray

OffsetArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class QueryBlock:
    """Queries that are read, matched and written together.

    Attributes
    ----------
    index : int
        The number of the block, counted from 0 in the order of the input.
    codes : ndarray, dtype=uint8, shape=(n_bases,)
        The base codes of all queries, one behind the other, on the forward strand.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where in `codes` each query begins, and where the last ends.
    names : ndarray, dtype=uint8, shape=(n_name_bytes,)
        The names, one behind the other, cut at the first white space.
    name_offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where in `names` each name begins, and where the last ends.
    """

    index: int
    codes: CodeArray
    offsets: OffsetArray
    names: npt.NDArray[np.uint8]
    name_offsets: OffsetArray

    @property
    def query_count(self) -> int:
        """The number of queries."""
        return self.offsets.size - 1

    @property
    def base_count(self) -> int:
        """The number of bases, breaks included."""
        return self.codes.size
