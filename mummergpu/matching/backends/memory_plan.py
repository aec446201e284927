"""How device memory is divided between trees and blocks of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mummergpu.errors import BackendError

FREE_PART: Final = 0.9
"""The share of free memory that a run uses: fragments and the driver need some."""

WORK_BYTES_PER_BASE: Final = 192
"""What a block takes for each of its bases: its code on both strands (2 bytes), a candidate match
(16), what is known of the candidates that there are (48 each), and its MEMs (24 each, up to three
times where pages are merged). Blocks that take more are cut in two."""

LARGEST_BLOCK: Final = 1 << 23
"""8 Mi bases: 70,000 reads of 120 bases, half of the threads that a large device holds; several
streams work at once."""

SMALLEST_BLOCK: Final = 1 << 16


@dataclass(frozen=True)
class MemoryPlan:
    """How device memory is divided.

    Attributes
    ----------
    block_bases : int
        The bases of a block of queries.
    search_bytes : int
        What the work on one block may take.
    tree_bytes : int
        What the trees of a group of pages may take together.
    """

    block_bases: int
    search_bytes: int
    tree_bytes: int


def divide_memory(
    free: int, limit: int | None, streams: int, most_block_bases: int = LARGEST_BLOCK
) -> MemoryPlan:
    """Divide the memory of a device.

    Parameters
    ----------
    free : int
        Bytes that are free.
    limit : int or None
        The most bytes to take; None for nearly all that is free.
    streams : int
        How many blocks are worked on at once.
    most_block_bases : int
        The most bases of a block, however much memory there is.

    Returns
    -------
    MemoryPlan
        Blocks take half of the memory at most, trees the rest.

    Raises
    ------
    BackendError
        If that is too little for the smallest block.
    """
    budget = int(free * FREE_PART) if limit is None else min(limit, free)
    block_bases = min(most_block_bases, budget // 2 // streams // WORK_BYTES_PER_BASE)
    if block_bases < SMALLEST_BLOCK:
        least = 2 * streams * SMALLEST_BLOCK * WORK_BYTES_PER_BASE
        raise BackendError(
            "cuda",
            f"{budget:,} bytes of device memory are too few; {least:,} are the least "
            "(--gpu-memory), or use --backend cpu",
        )
    search_bytes = block_bases * WORK_BYTES_PER_BASE
    return MemoryPlan(block_bases, search_bytes, budget - streams * search_bytes)
