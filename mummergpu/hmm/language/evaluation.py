"""Algorithms on blocks of sequences: scores, paths and tables, part by part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import BEST, SUMS, chain_of, log_probability
from mummergpu.hmm.language.lanes import Lanes, SymbolBlock, is_every, lanes_of, offsets_of_counts
from mummergpu.hmm.language.pieces import (
    LONG_SYMBOLS,
    CodedChain,
    LongSequence,
    MapPieces,
    coded_chain,
    merged_runs,
)
from mummergpu.hmm.language.posteriors import (
    MAX_WHOLE_VALUES,
    LongPosteriors,
    likeliest_runs,
    write_posteriors,
)
from mummergpu.hmm.language.processor import (
    ChainPrograms,
    Computed,
    best_ends,
    final_columns,
    sum_scores,
)
from mummergpu.hmm.language.processor_text import LANES, Kept, ProgramKind
from mummergpu.hmm.language.program import Algorithm, Attribute, Model
from mummergpu.hmm.language.tables import Numbers
from mummergpu.hmm.language.traces import (
    LanePlaces,
    NodeVisits,
    Runs,
    StateNames,
    has_node_paths,
    joined_runs,
    runs_of,
    some_runs,
    steps_of,
)
from mummergpu.runtime.arrays import BoolArray, ByteArray, Float64Array, Int64Array

if TYPE_CHECKING:
    from mummergpu.hmm.language.device import DeviceChains, PlacedSymbols

DEVICE_LONG_SYMBOLS: Final = 1 << 16
"""A sequence of more symbols is computed in pieces on a device."""

PART_SYMBOLS: Final = 1 << 20
PART_NODES: Final = 32
"""About the symbols computed at once, for up to `PART_NODES` values a column; else fewer."""

MapParts = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]
"""Works on parts, in threads or one after the other, as `map` does."""


class Evaluation(NamedTuple):
    """The results of an algorithm for a block."""

    scores: Float64Array  # (n_sequences,): natural logarithms; -inf for an impossible sequence
    # The paths of states, if they are asked for; an impossible sequence has none.
    runs: Runs | None = None
    # For each sequence an array of shape (n_states, length): logarithms, or the posterior
    # probabilities, of the states in `CompiledModel.state_names`.
    tables: list[Float64Array] | None = None


class CompiledModel:
    """A model, and its chains and programs as they are asked for."""

    def __init__(self, model: Model, path: str = "<model>") -> None:
        self.model = model
        self.chain = chain_of(model, SUMS, path)
        self._path = path

    @cached_property
    def state_names(self) -> list[str]:
        """The names of the states that emit, in the order of their declaration."""
        return list(dict.fromkeys(self.chain.states[: self.chain.shape.emitting]))

    @cached_property
    def forward(self) -> ChainPrograms:
        """The sums from the start."""
        return ChainPrograms.of(self.chain)

    @cached_property
    def backward(self) -> ChainPrograms:
        """The sums from the end."""
        return ChainPrograms.of(self.chain.reversed())

    @cached_property
    def best(self) -> ChainPrograms:
        """The best paths."""
        return ChainPrograms.of(chain_of(self.model, BEST, self._path))

    @cached_property
    def coded(self) -> CodedChain | None:
        """The sums with fewer nodes, where states emit few symbols each."""
        return coded_chain(self.chain)

    @cached_property
    def best_coded(self) -> CodedChain | None:
        """The best paths with fewer nodes."""
        return coded_chain(self.best.chain)

    @cached_property
    def visits(self) -> StateNames:
        """The visits of traces."""
        return StateNames(self.best.chain)

    @cached_property
    def node_states(self) -> Int64Array:
        """The number in `state_names` of each node that emits."""
        names = self.state_names
        nodes = self.chain.states[: self.chain.shape.emitting]
        return np.array([names.index(name) for name in nodes], dtype=np.int64)


def evaluate(
    model: CompiledModel,
    algorithm: Algorithm,
    block: SymbolBlock,
    wanted: Collection[Attribute] = (Attribute.SCORE,),
    map_parts: MapParts = map,
    device: DeviceChains | None = None,
) -> Evaluation:
    """Compute the requested results of an algorithm for all sequences of a block.

    A device computes scores, paths and posteriors of models that it takes, and the processor the
    rest, with those sequences that have no common scale.
    """
    work = _WORK[algorithm](model, block, wanted)
    at_once = PART_SYMBOLS * PART_NODES // max(PART_NODES, model.forward.values_of_column)
    is_table = Attribute.TABLE in wanted and algorithm is not Algorithm.POSTERIOR
    is_supported = device is not None and work.is_scaled and device.supports(model.chain.shape)
    if device is None or not is_supported or is_table:
        compute_all(work, None, at_once, work.longest, map_parts)
        return work.finish()
    work.device = device
    device_at_once = device.symbols_at_once(block, work.device_bytes)
    whole = not work.is_cut_on_device or not device.splits(model.chain.shape)
    longest = np.iinfo(np.int64).max if whole else DEVICE_LONG_SYMBOLS
    if block.lengths.min(initial=0) <= longest:
        work.placed = device.place(block)
    compute_all(work, None, device_at_once, longest, map)
    work.device = work.placed = None
    remaining = np.concatenate([np.empty(0, dtype=np.int64), *work.remaining])
    device.fallback_count += remaining.size
    compute_all(work, remaining, at_once, work.longest, map_parts)
    return work.finish()


def compute_all(
    work: _Work, numbers: Int64Array | None, at_once: int, longest: int, map_parts: MapParts
) -> None:
    """Compute some sequences of a block, or all of them; those of more than `longest` by pieces."""
    lengths = work.block.lengths if numbers is None else work.block.lengths[numbers]
    parts = parts_of(lengths, at_once, longest)
    if numbers is not None:
        parts = (numbers[part] for part in parts)
    for _ in map_parts(work.compute, parts):
        pass
    if lengths.max(initial=0) > longest:
        long = np.flatnonzero(lengths > longest)
        for number in (long if numbers is None else numbers[long]).tolist():
            work.compute_long(number, map_parts)


def parts_of(lengths: Int64Array, at_once: int, longest: int) -> Iterator[Int64Array]:
    """Yield the numbers of sequences of 1 to `longest` symbols, ordered by length, in parts."""
    if lengths.size and lengths.min() == lengths.max() and 0 < lengths.sum() <= at_once:
        # Sorting would change nothing.
        if lengths[0] <= longest:
            yield np.arange(lengths.size)
        return
    # Small numbers are sorted by their digits, without comparing them.
    is_small = lengths.size > 0 and int(lengths.max()) < 1 << 16
    order = np.argsort(lengths.astype(np.uint16) if is_small else lengths, kind="stable")
    chosen = lengths[order]
    begin, end = np.searchsorted(chosen, 1), np.searchsorted(chosen, longest, side="right")
    order, chosen = order[begin:end], chosen[begin:end]
    # Whole groups of lanes are computed together; the last of each is the longest.
    firsts = np.arange(0, order.size, LANES)
    groups = chosen[np.minimum(firsts + LANES, order.size) - 1]
    ends, group, taken = np.cumsum(LANES * groups), 0, 0
    while group < groups.size:
        last = min(int(np.searchsorted(ends, taken + at_once)), groups.size - 1)
        yield order[LANES * group : LANES * (last + 1)]
        group, taken = last + 1, int(ends[last])


class _Work(ABC):
    """The results of a block; parts may be computed side by side, or by `device`.

    Sequences that a device cannot compute are in `remaining`.
    """

    device: DeviceChains | None = None
    placed: PlacedSymbols | None = None

    def __init__(
        self, model: CompiledModel, block: SymbolBlock, wanted: Collection[Attribute]
    ) -> None:
        self.model = model
        self.block = block
        self.wanted = wanted
        self.remaining: list[Int64Array] = []
        count = block.offsets.size - 1
        self.scores = np.full(count, log_probability(model.chain.empty))
        states = len(model.state_names)
        self.tables: list[Float64Array] = []
        if Attribute.TABLE in wanted:
            self.tables = [np.empty((states, 0))] * count

    @property
    def is_scaled(self) -> bool:
        """Whether a common scale of all states may do, until one state is too small for it."""
        return True

    def finish(self) -> Evaluation:
        """Return the results."""
        wants_table = Attribute.TABLE in self.wanted
        return Evaluation(self.scores, None, self.tables if wants_table else None)

    def lay_out(self, part: Int64Array, programs: ChainPrograms, backwards: bool = False) -> Lanes:
        return lanes_of(self.block, part, programs.padding, backwards)

    @property
    def device_bytes(self) -> int:
        """About the bytes of device memory that each symbol needs."""
        return 1

    @property
    def longest(self) -> int:
        """The length of the longest sequence that is computed whole; tables always are."""
        is_short = Attribute.TABLE in self.wanted
        return np.iinfo(np.int64).max if is_short else LONG_SYMBOLS

    @property
    def is_cut_on_device(self) -> bool:
        """Whether a device computes long sequences in pieces."""
        return self.longest <= LONG_SYMBOLS

    def take_scores(self, part: Int64Array, scores: Float64Array) -> None:
        """Take the scores of a part; those of all sequences are not copied."""
        if is_every(part, self.scores.size):
            self.scores = scores
        else:
            self.scores[part] = scores

    def leave(self, part: Int64Array) -> None:
        """Leave those sequences of a part to the processor that have no score."""
        self.remaining.append(part[np.isnan(self.scores[part])])

    @abstractmethod
    def compute(self, part: Int64Array) -> None:
        """Compute some sequences, none of them empty."""

    @abstractmethod
    def compute_long(self, number: int, map_pieces: MapPieces) -> None:
        """Compute a sequence that is longer than `longest`."""

    @property
    def make_long(self) -> Callable[..., LongSequence]:
        """The constructor of a long sequence."""
        return LongSequence if self.device is None else self.device.long_sequence

    def codes_of(self, number: int) -> ByteArray:
        """Return the codes of a sequence."""
        return self.block.codes[self.block.offsets[number] : self.block.offsets[number + 1]]

    @property
    def join_nodes(self) -> np.ufunc:
        """The function that joins the values of a state's nodes, which differ in emissions."""
        return np.maximum

    def keep_table(self, lanes: Lanes, make: Callable[[slice, int], Float64Array]) -> None:
        """Make the table of each sequence from its rows and its lane."""
        for place, number in enumerate(lanes.sequences.tolist()):
            first = lanes.first_rows[place]
            rows = slice(first, first + lanes.lengths[place])
            self.tables[number] = self.table_of(make(rows, place % LANES))

    def table_of(self, nodes: Float64Array) -> Float64Array:
        """Return the logarithms of states, from those of nodes."""
        table = np.full((len(self.model.state_names), nodes.shape[1]), -np.inf)
        # Lost values are NaN.
        with np.errstate(invalid="ignore"):
            for node, state in enumerate(self.model.node_states.tolist()):
                self.join_nodes(table[state], nodes[node], out=table[state])
        return table


