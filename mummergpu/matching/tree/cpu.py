"""The tree search on the processor: both kernels of the paper, compiled by numba."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np

from mummergpu.index.pages import damage_error
from mummergpu.index.tree.flatten import TreePage
from mummergpu.matching.backends.interface import QueryCodes, WorkSizes
from mummergpu.matching.backends.paged_cpu import PagedCpuBackend
from mummergpu.matching.tree.cpu_access import arrays_of
from mummergpu.matching.tree.cpu_match import (
    LANE_NUMBERS,
    LANES,
    Candidates,
    compact_lanes,
    match_kernel,
)
from mummergpu.matching.tree.cpu_print import RING, PageText, print_kernel
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN
from mummergpu.sequence.mems import MemColumns, new_rows

SIZES: Final = WorkSizes(
    block_bases=1 << 20,
    piece_bases=1 << 16,
    long_query=1 << 17,
    batch_bases=1 << 20,
    max_rows=1 << 21,
    first_batch_bases=1 << 20,
)
"""A block or part is so large that its start-up cost does not matter, and so small that all
threads get some."""


class TreeCpuBackend(PagedCpuBackend[TreePage]):
    """Matches blocks of queries against suffix trees (`paged_cpu.PagedCpuBackend`)."""

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)

    def _search_page(
        self, indexed: TreePage, queries: QueryCodes, max_rows: int, counted: Counter[str]
    ) -> MemColumns | None:
        queries = queries._replace(codes=queries.codes[MARGIN : queries.codes.size - MARGIN])
        return self._print(indexed, queries, self._match(indexed, queries), max_rows)

    def _match(self, indexed: TreePage, queries: QueryCodes) -> Candidates:
        """Return the candidate matches of a block in a page."""
        offsets = np.zeros(queries.offsets.size, dtype=np.int64)
        lengths = np.diff(queries.offsets)
        np.cumsum(np.maximum(lengths - self.minimum_length + 1, 0), out=offsets[1:])
        room = int(offsets[-1])
        found = Candidates(
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            np.empty(room, dtype=np.int32),
            offsets,
        )
        counts = np.empty(lengths.size, dtype=np.int64)
        with self.stats.stage("match_kernel"):
            lanes = np.empty((LANES, LANE_NUMBERS), dtype=np.int64)
            tree = arrays_of(indexed.tree)
            if not match_kernel(tree, queries, self.minimum_length, lanes, found, counts):
                raise damage_error(indexed.page, indexed.index_path)
            compact_lanes(found, counts)
        self.stats.add(candidate_matches=int(counts.sum()))
        return found

    def _print(
        self, indexed: TreePage, queries: QueryCodes, candidates: Candidates, max_rows: int
    ) -> MemColumns | None:
        """Turn candidate matches into MEMs, or return None if there are too many."""
        tree, page = indexed.tree, indexed.page
        mem_offsets = np.zeros(queries.offsets.size, dtype=np.int64)
        owned_count = page.owned_end - page.begin
        text = PageText(page.begin, tree.base_count, owned_count, indexed.joined_reference)
        rows = new_rows(0)
        with self.stats.stage("print_kernel"):
            for counting in (True, False):
                if not counting:
                    rows = new_rows(int(mem_offsets[-1]))
                if counting or mem_offsets[-1] > 0:
                    sound = print_kernel(
                        arrays_of(tree),
                        text,
                        queries,
                        self.minimum_length,
                        candidates,
                        np.empty(RING, dtype=np.int64),
                        mem_offsets,
                        rows,
                    )
                    if not sound:
                        raise damage_error(page, indexed.index_path)
                if mem_offsets[-1] > max_rows:
                    return None
        return MemColumns(mem_offsets, *rows)
