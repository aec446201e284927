"""The compiled function that computes the matrix of a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from mummergpu.runtime.jit import jit_without_refcounts
from mummergpu.runtime.llvm import intrinsic, types
from mummergpu.viterbi.recurrence.lane_arithmetic import LANES
from mummergpu.viterbi.recurrence.lanes import TileProgram
from mummergpu.viterbi.recurrence.model import CostTuple
from mummergpu.viterbi.tiles.scratch import Scratch


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


class TileCopies(NamedTuple):
    """Where in `Scratch.codes` the sequences of a tile are, as `tile_copy` has copied them."""

    read_at: int
    """The last base of the read, which comes first."""
    reference_at: int
    length: int
    """The bases of the read, 1 or more."""
    reference_length: int


@jit_without_refcounts
def compute_matrix(
    scratch: Scratch,
    copies: TileCopies,
    costs: CostTuple,
    registers: int,
    least_score: int,
    traced: int,
    most_pairs: int,
) -> None:
    """Compute the scores of a tile, and from where the best path comes into each cell.

    `registers` cover the band, up to `lanes.MOST_REGISTERS`. At most `most_pairs` pairs of
    anti-diagonals are computed.
    """
    codes, state, results, directions = scratch
    read_at, reference_at, length, reference_length = copies
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
