"""Registers of small numbers in compiled code, written as LLVM's vector instructions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mummergpu.runtime.llvm import address_of, ir


def join_turns(values: Iterable[tuple[Any, Any, Any]], before: Any, last: Any) -> None:
    """Give the phis of a loop their values in its first turn, and in each later one.

    `before` is the block from which the loop is entered, and `last` the one that ends a turn.
    """
    for phi, first, following in values:
        phi.add_incoming(first, before)
        phi.add_incoming(following, last)


def each_case(builder: Any, number: Any, values: Sequence[int]) -> Iterator[int]:
    """Yield values, and write what follows each of them for a number that equals it.

    The number must be one of them.
    """
    none = builder.append_basic_block("none")
    choice = builder.switch(number, none)
    builder.position_at_end(none)
    builder.unreachable()
    for value in values:
        block = builder.append_basic_block(f"case{value}")
        choice.add_case(ir.Constant(ir.IntType(64), value), block)
        builder.position_at_end(block)
        yield value


class Vectors:
    """Writes instructions for registers of `lanes` lanes of `bits` bits."""

    def __init__(self, builder: Any, bits: int, lanes: int) -> None:
        self.builder = builder
        self.bits = bits
        self.lanes = lanes
        self.element = ir.IntType(bits)
        self.kind = ir.VectorType(self.element, lanes)

    def constant(self, number: float) -> Any:
        """Return a register with the same constant in every lane."""
        return ir.Constant(self.kind, [number] * self.lanes)

    def splat(self, number: Any) -> Any:
        """Return a register with an integer of 64 bits in every lane."""
        builder, undefined = self.builder, ir.Constant(self.kind, ir.Undefined)
        low = builder.trunc(number, self.element)
        first = builder.insert_element(undefined, low, ir.Constant(ir.IntType(32), 0))
        return self.shuffled(first, undefined, [0] * self.lanes)

    def call(self, name: str, *registers: Any) -> Any:
        """Call LLVM's function of a name, such as ``sadd.sat``, with registers."""
        return self._call(f"llvm.{name}.v{self.lanes}i{self.bits}", self.kind, registers)

    def reduce(self, name: str, register: Any, *, signed: bool) -> Any:
        """Return the ``smax`` or ``umax`` of all lanes as 64 bits."""
        full = f"llvm.vector.reduce.{name}.v{self.lanes}i{self.bits}"
        found = self._call(full, self.element, (register,))
        widen = self.builder.sext if signed else self.builder.zext
        return widen(found, ir.IntType(64))

    def shifted_up(self, register: Any, before: Any) -> Any:
        """Shift lanes up by one; the first gets the last of `before`."""
        return self.shuffled(before, register, range(self.lanes - 1, 2 * self.lanes - 1))

    def shifted_down(self, register: Any, after: Any) -> Any:
        """Shift lanes down by one; the last gets the first of `after`."""
        return self.shuffled(register, after, range(1, self.lanes + 1))

    def arrays(self, context: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
        """Return the arguments of an intrinsic at some places, arrays, as pointers to registers."""
        zero = ir.Constant(ir.IntType(64), 0)
        return [
            address_of(context, self.builder, self.kind, signature.args[n], arguments[n], zero)
            for n in places
        ]

    def load(self, registers: Any, at: Any) -> Any:
        """Load a register, which need not be aligned."""
        return self.builder.load(self.builder.gep(registers, [at]), align=1, typ=self.kind)

    def store(self, value: Any, registers: Any, at: Any) -> None:
        """Store a register, which need not be aligned."""
        self.builder.store(value, self.builder.gep(registers, [at]), align=1)

    def shuffled(self, one: Any, other: Any, order: Sequence[int]) -> Any:
        """Return the lanes of two registers whose numbers are in `order`."""
        kind = ir.VectorType(ir.IntType(32), len(order))
        return self.builder.shuffle_vector(one, other, ir.Constant(kind, list(order)))

    def _call(self, name: str, result: Any, arguments: Any) -> Any:
        module = self.builder.module
        kind = ir.FunctionType(result, [argument.type for argument in arguments])
        function = module.globals.get(name) or ir.Function(module, kind, name)
        return self.builder.call(function, arguments)


class FloatVectors(Vectors):
    """Writes instructions for registers of `lanes` floats of 32 or 64 bits."""

    def __init__(self, builder: Any, lanes: int, bits: int = 32) -> None:
        super().__init__(builder, bits, lanes)
        self.element = ir.FloatType() if bits == 32 else ir.DoubleType()
        self.kind = ir.VectorType(self.element, lanes)

    def splat(self, number: Any) -> Any:
        """Return a register with a number in every lane."""
        undefined = ir.Constant(self.kind, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.Constant(ir.IntType(32), 0))
        return self.shuffled(first, undefined, [0] * self.lanes)

    def times_plus(self, one: Any, other: Any, more: Any) -> Any:
        """Return a product plus a register, rounded once where the processor can do so."""
        name = f"llvm.fmuladd.v{self.lanes}f{self.bits}"
        return self._call(name, self.kind, (one, other, more))

    def shifted_by(self, register: Any, lanes: int) -> Any:
        """Shift lanes up by a number of lanes; the first ones get 0."""
        order = range(self.lanes - lanes, 2 * self.lanes - lanes)
        return self.shuffled(self.constant(0), register, order)

    def sum(self, register: Any) -> Any:
        """Return the sum of all lanes, as many of which are added at once as can be."""
        apart = self.lanes // 2
        while apart:
            order = [(lane + apart) % self.lanes for lane in range(self.lanes)]
            register = self.builder.fadd(register, self.shuffled(register, register, order))
            apart //= 2
        return self.builder.extract_element(register, ir.Constant(ir.IntType(32), 0))
