"""The queries of a block as compiled functions take them."""

from __future__ import annotations

from typing import NamedTuple

from mummergpu.runtime.arrays import Int64Array
from mummergpu.sequence.codes import CodeArray


class QueryCodes(NamedTuple):
    """The bases of a block of queries on the strand that is searched.

    Attributes
    ----------
    codes : ndarray, dtype=uint8
        The codes, with margins in the k-mer search and without in the tree search.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each query begins, and where the last one ends, not counting margins.
    """

    codes: CodeArray
    offsets: Int64Array
