"""Several blocks of queries as one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mummergpu.input.blocks.queries import OffsetArray, QueryBlock
from mummergpu.sequence.codes import MARGIN, empty_with_margins


def join_query_blocks(blocks: Sequence[QueryBlock]) -> QueryBlock:
    """Return the queries of consecutive blocks as one block.

    Parameters
    ----------
    blocks : sequence of QueryBlock
        At least one.

    Returns
    -------
    QueryBlock
        All queries, with the index and the file number of the first block. A single block is
        returned as it is; otherwise the arrays are new.
    """
    first = blocks[0]
    if len(blocks) == 1:
        return first
    padded = empty_with_margins(sum(block.base_count for block in blocks))
    np.concatenate([block.codes for block in blocks], out=padded[MARGIN : padded.size - MARGIN])
    return QueryBlock(
        first.index,
        padded,
        _joined([block.offsets for block in blocks]),
        np.concatenate([block.names for block in blocks]),
        _joined([block.name_offsets for block in blocks]),
        first.file_number,
    )


def _joined(offsets: Sequence[OffsetArray]) -> OffsetArray:
    """Return the offsets of parts that follow each other, each of which counts from 0."""
    ends = np.cumsum([0, *(int(each[-1]) for each in offsets)], dtype=np.int64).tolist()
    moved = [each[1:] + begin for each, begin in zip(offsets, ends, strict=False)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *moved])
