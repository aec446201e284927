"""The recurrence for one cell at a time, for compiled code that walks a matrix row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.viterbi.recurrence.departures import departures
from mummergpu.viterbi.recurrence.lane_arithmetic import costs_by_name
from mummergpu.viterbi.recurrence.model import PAIRWISE


class NumberArithmetic:
    """Writes instructions for integers, or vectors of them (`departures.Arithmetic`)."""

    def __init__(self, builder: Any, costs: Mapping[str, Any]) -> None:
        self.builder, self.costs = builder, costs

    def subtract(self, score: Any, costs: tuple[str, ...]) -> Any:
        """Return a score less some costs."""
        for name in costs:
            score = self.builder.sub(score, self.costs[name])
        return score

    def exceeds(self, score: Any, other: Any) -> Any:
        """Return whether one score is higher than another."""
        return self.builder.icmp_signed(">", score, other)

    def choose(self, truth: Any, score: Any, other: Any) -> Any:
        """Return one score where something is true, else the other."""
        return self.builder.select(truth, score, other)


def _scalar_recurrence(
    typing_context: Any, match: Any, insertion: Any, deletion: Any, costs: Any
) -> Any:
    """Return what leaves a cell for each state of later cells, and the bits of the directions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        *scores, costs = arguments
        cell = dict(zip(PAIRWISE.states, scores, strict=True))
        found = departures(PAIRWISE, cell, NumberArithmetic(builder, costs_by_name(builder, costs)))
        number = ir.IntType(64)
        packed = ir.Constant(number, 0)
        noted = [bit for departure in found for bit in departure.bits]
        for place, bit in enumerate(noted):
            moved = builder.shl(builder.zext(bit, number), ir.Constant(number, place))
            packed = builder.or_(packed, moved)
        scores = [departure.score for departure in found]
        return context.make_tuple(builder, signature.return_type, [*scores, packed])

    one = types.int64
    return types.UniTuple(one, len(PAIRWISE.states) + 1)(one, one, one, costs), generate


scalar_recurrence = cast(Any, intrinsic(_scalar_recurrence))
"""Called with the scores of a match, an insertion and a deletion and with `Costs`;
returns what leaves for each of these states, and the bits that `departures.source_table` reads."""
