"""The search for matches that are unique in the reference: it looks up minimizers of queries.

A match of at least `l` bases has all minimizers of the window in which it begins
(`sequence.minimizers`). It is found at the first one with the lowest rank of that window, on either
strand, and only there. The minimizers of a window are also those of its copies in the reference. So
the entries with this minimizer's k-mer have every copy of the match, and tell whether it is unique:
if its bases occur a second time, another entry extends at least as far to both sides. No match has
to be known besides, so nothing is left to filter (`filter.keep_unique`), and parts of a query are
searched independently of each other.

Minimizers are the same on both strands, so one look-up answers for both. Along a query, the first
minimizers with the lowest ranks of later windows never lie before those of earlier windows. A
unique match does not lie in another one, so those that begin later also end later. Rows are
therefore found in the order of the queries: on the reverse strand, in the opposite order.

Most entries need no access to the reference: the bases beside their k-mers (`sequence.contexts`)
show that they occur by chance, or that a match begins before the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from mummergpu.index.minimizer_index import MinimizerPage
from mummergpu.input.blocks.queries import OffsetArray, QueryBlock
from mummergpu.matching.kmer.unique_matches import (
    FORWARD_ROWS,
    REVERSE_ROWS,
    Rows,
)
from mummergpu.matching.kmer.unique_samples import find_unique_rows
from mummergpu.runtime.stats import Stats
from mummergpu.runtime.thread_array import ThreadArray
from mummergpu.sequence.codes import MARGIN, Strand
from mummergpu.sequence.mems import MemColumns, new_columns
from mummergpu.sequence.minimizers import find_minimizers, new_workspace

TASK_BASES: Final = 1 << 19
"""The bases of a block that are searched together."""

CANDIDATES: Final = 64
"""The entries of a minimizer that are prefetched and then compared together."""

LEAST_ROOM: Final = 1 << 12
"""The rows that a task first has room for, on each strand."""


class UniqueSearch:
    """Searches blocks of queries for unique matches; many threads may call it at once.

    A match has at least the bases of a window.
    """

    def __init__(self, page: MinimizerPage, minimum_length: int, stats: Stats) -> None:
        self._page = page
        self._minimum_length = minimum_length
        self._stats = stats
        self._scratch = ThreadArray(np.int64), ThreadArray(np.uint32)

    def find(
        self,
        block: QueryBlock,
        strands: Sequence[Strand],
        max_rows: int,
        map_function: Callable[..., Iterable[Any]],
        tell: Callable[[int], None],
    ) -> dict[Strand, MemColumns] | None:
        """Return the unique matches of a block (`interface.UniqueBackend.find_unique`)."""

        def search(first: int) -> tuple[Rows, Rows]:
            end = min(first + TASK_BASES, block.base_count)
            with self._stats.stage("kmer_kernel"):
                found = self._search_part(block, first, end)
            tell(end - first)
            return found

        parts = list(map_function(search, range(0, max(block.base_count, 1), TASK_BASES)))
        if sum(part[strand][0].size for part in parts for strand in strands) > max_rows:
            return None
        found = {}
        for strand in strands:
            joined = [
                np.concatenate(columns)
                for columns in zip(*(part[strand] for part in parts), strict=True)
            ]
            found[strand] = rows_of_queries(joined, block.offsets, strand)
        return found

    def _search_part(self, block: QueryBlock, first: int, end: int) -> tuple[Rows, Rows]:
        """Return the matches whose minimizers lie in a part of a block, on both strands."""
        table, codes, offsets = self._page.table, block.padded_codes, block.offsets
        window = table.window
        low, high = max(0, first - window), min(end + window, block.base_count)
        query = max(0, int(np.searchsorted(offsets, low, side="right")) - 1)
        places, ranks = (scratch.of_size(high - low + 1) for scratch in self._scratch)
        # Those of all queries as one sequence, which are more than those of each, and sooner found.
        count = find_minimizers(
            codes,
            MARGIN,
            MARGIN + block.base_count,
            MARGIN + low,
            MARGIN + high,
            table.kmer_length,
            window,
            new_workspace(),
            0,
            places,
            ranks,
        )
        state = np.array([0, query, 0, 0], dtype=np.int64)
        forward, reverse = new_columns(LEAST_ROOM), new_columns(LEAST_ROOM)
        candidates = np.empty(CANDIDATES, dtype=np.int64)
        while not find_unique_rows(
            (table.offsets, table.entries),
            self._page.padded_reference,
            codes,
            offsets,
            (table.kmer_length, window, self._minimum_length),
            (places, ranks, candidates),
            (count, MARGIN + first, MARGIN + end),
            state,
            forward,
            reverse,
        ):
            filled = state[FORWARD_ROWS], state[REVERSE_ROWS]
            forward, reverse = longer(forward, filled[0]), longer(reverse, filled[1])
        filled = state[FORWARD_ROWS], state[REVERSE_ROWS]
        return shortened(forward, filled[0]), shortened(reverse, filled[1])


def longer(rows: Rows, filled: int) -> Rows:
    """Return rows with room for twice as many."""
    larger = new_columns(2 * rows[0].size)
    for column, larger_column in zip(rows, larger, strict=True):
        larger_column[:filled] = column[:filled]
    return larger


def shortened(rows: Rows, filled: int) -> Rows:
    """Return the filled rows, without the room after them."""
    starts, reference_starts, lengths = rows
    return starts[:filled].copy(), reference_starts[:filled].copy(), lengths[:filled].copy()


def rows_of_queries(
    rows: Sequence[OffsetArray], offsets: OffsetArray, strand: Strand
) -> MemColumns:
    """Return the rows of a block by query, in the order of the strand that was searched.

    Starts in the block ascend, and count on the forward strand.
    """
    starts, reference_starts, lengths = rows
    row_offsets = np.searchsorted(starts, offsets)
    queries = np.repeat(np.arange(offsets.size - 1), np.diff(row_offsets))
    if strand is Strand.FORWARD:
        return MemColumns(row_offsets, starts - offsets[queries], reference_starts, lengths)
    order = row_offsets[queries] + row_offsets[queries + 1] - 1 - np.arange(starts.size)
    starts, lengths = starts[order], lengths[order]
    return MemColumns(
        row_offsets, offsets[queries + 1] - starts - lengths, reference_starts[order], lengths
    )
