"""The content of a program: models, and the results of algorithms to print."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from enum import Enum
from typing import Final, NamedTuple

from mummergpu.runtime.frozen import frozen

MAX_SUM: Final = 1.001
"""A row of probabilities that sum to more is refused."""

_MAX_EXCESS: Final = 1e-6
_MAX_LACK: Final = 1e-3


class Algorithm(Enum):
    """An algorithm for a model and a sequence."""

    VITERBI = "viterbi"
    FORWARD = "forward"
    BACKWARD = "backward"
    POSTERIOR = "posterior"


class Attribute(Enum):
    """A printed result of an algorithm: `TABLE` is the whole table, ``score&``."""

    SCORE = "score"
    TRACEBACK = "traceback"
    TABLE = "score&"


ATTRIBUTES = {
    Algorithm.VITERBI: tuple(Attribute),
    Algorithm.FORWARD: (Attribute.SCORE, Attribute.TABLE),
    Algorithm.BACKWARD: (Attribute.SCORE, Attribute.TABLE),
    Algorithm.POSTERIOR: tuple(Attribute),
}
"""The attributes of each algorithm. The traceback of posteriors has the likeliest state of each
symbol."""


class State(NamedTuple):
    """A state; without an emission it is silent, unless transitions to it emit."""

    name: str
    emission: str | None = None


class Transition(NamedTuple):
    """A step from one state to another; it may emit."""

    source: str
    target: str
    probability: float
    emission: str | None = None


class RowSum(NamedTuple):
    """The sum of a row of probabilities, and the name of the row."""

    row: str
    total: float

    def __str__(self) -> str:
        return f"the {self.row} sum to {self.total:.9g}"

    @property
    def is_refused(self) -> bool:
        """Whether it is more than rounding explains."""
        return self.total > MAX_SUM

    @property
    def is_unusual(self) -> bool:
        """Whether it is reported: more than 1 by a warning."""
        return self.total > 1 + _MAX_EXCESS or self.total < 1 - _MAX_LACK


@frozen
class Model:
    """A hidden Markov model as it is declared."""

    name: str
    alphabet: tuple[str, ...]  # The symbols, of one character each
    # All states in the order of their declaration, start and end included.
    states: tuple[State, ...]
    start: str  # The state that every path begins in
    # The state that every path ends in; None: a path may end in any state that emits.
    end: str | None
    emissions: dict[str, tuple[float, ...]]  # The probabilities of the symbols, by name
    transitions: tuple[Transition, ...]
    # Rows of probabilities that do not sum to 1, and the lines of the program.
    unusual_sums: tuple[tuple[RowSum, int], ...] = ()

    def with_any_letter(self, letter: str, symbols: str) -> Model:
        """Return the model with a letter that stands for any of some symbols, ``*`` for each.

        A state emits it as likely as one of them.
        """
        chosen = [
            code for code, one in enumerate(self.alphabet) if symbols == "*" or one in symbols
        ]
        emissions = {
            name: (*row, sum(row[code] for code in chosen)) for name, row in self.emissions.items()
        }
        return replace(self, alphabet=(*self.alphabet, letter), emissions=emissions)

    def with_names(self, names: dict[str, str]) -> Model:
        """Return the model with other names of states that emit, and of their emissions.

        The start and the end get new names where they would have one of these.
        """
        taken = set(names.values())

        def free(name: str) -> str:
            return free(f"{name}_") if name in taken else name

        ends = {one: free(one) for one in (self.start, self.end) if one is not None}
        full = {**names, **ends}
        return replace(
            self,
            states=tuple(
                State(full[one.name], one.emission and names[one.emission]) for one in self.states
            ),
            start=full[self.start],
            end=self.end and full[self.end],
            emissions={names[name]: row for name, row in self.emissions.items()},
            transitions=tuple(
                step._replace(source=full[step.source], target=full[step.target])
                for step in self.transitions
            ),
        )

    def row_sums(self) -> Iterator[RowSum]:
        """Yield the sums of all emissions, and of the transitions of each state."""
        for name, row in self.emissions.items():
            yield RowSum(f"probabilities of {name}", sum(row))
        totals: dict[str, float] = {}
        for step in self.transitions:
            totals[step.source] = totals.get(step.source, 0.0) + step.probability
        for source, total in totals.items():
            yield RowSum(f"transitions of {source}", total)


class Printed(NamedTuple):
    """A value that a program prints, under the text of its expression."""

    text: str
    model: str
    algorithm: Algorithm
    attribute: Attribute


@frozen
class Program:
    """Models by their names, and the results in the order of the program."""

    models: dict[str, Model] = field(default_factory=dict)
    printed: tuple[Printed, ...] = ()
    # The models and algorithms of calls whose results have no name: `viterbi(new casino());`.
    calls: tuple[tuple[str, Algorithm], ...] = ()
