"""From a model to a chain: states that emit, transitions between them, and few silent states.

A silent state is eliminated: each way in times each way out, its loop by closure (Durbin and
others, Biological Sequence Analysis, 1998). It is kept, and ordered, where elimination would make
more transitions than it saves, as with the deletions of a profile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import ModelError
from mummergpu.hmm.language.program import Model
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array

Way = tuple[str, ...]
"""The silent states that a transition passes, in order."""


class Edge(NamedTuple):
    """A transition between nodes of a graph."""

    weight: float
    way: Way


class Semiring(NamedTuple):
    """How ways are joined: their sum, or the best of them."""

    sums: bool

    def join(self, one: Edge | None, other: Edge) -> Edge:
        """Return two parallel transitions as one; of two equal ones the first has the way."""
        if one is None:
            return other
        best = one if one.weight >= other.weight else other
        return Edge(one.weight + other.weight, best.way) if self.sums else best

    def loops(self, weight: float, name: str, path: str) -> float:
        """Return the weight of any number of turns in a silent loop."""
        if weight > 1 or (self.sums and weight == 1):
            message = f"the silent states around '{name}' have a loop of probability {weight:g}"
            raise ModelError(message, path)
        return 1 / (1 - weight) if self.sums else 1.0


SUMS: Final = Semiring(True)
BEST: Final = Semiring(False)


@dataclass(frozen=True, eq=False)
class Chain:
    """A model in the form that programs compute."""

    name: str
    alphabet: tuple[str, ...]  # The symbols; their codes are the places here
    shape: Shape
    # The name of each node; several may belong to one state whose transitions emit.
    states: tuple[str, ...]
    probabilities: Float64Array  # (n_steps,): of the transitions
    # (n_emitting,): the probabilities to begin in a state, and to end after it.
    start: Float64Array
    end: Float64Array
    empty: float  # The probability of no symbol at all
    emissions: Float64Array  # (n_emissions, n_symbols): the probabilities of the symbols
    # The silent states that transitions pass, and those of the first and the last one.
    ways: tuple[Way, ...] = ()
    starts: tuple[Way, ...] = ()
    ends: tuple[Way, ...] = ()
    empty_way: Way = ()  # Those of a path without a symbol
    places: tuple[int, ...] = ()  # The place of each node in `WholeGraph`
    emission_names: tuple[str, ...] = ()  # (n_emissions,): as the model has them

    def reversed(self) -> Chain:
        """Return the chain that emits the same sequences backwards."""
        shape = self.shape
        count, last = shape.emitting, shape.nodes - 1

        def place(node: int) -> int:
            # The silent states are ordered the other way round.
            return node if node < count else last - (node - count)

        reversed_steps = [(place(target), place(source)) for source, target in shape.steps]
        order = sorted(range(len(reversed_steps)), key=lambda one: reversed_steps[one][::-1])
        return Chain(
            self.name,
            self.alphabet,
            Shape(shape.emissions, shape.silent, tuple(reversed_steps[one] for one in order)),
            (*self.states[:count], *self.states[count:][::-1]),
            self.probabilities[order],
            self.end,
            self.start,
            self.empty,
            self.emissions,
        )


_START: Final = -1
_END: Final = -2


class _Graph:
    """Nodes by number; the start of all paths and their end are `_START` and `_END`."""

    def __init__(self, semiring: Semiring, path: str) -> None:
        self.semiring = semiring
        self._path = path
        self.names: list[str] = []
        self.emissions: list[str | None] = []
        self.out: dict[int, dict[int, Edge]] = {_START: {}, _END: {}}
        self.back: dict[int, set[int]] = {_START: set(), _END: set()}

    def add(self, name: str, emission: str | None) -> int:
        number = len(self.names)
        self.names.append(name)
        self.emissions.append(emission)
        self.out[number], self.back[number] = {}, set()
        return number

    def connect(self, source: int, target: int, edge: Edge) -> None:
        self.out[source][target] = self.semiring.join(self.out[source].get(target), edge)
        self.back[target].add(source)

    def growth(self, node: int) -> int:
        """Return the number of transitions that eliminating a silent node adds."""
        sources = [one for one in self.back[node] if one not in (_START, node)]
        targets = [one for one in self.out[node] if one not in (_END, node)]
        return len(sources) * len(targets) - len(sources) - len(targets)

    def eliminate(self, node: int) -> None:
        """Replace a silent node by transitions past it."""
        out = self.out.pop(node)
        loop = out.pop(node, None)
        turns = 1.0
        if loop is not None:
            turns = self.semiring.loops(loop.weight, self.names[node], self._path)
        sources = self.back.pop(node) - {node}
        for target in out:
            self.back[target].discard(node)
        for source in sorted(sources, key=_order):
            before = self.out[source].pop(node)
            for target, after in out.items():
                weight = before.weight * turns * after.weight
                self.connect(source, target, Edge(weight, before.way + after.way))

    def silent(self) -> list[int]:
        return [one for one in self.out if one >= 0 and self.emissions[one] is None]

    def eliminate_silent(self) -> list[int]:
        """Eliminate the silent nodes that are not worth keeping; return the others in order."""
        waiting = {one: self.growth(one) for one in self.silent()}
        while waiting:
            node = min(waiting, key=waiting.__getitem__)
            if waiting[node] > 0:
                node = self._in_a_cycle(list(waiting))
                if node < 0:
                    break
            near = (self.back[node] | set(self.out[node])) & waiting.keys() - {node}
            self.eliminate(node)
            del waiting[node]
            waiting.update((one, self.growth(one)) for one in near)
        return self._ordered(list(waiting))

    def _ordered(self, nodes: list[int]) -> list[int]:
        """Return nodes in topological order, as far as there is one."""
        inside, found = set(nodes), []
        missing = {one: len(self.back[one] & inside) for one in nodes}
        ready = [one for one in nodes if missing[one] == 0]
        while ready:
            node = ready.pop(0)
            found.append(node)
            for target in self.out[node]:
                if target in inside:
                    missing[target] -= 1
                    if missing[target] == 0:
                        ready.append(target)
        return found

    def _in_a_cycle(self, nodes: list[int]) -> int:
        """Return the node whose elimination costs least of those that no order has; -1: none."""
        inside = set(nodes)
        while True:
            # A node without a way in or a way out among them is in no cycle.
            border = {
                one
                for one in inside
                if not self.back[one] & inside or not inside.intersection(self.out[one])
            }
            if not border:
                break
            inside -= border
        return min(sorted(inside), key=self.growth, default=-1)


def _order(node: int) -> tuple[bool, int]:
    return node < 0, abs(node)


def chain_of(model: Model, semiring: Semiring = SUMS, path: str = "<model>") -> Chain:
    """Return a model as a chain, of the same shape for `SUMS` of all paths and the `BEST` path.

    `ModelError` is raised if silent states have an endless loop, or if no state emits.
    """
    graph, _, _ = _graph_of(model, semiring, path)
    silent = graph.eliminate_silent()
    emitting = [one for one in graph.out if one >= 0 and graph.emissions[one] is not None]
    if not emitting:
        raise ModelError(f"no state of the model '{model.name}' emits", path)
    starts = _ways_from_start(graph, silent)
    ends = _ways_to_end(graph, silent)
    order = emitting + silent
    place = {node: number for number, node in enumerate(order)}
    steps = sorted(
        (place[target], place[source], edge)
        for source in order
        for target, edge in graph.out[source].items()
        if target >= 0
    )
    names = list(dict.fromkeys(str(graph.emissions[one]) for one in emitting))
    nothing = Edge(0.0, ())
    first = [starts.get(node, nothing) for node in emitting]
    last = [ends.get(node, nothing) for node in emitting]
    empty = starts.get(_END, Edge(0.0 if model.end is not None else 1.0, ()))
    return Chain(
        model.name,
        model.alphabet,
        Shape(
            tuple(names.index(str(graph.emissions[one])) for one in emitting),
            len(silent),
            tuple((source, target) for target, source, _ in steps),
        ),
        tuple(graph.names[node] for node in order),
        _numbers(edge.weight for _, _, edge in steps),
        _numbers(edge.weight for edge in first),
        _numbers(edge.weight for edge in last),
        empty.weight,
        np.array([model.emissions[name] for name in names], dtype=np.float64),
        tuple(edge.way for _, _, edge in steps),
        tuple(edge.way for edge in first),
        tuple(edge.way for edge in last),
        empty.way,
        tuple(order),
        tuple(names),
    )


class WholeGraph(NamedTuple):
    """A model with all its silent states; the two last places are the start and the end."""

    # (n, n): the weights of the steps from the place of a row to that of a column.
    weights: Float64Array
    is_silent: BoolArray  # (n,)
    # (n_transitions, 2): the places that each transition of the model leads from and to.
    transitions: Int64Array


def whole_graph(model: Model) -> WholeGraph:
    """Return the graph of a model."""
    graph, nodes, inward = _graph_of(model, SUMS, "<model>")
    count = len(graph.names) + 2
    # Python counts `_START` and `_END` from the end.
    weights = np.zeros((count, count))
    for source, edges in graph.out.items():
        for target, edge in edges.items():
            weights[source, target] = edge.weight
    is_silent = np.array([*(one is None for one in graph.emissions), False, False])
    places = [
        (
            nodes[step.source],
            nodes[step.target] if step.emission is None else inward[step.target, step.emission],
        )
        for step in model.transitions
    ]
    return WholeGraph(weights, is_silent, np.array(places, dtype=np.int64).reshape(-1, 2))


def _numbers(values: Iterable[float]) -> Float64Array:
    return np.array(list(values), dtype=np.float64)


def _graph_of(
    model: Model, semiring: Semiring, path: str
) -> tuple[_Graph, dict[str, int], dict[tuple[str, str], int]]:
    """Return a graph, the node of each state, and those that emit on the way into states."""
    graph = _Graph(semiring, path)
    entered: dict[str, list[str]] = {}
    for step in model.transitions:
        if step.emission is not None and step.emission not in entered.setdefault(step.target, []):
            entered[step.target].append(step.emission)
    # A transition that emits is a node of its own, from which its target is entered.
    nodes: dict[str, int] = {}
    inward: dict[tuple[str, str], int] = {}
    for state in model.states:
        for emission in entered.get(state.name, []):
            inward[state.name, emission] = graph.add(state.name, emission)
        nodes[state.name] = graph.add(state.name, state.emission)
        for emission in entered.get(state.name, []):
            graph.connect(inward[state.name, emission], nodes[state.name], Edge(1.0, ()))
    is_silent = {state.name: state.emission is None for state in model.states}
    for step in model.transitions:
        if step.emission is not None:
            target, way = inward[step.target, step.emission], ()
        else:
            target = nodes[step.target]
            shown = is_silent[step.target] and step.target != model.end
            way = (step.target,) if shown else ()  # type: ignore[assignment]
        graph.connect(nodes[step.source], target, Edge(step.probability, way))
    graph.connect(_START, nodes[model.start], Edge(1.0, ()))
    if model.end is not None:
        graph.connect(nodes[model.end], _END, Edge(1.0, ()))
    else:
        for node in list(graph.out):
            if node >= 0 and graph.emissions[node] is not None:
                graph.connect(node, _END, Edge(1.0, ()))
    return graph, nodes, inward


def _ways_from_start(graph: _Graph, silent: list[int]) -> dict[int, Edge]:
    """Return the transitions from the start past all silent nodes."""
    found = dict(graph.out[_START])
    for node in silent:
        before = found.pop(node, None)
        if before is not None:
            for target, after in graph.out[node].items():
                edge = Edge(before.weight * after.weight, before.way + after.way)
                found[target] = graph.semiring.join(found.get(target), edge)
    return found


def _ways_to_end(graph: _Graph, silent: list[int]) -> dict[int, Edge]:
    """Return the transition of each node to the end past all silent nodes."""
    found: dict[int, Edge] = {}
    emitting = [one for one in graph.out if one >= 0 and graph.emissions[one] is not None]
    for node in [*reversed(silent), *emitting]:
        best = graph.out[node].get(_END)
        for target, before in graph.out[node].items():
            if target >= 0 and graph.emissions[target] is None and target in found:
                after = found[target]
                edge = Edge(before.weight * after.weight, before.way + after.way)
                best = graph.semiring.join(best, edge)
        if best is not None:
            found[node] = best
    return found


def log_probability(value: float) -> float:
    """Return a natural logarithm, -inf for 0."""
    return math.log(value) if value > 0 else -math.inf
