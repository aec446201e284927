"""Prints the recurrence of a shape as CUDA C++: a thread a sequence, the states in registers."""

from __future__ import annotations

from collections.abc import Sequence

from mummergpu.cuda.program import ProgramSource
from mummergpu.hmm.language.processor_text import IMPOSSIBLE, OFFSET_BITS
from mummergpu.hmm.language.recurrence import Shape, TraceBits, column, with_silent
from mummergpu.hmm.language.tables import EMISSION_ROW


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

    def __init__(self, shape: Shape, code: _Statements) -> None:
        self._shape, self._code = shape, code

    def along(self, value: str, step: int) -> str:
        return f"{value} * numbers[{step}]"

    def join(self, values: Sequence[str], target: int) -> str:
        return self._code.value(" + ".join(values) or "Number(0)")

    def emit(self, value: str, node: int) -> str:
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
            code.lines.append(f"    bits[{word}] |= static_cast<Word>({rank}) << {first};")
        return self._possible(best)

    def emit(self, value: str, node: int) -> str:
        return self._possible(self._code.value(f"{value} + {_emitted(self._shape, node)}"))

    def _possible(self, value: str) -> str:
        return self._code.value(f"{value} > IMPOSSIBLE ? {value} : IMPOSSIBLE")


def _emitted(shape: Shape, node: int) -> str:
    return f"emissions[{shape.emissions[node] * EMISSION_ROW} + code]"


def chain_program(shape: Shape, sums: bool, double: bool, traces: bool) -> ProgramSource:
    """Return the program of a shape: for sums in float or double, or for best paths and traces."""
    bits = TraceBits.of(shape)
    generated = [
        f"constexpr long long IMPOSSIBLE = {IMPOSSIBLE}ll;",
        "// What the nodes of a chain have behind its first symbol, and behind a later one.",
        *_function(shape, sums, traces, "begin_chain", True),
        *_function(shape, sums, traces, "advance_chain", False),
    ]
    return ProgramSource(
        f"chain-{'double' if double else 'float'}-sums" if sums else f"chain-best-{int(traces)}",
        "chains/chain.cu",
        (
            *(("CHAIN_SUMS", int(sums)), ("CHAIN_DOUBLE", int(double))),
            *(("CHAIN_TRACES", int(traces)), ("CHAIN_WORD_BITS", bits.word_bits)),
        ),
        (
            *(("NODES", shape.nodes), ("EMITTING_NODES", shape.emitting)),
            *(("TRACE_WORDS", bits.words), ("OFFSET_BITS", OFFSET_BITS)),
        ),
        "\n".join(generated) + "\n",
    )


def _function(shape: Shape, sums: bool, traces: bool, name: str, begins: bool) -> list[str]:
    code = _Statements()
    numbers: _Sums | _Best = _Sums(shape, code) if sums else _Best(shape, code, traces)
    if begins:
        starts = [f"numbers[{len(shape.steps) + node}]" for node in range(shape.emitting)]
        emitted = [numbers.emit(start, node) for node, start in enumerate(starts)]
        found = with_silent(shape, numbers, emitted)
    else:
        found = column(shape, numbers, [f"nodes[{node}]" for node in range(shape.nodes)])
    return [
        "template <typename Number, typename Word>",
        f"__device__ __forceinline__ void {name}(",
        "    const Number* numbers, const Number* emissions, unsigned int code,",
        "    Number (&nodes)[NODES], [[maybe_unused]] Word (&bits)[TRACE_WORDS]) {",
        *code.lines,
        *(f"    nodes[{node}] = {value};" for node, value in enumerate(found)),
        "}",
    ]
