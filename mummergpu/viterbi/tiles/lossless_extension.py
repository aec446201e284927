"""Extends an alignment where no window of the query improves its score, if it can without loss.

As in nucmer, a break is counted in the bases of both sequences together, so an alignment may need
more of the query than of the reference; and an extension does not break where it gets no worse.
"""

from __future__ import annotations

from mummergpu.runtime.jit import as_int64, inline_without_refcounts, jit_without_refcounts
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.model import Costs
from mummergpu.viterbi.recurrence.tile import Tile, tile_at
from mummergpu.viterbi.tiles.band import STEP_RESULTS, compute_band, lane_of
from mummergpu.viterbi.tiles.scratch import MOST_BASES, Scratch
from mummergpu.viterbi.tiles.ungapped import longest_gaps
from mummergpu.viterbi.whole.whole_matrix import pair_score


@jit_without_refcounts
def extend_without_loss(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    window: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return how far an alignment goes that scores no less than none.

    The window is half of the bases of both sequences together that it may have. Returned are the
    bases of the query and of the reference, 0 for none, and the registers that covered the band:
    the directions are in `scratch`. There are no registers if the alignment has no gap.

    Of several alignments, the longest one without a gap is taken if it scores nothing, or else the
    one with the best score, of those the one that ends nearest to its diagonal, of those the
    shortest.
    """
    window = as_int64(window)
    bases = _tied_bases(query, reference, tile, window, costs)
    if bases > 0:
        return bases, bases, as_int64(0)
    # A longer insertion costs more than all other bases score.
    spare = max(costs.match * window - costs.insertion_open, 0)
    insertion = spare // (2 * costs.insertion_extend + costs.match)
    rows = min(window + insertion, tile.length, as_int64(MOST_BASES))
    columns = min(2 * window, tile.reference_length)
    part = tile_at(tile.read_at, rows, tile.reference_at, columns, tile.direction)
    return _best_without_loss(query, reference, part, costs, window, scratch)


@inline_without_refcounts
def _tied_bases(
    query: CodeArray, reference: CodeArray, tile: Tile, window: int, costs: Costs
) -> int:
    """Return how many of the next pairs of bases score nothing together; the most of them."""
    score, tied = 0, as_int64(0)
    for k in range(min(window, tile.length, tile.reference_length)):
        base = query[tile.read_at + tile.direction * k]
        other = reference[tile.reference_at + tile.direction * k]
        score += pair_score(base, other, costs)
        if score == 0:
            tied = as_int64(k + 1)
    return tied


@inline_without_refcounts
def _best_without_loss(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    window: int,
    scratch: Scratch,
) -> tuple[int, int, int]:
    """Return where the best alignment of a tile ends that scores 0 or more, and the registers."""
    registers = min(max(longest_gaps(tile.length, costs, 0)), costs.most_gap) // LANES + 1
    if tile.length == 0 or tile.reference_length == 0:
        return as_int64(0), as_int64(0), registers
    least, traced = as_int64(-1), as_int64(1)
    compute_band(query, reference, tile, costs, registers, least, scratch, traced, window)
    results = scratch.results
    best, best_step, best_diagonal = as_int64(-1), as_int64(0), as_int64(0)
    # From the corner's diagonal outwards: with the same score, the nearest one stays.
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