class _Sums(_Work):
    """The sums over all paths, from the start or from the end."""

    backwards = False
    has_both_ends = False

    @property
    def is_scaled(self) -> bool:
        ends = [self.model.forward, *([self.model.backward] if self.has_both_ends else [])]
        return all(end.sums.chunk for end in ends)

    @property
    def join_nodes(self) -> np.ufunc:
        """From the start they sum up different paths, from the end all of them the same ones."""
        return np.maximum if self.backwards else np.logaddexp

    @property
    def _kept(self) -> Kept:
        if Attribute.TABLE not in self.wanted:
            return Kept.NOTHING
        return Kept.BEFORE if self.backwards else Kept.COLUMN

    def compute(self, part: Int64Array) -> None:
        if self.device is not None and self.placed is not None:
            # From both ends the sums are the same.
            self.take_scores(part, self.device.sums(self.model.forward, self.placed, part))
            self.leave(part)
            return
        if self.is_scaled:
            part = self.computed(part, False)
        if part.size:
            self.computed(part, True)

    def programs(self, backwards: bool, exact: bool) -> ChainPrograms:
        programs = self.model.backward if backwards else self.model.forward
        return programs.exact if exact else programs

    def computed(self, part: Int64Array, exact: bool) -> Int64Array:
        """Compute a part; return those of its sequences that have no common scale."""
        programs = self.programs(self.backwards, exact)
        lanes = self.lay_out(part, programs, self.backwards)
        computed = programs.compute(ProgramKind(True, self._kept), lanes.rows, lanes.segments)
        scores = sum_scores(programs, final_columns(lanes, computed.slots))
        self.scores[part] = scores
        lost = np.isnan(scores)
        if self._kept:
            turn = -1 if self.backwards else 1

            def logs(rows: slice, lane: int) -> Float64Array:
                return programs.logs(computed.columns[rows, :, lane], True)[::turn].T

            self.keep_table(lanes, logs)
            lost |= [bool(np.isnan(self.tables[number]).any()) for number in part.tolist()]
        found: Int64Array = part[lost]
        return found

    def compute_long(self, number: int, map_pieces: MapPieces) -> None:
        if not self.is_scaled or not self._compute_pieces(number, False, map_pieces):
            self._compute_pieces(number, True, map_pieces)

    def _compute_pieces(self, number: int, exact: bool, map_pieces: MapPieces) -> bool:
        """Compute a long sequence; return whether it has a common scale."""
        codes = self.codes_of(number)
        if self.model.coded is not None and not exact:
            # From both ends the sums are the same.
            sequence = self.model.coded.sequence(codes, True, map_pieces, self.make_long)
        else:
            programs = self.programs(self.backwards, exact)
            codes = np.ascontiguousarray(codes[::-1]) if self.backwards else codes
            sequence = self.make_long(programs, codes, True, map_pieces)
        self.scores[number], _ = sequence.score()
        if self.device is not None:
            self.leave(np.array([number]))
        return self.device is not None or not np.isnan(self.scores[number])


