"""The programs of chains for a device.

The recurrence of a shape is printed as CUDA C++: a thread a sequence, the states in registers. One
program for all shapes runs chains of more states, and one the paths of all chains.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from mummergpu.cuda.program import ProgramSource
from mummergpu.hmm.language.processor_text import (
    IMPOSSIBLE,
    LEAST_POSSIBLE,
    LOG_BITS,
    LOST,
    OFFSET_BITS,
    SMALLEST_TOTAL_POWER,
)
from mummergpu.hmm.language.recurrence import Shape, TraceBits, after, joined
from mummergpu.hmm.language.tables import DOUBLES, EMISSION_ROW, FLOATS


class Keeps(IntEnum):
    """The data that a run keeps of each symbol, numbered as in ``chains/numbers.cuh``."""

    NOTHING = 0
    TRACES = 1
    COLUMNS = 2
    SHARES = 3


class DeviceKind(NamedTuple):
    """The task of a program for a device, which also depends on the shape.

    Of `pieces` it leaves all values. With `pair_symbols`, states emit pairs of that many symbols:
    the code of a pair is that of the one before times `pair_symbols`, plus that of the symbol.
    """

    sums: bool
    double: bool = False
    keeps: Keeps = Keeps.NOTHING
    pieces: bool = False
    pair_symbols: int = 0

    def macros(self) -> tuple[tuple[str, int], ...]:
        """Return the macros of the kernels."""
        return (
            *(("CHAIN_SUMS", int(self.sums)), ("CHAIN_DOUBLE", int(self.double))),
            *(("CHAIN_KEEPS", int(self.keeps)), ("CHAIN_PIECES", int(self.pieces))),
        )

    def constants(self) -> tuple[tuple[str, int], ...]:
        """Return the constants of the kernels that all shapes share."""
        limits = DOUBLES if self.double else FLOATS
        units = ("LOG_BITS", LOG_BITS), ("OFFSET_BITS", OFFSET_BITS)
        return (*units, ("RANGE_POWERS", -limits.kept))

    def name(self, kernel: str) -> str:
        """Return the name of a program."""
        number = "double" if self.double else "float"
        what = f"{number}-sums" if self.sums else "best"
        kept = self.keeps.name.lower()
        return f"{kernel}-{what}-{kept}" + ("-pieces" if self.pieces else "")


class _Statements:
    """Statements of a function, and names for its values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def value(self, expression: str, kind: str = "Number") -> str:
        self._count += 1
        self.lines.append(f"    const {kind} v{self._count} = {expression};")
        return f"v{self._count}"


class _Sums:
    """Sums of probabilities: `recurrence.Arithmetic`."""

    def __init__(self, shape: Shape, code: _Statements, keeps_before: bool) -> None:
        self._shape, self._code, self._keeps_before = shape, code, keeps_before

    def along(self, value: str, step: int) -> str:
        return f"{value} * numbers[{step}]"

    def join(self, values: Sequence[str], target: int) -> str:
        return self._code.value(" + ".join(values) or "Number(0)")

    def emit(self, value: str, node: int) -> str:
        if self._keeps_before:
            self._code.lines.append(f"    found[{node}] = {value};")
        return self._code.value(f"{value} * {_emitted(self._shape, node)}")


class _Best:
    """The best paths, and the bits of the ways: `recurrence.Arithmetic`."""

    def __init__(self, shape: Shape, code: _Statements, keeps_bits: bool) -> None:
        self._shape, self._code = shape, code
        self._places = TraceBits.of(shape).places if keeps_bits else None

    def along(self, value: str, step: int) -> str:
        return f"{value} + numbers[{step}]"

    def join(self, values: Sequence[str], target: int) -> str:
        code = self._code
        best = code.value(values[0]) if values else "Number(IMPOSSIBLE)"
        rank = "0u"
        for number, way in enumerate(values[1:], start=1):
            value = code.value(way)
            if self._places is not None:
                rank = code.value(f"{value} > {best} ? {number}u : {rank}", "unsigned int")
            best = code.value(f"{value} > {best} ? {value} : {best}")
        if self._places is not None and len(values) > 1:
            word, first, _ = self._places[target]
            code.lines.append(f"    found[{word}] |= static_cast<Word>({rank}) << {first};")
        # The sum of two impossible numbers does not overflow yet when a state emits.
        return best if target < self._shape.emitting else self._possible(best)

    def emit(self, value: str, node: int) -> str:
        return self._possible(self._code.value(f"{value} + {_emitted(self._shape, node)}"))

    def _possible(self, value: str) -> str:
        return self._code.value(f"{value} > IMPOSSIBLE ? {value} : IMPOSSIBLE")


