"""One step of a model's recurrence, in whatever arithmetic a program has.

`departures` walks the transitions of a model and asks an arithmetic to subtract, to compare and to
choose. One arithmetic builds vector instructions for the processor, another writes CUDA C++.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from mummergpu.runtime.frozen import frozen
from mummergpu.viterbi.recurrence.model import Model, State

Number = TypeVar("Number")
Truth = TypeVar("Truth")

STATE_BITS = 2
"""The bits that number a state in `source_table`."""


class Arithmetic(Protocol[Number, Truth]):
    """What a program can do with the scores of cells."""

    def subtract(self, score: Number, costs: tuple[str, ...]) -> Number:
        """Return a score less some fields of `Costs`."""

    def exceeds(self, score: Number, other: Number) -> Truth:
        """Return whether one score is higher than another."""

    def choose(self, truth: Truth, score: Number, other: Number) -> Number:
        """Return one score where something is true, else the other."""


@frozen
class Departure(Generic[Number, Truth]):
    """What leaves a cell for one state of a later cell."""

    target: State
    score: Number
    bits: tuple[Truth, ...]


def departures(
    model: Model, scores: Mapping[State, Number], arithmetic: Arithmetic[Number, Truth]
) -> list[Departure[Number, Truth]]:
    """Return what leaves a cell whose states have some scores, one for each state in order."""
    found = []
    for target in model.states:
        first, *others = model.into(target)
        best = arithmetic.subtract(scores[first.source], first.costs)
        bits = []
        for step in others:
            score = arithmetic.subtract(scores[step.source], step.costs)
            better = arithmetic.exceeds(score, best)
            best = arithmetic.choose(better, score, best)
            bits.append(better)
        found.append(Departure(target, best, tuple(bits)))
    return found


def bit_count(model: Model) -> int:
    """Return how many bits all departures of a cell have together."""
    return len(model.transitions) - len(model.states)


def source_table(model: Model, target: State) -> int:
    """Return from which state a path comes into another, by the bits of the cell that it left.

    The table has, for each value of the bits of `departures`, the first the lowest, the number of
    the source in ``model.states``, in `STATE_BITS` bits; so a model has four states at most.
    """
    first = 0
    for state in model.states:
        if state == target:
            break
        first += len(model.into(state)) - 1
    sources = [model.states.index(step.source) for step in model.into(target)]
    table = 0
    for bits in range(1 << bit_count(model)):
        chosen = 0
        for number in range(1, len(sources)):
            if bits >> (first + number - 1) & 1:
                chosen = number
        table |= sources[chosen] << STATE_BITS * bits
    return table
