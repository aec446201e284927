"""The recurrence of a chain, once, for every program that computes it.

`column` walks the transitions and lets an arithmetic decide what a value is: numbers, or the text
of a program for the processor or for a device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

Value = TypeVar("Value")

MAX_UNROLLED: Final = 128
"""Chains of more transitions are computed in loops over them."""


class Shape(NamedTuple):
    """The structure of a chain without its probabilities, on which a program depends."""

    # The number of the emission of each state that emits; these states come first.
    emissions: tuple[int, ...]
    silent: int  # The number of silent states, which follow, each after its silent sources
    # The source and the target of each transition, ordered by target and then by source. The value
    # of a target that emits comes from sources before the symbol; that of a silent one from sources
    # after it.
    steps: tuple[tuple[int, int], ...]

    @property
    def emitting(self) -> int:
        """The number of states that emit."""
        return len(self.emissions)

    @property
    def nodes(self) -> int:
        """The number of states."""
        return len(self.emissions) + self.silent

    @property
    def emission_count(self) -> int:
        """The number of emissions."""
        return 1 + max(self.emissions, default=-1)

    @property
    def is_unrolled(self) -> bool:
        """Whether the shape gets a program of its own, which has each transition in its text."""
        return len(self.steps) <= MAX_UNROLLED

    def into(self) -> list[list[int]]:
        """Return the numbers of the steps into each state."""
        found: list[list[int]] = [[] for _ in range(self.nodes)]
        for number, (_, target) in enumerate(self.steps):
            found[target].append(number)
        return found


class Arithmetic(Protocol[Value]):
    """The values of states, and the operations on them."""

    def along(self, value: Value, step: int) -> Value:
        """Return a value after the transition with the number `step`."""

    def join(self, values: Sequence[Value], target: int) -> Value:
        """Return the value of a state from those of all ways into it, the preferred one first."""

    def emit(self, value: Value, node: int) -> Value:
        """Return a value after a state has emitted the symbol of the column."""


def column(shape: Shape, arithmetic: Arithmetic[Value], before: Sequence[Value]) -> list[Value]:
    """Return the values of all states after a symbol, from those before it."""
    return after(shape, arithmetic, joined(shape, arithmetic, before))


def joined(shape: Shape, arithmetic: Arithmetic[Value], before: Sequence[Value]) -> list[Value]:
    """Return the values of emitting states before they emit, from those of all states."""
    into = shape.into()
    found: list[Value] = []
    for node in range(shape.emitting):
        ways = [arithmetic.along(before[shape.steps[one][0]], one) for one in into[node]]
        found.append(arithmetic.join(ways, node))
    return found


def after(shape: Shape, arithmetic: Arithmetic[Value], values: Sequence[Value]) -> list[Value]:
    """Return the values of all states after a symbol, from those of states that are to emit it."""
    emitted = [arithmetic.emit(value, node) for node, value in enumerate(values)]
    return with_silent(shape, arithmetic, emitted)


def with_silent(
    shape: Shape, arithmetic: Arithmetic[Value], emitting: Sequence[Value]
) -> list[Value]:
    """Return the values of all states, from those of the states that emit."""
    into = shape.into()
    found = list(emitting)
    for node in range(shape.emitting, shape.nodes):
        ways = [arithmetic.along(found[shape.steps[one][0]], one) for one in into[node]]
        found.append(arithmetic.join(ways, node))
    return found


class TraceBits(NamedTuple):
    """The places of the bits that number the best way into each state."""

    # The word of each state, its first bit there, and its number of bits.
    places: tuple[tuple[int, int, int], ...]
    words: int
    word_bits: int  # The bits of a word: 8, 16 or 64

    @classmethod
    def of(cls, shape: Shape) -> TraceBits:
        """Return the places for a shape: as few bits as the in-degree of a state needs."""
        places = []
        word = at = 0
        for steps in shape.into():
            count = max(0, len(steps) - 1).bit_length()
            if at + count > 64:
                word, at = word + 1, 0
            places.append((word, at, count))
            at += count
        bits = 64 if word else next(size for size in (8, 64) if at <= size)
        return cls(tuple(places), word + 1, bits)

    @classmethod
    def by_node(cls, shape: Shape) -> TraceBits:
        """Return a word for each state, as programs have it that walk the steps in a loop."""
        return cls(tuple((node, 0, 16) for node in range(shape.nodes)), shape.nodes, 16)
