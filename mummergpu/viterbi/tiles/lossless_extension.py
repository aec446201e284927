"""Extends an alignment where no window of the query improves its score, if it can without loss.

As in nucmer, a break is counted in the bases of both sequences together, so an alignment may need
more of the query than of the reference; and an extension does not break where it gets no worse.
"""

from __future__ import annotations

from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.band import STEP_RESULTS, compute_band, lane_of
from mummergpu.viterbi.tiles.scratch import MOST_BASES, Scratch
from mummergpu.viterbi.tiles.ungapped import longest_gaps
from mummergpu.viterbi.whole.whole_matrix import pair_score


@jit_without_refcounts
def extend_without_loss(
    query: CodeArray,
    query_at: int,
    length: int,
    reference: CodeArray,
    reference_at: int,
    reference_length: int,
    direction: int,
    costs: CostTuple,
    window: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return how far an alignment goes that scores no less than none.

    Parameters
    ----------
    query, query_at, length, reference, reference_at, reference_length, direction
        As in `drop_extension.reach_before_drop`.
    costs, scratch
        As in `drop_extension.reach_before_drop`.
    window : int
        Half of the bases of both sequences together that the alignment may have.

    Returns
    -------
    tuple of int
        The bases of the query and of the reference, 0 for none, and the registers that covered the
        band: the directions are in `scratch`. No registers if the alignment has no gap. Of several
        alignments, the longest one without a gap is taken if it scores nothing, or else the one
        with the best score, of those the one that ends nearest to its diagonal, of those the
        shortest.
    """
    query_at, reference_at = as_int64(query_at), as_int64(reference_at)
    direction = as_int64(direction)
    window = as_int64(window)
    bases = _tied_bases(
        query,
        query_at,
        reference,
        reference_at,
        direction,
        min(window, length, reference_length),
        costs,
    )
    if bases > 0:
        return bases, bases, as_int64(0)
    # A longer insertion costs more than all other bases score.
    most = max(costs.match * window - costs.insertion_open, 0)
    insertion = most // (2 * costs.insertion_extend + costs.match)
    rows = min(window + insertion, length, as_int64(MOST_BASES))
    columns = min(2 * window, reference_length)
    tile = query_at, rows, reference_at, columns, direction
    return _best_without_loss(query, reference, tile, costs, window, scratch)


@inline_without_refcounts
def _tied_bases(
    query: CodeArray,
    query_at: int,
    reference: CodeArray,
    reference_at: int,
    direction: int,
    most: int,
    costs: CostTuple,
) -> int:
    """Return how many of the next pairs of bases score nothing together; the most of them."""
    score, tied = 0, as_int64(0)
    for k in range(most):
        base, other = query[query_at + direction * k], reference[reference_at + direction * k]
        score += pair_score(base, other, costs)
        if score == 0:
            tied = as_int64(k + 1)
    return tied


@inline_without_refcounts
def _best_without_loss(
    query: CodeArray,
    reference: CodeArray,
    tile: tuple[int, int, int, int, int],
    costs: CostTuple,
    window: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return where the best alignment of a tile ends that scores 0 or more, and the registers."""
    registers = min(max(longest_gaps(tile[1], costs, 0)), costs.most_gap) // LANES + 1
    if tile[1] == 0 or tile[3] == 0:
        return as_int64(0), as_int64(0), registers
    compute_band(
        query, reference, tile, costs, registers, as_int64(-1), scratch, as_int64(1), window
    )
    results = scratch[2]
    best, best_step, best_diagonal = as_int64(-1), as_int64(0), as_int64(0)
    for distance in range(LANES * registers):
        for diagonal in (distance, -distance):
            lane = lane_of(diagonal, LANES * registers)
            score = as_int64(results[lane])
            if score > best:
                best, best_step = score, as_int64(results[STEP_RESULTS + lane])
                best_diagonal = as_int64(diagonal)
    if best < 0:
        return as_int64(0), as_int64(0), registers
    return (best_step - best_diagonal) >> 1, (best_step + best_diagonal) >> 1, registers
