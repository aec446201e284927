"""Registers whose quarters belong to several comparisons with one profile, and loops over them.

Each quarter holds four nodes, as a whole register does in HMMER. Lanes of different quarters never
meet and nothing is rounded at other places, so each comparison has the bits that it has alone.
There are four, or two for a few comparisons, which are still called quarters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.runtime.llvm import address_of, ir
from mummergpu.runtime.vectors import FloatVectors, join_turns

MOST_QUARTERS: Final = 4


class Quarters(FloatVectors):
    """Writes instructions for registers of several comparisons.

    `quarters` is numba's type of a tuple of as many integers.
    """

    def __init__(self, builder: Any, quarters: Any) -> None:
        self.quarters = quarters.count
        super().__init__(builder, self.quarters * NODES)
        self.quarter = FloatVectors(builder, NODES)

    def places(self, context: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
        """Return the arguments at some places, arrays, as pointers to quarters."""
        return self.quarter.arrays(context, signature, arguments, *places)

    def bytes_from(self, context: Any, signature: Any, arguments: Any, place: int, at: Any) -> Any:
        """Return a pointer to a byte in the argument at a place, an array."""
        kind = ir.IntType(8)
        return address_of(context, self.builder, kind, signature.args[place], arguments[place], at)

    @property
    def codes(self) -> Any:
        """The type of a small number of each lane."""
        return ir.VectorType(ir.IntType(32), self.lanes)

    def coded(self, pairs: Sequence[tuple[Any, int]]) -> Any:
        """Return the number of the last truth that holds in each lane, 0 where none does."""
        found = self.code(0)
        for truths, one in pairs:
            found = self.builder.select(truths, self.code(one), found)
        return found

    def code(self, number: int) -> Any:
        """Return a register with the same small number in every lane."""
        return ir.Constant(self.codes, [number] * self.lanes)

    def store_codes(self, codes: Any, pointer: Any, at: int) -> None:
        """Store small numbers of each lane as 32 bits, as a row of an array."""
        rows = self.builder.bitcast(pointer, self.codes.as_pointer())
        self.builder.store(codes, self.builder.gep(rows, [number(at)]), align=1)

    def keep(self, codes: Any, target: Any, register: Any) -> None:
        """Store a small number of each lane as a byte."""
        kind = ir.VectorType(ir.IntType(8), self.lanes)
        at = self.builder.mul(register, number(self.lanes))
        place = self.builder.bitcast(self.builder.gep(target, [at]), kind.as_pointer())
        self.builder.store(self.builder.trunc(codes, kind), place, align=1)

    def either(
        self, truth: Any, one: Callable[[], list[Any]], other: Callable[[], list[Any]]
    ) -> list[Any]:
        """Write two ways to compute the same values, of which a truth chooses; return them."""
        builder = self.builder
        with builder.if_else(truth) as (then, otherwise):
            with then:
                ones = one()
                first = builder.block
            with otherwise:
                others = other()
                second = builder.block
        found = []
        for value, another in zip(ones, others, strict=True):
            phi = builder.phi(value.type)
            phi.add_incoming(value, first)
            phi.add_incoming(another, second)
            found.append(phi)
        return found

    def moved(self, array: Any, floats: Any) -> Any:
        """Return a pointer to registers, a number of floats after a pointer to any."""
        element = self.builder.bitcast(array, self.element.as_pointer())
        return self.builder.bitcast(self.builder.gep(element, [floats]), self.kind.as_pointer())

    def in_all(self, quarters: Any, at: Any) -> Any:
        """Load a quarter into all."""
        loaded = self.quarter.load(quarters, at)
        return self.shuffled(loaded, loaded, [*range(NODES)] * self.quarters)

    def of_each(self, quarters: Any, places: Sequence[Any]) -> Any:
        """Load each quarter from a place of its own."""
        parts = [self.quarter.load(quarters, place) for place in places]
        while len(parts) > 1:
            lanes = self.lanes // len(parts) * 2
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffled(one, other, range(lanes)) for one, other in pairs]
        return parts[0]

    def spread(self, floats: Any, row: int) -> Any:
        """Load a number of each quarter from a row of numbers into its lanes."""
        element = self.builder.bitcast(floats, self.element.as_pointer())
        loaded: Any = ir.Constant(ir.VectorType(self.element, self.quarters), ir.Undefined)
        # One by one: a processor waits before it loads at once what was stored in parts.
        for quarter in range(self.quarters):
            place = self.builder.gep(element, [number(row * self.quarters + quarter)])
            lane = ir.Constant(ir.IntType(32), quarter)
            loaded = self.builder.insert_element(loaded, self.builder.load(place), lane)
        return self.shuffled(loaded, loaded, [lane // NODES for lane in range(self.lanes)])

    def pick(self, register: Any, floats: Any, row: int) -> None:
        """Store the first lane of each quarter into a row of numbers."""
        vectors = FloatVectors(self.builder, self.quarters)
        picked = self.shuffled(register, register, range(0, self.lanes, NODES))
        vectors.store(picked, self._row(floats, vectors, row), number(0))

    def _row(self, floats: Any, vectors: FloatVectors, row: int) -> Any:
        rows = self.builder.bitcast(floats, vectors.kind.as_pointer())
        return self.builder.gep(rows, [number(row)])

    def up(self, register: Any, before: float) -> Any:
        """Shift the lanes of each quarter up by one; the first ones get a constant."""
        order = [self.lanes + lane if lane % NODES == 0 else lane - 1 for lane in range(self.lanes)]
        return self.shuffled(register, self.constant(before), order)

    def down(self, register: Any) -> Any:
        """Shift the lanes of each quarter down by one; the last ones get 0."""
        order = [
            self.lanes + lane if lane % NODES == NODES - 1 else lane + 1
            for lane in range(self.lanes)
        ]
        return self.shuffled(register, self.constant(0), order)

    def totals(self, register: Any) -> Any:
        """Return the sum of each quarter in all its lanes, added up in HMMER's order."""
        for apart in (1, 2):
            register = self.builder.fadd(register, self._exchanged(register, apart))
        return register

    def highest(self, register: Any) -> Any:
        """Return the highest number of each quarter in all its lanes."""
        for apart in (1, 2):
            register = self.higher(register, self._exchanged(register, apart))
        return register

    def higher(self, one: Any, other: Any) -> Any:
        """Return the higher numbers, the second ones where they are equal, as SSE's maximum."""
        return self.builder.select(self.builder.fcmp_ordered(">", one, other), one, other)

    def where(self, truths: Any, register: Any, otherwise: float) -> Any:
        """Return the lanes that are true, and a constant in the others."""
        return self.builder.select(truths, register, self.constant(otherwise))

    def _exchanged(self, register: Any, apart: int) -> Any:
        return self.shuffled(register, register, [lane ^ apart for lane in range(self.lanes)])

    def packed(self, truths: Any) -> Any:
        """Return a truth of each lane as a bit of 64."""
        packed = self.builder.bitcast(truths, ir.IntType(self.lanes))
        return self.builder.zext(packed, ir.IntType(64))

    @property
    def every(self) -> Any:
        """The constant that is true in every lane."""
        return ir.Constant(ir.VectorType(ir.IntType(1), self.lanes), [1] * self.lanes)

    @property
    def no(self) -> Any:
        """The constant that is no truth."""
        return ir.Constant(ir.IntType(1), 0)

    def unpacked(self, bits: Any) -> Any:
        """Return the truths of the lanes from the lowest of 64 bits."""
        packed = self.builder.trunc(bits, ir.IntType(self.lanes))
        return self.builder.bitcast(packed, ir.VectorType(ir.IntType(1), self.lanes))


