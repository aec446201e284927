"""Extends an alignment outwards from an exact match until its score stops improving.

The best alignment of the next bases is found, with the whole matrix of that window; from its end
the next window begins. The extension breaks where no alignment of a window improves the score, and
none of twice the window in bases of both sequences keeps it (`extend_without_loss`): as in nucmer,
a break is counted in the bases of both, so an alignment may need more of the query than of the
reference.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.runtime.jit import as_int64, inline, jit
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.cell_recurrence import pair_score
from mummergpu.viterbi.recurrence.lanes import LANES
from mummergpu.viterbi.recurrence.model import MOST_BASES, Costs
from mummergpu.viterbi.recurrence.operations import (
    MATCH_OPERATION,
    OperationArray,
    append_operation,
    kind_of,
    length_of,
)
from mummergpu.viterbi.recurrence.tile import Tile, rest_of, tile_at
from mummergpu.viterbi.tiles.band import STEP_RESULTS, Scratch, compute_band, lane_of, write_path
from mummergpu.viterbi.tiles.extension import extend_path, extend_score, longest_gaps


@jit
def extend_without_loss(
    query: CodeArray, reference: CodeArray, tile: Tile, costs: Costs, window: int, scratch: Scratch
) -> tuple[int, int, int]:
    """Return the lengths of the best alignment with a score of at least 0.

    The window is half of the bases of both sequences together that it may have. Return the bases of
    the query and of the reference, 0 for none, and the registers that covered the band: the
    directions are in `scratch`. There are no registers if the alignment has no gap.

    Of several alignments, the longest one without a gap is taken if it scores 0, or else the one
    with the best score, of those the one that ends nearest to its diagonal, of those the shortest.
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


@inline
def _tied_bases(
    query: CodeArray, reference: CodeArray, tile: Tile, window: int, costs: Costs
) -> int:
    """Return the largest number of next pairs of bases whose total score is 0."""
    score, tied = 0, as_int64(0)
    for k in range(min(window, tile.length, tile.reference_length)):
        base = query[tile.read_at + tile.direction * k]
        other = reference[tile.reference_at + tile.direction * k]
        score += pair_score(base, other, costs)
        if score == 0:
            tied = as_int64(k + 1)
    return tied


@inline
def _best_without_loss(
    query: CodeArray, reference: CodeArray, tile: Tile, costs: Costs, window: int, scratch: Scratch
) -> tuple[int, int, int]:
    """Return where the best alignment of a tile ends that scores 0 or more, and the registers."""
    registers = min(max(longest_gaps(tile.length, costs, 0)), costs.max_gap) // LANES + 1
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


NO_ROOM: Final = -1
"""The number of operations if they may not fit."""

_FIRST_BAND: Final = 8
"""The distance that an alignment probably goes from its diagonal in a window."""

_BETTER: Final = 1
"""The least score that a window adds."""

_MORE_PATIENT: Final = 15
"""The factor by which the window of an extension towards a known match is longer."""


@inline
def longest_window(window: int) -> int:
    """Return the window of an extension towards a match that is known to follow."""
    return min(_MORE_PATIENT * window, MOST_BASES)


@inline
def _window_of(rest: Tile, window: int) -> Tile:
    """Return the first bases of a tile, with all of the reference."""
    length = min(as_int64(window), rest.length)
    return tile_at(rest.read_at, length, rest.reference_at, rest.reference_length, rest.direction)


@jit
def reach_before_drop(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    window: int,
    min_gain: int,
    scratch: Scratch,
) -> tuple[int, int]:
    """Return the bases of the query and of the reference that an extension uses.

    The codes have margins; the tile has the bases next to the match that may be used; an end scores
    nothing. The score must improve within `window` bases of the query, up to `MOST_BASES`. The
    extension breaks where a base of the query in a window scores less than `min_gain` on average;
    with 0 any improvement will do.
    """
    used, reference_used = as_int64(0), as_int64(0)
    while used < tile.length and reference_used < tile.reference_length:
        rest = rest_of(tile, used, reference_used)
        part = _window_of(rest, window)
        score, i, j = extend_score(query, reference, part, costs, _FIRST_BAND, _BETTER, scratch)
        if min_gain > 0 and score < min_gain * i:
            break
        if i == 0:
            # No path in the window scores: one may still break even, and score after it.
            i, j, _ = extend_without_loss(query, reference, rest, costs, window, scratch)
            if i == 0:
                break
        used += i
        reference_used += j
    return used, reference_used


@jit
def extend_until_drop(
    query: CodeArray,
    reference: CodeArray,
    tile: Tile,
    costs: Costs,
    window: int,
    scratch: Scratch,
    operations: OperationArray,
    operations_at: int,
) -> tuple[int, int, int]:
    """Extend as `reach_before_drop` does with any gain; return the number of operations, too.

    These are written from `operations_at` on, from the match outwards; the number is `NO_ROOM` if
    they may not fit there.
    """
    used, reference_used = as_int64(0), as_int64(0)
    end = as_int64(operations_at)
    while used < tile.length and reference_used < tile.reference_length:
        if end + 4 * window + 1 > operations.size:
            return used, reference_used, as_int64(NO_ROOM)
        rest = rest_of(tile, used, reference_used)
        part = _window_of(rest, window)
        _, i, j, count = extend_path(
            query, reference, part, costs, _FIRST_BAND, _BETTER, scratch, operations, end
        )
        if i == 0:
            i, j, registers = extend_without_loss(query, reference, rest, costs, window, scratch)
            if i == 0:
                break
            if registers > 0:
                count = write_path(i, j, registers, scratch.directions, operations, end)
            else:
                operations[end] = np.uint32(i << 4 | MATCH_OPERATION)
                count = as_int64(1)
        used += i
        reference_used += j
        # The first operation of a window is a match, as is the last one of that before.
        kept = end
        for position in range(end, end + count):
            kind, bases = kind_of(operations, position), length_of(operations, position)
            kept = append_operation(operations, operations_at, kept, kind, bases)
        end = kept
    return used, reference_used, end - operations_at
