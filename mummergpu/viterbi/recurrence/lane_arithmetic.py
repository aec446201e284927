"""Arithmetic on the scores of many cells at a time, written as LLVM's vector instructions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mummergpu.runtime.llvm import ir
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import CostTuple

LANES: Final = 16
"""The cells of a register, in 16 bits each."""

NEVER: Final = -(1 << 15)
"""The score of a cell that no path reaches; sums and differences saturate there."""


def costs_by_name(builder: Any, costs: Any) -> dict[str, Any]:
    """Return the fields of a `CostTuple` of the compiled function, of 64 bits each."""
    return {
        name: builder.extract_value(costs, number) for number, name in enumerate(CostTuple._fields)
    }


class LaneArithmetic:
    """Writes instructions for registers of `LANES` scores; the costs are a `CostTuple`."""

    def __init__(self, builder: Any, costs: Any) -> None:
        self._builder = builder
        self._costs = costs_by_name(builder, costs)
        self._subtracted: dict[tuple[str, ...], Any] = {}
        match, mismatch, unknown = (
            self._splat_bytes(self._costs[name]) for name in ("match", "mismatch", "unknown")
        )
        zeros = ir.Constant(self._bytes_type(), [0] * LANES)
        self._match = match
        self._mismatch, self._unknown = builder.sub(zeros, mismatch), builder.sub(zeros, unknown)

    def cost(self, name: str) -> Any:
        """Return a field of `Costs` as 64 bits."""
        return self._costs[name]

    def prepare(self, costs: tuple[str, ...]) -> None:
        """Add up some costs where the builder is now, before the loop that subtracts them."""
        if costs and costs not in self._subtracted:
            total = self._costs[costs[0]]
            for name in costs[1:]:
                total = self._builder.add(total, self._costs[name])
            self._subtracted[costs] = self.splat(total)

    def vector(self, numbers: Iterable[int]) -> Any:
        """Return a register of constants, one for each lane."""
        return ir.Constant(self._type(), list(numbers))

    def constant(self, number: int) -> Any:
        """Return a register with the same constant in every lane."""
        return self.vector([number] * LANES)

    def splat(self, number: Any) -> Any:
        """Return a register with a number of 64 bits in every lane."""
        return self._splat(self._type(), self._builder.trunc(number, ir.IntType(16)))

    def add(self, score: Any, other: Any) -> Any:
        """Return the sum, which saturates."""
        return self._call("llvm.sadd.sat.v16i16", self._type(), score, other)

    def subtract(self, score: Any, costs: tuple[str, ...]) -> Any:
        """Return a score less the costs, saturated: see `departures.Arithmetic`."""
        if not costs:
            return score
        return self._call("llvm.ssub.sat.v16i16", self._type(), score, self._subtracted[costs])

    def exceeds(self, score: Any, other: Any) -> Any:
        """Return a truth for each lane: see `departures.Arithmetic`."""
        return self._builder.icmp_signed(">", score, other)

    def choose(self, truth: Any, score: Any, other: Any) -> Any:
        """Return one of two scores for each lane: see `departures.Arithmetic`."""
        return self._builder.select(truth, score, other)

    def larger(self, score: Any, other: Any) -> Any:
        """Return the larger score in each lane."""
        return self.choose(self.exceeds(score, other), score, other)

    def smaller(self, score: Any, other: Any) -> Any:
        """Return the smaller score in each lane."""
        return self.choose(self.exceeds(score, other), other, score)

    def highest(self, scores: Any) -> Any:
        """Return the highest of all lanes, as 64 bits."""
        found = self._call("llvm.vector.reduce.smax.v16i16", ir.IntType(16), scores)
        return self._builder.sext(found, ir.IntType(64))

    def shifted_up(self, scores: Any, before: Any) -> Any:
        """Return what the lane before each one has; the first gets the last of `before`."""
        return self._shuffled(before, scores, LANES - 1)

    def shifted_down(self, scores: Any, after: Any) -> Any:
        """Return what the lane after each one has; the last gets the first of `after`."""
        return self._shuffled(scores, after, 1)

    def place(self, numbers: Any, register: Any) -> Any:
        """Return where a register is, from a pointer to 16-bit numbers and the register's own."""
        at = self._builder.mul(register, ir.Constant(ir.IntType(64), LANES))
        return self._builder.bitcast(self._builder.gep(numbers, [at]), self._type().as_pointer())

    def load(self, place: Any) -> Any:
        """Load a register."""
        return self._builder.load(place, align=2, typ=self._type())

    def store(self, value: Any, place: Any) -> None:
        """Store a register."""
        self._builder.store(value, place, align=2)

    def load_codes(self, codes: Any, at: Any) -> Any:
        """Load a code for each lane from a pointer to bytes and an index."""
        address = self._builder.gep(codes, [at])
        address = self._builder.bitcast(address, self._bytes_type().as_pointer())
        return self._builder.load(address, align=1, typ=self._bytes_type())

    def emission(self, bases: Any, others: Any) -> Any:
        """Return what pairs of codes of `tile_copy` score."""
        builder = self._builder
        equal = builder.icmp_unsigned("==", bases, others)
        breaks = ir.Constant(self._bytes_type(), [BREAK] * LANES)
        unknown = builder.icmp_unsigned("==", bases, breaks)
        scores = builder.select(unknown, self._unknown, self._mismatch)
        return builder.sext(builder.select(equal, self._match, scores), self._type())

    def _type(self) -> Any:
        return ir.VectorType(ir.IntType(16), LANES)

    def _bytes_type(self) -> Any:
        return ir.VectorType(ir.IntType(8), LANES)

    def _splat_bytes(self, number: Any) -> Any:
        return self._splat(self._bytes_type(), self._builder.trunc(number, ir.IntType(8)))

    def _splat(self, kind: Any, number: Any) -> Any:
        undefined = ir.Constant(kind, ir.Undefined)
        first = self._builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self._shuffled(first, undefined, None)

    def _shuffled(self, one: Any, other: Any, first: int | None) -> Any:
        """Return `LANES` lanes of two registers, from one on; the first lane only if None."""
        order = [0] * LANES if first is None else list(range(first, first + LANES))
        kind = ir.VectorType(ir.IntType(32), LANES)
        return self._builder.shuffle_vector(one, other, ir.Constant(kind, order))

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        module = self._builder.module
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = module.globals.get(name) or ir.Function(module, kind, name)
        return self._builder.call(function, arguments)
