"""The division of device memory between trees and blocks of queries."""

from __future__ import annotations

from typing import Final

from mummergpu.errors import BackendError
from mummergpu.runtime.frozen import frozen

FREE_PART: Final = 0.9
"""The share of free memory that a run uses; fragmentation and the driver need the rest."""

WORK_BYTES_PER_BASE: Final = 192
"""The device memory of a block for each of its bases: the code on both strands (2 bytes), a slot
for a candidate match (16), the data of the actual candidates (56 each, most of it room for MEMs
that have no place yet), and the MEMs (16 as they are found, and 24 each up to three times where
pages are merged). A block that needs more is cut in two."""

LARGEST_BLOCK: Final = 1 << 23
"""8 Mi bases, or 70,000 reads of 120 bases: half of the threads that a large device runs at once.
Several streams work at the same time."""

SMALLEST_BLOCK: Final = 1 << 16


@frozen
class MemoryPlan:
    """A division of device memory."""

    block_bases: int  # The most bases of a block of queries.
    search_bytes: int  # The most bytes that the search of one block may use.
    tree_bytes: int  # The most bytes of the trees of a group of pages together.


def usable_memory(free: int, limit: int | None) -> int:
    """Return how many of a device's free bytes a run uses; without a limit it is nearly all."""
    return int(free * FREE_PART) if limit is None else min(limit, free)


def divide_memory(
    free: int, limit: int | None, streams: int, max_block_bases: int = LARGEST_BLOCK
) -> MemoryPlan:
    """Divide the memory of a device: blocks get at most half, trees get the rest.

    `streams` blocks are searched at once. A memory that is too small for the smallest block raises
    `BackendError`.
    """
    budget = usable_memory(free, limit)
    block_bases = min(max_block_bases, budget // 2 // streams // WORK_BYTES_PER_BASE)
    if block_bases < SMALLEST_BLOCK:
        least = 2 * streams * SMALLEST_BLOCK * WORK_BYTES_PER_BASE
        raise BackendError(
            "cuda",
            f"{budget:,} bytes of device memory are too few; {least:,} are the least "
            "(--gpu-memory), or use --backend cpu",
        )
    search_bytes = block_bases * WORK_BYTES_PER_BASE
    return MemoryPlan(block_bases, search_bytes, budget - streams * search_bytes)