class _Backward(_Sums):
    backwards = True
    # A device always begins with the start.
    has_both_ends = True


class _Viterbi(_Work):
    """The best paths."""

    def __init__(
        self, model: CompiledModel, block: SymbolBlock, wanted: Collection[Attribute]
    ) -> None:
        super().__init__(model, block, wanted)
        self.scores[:] = log_probability(model.best.chain.empty)
        self._paths: list[tuple[Int64Array, Runs]] = []

    @property
    def device_bytes(self) -> int:
        if Attribute.TRACEBACK not in self.wanted:
            return 1
        shape = self.model.best.chain.shape
        return 16 * (1 + min(shape.silent, 1)) + shape.nodes * 2

    def compute(self, part: Int64Array) -> None:
        programs = self.model.best
        if self.device is not None and self.placed is not None:
            names = self.model.visits if Attribute.TRACEBACK in self.wanted else None
            found = self.device.best(programs, self.placed, part, names)
            self.take_scores(part, found.scores)
            if found.runs is not None:
                is_all = found.chosen.size == part.size
                self._paths.append((part if is_all else part[found.chosen], found.runs))
            self.leave(part)
            return
        lost = self._computed(part, programs)
        if lost.size:
            self._computed(lost, programs.exact)

    def _computed(self, part: Int64Array, programs: ChainPrograms) -> Int64Array:
        """Compute a part; return those of its sequences whose paths are too far apart."""
        wanted = self.wanted
        kept = Kept.COLUMN if Attribute.TABLE in wanted else Kept.NOTHING
        kept |= Kept.TRACE if Attribute.TRACEBACK in wanted else Kept.NOTHING
        lanes = self.lay_out(part, programs)
        computed = programs.compute(ProgramKind(False, kept), lanes.rows, lanes.segments)
        scores, ends = best_ends(programs, final_columns(lanes, computed.slots))
        self.scores[part] = scores
        if Attribute.TRACEBACK in wanted:
            self._runs(programs, lanes, computed, ends, np.isfinite(scores))
        if Attribute.TABLE in wanted:
            self.keep_table(
                lanes, lambda rows, lane: programs.logs(computed.columns[rows, :, lane], False).T
            )
        lost: Int64Array = part[np.isnan(scores)]
        return lost

    def compute_long(self, number: int, map_pieces: MapPieces) -> None:
        if self._compute_pieces(number, self.model.best, map_pieces):
            return
        if self.device is not None:
            self.scores[number] = np.nan
            self.leave(np.array([number]))
        else:
            self._compute_pieces(number, self.model.best.exact, map_pieces)

    def _compute_pieces(self, number: int, programs: ChainPrograms, map_pieces: MapPieces) -> bool:
        """Compute a long sequence; return whether its paths are near enough to each other."""
        codes = self.codes_of(number)
        coded = self.model.best_coded if programs is self.model.best else None
        if coded is not None:
            sequence = coded.sequence(codes, False, map_pieces, self.make_long)
        else:
            sequence = self.make_long(programs, codes, False, map_pieces)
        self.scores[number], end = sequence.score()
        if Attribute.TRACEBACK in self.wanted and np.isfinite(self.scores[number]):
            if coded is not None:
                runs = coded.runs(sequence, codes, end, self.model.visits)
            elif has_node_paths(self.model.best.chain):
                visits = NodeVisits(codes, self.model.visits.node_visits, 0)
                runs = sequence.node_runs(visits, end)
            else:
                runs = sequence.runs(self.model.visits, end)
            if not sequence.is_lost:
                self._paths.append((np.array([number]), runs))
        return not sequence.is_lost and not np.isnan(self.scores[number])

    def _runs(
        self,
        programs: ChainPrograms,
        lanes: Lanes,
        computed: Computed,
        ends: Int64Array,
        possible: BoolArray,
    ) -> None:
        numbers = np.arange(lanes.slots.size) % LANES
        places = LanePlaces(lanes.first_rows, numbers, lanes.lengths, ends)
        shape, tables = programs.chain.shape, programs.trace_tables
        steps = len(shape.steps)
        path = steps_of(tables, computed.bits, places, steps, steps + shape.emitting)
        chosen = np.flatnonzero(possible)
        self._paths.append((lanes.sequences[chosen], runs_of(*path, chosen, self.model.visits)))

    def finish(self) -> Evaluation:
        runs = None
        if Attribute.TRACEBACK in self.wanted:
            runs = self._joined()
        return super().finish()._replace(runs=runs)

    def _joined(self) -> Runs:
        """Return the runs of all parts in the order of the block."""
        names, lengths = self.model.visits, self.block.lengths
        empty = np.flatnonzero((lengths == 0) & ~np.isneginf(self.scores))
        way = names.visits[names.offsets[-2] : names.offsets[-1]]
        ones = np.ones(way.size * empty.size, dtype=np.int64)
        sizes = np.full(empty.size, way.size)
        paths = [(empty, Runs(np.tile(way, empty.size), ones, offsets_of_counts(sizes)))]
        return joined_runs([*self._paths, *paths], lengths.size)