def number(value: int) -> Any:
    """Return a constant of 64 bits."""
    return ir.Constant(ir.IntType(64), value)


def looped(
    builder: Any,
    count: Any,
    firsts: Sequence[Any],
    body: Callable[..., Sequence[Any]],
    stops: bool = False,
) -> list[Any]:
    """Write a loop over numbers from 0 on, at least one; return the last turn's values.

    `body` is called with a number and the values that the last turn left, `firsts` in the first
    turn. It returns the next ones, and with `stops` whether this turn is the last one.
    """
    before = builder.block
    turn, after = builder.append_basic_block("turn"), builder.append_basic_block("after")
    builder.branch(turn)
    builder.position_at_end(turn)
    register = builder.phi(ir.IntType(64))
    values = [builder.phi(first.type) for first in firsts]
    results = [*body(register, *values)]
    following = builder.add(register, number(1))
    goes_on = builder.icmp_signed("<", following, count)
    if stops:
        goes_on = builder.and_(goes_on, builder.not_(results.pop()))
    last = builder.block
    join_turns(
        ((register, number(0), following), *zip(values, firsts, results, strict=True)), before, last
    )
    builder.cbranch(goes_on, turn, after)
    builder.position_at_end(after)
    return results


def numbers_of(builder: Any, context: Any, count: int, array_type: Any, array: Any) -> list[Any]:
    """Load the first numbers of an array of int64."""
    kind = ir.IntType(64)
    places = [
        address_of(context, builder, kind, array_type, array, number(n)) for n in range(count)
    ]
    return [builder.load(place, align=1, typ=kind) for place in places]
