"""The candidates that a device found and kept, as they come to the host."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from mummergpu.mapping.candidates import column
from mummergpu.mapping.candidates.candidates import EXACT, UNGAPPED, Candidates
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_int64, jit
from mummergpu.viterbi.recurrence.model import Costs

CANDIDATE: Final = np.dtype(
    [
        ("diagonal", np.int64),
        *((name, np.int32) for name in ("strand", "record", "seed_begin", "seed_bases")),
        *((name, np.int32) for name in ("left_score", "left_query_bases")),
        *((name, np.int32) for name in ("right_score", "right_query_bases")),
        *((name, np.int32) for name in ("bound", "credit")),
    ]
)
"""A candidate of a device: see ``kernels/mapping/candidates.cuh``."""

CandidateArray = npt.NDArray[np.void]
"""Candidates as a device writes them, dtype=CANDIDATE."""


@frozen
class FoundCandidates:
    """The candidates of a block that a device found and kept."""

    # Where the candidates of each read begin, and where the last ones end; (n_reads + 1,).
    offsets: Int64Array
    rows: CandidateArray  # The candidates, those of a read by strand, then by diagonal.
    seeds_kept: ByteArray  # As `Candidates.seeds_kept`.

    def fill(self, rescue_rows: int, costs: Costs, table: Candidates) -> None:
        """Write the candidates to a table that has room for those of rescued mates.

        So many rows as `rescue_rows` are kept free after the candidates of each read.
        """
        # The array of a field is not contiguous: no function is compiled for those beforehand.
        words = self.rows.view(np.int32).reshape(-1, CANDIDATE.itemsize // 4)
        pairs = self.rows.view(np.int64).reshape(-1, CANDIDATE.itemsize // 8)
        table.seeds_kept[:] = self.seeds_kept
        fill_rows(self.offsets, pairs, words, rescue_rows, costs.match, table)


@jit
def fill_rows(
    offsets: Int64Array,
    pairs: Int64Array,
    words: Int32Array,
    rescue_rows: int,
    match: int,
    table: Candidates,
) -> None:
    """Write each read's candidates, six numbers of 64 bits each, or twelve words, to its rows."""
    counts, numbers = table.counts, table.numbers
    filled = 0
    for read in range(counts.size):
        table.offsets[read] = filled
        counts[read] = offsets[read + 1] - offsets[read]
        for row in range(offsets[read], offsets[read + 1]):
            table.diagonals[filled] = pairs[row, 0]
            numbers[filled, column.STRAND] = words[row, 2]
            numbers[filled, column.RECORD] = words[row, 3]
            numbers[filled, column.SEED_BEGIN] = words[row, 4]
            numbers[filled, column.SEED_BASES] = words[row, 5]
            numbers[filled, column.LEFT_SCORE] = words[row, 6]
            numbers[filled, column.LEFT_QUERY_BASES] = words[row, 7]
            numbers[filled, column.RIGHT_SCORE] = words[row, 8]
            numbers[filled, column.RIGHT_QUERY_BASES] = words[row, 9]
            numbers[filled, column.BOUND] = words[row, 10]
            numbers[filled, column.CREDIT] = words[row, 11]
            score = as_int64(words[row, 6]) + as_int64(words[row, 8])
            score += as_int64(words[row, 5]) * match
            numbers[filled, column.SCORE] = score
            numbers[filled, column.LEFT_SHIFT] = 0
            numbers[filled, column.RIGHT_SHIFT] = 0
            numbers[filled, column.GAPPED] = 0
            # No flank may score more with gaps if the bounds of both together are their scores.
            numbers[filled, column.STATE] = (
                EXACT if numbers[filled, column.BOUND] == score else UNGAPPED
            )
            filled += 1
        filled += rescue_rows
    table.offsets[counts.size] = filled
