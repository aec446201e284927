"""Baum-Welch: models that fit sequences better (section 2.2.3 of the paper).

The new probability of a transition is its share of the expected number of transitions from its
source, and that of a symbol its share of the symbols that an emission is expected to have emitted
(Durbin and others, Biological Sequence Analysis, 1998, section 3.3).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from mummergpu.errors import OptionError
from mummergpu.hmm.language.chain import whole_graph
from mummergpu.hmm.language.counting import Columns, CountLanes, Counts, Rows, add_counts
from mummergpu.hmm.language.evaluation import CompiledModel, Posteriors, compute_all
from mummergpu.hmm.language.lanes import SymbolBlock
from mummergpu.hmm.language.looped import Values
from mummergpu.hmm.language.pieces import MapPieces
from mummergpu.hmm.language.posteriors import LongPosteriors
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.processor_text import LANES
from mummergpu.hmm.language.program import Model
from mummergpu.hmm.language.tables import Numbers, ShapeArrays
from mummergpu.runtime.arrays import BoolArray, Float64Array, Int64Array

_PART_SYMBOLS: Final = 1 << 15
"""About the symbols counted at once, for two values a column: their columns stay in the caches."""


class _Counting(Posteriors):
    """The expected counts of the sequences of a block; none of them may be impossible."""

    def __init__(self, model: CompiledModel, block: SymbolBlock) -> None:
        super().__init__(model, block, ())
        self._shape = ShapeArrays.of(model.chain.shape)
        self._lanes = CountLanes.of(self._shape, model.chain.emissions.shape)
        self.counts = self._no_counts()

    def _no_counts(self) -> Counts:
        return Counts.none(self._shape, self.model.chain.emissions.shape)

    def computed(self, part: Int64Array, exact: bool) -> Int64Array:
        lanes, columns = self.columns_of(part, exact)
        nothing = Values(np.zeros((1, 1)), np.zeros((1, 1), dtype=np.int64))
        begins = self.block.offsets[lanes.sequences]
        rows = Rows(
            *(self.block.codes, begins, lanes.lengths, lanes.first_rows, nothing, True, True)
        )
        lost: Int64Array = part[self._add(self.programs(False, exact), rows, columns, self.counts)]
        return lost

    def _add(
        self, programs: ChainPrograms, rows: Rows, both: tuple[Numbers, Numbers], to: Counts
    ) -> BoolArray:
        """Add counts; return the sequences without a common scale, of which none are added."""
        ahead, back = (Values.within(one) for one in both)
        columns = Columns(ahead, back, programs.width, programs.is_exact)
        lost = np.zeros(rows.lengths.size, dtype=np.bool_)
        add_counts(
            self._shape, programs.sums.emissions.reshape(-1), rows, columns, self._lanes, to, lost
        )
        return lost

    def take_pieces(self, number: int, posteriors: LongPosteriors, map_pieces: MapPieces) -> bool:
        programs, pieces = posteriors.programs, posteriors.pieces
        counts, codes = self._no_counts(), self.codes_of(number)
        for group in posteriors.groups():
            begins = np.array([pieces[one].begin for one in group])
            lengths = np.array([pieces[one].size for one in group])
            before = posteriors.before(group) if group[0] else np.zeros((1, programs.width))
            nodes = programs.chain.shape.nodes
            exponents = np.broadcast_to(before[:, nodes:].view(np.int64), (len(before), nodes))
            values = Values(before[:, :nodes].copy(), np.ascontiguousarray(exponents))
            ends = group[0] == 0, group[-1] == len(pieces) - 1
            rows = Rows(codes, begins, lengths, np.zeros_like(begins), values, *ends)
            if self._add(programs, rows, posteriors.columns_of(group), counts).any():
                return False
        self.counts.add(counts)
        return True


class Expected(NamedTuple):
    """What a model is expected to have done to emit some sequences."""

    score: float  # The natural logarithm of the probability of all sequences
    transitions: Float64Array  # (n_transitions,): how often each was taken
    emissions: dict[str, Float64Array]  # How often each symbol was emitted, by emission


def expected_counts(model: CompiledModel, block: SymbolBlock) -> Expected:
    """Return the expected counts of a model; `OptionError` if it cannot emit a sequence."""
    work = _Counting(model, block)
    values = max(2, model.forward.values_of_column)
    compute_all(work, None, max(LANES, 2 * _PART_SYMBOLS // values), work.longest, map)
    impossible = np.flatnonzero(np.isneginf(work.scores))
    if impossible.size:
        message = f"sequence {impossible[0]} is impossible in the model"
        raise OptionError("sequences", message)
    chain, counts = model.chain, work.counts
    graph = whole_graph(model.model)
    places, size = np.array(chain.places), len(graph.weights)
    emitting = places[: chain.shape.emitting]
    # Steps past the silent states that the chain does not have, and those at both ends past all.
    steps, ends = np.zeros((size, size)), np.zeros((size, size))
    sources, targets = np.array(chain.shape.steps, dtype=np.int64).reshape(-1, 2).T
    steps[places[sources], places[targets]] = counts.steps[: sources.size]
    ends[size - 1, emitting] = _per_chance(counts.starts, chain.start)
    ends[emitting, size - 2] = _per_chance(counts.ends, chain.end)
    empty = np.count_nonzero(block.lengths == 0)
    ends[size - 1, size - 2] = empty / chain.empty if empty else 0.0
    kept = np.zeros(size, dtype=np.bool_)
    kept[places] = True
    taken = _shared(graph.weights, steps, graph.is_silent & ~kept)
    taken += _shared(graph.weights, ends, graph.is_silent)
    chances = np.array([step.probability for step in model.model.transitions])
    return Expected(
        float(work.scores.sum()),
        taken[tuple(graph.transitions.T)] * chances,
        dict(zip(chain.emission_names, counts.emitted, strict=True)),
    )


def _per_chance(counts: Float64Array, chances: Float64Array) -> Float64Array:
    return np.divide(counts, chances, out=np.zeros_like(counts), where=chances > 0)


def _shared(weights: Float64Array, counts: Float64Array, silent: BoolArray) -> Float64Array:
    """Share the counts of steps past some silent states among the single steps of their ways.

    All counts are to be multiplied with the weights of their steps.
    """
    turns = np.linalg.inv(np.eye(int(silent.sum())) - weights[np.ix_(silent, silent)])
    before, after = np.eye(len(weights)), np.eye(len(weights))
    before[:, silent] = weights[:, silent] @ turns
    after[silent] = turns @ weights[silent]
    return before.T @ counts @ after.T


class Fit(NamedTuple):
    """A trained model, and the logarithms of the probability of all sequences before each turn."""

    model: Model
    scores: list[float]


def fit_model(model: CompiledModel, block: SymbolBlock, iterations: int, tolerance: float) -> Fit:
    """Train a model until a turn improves the score by less than the tolerance.

    A row without any expected count stays as it is.
    """
    scores: list[float] = []
    for _ in range(iterations):
        expected = expected_counts(model, block)
        model = CompiledModel(_estimated(model.model, expected))
        scores.append(expected.score)
        if len(scores) > 1 and scores[-1] - scores[-2] < tolerance:
            break
    return Fit(model.model, scores)


def _estimated(model: Model, expected: Expected) -> Model:
    """Return the model whose probabilities are the shares of the expected counts."""
    totals: dict[str, float] = {}
    for step, count in zip(model.transitions, expected.transitions.tolist(), strict=True):
        totals[step.source] = totals.get(step.source, 0.0) + count
    steps = [
        step._replace(probability=count / totals[step.source]) if totals[step.source] > 0 else step
        for step, count in zip(model.transitions, expected.transitions.tolist(), strict=True)
    ]
    emissions = dict(model.emissions)
    for name, counts in expected.emissions.items():
        if (total := counts.sum()) > 0:
            emissions[name] = tuple((counts / total).tolist())
    return replace(model, transitions=tuple(steps), emissions=emissions, unusual_sums=())
