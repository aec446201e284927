"""The compiled function that computes the matrix of a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from mummergpu.runtime.arrays import Int16Array, UInt16Array
from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.runtime.llvm import intrinsic, types
from mummergpu.sequence.codes import CodeArray
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.lanes import TileProgram
from mummergpu.viterbi.recurrence.model import CostTuple

LaneArray = Int16Array
DirectionArray = UInt16Array


def _tile_program(narrow: bool, traced: bool) -> Callable[..., Any]:
    def compute(
        typing_context: Any,
        codes: Any,
        read_at: Any,
        reference_at: Any,
        length: Any,
        reference_length: Any,
        pairs: Any,
        least_score: Any,
        costs: Any,
        registers: Any,
        state: Any,
        results: Any,
        directions: Any,
    ) -> Any:
        """Compute a tile whose codes have been copied."""

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            TileProgram(context, builder, signature, arguments, narrow, traced).write()
            return context.get_dummy_value()

        numbers = [types.int64] * 6
        arrays = (state, results, directions)
        return types.void(codes, *numbers, costs, types.int64, *arrays), generate

    return compute


_score_narrow = cast(Any, intrinsic(_tile_program(narrow=True, traced=False)))
_trace_narrow = cast(Any, intrinsic(_tile_program(narrow=True, traced=True)))
_score_wide = cast(Any, intrinsic(_tile_program(narrow=False, traced=False)))
_trace_wide = cast(Any, intrinsic(_tile_program(narrow=False, traced=True)))


@jit_without_refcounts
def compute_matrix(
    codes: CodeArray,
    read_at: int,
    reference_at: int,
    length: int,
    reference_length: int,
    least_score: int,
    costs: CostTuple,
    registers: int,
    state: LaneArray,
    results: LaneArray,
    directions: DirectionArray,
    traced: int,
    most_pairs: int,
) -> None:
    """Compute the scores of a tile, and from where the best path comes into each cell.

    Parameters
    ----------
    codes : ndarray, dtype=uint8
        The copies of `tile_copy`.
    read_at, reference_at : int
        Where in `codes` the read begins, its last base first, and the reference.
    length, reference_length : int
        The bases of the read, 1 or more, and of the reference.
    least_score : int
        The least score of interest.
    costs : tuple of int
        `Costs.as_tuple()`.
    registers : int
        How many registers cover the band, up to `lanes.MOST_REGISTERS`.
    state : ndarray, dtype=int16
        Memory to work in.
    results : ndarray, dtype=int16
        Output: see `lanes.RESULTS`.
    directions : ndarray, dtype=uint16
        Output if they are traced: for each anti-diagonal, from 0 on, and each register,
        `lanes.DIRECTION_WORDS` words with a bit for each lane: what leaves the cell
        (`departures.departures`).
    traced : int
        1 if the directions are written, else 0.
    most_pairs : int
        How many pairs of anti-diagonals are computed at most.
    """
    half = registers * LANES // 2
    read_at, reference_at = read_at - half, reference_at - half
    pairs = min((length + reference_length + 1) // 2, most_pairs)
    tile = (read_at, reference_at, length, reference_length, pairs, least_score)
    if registers == 1:
        if traced:
            _trace_narrow(codes, *tile, costs, registers, state, results, directions)
        else:
            _score_narrow(codes, *tile, costs, registers, state, results, directions)
    elif traced:
        _trace_wide(codes, *tile, costs, registers, state, results, directions)
    else:
        _score_wide(codes, *tile, costs, registers, state, results, directions)
