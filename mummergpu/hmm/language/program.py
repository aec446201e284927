"""What a program says: models, and what is printed of which algorithm."""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import NamedTuple

from mummergpu.runtime.frozen import frozen


class Algorithm(Enum):
    """What is computed of a model and a sequence."""

    VITERBI = "viterbi"
    FORWARD = "forward"
    BACKWARD = "backward"
    POSTERIOR = "posterior"


class Attribute(Enum):
    """What is printed of an algorithm: `TABLE` is the whole table, ``score&``."""

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


@frozen
class Model:
    """A hidden Markov model as it is declared.

    Attributes
    ----------
    name : str
        Its name.
    alphabet : tuple of str
        The symbols, of one character each.
    states : tuple of State
        All states in the order of their declaration, start and end included.
    start : str
        The state that every path begins in.
    end : str or None
        The state that every path ends in; None: a path may end in any state that emits.
    emissions : dict of str to tuple of float
        The probabilities of the symbols, by name.
    transitions : tuple of Transition
        The steps, in the order of their declaration.
    """

    name: str
    alphabet: tuple[str, ...]
    states: tuple[State, ...]
    start: str
    end: str | None
    emissions: dict[str, tuple[float, ...]]
    transitions: tuple[Transition, ...]

    def unusual_sums(self) -> list[str]:
        """Return a line for each emission, and each state, whose probabilities do not sum to 1."""
        sums = {f"probabilities of {name}": sum(values) for name, values in self.emissions.items()}
        for step in self.transitions:
            key = f"transitions of {step.source}"
            sums[key] = sums.get(key, 0.0) + step.probability
        return [
            f"{self.name}: the {name} sum to {total:g}"
            for name, total in sums.items()
            if abs(total - 1) > 1e-3
        ]


class Printed(NamedTuple):
    """A value that a program prints, under the text of its expression."""

    text: str
    model: str
    algorithm: Algorithm
    attribute: Attribute


@frozen
class Program:
    """Models by their names, and what is printed, in the order of the program."""

    models: dict[str, Model] = field(default_factory=dict)
    printed: tuple[Printed, ...] = ()
