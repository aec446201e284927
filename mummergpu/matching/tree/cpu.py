"""The tree search on the processor: both kernels of the paper, compiled by numba."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.index.damage import damage_error
from mummergpu.index.tree.page import TreePage
from mummergpu.input.blocks.queries import OffsetArray
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.backends.page_by_page import PageByPageBackend
from mummergpu.matching.tree.cpu_frequent import GATHERED_NODES, GATHERED_NUMBERS, MOST_GATHERED
from mummergpu.matching.tree.cpu_lanes import LANE_NUMBERS, LANES
from mummergpu.matching.tree.cpu_match import close_ranks, match_kernel
from mummergpu.matching.tree.cpu_print import RING, print_kernel
from mummergpu.runtime.arrays import Int32Array
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray
from mummergpu.sequence.mems import MemColumns, new_columns

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


class _Candidates(NamedTuple):
    """The candidate matches of a block in a page.

    Attributes
    ----------
    positions : ndarray, dtype=int32
        Where each begins in its query.
    lowest_nodes, edge_lengths : ndarray, dtype=int32
        The lowest node that it reaches, and its length along the edge to it.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where the candidates of each query begin, and where those of the last query end.
    """

    positions: Int32Array
    lowest_nodes: Int32Array
    edge_lengths: Int32Array
    offsets: OffsetArray


class TreeCpuBackend(PageByPageBackend[TreePage]):
    """Matches blocks of queries against suffix trees (`page_by_page.PageByPageBackend`)."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)

    def _search_page(
        self, indexed: TreePage, offsets: OffsetArray, padded_codes: CodeArray, max_rows: int
    ) -> MemColumns | None:
        codes = padded_codes[MARGIN : padded_codes.size - MARGIN]
        candidates = self._match(indexed, offsets, codes)
        return self._print(indexed, offsets, codes, candidates, max_rows)

    def _match(self, indexed: TreePage, offsets: OffsetArray, codes: CodeArray) -> _Candidates:
        """Return the candidate matches of a block in a page."""
        tree = indexed.tree
        candidate_offsets = np.zeros(offsets.size, dtype=np.int64)
        lengths = np.diff(offsets)
        np.cumsum(np.maximum(lengths - self.minimum_length + 1, 0), out=candidate_offsets[1:])
        room = int(candidate_offsets[-1])
        found = _Candidates(
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            candidate_offsets,
        )
        counts = np.empty(offsets.size - 1, dtype=np.int64)
        with self.stats.stage("match_kernel"):
            sound = match_kernel(
                tree.nodes,
                tree.children,
                tree.layout.node_stride,
                tree.reference,
                tree.layout.reference_strip_bits,
                codes,
                offsets,
                self.minimum_length,
                np.empty((LANES, LANE_NUMBERS), dtype=np.int64),
                *found,
                counts,
            )
            if not sound:
                raise damage_error(indexed.page, indexed.index_path)
            close_ranks(*found, counts)
        self.stats.add(candidate_matches=int(counts.sum()))
        return found

    def _print(
        self,
        indexed: TreePage,
        offsets: OffsetArray,
        codes: CodeArray,
        candidates: _Candidates,
        max_rows: int,
    ) -> MemColumns | None:
        """Turn candidate matches into MEMs, or return None if there are too many."""
        tree, page = indexed.tree, indexed.page
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
                        tree.layout.node_stride,
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
                        *candidates,
                        mem_offsets,
                        *columns,
                    )
                    if not sound:
                        raise damage_error(page, indexed.index_path)
                if mem_offsets[-1] > max_rows:
                    return None
        return MemColumns(mem_offsets, *columns)
