"""Arithmetic on the scores of many cells at a time, written as LLVM's vector instructions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mummergpu.runtime.llvm import ir
from mummergpu.runtime.vectors import Vectors
from mummergpu.sequence.codes import BREAK
from mummergpu.viterbi.recurrence.model import Costs

LANES: Final = 16
"""The cells of a register, in 16 bits each."""

NEVER: Final = -(1 << 15)
"""The score of a cell that no path reaches; sums and differences saturate there."""


def costs_by_name(builder: Any, costs: Any) -> dict[str, Any]:
    """Return the fields of a `Costs` of the compiled function, of 64 bits each."""
    return {name: builder.extract_value(costs, number) for number, name in enumerate(Costs._fields)}


class LaneArithmetic:
    """Writes instructions for registers of `LANES` scores; the costs are a `Costs`."""

    def __init__(self, builder: Any, costs: Any) -> None:
        self._builder = builder
        self._scores, self._codes = (Vectors(builder, bits, LANES) for bits in (16, 8))
        self._costs = costs_by_name(builder, costs)
        self._subtracted: dict[tuple[str, ...], Any] = {}
        match, mismatch, unknown = (
            self._codes.splat(self._costs[name]) for name in ("match", "mismatch", "unknown")
        )
        zeros = self._codes.constant(0)
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
        return ir.Constant(self._scores.kind, list(numbers))

    def constant(self, number: int) -> Any:
        """Return a register with the same constant in every lane."""
        return self._scores.constant(number)

    def splat(self, number: Any) -> Any:
        """Return a register with a number of 64 bits in every lane."""
        return self._scores.splat(number)

    def add(self, score: Any, other: Any) -> Any:
        """Return the sum, which saturates."""
        return self._scores.call("sadd.sat", score, other)

    def subtract(self, score: Any, costs: tuple[str, ...]) -> Any:
        """Return a score less the costs, saturated: see `departures.Arithmetic`."""
        if not costs:
            return score
        return self._scores.call("ssub.sat", score, self._subtracted[costs])

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
        return self._scores.reduce("smax", scores, signed=True)

    def shifted_up(self, scores: Any, before: Any) -> Any:
        """Return what the lane before each one has; the first gets the last of `before`."""
        return self._scores.shifted_up(scores, before)

    def shifted_down(self, scores: Any, after: Any) -> Any:
        """Return what the lane after each one has; the last gets the first of `after`."""
        return self._scores.shifted_down(scores, after)

    def place(self, numbers: Any, register: Any) -> Any:
        """Return where a register is, from a pointer to 16-bit numbers and the register's own."""
        at = self._builder.mul(register, ir.Constant(ir.IntType(64), LANES))
        return self._builder.bitcast(
            self._builder.gep(numbers, [at]), self._scores.kind.as_pointer()
        )

    def load(self, place: Any) -> Any:
        """Load a register."""
        return self._builder.load(place, align=2, typ=self._scores.kind)

    def store(self, value: Any, place: Any) -> None:
        """Store a register."""
        self._builder.store(value, place, align=2)

    def load_codes(self, codes: Any, at: Any) -> Any:
        """Load a code for each lane from a pointer to bytes and an index."""
        address = self._builder.gep(codes, [at])
        address = self._builder.bitcast(address, self._codes.kind.as_pointer())
        return self._builder.load(address, align=1, typ=self._codes.kind)

    def emission(self, bases: Any, others: Any) -> Any:
        """Return what pairs of codes of `band.py` score."""
        builder = self._builder
        equal = builder.icmp_unsigned("==", bases, others)
        breaks = self._codes.constant(BREAK)
        unknown = builder.icmp_unsigned("==", bases, breaks)
        scores = builder.select(unknown, self._unknown, self._mismatch)
        return builder.sext(builder.select(equal, self._match, scores), self._scores.kind)
