"""Registers whose quarters belong to several comparisons with one profile, and loops over them.

Each quarter holds four nodes, as a whole register does in HMMER. Lanes of different quarters never
meet and nothing is rounded at other places, so each comparison has the bits that it has alone.
There are four, or two for a few comparisons, which are still called quarters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, cast

from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS
from mummergpu.runtime.llvm import intrinsic, ir, types
from mummergpu.runtime.vectors import FloatVectors, join_turns

MOST_QUARTERS: Final = 4


class Fields:
    """The fields of a named tuple in compiled code; arrays are pointers to their elements."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self._context = context
        self._builder = builder
        self._kind = kind
        self._value = value

    def __getattr__(self, name: str) -> Any:
        place = self._kind.fields.index(name)
        value = self._builder.extract_value(self._value, place)
        return _unpacked(self._context, self._builder, self._kind.types[place], value)


def _unpacked(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if hasattr(kind, "fields"):
        return Fields(context, builder, kind, value)
    if isinstance(kind, types.Array):
        return context.make_array(kind)(context, builder, value).data
    return value


def written(result: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator of functions that write the code of a function of compiled code.

    It calls them with `Quarters` and with the arguments of the function, named tuples as `Fields`.
    The first argument has as many elements as there are quarters, or is a named tuple with such
    `quarters`. `result` is the name of the result's type for numba.
    """

    def decorate(write: Callable[..., Any]) -> Any:
        # Numba reads how many arguments there are from the function that this one wraps.
        @wraps(write)
        def typed(_typing_context: Any, *kinds: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
                first = signature.args[0]
                if hasattr(first, "fields"):
                    first = first.types[first.fields.index("quarters")]
                arguments = (
                    _unpacked(context, builder, kind, value)
                    for kind, value in zip(signature.args, values, strict=True)
                )
                found = write(Quarters(builder, first.count), *arguments)
                return context.get_dummy_value() if found is None else found

            return getattr(types, result)(*kinds), generate

        return cast(Any, intrinsic(typed))

    return decorate


class Quarters(FloatVectors):
    """Writes instructions for registers of several comparisons.

    Truths of lanes that a loop hands on are `masks`, integers of 32 bits: processors without
    registers for truths would pack them otherwise.
    """

    def __init__(self, builder: Any, quarters: int) -> None:
        self.quarters = quarters
        super().__init__(builder, self.quarters * NODES)
        self.quarter = FloatVectors(builder, NODES)
        self.numbers = FloatVectors(builder, quarters)
        self.codes = ir.VectorType(ir.IntType(32), self.lanes)

    def registers(self, array: Any, floats: Any = None) -> Any:
        """Return a pointer to registers, a number of floats after a pointer to floats."""
        return self._moved(array, floats, self.kind)

    def narrow(self, array: Any, floats: Any = None) -> Any:
        """Return a pointer to quarters, as `registers`."""
        return self._moved(array, floats, self.quarter.kind)

    def _moved(self, array: Any, floats: Any, kind: Any) -> Any:
        element = self.builder.bitcast(array, self.element.as_pointer())
        moved = element if floats is None else self.builder.gep(element, [floats])
        return self.builder.bitcast(moved, kind.as_pointer())

    def code(self, number: int) -> Any:
        """Return a register with the same small number in every lane."""
        return ir.Constant(self.codes, [number] * self.lanes)

    def mask(self, truths: Any) -> Any:
        """Return truths as a mask."""
        return self.builder.sext(truths, self.codes)

    def masked(self, mask: Any, register: Any) -> Any:
        """Return the lanes of a mask, and 0 in the others."""
        bits = self.builder.and_(mask, self.builder.bitcast(register, self.codes))
        return self.builder.bitcast(bits, self.kind)

    def truths(self, mask: Any) -> Any:
        """Return a mask as truths."""
        return self.builder.icmp_signed("!=", mask, self.code(0))

    def any_of(self, truths: Any) -> Any:
        """Return whether a truth of some lane or of some number holds."""
        packed = self.builder.bitcast(truths, ir.IntType(truths.type.count))
        return self.builder.icmp_unsigned("!=", packed, ir.Constant(packed.type, 0))

    def coded(self, pairs: Sequence[tuple[Any, int]]) -> Any:
        """Return the number of the last truth that holds in each lane, 0 where none does."""
        found = self.code(0)
        for truths, one in pairs:
            found = self.builder.select(truths, self.code(one), found)
        return found

    def store_codes(self, codes: Any, array: Any, at: int) -> None:
        """Store small numbers of each lane as 32 bits, as a row of an array."""
        rows = self.builder.bitcast(array, self.codes.as_pointer())
        self.builder.store(codes, self.builder.gep(rows, [number(at)]), align=1)

    def load_codes(self, array: Any, at: int) -> Any:
        """Load what `store_codes` stores."""
        rows = self.builder.bitcast(array, self.codes.as_pointer())
        return self.builder.load(self.builder.gep(rows, [number(at)]), align=1)

    def bytes_at(self, array: Any, register: Any) -> Any:
        """Return a pointer to a byte of each lane of a register."""
        kind = ir.VectorType(ir.IntType(8), self.lanes)
        return self.builder.gep(self.builder.bitcast(array, kind.as_pointer()), [register])

    def to_bytes(self, codes: Any) -> Any:
        """Return small numbers as a byte of each lane."""
        return self.builder.trunc(codes, ir.VectorType(ir.IntType(8), self.lanes))

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

    def in_all(self, quarters: Any, at: Any) -> Any:
        """Load a quarter into all."""
        loaded = self.quarter.load(quarters, at)
        return self.shuffled(loaded, loaded, [*range(NODES)] * self.quarters)

    def of_each(self, lines: Sequence[Any], at: Any) -> Any:
        """Load each quarter from a line of its own."""
        parts = [self.quarter.load(line, at) for line in lines]
        while len(parts) > 1:
            lanes = self.lanes // len(parts) * 2
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [self.shuffled(one, other, range(lanes)) for one, other in pairs]
        return parts[0]

    def spread(self, numbers: Any) -> Any:
        """Return a register with a number of each quarter in its lanes; or truths as such."""
        return self.shuffled(numbers, numbers, [lane // NODES for lane in range(self.lanes)])

    def first(self, register: Any) -> Any:
        """Return the first lane of each quarter as numbers."""
        return self.shuffled(register, register, range(0, self.lanes, NODES))

    def row_of(self, array: Any, row: Any = None) -> Any:
        """Return a row of numbers of each quarter, as a pointer to it."""
        return self.builder.gep(
            self._moved(array, None, self.numbers.kind), [number(0) if row is None else row]
        )

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

    def within(self, register: Any, combine: Callable[[Any, Any], Any]) -> Any:
        """Combine the lanes of each quarter, in all of them, in HMMER's order."""
        for apart in (1, 2):
            order = [lane ^ apart for lane in range(self.lanes)]
            register = combine(register, self.shuffled(register, register, order))
        return register

    def totals(self, register: Any) -> Any:
        """Return the sum of each quarter as numbers."""
        return self.first(self.within(register, self.builder.fadd))

    def higher(self, one: Any, other: Any) -> Any:
        """Return the higher numbers, the second ones where they are equal, as SSE's maximum."""
        return self.builder.select(self.builder.fcmp_ordered(">", one, other), one, other)

    def where(self, truths: Any, register: Any, otherwise: float) -> Any:
        """Return the lanes that are true, and a constant in the others."""
        return self.builder.select(truths, register, self.constant(otherwise))


class Row:
    """Writes loads and stores of the cells of a row of `Cells`."""

    def __init__(self, vectors: Quarters, cells: Fields, row: Any) -> None:
        builder = self._builder = vectors.builder
        self._vectors = vectors
        strides = (builder.extract_value(cells.strides, n) for n in range(2))
        emitting, deletions = (builder.mul(row, stride) for stride in strides)
        self._emitting = vectors.registers(cells.emitting, emitting)
        self._deletions = vectors.registers(cells.deletions, deletions)

    def _place(self, register: Any, which: int) -> tuple[Any, Any]:
        if which == 2:
            return self._deletions, register
        at = self._builder.mul(register, number(2))
        return self._emitting, self._builder.add(at, number(which))

    def load(self, register: Any, which: int) -> Any:
        """Load the matches (0), insertions (1) or deletions (2) of a register."""
        return self._vectors.load(*self._place(register, which))

    def store(self, value: Any, register: Any, which: int) -> None:
        """Store what `load` loads."""
        self._vectors.store(value, *self._place(register, which))

    def loads(self, register: Any) -> list[Any]:
        """Load the matches, insertions and deletions of a register."""
        return [self.load(register, which) for which in range(3)]


class Specials:
    """Writes loads and stores of special states, a number of each quarter, in a row of them."""

    def __init__(self, vectors: Quarters, array: Any, states: int, row: Any) -> None:
        self._vectors = vectors
        self._row = vectors.row_of(array, vectors.builder.mul(row, number(states)))

    def load(self, state: int) -> Any:
        """Load the numbers of a state."""
        return self._vectors.numbers.load(self._row, number(state))

    def store(self, numbers: Any, state: int) -> None:
        """Store the numbers of a state."""
        self._vectors.numbers.store(numbers, self._row, number(state))


class Chances:
    """Writes loads of the chances of a profile's steps, and of its odds."""

    def __init__(self, vectors: Quarters, odds: Fields) -> None:
        self._vectors = vectors
        self._odds = odds
        self._steps = vectors.narrow(odds.steps)
        self._deletes = vectors.builder.mul(odds.registers, number(STEPS))

    def step(self, register: Any, which: int) -> Any:
        """Load one of the `STEPS` of a register into all quarters."""
        at = self._vectors.builder.mul(register, number(STEPS))
        return self._vectors.in_all(self._steps, self._vectors.builder.add(at, number(which)))

    def deletion(self, register: Any) -> Any:
        """Load the chances that deletions of a register go on, into all quarters."""
        return self._vectors.in_all(self._steps, self._vectors.builder.add(self._deletes, register))

    def lines(self, group: Fields, place: Any) -> list[Any]:
        """Return the odds of each quarter's residue at a place from the end, below 0."""
        builder, found = self._vectors.builder, []
        for quarter in range(self._vectors.quarters):
            begin, size = (
                builder.load(builder.gep(array, [number(quarter)]))
                for array in (group.begins, group.sizes)
            )
            # Residues of a shorter sequence that come before its begin do not matter.
            at = builder.add(size, place)
            is_in = builder.icmp_signed(">", at, number(0))
            at = builder.add(begin, builder.select(is_in, at, number(0)))
            code = builder.zext(builder.load(builder.gep(group.codes, [at])), ir.IntType(64))
            line = builder.mul(code, builder.mul(self._odds.registers, number(NODES)))
            found.append(self._vectors.narrow(self._odds.emissions, line))
        return found


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
