"""The recurrence of a model as CUDA C++."""

from __future__ import annotations

from collections.abc import Sequence

from mummergpu.runtime.frozen import frozen
from mummergpu.viterbi.recurrence.model import Costs, Model, departures


@frozen
class _Difference:
    """A score minus some costs, both by name."""

    score: str
    cost: str


class _Text:
    """Arithmetic that writes the statements of a template over an arithmetic, ``with``."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self._bits = self._scores = 0

    def subtract(self, score: _Difference, costs: tuple[str, ...]) -> _Difference:
        return _Difference(score.score, _name_of(costs))

    def exceeds(self, score: _Difference, other: _Difference) -> None:
        note = f"with.note(bits, {self._bits}, {_text_of(score)}, {_text_of(other)});"
        self.statements.append(note)
        self._bits += 1

    def choose(self, truth: None, score: _Difference, other: _Difference) -> _Difference:
        if score.cost:
            value = f"with.larger_less({score.score}, with.steps.{score.cost}, {_text_of(other)})"
        else:
            value = f"with.larger({score.score}, {_text_of(other)})"
        name = f"score_{self._scores}"
        self._scores += 1
        self.statements.append(f"const Score {name} = {value};")
        return _Difference(name, "")


def _text_of(score: _Difference) -> str:
    return f"with.less({score.score}, with.steps.{score.cost})" if score.cost else score.score


def _name_of(costs: tuple[str, ...]) -> str:
    return "_and_".join(costs)


def recurrence_source(model: Model) -> str:
    """Return structures of the scores of a cell and of all costs, and a function for a step.

    The function returns the scores that leave a cell; it is a template over the arithmetic.
    """
    states = [state.name for state in model.states]
    sums = sorted({_name_of(step.costs) for step in model.transitions if step.costs})
    lines = [
        "// The scores of the states of a cell, or what leaves it for them.",
        *_structure("template <typename Score>", "Cell", "Score", states),
        "// All numbers of an alignment, in the order in which the host writes them.",
        *_structure("", "Costs", "int", Costs._fields),
        "// What steps subtract.",
        *_structure("template <typename Score>", "StepCosts", "Score", sums),
        "template <typename Score, typename Make>",
        "__device__ __forceinline__ StepCosts<Score> step_costs(const Costs& costs, Make make) {",
        f"    return {{{', '.join(f'make({_sum_of(name)})' for name in sums)}}};",
        "}",
        *_leaving(model),
    ]
    return "\n".join(lines) + "\n"


def _structure(before: str, name: str, kind: str, members: Sequence[str]) -> list[str]:
    return [
        *([before] if before else []),
        f"struct {name} {{",
        *(f"    {kind} {member};" for member in members),
        "};",
    ]


def _sum_of(name: str) -> str:
    return " + ".join(f"costs.{cost}" for cost in name.split("_and_"))


def _leaving(model: Model) -> list[str]:
    text = _Text()
    scores = {state: _Difference(f"cell.{state.name}", "") for state in model.states}
    found = departures(model, scores, text)
    return [
        "// What leaves a cell for each state of later cells. A bit is noted for each step that is",
        "// better than those before it.",
        "template <typename Numbers>",
        "__device__ __forceinline__ Cell<typename Numbers::Score> recurrence(",
        "    const Numbers& with, const Cell<typename Numbers::Score>& cell,",
        "    typename Numbers::Bits& bits) {",
        "    using Score = typename Numbers::Score;",
        *(f"    {statement}" for statement in text.statements),
        f"    return {{{', '.join(_text_of(departure.score) for departure in found)}}};",
        "}",
    ]
