"""Trees on the processor: both kernels of the paper, compiled by numba."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from mummergpu.backends.cpu.match import LANE_NUMBERS, LANES, close_ranks, match_kernel
from mummergpu.backends.cpu.print import RING, print_kernel
from mummergpu.backends.interface import MemColumns, WorkSizes, new_columns
from mummergpu.backends.merge import merge_pages
from mummergpu.index import IndexedPage
from mummergpu.reads import QueryBlock
from mummergpu.sequence import CodeArray
from mummergpu.stats import Stats

SIZES: Final = WorkSizes(
    block_bases=1 << 20,
    piece_bases=1 << 16,
    long_query=1 << 17,
    part_bases=1 << 20,
    most_rows=1 << 21,
)
"""Blocks and parts large enough that starting on one costs nothing, small enough for all
threads to have some."""


class CpuBackend:
    """Matches blocks of queries on the processor; may be called by many threads at once.

    Parameters
    ----------
    stats : Stats
        Takes the times of the kernels and the number of candidates.
    """

    name = "cpu"
    tree_memory = None

    def __init__(self, stats: Stats) -> None:
        self.stats = stats
        self.sizes = SIZES
        self.minimum_length = 0
        self._pages: list[IndexedPage] = []

    def hold(self, pages: Sequence[IndexedPage], minimum_length: int) -> None:
        """Take the pages to search, in place of those before.

        Parameters
        ----------
        pages : sequence of IndexedPage
            At least one, in the order of the reference.
        minimum_length : int
            The fewest bases of a MEM.
        """
        self.minimum_length = minimum_length
        self._pages = list(pages)

    def close(self) -> None:
        """Forget the pages."""
        self._pages = []

    def find_mems(self, block: QueryBlock, codes: CodeArray, most: int) -> MemColumns | None:
        """Return the MEMs between the held pages and a block of queries on one strand.

        Parameters
        ----------
        block : QueryBlock
            The queries.
        codes : ndarray, dtype=uint8, shape=(block.base_count,)
            Their bases on the strand that is to be searched, at the block's offsets.
        most : int
            The most rows to make room for.

        Returns
        -------
        MemColumns or None
            The MEMs that start in the owned parts of the pages, or None if there are more
            than `most`: cut the block and ask again.
        """
        found = []
        for page in self._pages:
            columns = self._search_page(page, block, codes, most)
            if columns is None:
                return None
            most -= columns.count
            found.append(columns)
        with self.stats.stage("coords_to_buffers"):
            return merge_pages(found)

    def _search_page(
        self, indexed: IndexedPage, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs on one page, or None if there are too many."""
        tree, page = indexed.tree, indexed.page
        stride = tree.layout.node_stride
        candidate_offsets = np.zeros(block.query_count + 1, dtype=np.int64)
        lengths = np.diff(block.offsets)
        np.cumsum(np.maximum(lengths - self.minimum_length + 1, 0), out=candidate_offsets[1:])
        room = int(candidate_offsets[-1])
        positions = np.empty(room, dtype=np.int32)
        lowest_nodes = np.empty(room, dtype=np.int32)
        edge_lengths = np.empty(room, dtype=np.int32)
        candidate_counts = np.empty(block.query_count, dtype=np.int64)
        with self.stats.stage("match_kernel"):
            match_kernel(
                tree.nodes,
                tree.children,
                stride,
                tree.reference,
                tree.layout.reference_strip_bits,
                codes,
                block.offsets,
                self.minimum_length,
                np.empty((LANES, LANE_NUMBERS), dtype=np.int64),
                positions,
                lowest_nodes,
                edge_lengths,
                candidate_offsets,
                candidate_counts,
            )
            close_ranks(positions, lowest_nodes, edge_lengths, candidate_offsets, candidate_counts)
        self.stats.add(candidate_matches=int(candidate_counts.sum()))
        mem_offsets = np.zeros(block.query_count + 1, dtype=np.int64)
        columns = new_columns(0)
        with self.stats.stage("print_kernel"):
            for counting in (True, False):
                if not counting:
                    columns = new_columns(int(mem_offsets[-1]))
                if counting or mem_offsets[-1] > 0:
                    print_kernel(
                        tree.nodes,
                        tree.children,
                        stride,
                        tree.base_count,
                        page.begin,
                        page.owned_end - page.begin,
                        indexed.joined_reference,
                        codes,
                        block.offsets,
                        self.minimum_length,
                        np.empty(RING, dtype=np.int64),
                        positions,
                        lowest_nodes,
                        edge_lengths,
                        candidate_offsets,
                        mem_offsets,
                        *columns,
                    )
                if mem_offsets[-1] > most:
                    return None
        return MemColumns(mem_offsets, *columns)