class Posteriors(_Sums):
    """The probability of each state at each symbol, of all paths."""

    has_both_ends = True

    def __init__(
        self, model: CompiledModel, block: SymbolBlock, wanted: Collection[Attribute]
    ) -> None:
        super().__init__(model, block, wanted)
        self._paths: list[tuple[Int64Array, Runs]] = []

    @property
    def _is_score(self) -> bool:
        return set(self.wanted) == {Attribute.SCORE}

    @property
    def longest(self) -> int:
        """The length of the longest sequence that is computed whole."""
        if self._is_score:
            return LONG_SYMBOLS
        return min(LONG_SYMBOLS, MAX_WHOLE_VALUES // self.model.forward.values_of_column)

    @property
    def is_cut_on_device(self) -> bool:
        """Whether a device computes long sequences in pieces."""
        return self._is_score

    @property
    def device_bytes(self) -> int:
        """About the bytes of device memory that each symbol needs."""
        return 1 if self._is_score else 16 * self.model.chain.shape.emitting + 16

    @cached_property
    def _state_visits(self) -> Int64Array:
        """The visit that stands for each state in runs."""
        nodes = self.model.node_states.tolist()
        firsts = [nodes.index(one) for one in range(len(self.model.state_names))]
        return self.model.visits.node_visits[firsts]

    def compute(self, part: Int64Array) -> None:
        """Compute some sequences, none of them empty."""
        if self._is_score or self.device is None or self.placed is None:
            super().compute(part)
            return
        both, states = (self.model.forward, self.model.backward), self.model.node_states
        names = None if Attribute.TABLE in self.wanted else self._state_visits
        found = self.device.posteriors(both, self.placed, part, states, names)
        self.scores[part], runs, rows = found
        self._take(part, rows, runs)
        self.leave(part)

    def _take(self, part: Int64Array, rows: Float64Array | None, runs: Runs | None) -> None:
        """Take the posteriors of a part, but for those without a score: rows, or only runs."""
        offsets = offsets_of_counts(self.block.lengths[part])
        if rows is not None and Attribute.TABLE in self.wanted:
            for place, number in enumerate(part.tolist()):
                self.tables[number] = rows[offsets[place] : offsets[place + 1]].T
        if Attribute.TRACEBACK in self.wanted:
            if rows is not None:
                runs = likeliest_runs(rows, offsets, self._state_visits)
            assert runs is not None
            self._paths.append(some_runs((part, runs), ~np.isnan(self.scores[part])))

    def computed(self, part: Int64Array, exact: bool) -> Int64Array:
        """Compute a part; return those of its sequences that have no common scale."""
        if self._is_score:
            return super().computed(part, exact)
        offsets = offsets_of_counts(self.block.lengths[part])
        rows = self._both_ends(part, offsets, exact)
        is_lost = np.logical_or.reduceat(np.isnan(rows[:, 0]), offsets[:-1])
        lost = part[is_lost & ~np.isneginf(self.scores[part])]
        self.scores[lost] = np.nan
        self._take(part, rows, None)
        return lost

    def _compute_pieces(self, number: int, exact: bool, map_pieces: MapPieces) -> bool:
        if not super()._compute_pieces(number, exact, map_pieces):
            return False
        if self._is_score:
            return True
        both = self.programs(False, exact), self.programs(True, exact)
        posteriors = LongPosteriors(both, self.codes_of(number), map_pieces)
        return self.take_pieces(number, posteriors, map_pieces)

    def take_pieces(self, number: int, posteriors: LongPosteriors, map_pieces: MapPieces) -> bool:
        """Take the posteriors of a sequence; return whether it has a common scale."""

        def of_group(group: list[int]) -> tuple[Runs | None, Float64Array | None, bool]:
            # Only the requested results of a group are kept: a chromosome has many groups.
            rows = posteriors.of_group(group, self.model.node_states)
            bounds = np.array([0, len(rows)])
            listed = Attribute.TRACEBACK in self.wanted
            runs = likeliest_runs(rows, bounds, self._state_visits) if listed else None
            is_lost = bool(np.isnan(rows[:, 0]).any())
            return runs, rows if Attribute.TABLE in self.wanted else None, is_lost

        parts = list(map_pieces(of_group, posteriors.groups()))
        if any(is_lost for _, _, is_lost in parts) and not np.isneginf(self.scores[number]):
            return False
        runs = [one for one, _, _ in parts if one is not None]
        tables = [one for _, one, _ in parts if one is not None]
        if runs:
            self._paths.append((np.array([number]), merged_runs(runs)))
        if tables:
            self.tables[number] = np.concatenate(tables).T
        return True

    def _both_ends(self, part: Int64Array, offsets: Int64Array, exact: bool) -> Float64Array:
        """Return the probabilities of the states of each symbol."""
        lanes, columns = self.columns_of(part, exact)
        ahead = self.programs(False, exact)
        found = np.zeros((int(offsets[-1]), len(self.model.state_names)))
        write_posteriors(ahead, lanes.first_rows, offsets, columns, self.model.node_states, found)
        return found

    def columns_of(self, part: Int64Array, exact: bool) -> tuple[Lanes, tuple[Numbers, Numbers]]:
        """Return the columns of both ends, those from the end in the other order; take scores."""
        ahead, back = self.programs(False, exact), self.programs(True, exact)
        lanes, reversed_lanes = self.lay_out(part, ahead), self.lay_out(part, back, True)
        kinds = ProgramKind(True, Kept.COLUMN), ProgramKind(True, Kept.BEFORE)
        forward = ahead.compute(kinds[0], lanes.rows, lanes.segments)
        backward = back.compute(kinds[1], reversed_lanes.rows, reversed_lanes.segments)
        self.scores[part] = sum_scores(ahead, final_columns(lanes, forward.slots))
        return lanes, (forward.columns, backward.columns)

    def finish(self) -> Evaluation:
        """Return the results."""
        runs = None
        if Attribute.TRACEBACK in self.wanted:
            possible = [some_runs(one, np.isfinite(self.scores[one[0]])) for one in self._paths]
            runs = joined_runs(possible, self.scores.size)
        return super().finish()._replace(runs=runs)


_WORK: Final[dict[Algorithm, type[_Work]]] = {
    Algorithm.VITERBI: _Viterbi,
    Algorithm.FORWARD: _Sums,
    Algorithm.BACKWARD: _Backward,
    Algorithm.POSTERIOR: Posteriors,
}