def _emitted(shape: Shape, node: int) -> str:
    return f"emissions[{shape.emissions[node] * EMISSION_ROW} + code]"


@lru_cache(64)
def chain_program(shape: Shape, kind: DeviceKind) -> ProgramSource:
    """Return the program of a shape."""
    bits = TraceBits.of(shape)
    generated = [
        *_impossible(),
        *_function(shape, kind, "join_ways", joined, shape.nodes),
        *_function(shape, kind, "emit_symbol", after, shape.emitting),
    ]
    return ProgramSource(
        kind.name("chain"),
        "chains/chain.cu",
        (*kind.macros(), ("CHAIN_WORD_BITS", bits.word_bits)),
        (
            *(("NODES", shape.nodes), ("EMITTING_NODES", shape.emitting)),
            ("STEPS", len(shape.steps)),
            *(("TRACE_WORDS", bits.words), ("PAIR_SYMBOLS", kind.pair_symbols)),
            *kind.constants(),
        ),
        "\n".join(generated) + "\n",
    )


def wide_program(kind: DeviceKind) -> ProgramSource:
    """Return the program of all chains that have tables instead of a program of their own."""
    generated = "\n".join(_impossible()) + "\n"
    macros = (("WIDE_CHAINS", 1), *kind.macros())
    name = kind.name("wide-chain")
    return ProgramSource(name, "chains/wide_chain.cu", macros, kind.constants(), generated)


def paths_program(word_bits: int) -> ProgramSource:
    """Return the program that walks paths whose words have a size."""
    return ProgramSource(f"paths-{word_bits}", "chains/paths.cu", (("CHAIN_WORD_BITS", word_bits),))


SHARES_PROGRAM: Final = ProgramSource(
    "shares", "chains/shares.cu", constants=(("TOTAL_POWERS", -SMALLEST_TOTAL_POWER),)
)
"""The program that makes probabilities from the nodes' values from both ends."""


def _impossible() -> list[str]:
    numbers = {"IMPOSSIBLE": IMPOSSIBLE, "LEAST_POSSIBLE": LEAST_POSSIBLE, "LOST": LOST}
    return [f"constexpr long long {name} = {value}ll;" for name, value in numbers.items()]


def _function(
    shape: Shape, kind: DeviceKind, name: str, part: Callable[..., list[str]], given: int
) -> list[str]:
    """Return the function of a part of a column."""
    code = _Statements()
    keeps_before = kind.keeps is Keeps.SHARES
    numbers: _Sums | _Best
    if kind.sums:
        numbers = _Sums(shape, code, keeps_before)
    else:
        numbers = _Best(shape, code, kind.keeps is Keeps.TRACES)
    found = part(shape, numbers, [f"nodes[{node}]" for node in range(given)])
    room = "Number (&found)[EMITTING_NODES]" if keeps_before else "Word (&found)[TRACE_WORDS]"
    symbol = " const Number* emissions, unsigned int code," if part is after else ""
    return [
        f"template <typename Number{'' if keeps_before else ', typename Word'}>",
        f"__device__ __forceinline__ void {name}(",
        f"    [[maybe_unused]] const Number* numbers,{symbol}",
        f"    Number (&nodes)[NODES], [[maybe_unused]] {room}) {{",
        *code.lines,
        *(f"    nodes[{node}] = {value};" for node, value in enumerate(found)),
        "}",
    ]
