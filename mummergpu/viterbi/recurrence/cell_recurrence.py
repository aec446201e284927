"""The recurrence in compiled code: for a cell, or for sixteen of an anti-diagonal at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from mummergpu.runtime.jit import inline
from mummergpu.runtime.llvm import intrinsic, ir, load_from, store_to, types
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.lanes import costs_by_name
from mummergpu.viterbi.recurrence.model import (
    DELETION,
    INSERTION,
    MATCH,
    PAIRWISE,
    Costs,
    departures,
)


@inline
def pair_score(base: int, other: int, costs: Costs) -> int:
    """Return the score of a base of the query on a base of the reference."""
    if base >= BREAK:
        return -costs.unknown
    return costs.match if base == other else -costs.mismatch


class NumberArithmetic:
    """Writes instructions for integers, or vectors of them (`model.Arithmetic`)."""

    def __init__(self, builder: Any, costs: Mapping[str, Any]) -> None:
        self.builder, self.costs = builder, costs

    def subtract(self, score: Any, costs: tuple[str, ...]) -> Any:
        """Return a score minus some costs."""
        for name in costs:
            score = self.builder.sub(score, self.costs[name])
        return score

    def exceeds(self, score: Any, other: Any) -> Any:
        """Return whether one score is higher than another."""
        return self.builder.icmp_signed(">", score, other)

    def choose(self, truth: Any, score: Any, other: Any) -> Any:
        """Return `score` where `truth` holds, else the other."""
        return self.builder.select(truth, score, other)


def _scalar_recurrence(
    typing_context: Any, match: Any, insertion: Any, deletion: Any, costs: Any
) -> Any:
    """Return the scores that leave a cell for each state, and the bits of the directions."""

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
returns the scores that leave for these states, and the bits that `model.source_table` reads."""


WIDE_LANES: Final = 16
"""The number of cells that are computed at a time."""


class _WideArithmetic(NumberArithmetic):
    """Writes instructions for vectors of scores."""

    def __init__(self, builder: Any, costs: Any) -> None:
        splat = Vectors(builder, 32, WIDE_LANES).splat
        single = costs_by_name(builder, costs)
        super().__init__(builder, {name: splat(one) for name, one in single.items()})

    def emission(self, bases: Any, others: Any) -> Any:
        """Return the scores of pairs of codes."""
        builder = self.builder
        zeros = ir.Constant(_vector(32), [0] * WIDE_LANES)
        mismatch, unknown = (
            builder.sub(zeros, self.costs[name]) for name in ("mismatch", "unknown")
        )
        breaks = ir.Constant(_vector(8), [BREAK] * WIDE_LANES)
        equal = builder.icmp_unsigned("==", bases, others)
        scores = builder.select(equal, self.costs["match"], mismatch)
        return builder.select(builder.icmp_unsigned(">=", bases, breaks), unknown, scores)


def _vector(bits: int) -> Any:
    return ir.VectorType(ir.IntType(bits), WIDE_LANES)


def _fill_lanes(
    typing_context: Any,
    query: Any,
    query_at: Any,
    reference: Any,
    reference_at: Any,
    state: Any,
    places: Any,
    costs: Any,
    directions: Any,
    directions_at: Any,
) -> Any:
    """Compute `WIDE_LANES` cells; see `fill_lanes`."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def load(number: int, at: Any, bits: int) -> Any:
            array = signature.args[number], arguments[number]
            return load_from(context, builder, _vector(bits), *array, at)

        def store(value: Any, number: int, at: Any) -> None:
            store_to(context, builder, value, signature.args[number], arguments[number], at)

        arithmetic = _WideArithmetic(builder, arguments[6])
        ends = [builder.extract_value(arguments[5], number) for number in range(6)]
        emission = arithmetic.emission(load(0, arguments[1], 8), load(2, arguments[3], 8))
        cell = {
            MATCH: builder.add(load(4, ends[0], 32), emission),
            INSERTION: load(4, ends[1], 32),
            DELETION: load(4, ends[2], 32),
        }
        found = departures(PAIRWISE, cell, arithmetic)
        for departure, end in zip(found, ends[3:], strict=True):
            store(departure.score, 4, end)
        # A byte a cell has all bits: they are read once, on the way back (`departures`).
        packed = ir.Constant(_vector(8), [0] * WIDE_LANES)
        noted = [bit for departure in found for bit in departure.bits]
        for number, bit in enumerate(noted):
            shift = ir.Constant(_vector(8), [number] * WIDE_LANES)
            moved = builder.shl(builder.zext(bit, _vector(8)), shift)
            packed = builder.or_(packed, moved)
        store(packed, 7, arguments[8])
        return context.get_dummy_value()

    one = types.int64
    six = types.UniTuple(one, 6)
    return types.void(query, one, reference, one, state, six, costs, directions, one), generate


fill_lanes = cast(Any, intrinsic(_fill_lanes))
"""Computes cells of an anti-diagonal, which are on neighbouring rows.

Called with the codes of the query and the index of the first row's base; the codes of the reversed
reference and the index of the base on the first row; the scores, and six places in them: those
that arrive in the first cell for a match, an insertion and a deletion, and those that leave it for
each, which are written; `Costs`; and the directions, a byte for each cell (`model.departures`), and
the place of the first one."""
