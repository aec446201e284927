"""The tree search on the processor: both kernels of the paper, compiled by numba."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.damage import damage_error
from mummergpu.index.tree.page import TreePage
from mummergpu.input.queries import OffsetArray
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.backends.page_by_page import PageByPageBackend
from mummergpu.matching.columns import MemColumns, new_columns
from mummergpu.matching.tree.cpu_frequent import (
    GATHERED_NODES,
    GATHERED_NUMBERS,
    MOST_GATHERED,
)
from mummergpu.matching.tree.cpu_lanes import LANE_NUMBERS, LANES
from mummergpu.matching.tree.cpu_match import close_ranks, match_kernel
from mummergpu.matching.tree.cpu_print import RING, print_kernel
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray

SIZES: Final = WorkSizes(
    block_bases=1 << 20,
    piece_bases=1 << 16,
    long_query=1 << 17,
    part_bases=1 << 20,
    most_rows=1 << 21,
    trial_bases=1 << 20,
)
"""A block or part is so large that its start-up cost does not matter, and so small that all
threads get some."""

MOST_VISITS: Final = 256
"""The leaves below a node are kept if a search for them visits more nodes than this."""


class TreeCpuBackend(PageByPageBackend[TreePage]):
    """Matches blocks of queries against suffix trees (`page_by_page.PageByPageBackend`).

    Parameters
    ----------
    stats : Stats
        Collects the times of the kernels and the number of candidate matches.
    """

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)

    def _search_page(
        self, indexed: TreePage, offsets: OffsetArray, padded_codes: CodeArray, max_rows: int
    ) -> MemColumns | None:
        codes = padded_codes[MARGIN : padded_codes.size - MARGIN]
        tree, page = indexed.tree, indexed.page
        stride = tree.layout.node_stride
        candidate_offsets = np.zeros(offsets.size, dtype=np.int64)
        lengths = np.diff(offsets)
        np.cumsum(np.maximum(lengths - self.minimum_length + 1, 0), out=candidate_offsets[1:])
        room = int(candidate_offsets[-1])
        positions = np.empty(room, dtype=np.int32)
        lowest_nodes = np.empty(room, dtype=np.int32)
        edge_lengths = np.empty(room, dtype=np.int32)
        candidate_counts = np.empty(offsets.size - 1, dtype=np.int64)
        with self.stats.stage("match_kernel"):
            sound = match_kernel(
                tree.nodes,
                tree.children,
                stride,
                tree.reference,
                tree.layout.reference_strip_bits,
                codes,
                offsets,
                self.minimum_length,
                np.empty((LANES, LANE_NUMBERS), dtype=np.int64),
                positions,
                lowest_nodes,
                edge_lengths,
                candidate_offsets,
                candidate_counts,
            )
            if not sound:
                raise damage_error(page, indexed.index_path)
            close_ranks(positions, lowest_nodes, edge_lengths, candidate_offsets, candidate_counts)
        self.stats.add(candidate_matches=int(candidate_counts.sum()))
        mem_offsets = np.zeros(offsets.size, dtype=np.int64)
        owned_count = page.owned_end - page.begin
        leaves = np.empty(min(owned_count, MOST_GATHERED), dtype=np.int32)
        gathered = np.full((GATHERED_NODES, GATHERED_NUMBERS), -1, dtype=np.int64)
        columns = new_columns(0)
        with self.stats.stage("print_kernel"):
            for counting in (True, False):
                if not counting:
                    columns = new_columns(int(mem_offsets[-1]))
                if counting or mem_offsets[-1] > 0:
                    sound = print_kernel(
                        tree.nodes,
                        tree.children,
                        stride,
                        tree.base_count,
                        page.begin,
                        owned_count,
                        indexed.joined_reference,
                        codes,
                        offsets,
                        self.minimum_length,
                        np.empty(RING, dtype=np.int64),
                        MOST_VISITS,
                        leaves,
                        gathered,
                        positions,
                        lowest_nodes,
                        edge_lengths,
                        candidate_offsets,
                        mem_offsets,
                        *columns,
                    )
                    if not sound:
                        raise damage_error(page, indexed.index_path)
                if mem_offsets[-1] > max_rows:
                    return None
        return MemColumns(mem_offsets, *columns)
