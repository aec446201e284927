"""Aligns the bases between two exact matches, from corner to corner: a tile of a long alignment.

The tile is independent of all others, because an alignment passes through the two matches (Du, Yin
and Bader 2010, section IV C). Its score is that of the whole matrix: a band is computed, and it is
widened until no path that leaves it can have a higher score.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.cell_recurrence import pair_score
from mummergpu.viterbi.recurrence.lanes import LANES, MOST_REGISTERS
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.operations import (
    DELETION_OPERATION,
    INSERTION_OPERATION,
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    length_of,
)
from mummergpu.viterbi.recurrence.tile import Tile, tile_at
from mummergpu.viterbi.tiles.band import (
    ALL_PAIRS,
    END_RESULTS,
    Scratch,
    compute_band,
    lane_of,
    write_path,
)
from mummergpu.viterbi.whole.whole_matrix import MatrixScratch, align_whole

_FIRST_BAND: Final = 8
"""The distance that an alignment probably goes from the diagonals of the two corners."""

_ENDS_AT_CORNER: Final = 1 << 20
"""A bonus for the end of the query that no other path can match: no band is left early."""


@jit
def fill_gap(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    scratch: Scratch,
    matrix: MatrixScratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int]:
    """Align the bases between two exact matches; return the score and the number of operations.

    The codes have margins. The tile, of direction 1, has the bases between the matches; those after
    its two ends are the first of the next match, and equal. An end scores nothing. The operations
    are written from `operations_at` on: at most the bases of both sequences plus one. Of several
    paths with the best score, the one is taken that `whole_matrix.align_whole` takes.
    """
    operations_at = as_int64(operations_at)
    length, reference_length = tile.length, tile.reference_length
    end = operations_at
    if length == 0 or reference_length == 0:
        score = 0
        if length > 0:
            score = -costs.insertion_open - length * costs.insertion_extend
            end = append_operation(operations, end, end, INSERTION_OPERATION, length)
        elif reference_length > 0:
            score = -costs.deletion_open - reference_length * costs.deletion_extend
            end = append_operation(operations, end, end, DELETION_OPERATION, reference_length)
        return score, end - operations_at
    if length == reference_length:
        score = _score_of_diagonal(query, reference, tile, as_int64(0), as_int64(0), costs)
        if score >= _best_outside(length, reference_length, 0, costs):
            append_operation(operations, operations_at, operations_at, MATCH_OPERATION, length)
            return score, as_int64(1)
    difference = abs(reference_length - length)
    least = _score_of_one_gap(query, reference, tile, costs)
    # No more than `new_scratch` has room for.
    registers = min(difference + _FIRST_BAND, costs.max_gap) // LANES + 1
    if length < MOST_BASES:
        band = -1
        # Each turn has the best path within the band, which may be the best one of all.
        while registers <= MOST_REGISTERS and band < costs.max_gap:
            band = min(LANES * registers - 1, costs.max_gap)
            if band < difference:
                break
            score, count = _align_in_band(
                query, reference, tile, costs, registers, scratch, operations, operations_at
            )
            # With the same score, a path outside might be the one that the whole matrix prefers.
            if score > _best_outside(length, reference_length, band, costs):
                return score, count
            least = max(least, score)
            registers += 1
    return align_whole(query, reference, tile, costs, least, matrix, operations, operations_at)


@inline
def is_diagonal_best(query: CodeArray, reference: CodeArray, tile: Tile, costs: Costs) -> bool:
    """Return whether two equally long sequences are certainly aligned best without a gap."""
    score = _score_of_diagonal(query, reference, tile, as_int64(0), as_int64(0), costs)
    return score >= _best_outside(tile.length, tile.length, as_int64(0), costs)


@inline
def _score_of_diagonal(
    query: CodeArray, reference: CodeArray, tile: Tile, inserted: int, deleted: int, costs: Costs
) -> int:
    """Return the score of a tile without a gap, after some bases of each sequence."""
    score = 0
    query_at, reference_at = tile.read_at + inserted, tile.reference_at + deleted
    for k in range(min(tile.length - inserted, tile.reference_length - deleted)):
        score += pair_score(query[query_at + k], reference[reference_at + k], costs)
    return score


@inline
def _score_of_one_gap(query: CodeArray, reference: CodeArray, tile: Tile, costs: Costs) -> int:
    """Return the best score of an alignment with a single gap, or with none."""
    query_at, reference_at = tile.read_at, tile.reference_at
    more = tile.reference_length - tile.length
    inserted, deleted = max(0, -more), max(0, more)
    # The gap at the beginning, and then farther on by one pair of bases at a time.
    score = _score_of_diagonal(query, reference, tile, inserted, deleted, costs)
    best = score
    for k in range(min(tile.length, tile.reference_length)):
        base, other = query[query_at + k], reference[reference_at + k]
        score += pair_score(base, other, costs)
        base, other = query[query_at + inserted + k], reference[reference_at + deleted + k]
        score -= pair_score(base, other, costs)
        best = max(best, score)
    best -= (costs.insertion_open + costs.insertion_extend * inserted) * (inserted > 0)
    best -= (costs.deletion_open + costs.deletion_extend * deleted) * (deleted > 0)
    return as_int64(best)


@inline
def _best_outside(length: int, reference_length: int, band: int, costs: Costs) -> int:
    """Return an upper bound of the score of a path that leaves a band around the first corner.

    `band` is its diagonals on each side. All bases match but those in the gaps that such a path
    must have.
    """
    more = reference_length - length
    # Above the band: deletions up to there, and back to the last corner.
    deleted = max(band + 1, more)
    inserted = deleted - more
    above = costs.match * (length - inserted)
    above -= costs.deletion_open + costs.deletion_extend * deleted
    above -= (costs.insertion_open + costs.insertion_extend * inserted) * (inserted > 0)
    # Below the band: insertions up to there, and back.
    inserted = max(band + 1, -more)
    deleted = inserted + more
    below = costs.match * (length - inserted)
    below -= costs.insertion_open + costs.insertion_extend * inserted
    below -= (costs.deletion_open + costs.deletion_extend * deleted) * (deleted > 0)
    return max(above, below)


@inline
def _align_in_band(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    registers: int,
    scratch: Scratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int]:
    """Return the best score within a band and the number of operations, and write them."""
    # One more base of each sequence, which is equal: so the alignment ends in a match.
    length, reference_length = tile.length + 1, tile.reference_length + 1
    longer = tile_at(tile.read_at, length, tile.reference_at, reference_length, as_int64(1))
    least = as_int64(-_ENDS_AT_CORNER)
    compute_band(
        query,
        reference,
        longer,
        _to_the_corner(costs),
        registers,
        least,
        scratch,
        as_int64(1),
        as_int64(ALL_PAIRS),
    )
    lane = lane_of(reference_length - length, LANES * registers)
    score = as_int64(scratch.results[END_RESULTS + lane]) - costs.match
    directions = scratch.directions
    count = write_path(length, reference_length, registers, directions, operations, operations_at)
    last = operations_at + count - 1
    if length_of(operations, last) == 1:
        return score, count - 1
    operations[last] -= np.uint32(16)
    return score, count


@inline
def _to_the_corner(costs: Costs) -> Costs:
    """Return costs with which the best path always ends at the end of the query."""
    return Costs(
        costs.match,
        costs.mismatch,
        costs.unknown,
        costs.insertion_open,
        costs.insertion_extend,
        costs.deletion_open,
        costs.deletion_extend,
        as_int64(_ENDS_AT_CORNER),
        costs.max_gap,
    )
