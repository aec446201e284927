"""The sampled search: every few bases of a query a k-mer is looked up and extended.

A MEM of at least `l` bases holds a k-mer that begins at a multiple of the step ``l-k+1``
of its query. Such a sample is looked up in the table of the reference's k-mers; each place
found is extended to the left by less than a step (by a step or more, and an earlier sample
has found the same MEM) and then to the right. So every MEM comes out just once.

Samples are taken in batches, and each memory access is asked for a whole batch ahead of
its use: the table's offsets, then its positions, then the reference.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.index.kmer_page import MAXIMUM_STEP, KmerPage, sampling_step
from mummergpu.index.kmer_table import PositionArray
from mummergpu.input.queries import OffsetArray, QueryBlock
from mummergpu.matching.backends.interface import WorkSizes
from mummergpu.matching.backends.page_by_page import PageByPageBackend
from mummergpu.matching.columns import MemColumns, new_columns
from mummergpu.matching.row_order import ColumnArray, sort_rows
from mummergpu.runtime.jit import (
    compiled_borrower,
    inlined_borrower,
    prefetch,
    unsigned,
    widened,
)
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import MARGIN, CodeArray, with_margins
from mummergpu.sequence.extension import (
    WORD_STEP,
    equal_ahead,
    equal_behind,
    equal_word_behind,
    kmer_at,
)

BATCH: Final = 64
"""Samples whose memory accesses are under way together."""

BATCH_NUMBERS: Final = 4
"""What is kept of a sample: its query, its position, the range of its list."""

PLACES_AHEAD: Final = 4
"""So many places of a list are asked for before the first is compared."""

LEFT_BITS: Final = 20
"""Rows of one sample are ordered by numbers that hold a left extension of so many bits."""

START_BITS: Final = 62 - LEFT_BITS
"""The bits of a reference position in these numbers."""

assert MAXIMUM_STEP <= 1 << LEFT_BITS

SIZES: Final = WorkSizes(
    block_bases=1 << 19,
    piece_bases=1 << 16,
    long_query=1 << 17,
    part_bases=1 << 20,
    most_rows=1 << 21,
)
"""Blocks large enough that starting on one costs nothing, small enough for the matches of
one to stay in the caches."""

LEAST_ROOM: Final = 1 << 12
"""Rows to make room for at least."""

QUERY, SAMPLE, FILLED = 0, 1, 2
"""What the kernel remembers when it stops for want of room."""

_RowArrays = tuple[ColumnArray, ColumnArray, ColumnArray]


class SampledCpuBackend(PageByPageBackend[KmerPage]):
    """Searches tables of k-mers (`page_by_page.PageByPageBackend`).

    Parameters
    ----------
    stats : Stats
        Takes the times of the kernel.
    """

    def __init__(self, stats: Stats) -> None:
        super().__init__(stats, SIZES)
        self._rows_per_base = 0.0

    def _prepared(self, codes: CodeArray) -> CodeArray:
        return with_margins(codes)

    def _search_page(
        self, indexed: KmerPage, block: QueryBlock, codes: CodeArray, most: int
    ) -> MemColumns | None:
        with self.stats.stage("kmer_kernel"):
            return self._search_part(indexed, block, codes, most)

    def _search_part(
        self, indexed: KmerPage, block: QueryBlock, padded: CodeArray, most: int
    ) -> MemColumns | None:
        """Return the MEMs whose first sample begins in one part."""
        table = indexed.table
        counts = np.zeros(block.query_count + 1, dtype=np.int64)
        state = np.zeros(3, dtype=np.int64)
        batch = np.empty((BATCH, BATCH_NUMBERS), dtype=np.int64)
        # Somewhat more than the last block had; a wrong guess costs a copy of the rows.
        room = LEAST_ROOM + int(1.25 * self._rows_per_base * block.base_count)
        rows = new_columns(min(room, most))
        while not kmer_kernel(
            table.offsets,
            table.positions,
            table.kmer_length,
            indexed.page.begin,
            indexed.padded_reference,
            padded,
            block.offsets,
            self.minimum_length,
            sampling_step(self.minimum_length, table.kmer_length),
            batch,
            state,
            counts[1:],
            rows,
        ):
            filled, room = int(state[FILLED]), rows[0].size
            if room == most:
                return None
            larger = new_columns(min(2 * room, most))
            for column, larger_column in zip(rows, larger, strict=True):
                larger_column[:filled] = column[:filled]
            rows = larger
        filled = int(state[FILLED])
        self._rows_per_base = filled / max(1, block.base_count)
        np.cumsum(counts, out=counts)
        starts, reference_starts, lengths = (column[:filled] for column in rows)
        return MemColumns(counts, starts, reference_starts, lengths)


@compiled_borrower
def kmer_kernel(
    table_offsets: PositionArray,
    positions: PositionArray,
    kmer_length: int,
    part_begin: int,
    reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    step: int,
    batch: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    counts: OffsetArray,
    rows: _RowArrays,
) -> bool:
    """Find the MEMs of queries with one table; return whether there was room for all.

    Parameters
    ----------
    table_offsets, positions : ndarray, dtype=uint32
        The table (`kmer_table.KmerTable`).
    kmer_length, part_begin : int
        The bases of its k-mers, and where in the reference its positions count from.
    reference, codes : ndarray, dtype=uint8
        The codes of the whole reference and of the queries, both with margins.
    offsets : ndarray, dtype=int64, shape=(n_queries + 1,)
        Where each query begins, and where the last ends, margins not counted.
    minimum_length, step : int
        The fewest bases of a MEM, and the bases from one sample to the next.
    batch : ndarray, dtype=int64, shape=(BATCH, BATCH_NUMBERS)
        Scratch memory.
    state : ndarray, dtype=int64, shape=(3,)
        The query and the position in `codes`, without margin, of the next sample, and how many
        rows are filled: zeros before the first call, moved on by each.
    counts : ndarray, dtype=int64, shape=(n_queries,)
        The matches of each query are added to its number.
    rows : tuple of ndarray, dtype=int64
        Room for the query starts, reference starts and lengths of the MEMs.
    """
    query, at, filled = state[QUERY], state[SAMPLE], state[FILLED]
    while query < offsets.size - 1:
        size = 0
        while size < BATCH and query < offsets.size - 1:
            end = offsets[query + 1]
            if at + kmer_length > end or end - offsets[query] < minimum_length:
                query += 1
                at = end
                continue
            kmer = kmer_at(codes, MARGIN + at, kmer_length)
            if kmer >= 0:
                prefetch(table_offsets, kmer)
                batch[size, 0] = query
                batch[size, 1] = at
                batch[size, 2] = kmer
                size += 1
            at += step
        find_lists(table_offsets, positions, part_begin, reference, batch, size)
        for sample in range(size):
            row = extend_sample(
                positions, kmer_length, part_begin, reference, codes, offsets,
                minimum_length, step, batch, sample, filled, rows,
            )  # fmt: skip
            if row < 0:
                state[QUERY], state[SAMPLE], state[FILLED] = (
                    batch[sample, 0], batch[sample, 1], filled,
                )  # fmt: skip
                return False
            counts[batch[sample, 0]] += row - filled
            filled = row
    state[QUERY], state[SAMPLE], state[FILLED] = query, at, filled
    return True


@inlined_borrower
def find_lists(
    table_offsets: PositionArray,
    positions: PositionArray,
    part_begin: int,
    reference: CodeArray,
    batch: npt.NDArray[np.int64],
    size: int,
) -> None:
    """Replace the k-mer of each sample by its list; ask for the first places of the list."""
    for sample in range(size):
        kmer = unsigned(batch[sample, 2])
        begin = widened(table_offsets[kmer])
        batch[sample, 2] = begin
        batch[sample, 3] = table_offsets[kmer + np.uint64(1)]
        prefetch(positions, begin)
    for sample in range(size):
        begin = batch[sample, 2]
        for place in range(begin, min(batch[sample, 3], begin + PLACES_AHEAD)):
            prefetch(reference, MARGIN + part_begin + widened(positions[unsigned(place)]))


@inlined_borrower
def extend_sample(
    positions: PositionArray,
    kmer_length: int,
    part_begin: int,
    reference: CodeArray,
    codes: CodeArray,
    offsets: OffsetArray,
    minimum_length: int,
    step: int,
    batch: npt.NDArray[np.int64],
    sample: int,
    filled: int,
    rows: _RowArrays,
) -> int:
    """Write the MEMs whose first sample this is; return where they end, -1 without room."""
    query_starts, reference_starts, lengths = rows
    at = batch[sample, 1]
    query_begin = offsets[batch[sample, 0]]
    query_end = offsets[batch[sample, 0] + 1]
    list_end = batch[sample, 3]
    row = filled
    for place in range(batch[sample, 2], list_end):
        if place + PLACES_AHEAD < list_end:
            coming = widened(positions[unsigned(place + PLACES_AHEAD)])
            prefetch(reference, MARGIN + part_begin + coming)
        found = part_begin + widened(positions[unsigned(place)])
        most_left = min(step, at - query_begin)
        if step <= WORD_STEP:
            left = equal_word_behind(codes, MARGIN + at, reference, MARGIN + found)
            left = min(left, most_left)
        else:
            left = equal_behind(codes, MARGIN + at, reference, MARGIN + found, most_left)
        if left == step:
            continue
        behind = at + kmer_length
        length = left + kmer_length
        length += equal_ahead(
            codes, MARGIN + behind, reference, MARGIN + found + kmer_length, query_end - behind
        )
        if length < minimum_length:
            continue
        if row == lengths.size:
            return -1
        # Ascending by query start, then by reference start, which places do already.
        query_starts[row] = at - query_begin
        reference_starts[row] = (step - 1 - left) << START_BITS | (found - left)
        lengths[row] = length
        row += 1
    if row - filled > 1 and step > 1:
        sort_rows(reference_starts, lengths, filled, row)
    for one in range(filled, row):
        key = reference_starts[one]
        query_starts[one] -= step - 1 - (key >> START_BITS)
        reference_starts[one] = key & ((1 << START_BITS) - 1)
    return row
