"""The recurrence of an alignment, once, for every program that computes it.

A model has states, which emit scores, and transitions between them, which have costs. An alignment
is a path through the states; its score is the sum of its emissions minus its costs. The compiled
functions of the processor and the kernels of a device are both made from the model here, so that
they cannot differ.

All scores are integers. A penalty is a positive number that is subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from mummergpu.errors import OptionError
from mummergpu.runtime.frozen import frozen

MOST_BASES: Final = 1500
"""The longest tile, in bases of the read: its scores fit 16 bits."""

LARGEST_COST: Final = 100
"""The largest penalty, and the longest gap: programs compute in 8 and 16 bits."""

LARGEST_MATCH: Final = 20
"""The largest score of a match: with it, the score of the longest tile fits 16 bits."""


@frozen
class State:
    """A state of a model."""

    name: str
    # The bases of each sequence that the state consumes: 0 or 1.
    read_bases: int
    reference_bases: int
    operation: int  # The operation of a CIGAR, as BAM numbers them

    @property
    def emits(self) -> bool:
        """Whether the state scores the pair of bases that it consumes."""
        return self.read_bases == self.reference_bases == 1


@frozen
class Transition:
    """A step from one state to another, which subtracts some fields of `Costs`."""

    source: State
    target: State
    costs: tuple[str, ...] = ()


@frozen
class Model:
    """States and transitions."""

    states: tuple[State, ...]  # The states; an alignment begins and ends in the first
    # Of several steps into one state with the same score, the first one is taken.
    transitions: tuple[Transition, ...]

    def into(self, target: State) -> tuple[Transition, ...]:
        """Return the transitions into a state, the preferred one first."""
        return tuple(step for step in self.transitions if step.target == target)


MATCH: Final = State("match", 1, 1, 0)
INSERTION: Final = State("insertion", 1, 0, 1)
DELETION: Final = State("deletion", 0, 1, 2)

PAIRWISE: Final = Model(
    (MATCH, INSERTION, DELETION),
    (
        Transition(MATCH, MATCH),
        Transition(DELETION, MATCH),
        Transition(INSERTION, MATCH),
        Transition(MATCH, INSERTION, ("insertion_open", "insertion_extend")),
        Transition(INSERTION, INSERTION, ("insertion_extend",)),
        Transition(MATCH, DELETION, ("deletion_open", "deletion_extend")),
        Transition(DELETION, DELETION, ("deletion_extend",)),
    ),
)
"""Two sequences with affine gaps. A gap of one kind never directly follows one of the other: a
pair of aligned bases is between them."""


class Costs(NamedTuple):
    """The scores and penalties of `PAIRWISE`; the defaults are those of bwa mem."""

    match: int = 1  # The score of two equal bases
    # The mismatch penalty, also of a base of the reference that is a break.
    mismatch: int = 4
    # The penalty of a base of the read that is a break, aligned with any base.
    unknown: int = 1
    # The gap open penalty: a gap of n bases costs the opening and n times the extension.
    insertion_open: int = 6
    # The gap extension penalty, of each base of a gap.
    insertion_extend: int = 1
    deletion_open: int = 6
    deletion_extend: int = 1
    end_bonus: int = 5  # The bonus of an alignment that reaches the end of the read
    # The largest distance of an alignment from the diagonal that it begins on, in bases.
    max_gap: int = 100

    def check(self) -> None:
        """Raise OptionError if a number is out of its range."""
        for name, value in self._asdict().items():
            least = 1 if name in ("match", "insertion_extend", "deletion_extend") else 0
            most = LARGEST_MATCH if name == "match" else LARGEST_COST
            if not least <= value <= most:
                message = f"{value} is not between {least} and {most}"
                raise OptionError(name, message)


class AlignmentMethod(Enum):
    """Methods of alignment (Du, Yin and Bader 2010, section IV), by the option's name."""

    # Matches cut the matrix into tiles, which are independent of each other.
    TILE = "tile"
    # The whole matrix where it is small (`matrix_fits`), otherwise tiles: Pseudo Code 3.
    AUTO = "auto"
    # The whole matrix, an anti-diagonal of blocks at a time; all directions stay in memory.
    WAVEFRONT = "wavefront"
    # The same; the directions go to the host meanwhile, or from the processor to a temporary file.
    STREAMING = "streaming"

    @property
    def takes_matches(self) -> bool:
        """Whether matches are searched, between which tiles lie."""
        return self in (AlignmentMethod.TILE, AlignmentMethod.AUTO)


Number = TypeVar("Number")
Truth = TypeVar("Truth")

STATE_BITS = 2
"""The bits that number a state in `source_table`."""


class Arithmetic(Protocol[Number, Truth]):
    """The operations of a program on the scores of cells."""

    def subtract(self, score: Number, costs: tuple[str, ...]) -> Number:
        """Return a score minus some fields of `Costs`."""

    def exceeds(self, score: Number, other: Number) -> Truth:
        """Return whether one score is higher than another."""

    def choose(self, truth: Truth, score: Number, other: Number) -> Number:
        """Return `score` where `truth` holds, else the other."""


@frozen
class Departure(Generic[Number, Truth]):
    """The score that leaves a cell for one state of a later cell, and the bits of its source."""

    target: State
    score: Number
    bits: tuple[Truth, ...]


def departures(
    model: Model, scores: Mapping[State, Number], arithmetic: Arithmetic[Number, Truth]
) -> list[Departure[Number, Truth]]:
    """Return the departures from a cell, given the scores of its states: one a state, in order."""
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
    """Return the number of bits of all departures of a cell."""
    return len(model.transitions) - len(model.states)


def source_table(model: Model, target: State) -> int:
    """Return the table of the states from which a path comes, by the bits of the cell it left.

    For each value of the bits of `departures`, the first the lowest, it has the number of the
    source in ``model.states``, in `STATE_BITS` bits; so a model has four states at most.
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
