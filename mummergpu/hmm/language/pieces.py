"""Long sequences in pieces: the operator of each piece, then all pieces at once.

A piece is an operator from the states before it to those after it. Operators of few states are
computed side by side, a lane for each state that a piece may begin in, and joined one after the
other; then all pieces run again from the values that they begin with, to find paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.language import traces
from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.lanes import offsets_of_counts
from mummergpu.hmm.language.processor import (
    ChainPrograms,
    Computed,
    best_ends,
    in_one_scale,
    sum_scores,
)
from mummergpu.hmm.language.processor_text import (
    IMPOSSIBLE,
    LANES,
    LOST,
    OFFSET_BITS,
    Kept,
    ProgramKind,
)
from mummergpu.hmm.language.recurrence import Shape, with_silent
from mummergpu.hmm.language.tables import (
    EMISSION_ROW,
    LONGEST_CHUNK,
    ChainTables,
    Numbers,
    best_tables,
    sum_tables,
)
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import jit

LONG_SYMBOLS: Final = 1 << 20
"""A sequence of more symbols is computed in pieces."""
_MAX_STATES: Final = LANES
"""With more states than lanes, operators would cost more than a pass over the sequence."""

_LEAST: Final = 2.0**-1000
_SMALLEST_JOINED: Final = 2.0**-400
"""The smallest sum that is kept when pieces are joined: below are products with fewer digits."""
_LEAST_POWER: Final = -1074
_POWERS_OF_2: Final = np.ldexp(1.0, np.arange(_LEAST_POWER, 1024))

MapPieces = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Piece(NamedTuple):
    """Symbols `begin` to `end` of a sequence."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """The number of its symbols."""
        return self.end - self.begin


def pieces_of(length: int, size: int) -> list[Piece]:
    """Cut a sequence in pieces of equal sizes, but for the last."""
    return [Piece(begin, min(length, begin + size)) for begin in range(0, length, size)]


class Borders(NamedTuple):
    """The values after each piece."""

    values: Numbers  # (n_pieces, n_nodes): the values of states
    # (n_pieces,): their offsets: exponents of 2, or multiples of 2**`OFFSET_BITS` units.
    # If each value has one, the shape is (n_pieces, n_nodes).
    totals: Int64Array


class Operators(NamedTuple):
    """The operators of pieces: their effect on a path that begins in each place."""

    values: Numbers  # (n_pieces, n_places, n_nodes): the values of states after the piece
    offsets: Int64Array  # (n_pieces, n_places): their offsets, as in `Borders`


class LongSequence:
    """A sequence, and the programs of a chain that run over its pieces.

    `places` has for each state a number, the same for states that go on alike; by default none do.
    With `pair_symbols` the states emit pairs of that many symbols: each and the one before.
    """

    piece_symbols = 1 << 16
    is_lost = False
    """Whether a path may have been lost when it was walked, though the score is right."""

    def __init__(
        self,
        programs: ChainPrograms,
        codes: ByteArray,
        sums: bool,
        map_pieces: MapPieces,
        places: Int64Array | None = None,
        pair_symbols: int = 0,
    ) -> None:
        self._programs = programs
        self._codes = codes
        self._sums = sums
        self._map = map_pieces
        self._tables = programs.sums if sums else programs.best
        self._shape = programs.chain.shape
        self._places = np.arange(self._shape.emitting) if places is None else places
        self._pair_symbols = pair_symbols

    @cached_property
    def _pieces(self) -> list[Piece]:
        return pieces_of(self._codes.size, self.piece_symbols)

    def _emitted(self, begin: int, end: int) -> ByteArray:
        """Return the codes of the states' emissions at some symbols."""
        codes, symbols = self._codes[begin:end], self._pair_symbols
        if not symbols:
            return codes
        # The first symbol follows none.
        first = self._codes[begin - 1] if begin else symbols
        pairs = np.append(np.uint8(first), codes[:-1])
        pairs *= np.uint8(symbols)
        pairs += codes
        return pairs

    @cached_property
    def _borders(self) -> Borders:
        is_joined = self._places.max() < _MAX_STATES and not self._programs.is_exact
        return self._joined() if is_joined else self._passed()

    def values_before(self, numbers: Sequence[int]) -> Numbers:
        """Return slots with the values before some pieces, none of them the first."""
        before = np.array(numbers) - 1
        values, totals = (one[before] for one in self._borders)
        if not self._programs.is_exact:
            # The offsets since then are 0.
            totals = np.zeros((before.size, 1), dtype=np.int64)
        return np.append(values, totals.view(values.dtype), axis=1)

    def score(self) -> tuple[float, int]:
        """Return the logarithm of the sum or the best path, and the state that this ends in.

        It is NaN where a sum or a path has become too small compared with others.
        """
        values, totals = self._borders.values[-1:], self._borders.totals[-1:].reshape(1, -1)
        column = np.append(values, totals.view(values.dtype), axis=1)
        if self._sums:
            return float(sum_scores(self._programs, column)[0]), 0
        scores, ends = best_ends(self._programs, column)
        return float(scores[0]), int(ends[0])

    def runs(self, names: traces.StateNames, end: int) -> traces.Runs:
        """Return the best path that ends in a state, as runs."""
        path = [len(self._shape.steps) + self._shape.emitting + end]
        found: list[traces.Runs] = []
        for steps in self._steps(end):
            own = np.concatenate([steps, np.array(path, dtype=np.int64)])
            path = []
            bounds = np.array([0, own.size], dtype=np.int64)
            found.append(traces.runs_of(own, bounds, np.zeros(1, dtype=np.int64), names))
        return merged_runs(found[::-1])

    def node_runs(self, visits: traces.NodeVisits, end: int) -> traces.Runs:
        """Return the best path that ends in a node of a chain with `has_node_paths`, as runs."""
        path = np.empty(self._codes.size, dtype=np.uint8)
        tables, borders = self._programs.trace_tables, self._borders
        values = in_one_scale(borders.values, borders.totals.reshape(len(borders.values), -1))

        def walked(group: list[Piece]) -> traces.WalkedPieces:
            pieces, bits = self._trace_group(group)
            begins, ends = np.array(pieces, dtype=np.int64).T
            numbers = (ends - 1) // self.piece_symbols
            likely = values[numbers, : self._shape.emitting].argmax(axis=1)
            likely[ends == self._codes.size] = end
            places = np.ascontiguousarray(begins), np.ascontiguousarray(ends)
            return traces.walk_pieces(tables, bits, *places, likely.astype(np.int64), path)

        traces.settle(list(self._map(walked, self._groups())), tables, end, path)
        stretches = self._map(lambda one: traces.stretch_of(path, visits, *one), self._pieces)
        places = traces.run_places(traces.stretches_of(stretches))
        runs = traces.empty_runs(places.run_count)
        firsts, joins = places.firsts.tolist(), places.joins.tolist()

        def filled(number: int) -> int:
            place = (*self._pieces[number], firsts[number], joins[number])
            return traces.fill_stretch(path, visits, *place, runs.visits, runs.lengths)

        first_lengths = np.array(list(self._map(filled, range(len(self._pieces)))))
        traces.add_joined(runs, places, first_lengths)
        return runs

    def _steps(self, end: int) -> Iterator[Int64Array]:
        """Yield the steps of the best path that ends in a state, the last piece first."""
        computed = list(self._map(self._trace_group, self._groups()))
        start, tables = len(self._shape.steps), self._programs.trace_tables
        for one, bits in reversed(computed):
            words = bits.reshape(bits.shape[0], -1)
            for lane in reversed(range(len(one))):
                piece, is_first = one[lane], one[lane].begin == 0
                room = np.empty(piece.size * (1 + self._shape.silent) + 1, dtype=np.int64)
                end, at = traces.trace_piece(
                    tables, words, piece.size, LANES, lane, end, is_first, start, room
                )
                yield room[at:]

    def _groups(self) -> list[list[Piece]]:
        """Return the first piece, and groups of the others."""
        rest = self._pieces[1:]
        groups = [rest[at : at + LANES] for at in range(0, len(rest), LANES)]
        return [self._pieces[:1], *groups]

    def _rows(self, pieces: Sequence[Piece]) -> ByteArray:
        """Return the symbols of pieces, a lane each; the lanes after them repeat the last one."""
        rows = np.full((pieces[0].size, LANES), self._programs.padding, dtype=np.uint8)
        for lane, piece in enumerate(pieces):
            rows[: piece.size, lane] = self._emitted(*piece)
        return rows

    def _trace_group(self, pieces: list[Piece]) -> tuple[list[Piece], Any]:
        kind, before = ProgramKind(False, Kept.TRACE), None
        rows = self._rows(pieces)
        if pieces[0].begin > 0:
            first = pieces[0].begin // self.piece_symbols
            before = self.values_before(range(first, first + len(pieces)))
        computed = self._run(kind, rows, before)
        # Exponents of single values are never so large.
        self.is_lost |= bool((computed.slots[0, -1, : len(pieces)] > LOST // 2).any())
        return pieces, computed.bits

    def _run(self, kind: ProgramKind, rows: ByteArray, before: Numbers | None) -> Computed:
        """Run all rows, from the start or from the values of each lane."""
        if before is None:
            segments = np.array([[0, len(rows), -1]], dtype=np.int64)
            return self._programs.compute(kind, rows, segments)
        given = np.zeros((1, before.shape[1], LANES), dtype=before.dtype)
        given[0, :, : len(before)] = before.T
        segments = np.array([[0, len(rows), 1]], dtype=np.int64)
        return self._programs.compute(kind, rows, segments, given)

    def _passed(self) -> Borders:
        """Return the borders from one pass over the sequence."""
        rows = np.full((self._codes.size, LANES), self._programs.padding, dtype=np.uint8)
        rows[:, 0] = self._emitted(0, self._codes.size)
        segments = np.array(
            [[one.begin, one.size, number - 1] for number, one in enumerate(self._pieces)],
            dtype=np.int64,
        )
        found = self._programs.compute(ProgramKind(self._sums), rows, segments)
        values, totals = self._programs.parted(found.slots[:, :, 0])
        totals = totals if self._programs.is_exact else totals[:, 0]
        return Borders(np.ascontiguousarray(values), totals)

    def _joined(self) -> Borders:
        """Return the borders from the operators of all pieces."""
        first, operators = self._computed()
        count = 1 + len(operators.values)
        values = np.empty((count, self._shape.nodes), dtype=first.values.dtype)
        totals = np.empty(count, dtype=np.int64)
        values[0], totals[0] = first.values[0], first.totals[0]
        own = np.empty(int(self._places.max()) + 1, dtype=values.dtype)
        places = np.ascontiguousarray(self._places)
        if self._sums:
            bits = values.view(np.int64)
            _join_sums(*operators, places, _POWERS_OF_2, own, values, bits, totals)
        else:
            _join_best(*operators, places, own, values, totals)
        return Borders(values, totals)

    def _computed(self) -> tuple[Borders, Operators]:
        """Return the values after the first piece, and the operators of the others."""
        slots = self._run(ProgramKind(self._sums), self._rows(self._pieces[:1]), None).slots
        first = Borders(*_taken_apart(slots[:, :, 0]))
        units = self._units()
        count = len(units)
        together = max(1, LANES // count)
        rest = self._pieces[1:]
        groups = [rest[at : at + together] for at in range(0, len(rest), together)]

        def operators(group: list[Piece]) -> Numbers:
            # The pieces of a group have lanes for all states that they may begin in.
            lanes = [piece for piece in group for _ in range(count)]
            before = np.concatenate([units] * len(group))
            # The last piece may be shorter, and stands alone then.
            if group[-1].size != group[0].size:
                parts = [operators([piece]) for piece in group]
                return np.concatenate(parts)
            found = self._run(ProgramKind(self._sums), self._rows(lanes), before).slots
            return np.ascontiguousarray(found[0].T[: len(lanes)])

        nothing = np.empty((0, units.shape[1]), dtype=units.dtype)
        slots = np.concatenate([nothing, *self._map(operators, groups)])
        values, offsets = _taken_apart(slots)
        shape = (len(rest), count)
        return first, Operators(values.reshape(*shape, values.shape[1]), offsets.reshape(shape))

    def _units(self) -> Numbers:
        """Return the values of a piece that begins in each state."""
        count, nodes = self._shape.emitting, self._shape.nodes
        tables = self._tables
        firsts = np.unique(self._places, return_index=True)[1].tolist()
        found = np.zeros((len(firsts), nodes + 1), dtype=tables.numbers.dtype)
        arithmetic = _Plain(tables.numbers.tolist(), self._sums)
        for number, state in enumerate(firsts):
            values = np.full(count, 0.0 if self._sums else IMPOSSIBLE).tolist()
            values[state] = 1.0 if self._sums else 0
            found[number, :nodes] = with_silent(self._shape, arithmetic, values)
        return found


def _taken_apart(slots: Numbers) -> tuple[Numbers, Int64Array]:
    """Return the values of slots, and their offsets."""
    offsets = np.ascontiguousarray(slots[:, -1]).view(np.int64)
    return np.ascontiguousarray(slots[:, :-1]), offsets


@jit
def _join_sums(
    operators: Float64Array,
    exponents: Int64Array,
    places: Int64Array,
    powers: Float64Array,
    own: Float64Array,
    values: Float64Array,
    bits: Int64Array,
    totals: Int64Array,
) -> None:
    """Write the borders after the first, one after the other; `own` has room for each place.

    `bits` are those of `values`; `powers` are those of 2 from `_LEAST_POWER` on.

    With the values of a border summed up by place, the next one's are

        value[node] = sum(own[place] * operators[piece, place, node] * 2**exponents[piece, place])

    scaled by a power of 2 so that the largest is about 1; the powers add up in `totals`.
    """
    for piece in range(operators.shape[0]):
        own[:] = 0.0
        for node in range(places.size):
            own[places[node]] += values[piece, node]
        most, some = 0, False
        for place in range(own.size):
            # This is also true of NaN.
            if own[place] != 0:
                most = max(most, exponents[piece, place]) if some else exponents[piece, place]
                some = True
        top, top_node = 0.0, 0
        for node in range(values.shape[1]):
            total, is_reached = 0.0, False
            for place in range(own.size):
                if own[place] != 0 and operators[piece, place, node] != 0:
                    # A smaller power makes less than `_LEAST`, whatever else is added.
                    power = max(_LEAST_POWER, exponents[piece, place] - most)
                    factor = powers[power - _LEAST_POWER]
                    total += own[place] * operators[piece, place, node] * factor
                    is_reached = True
            # A value that has become 0 is too small, too.
            values[piece + 1, node] = _LEAST if is_reached and total < _LEAST else total
            if total > top:
                top, top_node = total, node
        # The exponent of the largest value, from its bits.
        shift = (bits[piece + 1, top_node] >> 52) - 1022 if top > 0 else 0
        for node in range(values.shape[1]):
            value = values[piece + 1, node] * powers[-shift - _LEAST_POWER]
            values[piece + 1, node] = np.nan if value > 0 and value < _SMALLEST_JOINED else value
        totals[piece + 1] = totals[piece] + most + shift


@jit
def _join_best(
    operators: Int64Array,
    offsets: Int64Array,
    places: Int64Array,
    own: Int64Array,
    values: Int64Array,
    totals: Int64Array,
) -> None:
    """Write the borders after the first as `_join_sums` does, with maxima of sums of logarithms."""
    dead = IMPOSSIBLE // 2
    for piece in range(operators.shape[0]):
        own[:] = IMPOSSIBLE
        for node in range(places.size):
            own[places[node]] = max(own[places[node]], values[piece, node])
        most, some, top = 0, False, IMPOSSIBLE
        # The totals by then include the `LOST` of an operator, too.
        is_lost = totals[piece] > LOST // 2
        for place in range(own.size):
            if own[place] > dead:
                most = max(most, offsets[piece, place]) if some else offsets[piece, place]
                some = True
        for node in range(values.shape[1]):
            best, is_reached = 2 * IMPOSSIBLE, False
            for place in range(own.size):
                way = operators[piece, place, node]
                if own[place] > dead and way > dead:
                    # Never below the value of an impossible path.
                    less = max(IMPOSSIBLE >> OFFSET_BITS, offsets[piece, place] - most)
                    best = max(best, own[place] + way + (less << OFFSET_BITS))
                    is_reached = True
            is_lost |= is_reached and best <= dead
            best = max(best, IMPOSSIBLE)
            values[piece + 1, node] = best
            top = max(top, best)
        taken = top >> OFFSET_BITS if top > dead else 0
        for node in range(values.shape[1]):
            if values[piece + 1, node] > dead:
                values[piece + 1, node] -= taken << OFFSET_BITS
        totals[piece + 1] = LOST if is_lost else totals[piece] + most + taken


class _Plain:
    """Sums or best paths of single numbers: `recurrence.Arithmetic`."""

    def __init__(self, numbers: list[Any], sums: bool) -> None:
        self._numbers, self._sums = numbers, sums

    def along(self, value: Any, step: int) -> Any:
        return value * self._numbers[step] if self._sums else value + self._numbers[step]

    def join(self, values: Sequence[Any], target: int) -> Any:
        if self._sums:
            return sum(values)
        return max([*values, IMPOSSIBLE])

    def emit(self, value: Any, node: int) -> Any:
        return value


def merged_runs(parts: list[traces.Runs]) -> traces.Runs:
    """Return the runs of one path from those of its parts."""
    visits = np.concatenate([one.visits for one in parts])
    lengths = np.concatenate([one.lengths for one in parts])
    begins = np.flatnonzero(np.diff(visits, prepend=-1))
    merged: Int64Array = np.add.reduceat(lengths, begins)
    return traces.Runs(visits[begins], merged, offsets_of_counts(np.array([begins.size])))


_MAX_CODES: Final = 250
_MAX_PLACES: Final = 2
"""With more possible states after a symbol there would be as many nodes as before."""


class CodedChain:
    """A chain whose states emit few of the symbols each, with fewer nodes for long sequences.

    In a model of CpG islands eight states emit one base each, so that two of them are possible
    after each base: these have places (`states`, of shape (n_symbols, n_places); -1: none). A node
    stands for a step from one place to another, and emits the pair of symbols around it: four
    nodes with 8 transitions replace eight states with 64.
    """

    def __init__(self, chain: Chain, states: Int64Array) -> None:
        self.states = states
        self._chain = chain
        self._programs: dict[bool, ChainPrograms] = {}
        count = states.shape[1]
        nodes = range(count * count)
        # The node of place `j` that comes from place `i` is number ``j * count + i``.
        steps = [
            (before, node) for node in nodes for before in nodes if before // count == node % count
        ]
        shape = Shape(tuple(nodes), 0, tuple(steps))
        symbols = states.shape[0]
        ones = np.ones(len(nodes))
        self._pairs = Chain(
            chain.name,
            tuple(str(code) for code in range(symbols * symbols + symbols)),
            shape,
            tuple(str(node) for node in nodes),
            np.ones(len(steps)),
            (np.array(nodes) % count == 0).astype(np.float64),
            ones,
            0.0,
            np.ones((len(nodes), symbols * symbols + symbols)),
        )

    def programs(self, sums: bool) -> ChainPrograms:
        """Return the programs of pairs, with the numbers of the chain."""
        if sums not in self._programs:
            self._programs[sums] = self._made_programs(sums)
        return self._programs[sums]

    def _made_programs(self, sums: bool) -> ChainPrograms:
        found = ChainPrograms(self._pairs)
        tables = sum_tables(self._chain) if sums else best_tables(self._chain)
        plain = sum_tables(self._pairs) if sums else best_tables(self._pairs)
        end = tables.end[0] + plain.end if not sums else tables.end[0] * plain.end
        chunks = (tables.chunk, tables.float_chunk) if sums else (LONGEST_CHUNK, 0)
        made = ChainTables(plain.numbers, self._emissions(tables, sums), end, *chunks)
        found.__dict__["sums" if sums else "best"] = made
        return found

    def _emissions(self, tables: ChainTables, sums: bool) -> Numbers:
        """Return the emissions of nodes for each pair, and for the first symbol."""
        shape, (symbols, count) = self._chain.shape, self.states.shape
        none = 0.0 if sums else IMPOSSIBLE
        nodes = range(count * count)
        found = np.full((len(nodes), EMISSION_ROW), none, dtype=tables.numbers.dtype)
        numbers = {step: tables.numbers[at] for at, step in enumerate(shape.steps)}
        rows = [tables.emissions[one] for one in shape.emissions]

        def both(one: float, other: float) -> float:
            return one * other if sums else max(one + other, IMPOSSIBLE)

        for node in nodes:
            to, source = divmod(node, count)
            for symbol in range(symbols):
                state = self.states[symbol, to]
                if state < 0:
                    continue
                if source == 0:
                    start = tables.numbers[len(shape.steps) + state]
                    found[node, symbols * symbols + symbol] = both(start, rows[state][symbol])
                for before in range(symbols):
                    step = (int(self.states[before, source]), int(state))
                    if step in numbers:
                        value = both(numbers[step], rows[state][symbol])
                        found[node, before * symbols + symbol] = value
            found[node, symbols * symbols + symbols] = 1.0 if sums else 0
        return found

    def sequence(
        self,
        codes: ByteArray,
        sums: bool,
        map_pieces: MapPieces,
        make: Callable[..., LongSequence] = LongSequence,
    ) -> LongSequence:
        """Return a sequence, whose pairs of symbols the nodes emit, as `make` makes it."""
        symbols, count = self.states.shape
        # The nodes after a node depend on its place alone.
        places = np.arange(count * count) // count
        return make(self.programs(sums), codes, sums, map_pieces, places, symbols)

    def runs(
        self, sequence: LongSequence, codes: ByteArray, end: int, names: traces.StateNames
    ) -> traces.Runs:
        """Return the best path that ends in a node, as runs of the states of the chain."""
        count = self.states.shape[1]
        # The visit after each symbol in each node.
        table = names.node_visits[np.maximum(self.states, 0)].repeat(count, axis=1).ravel()
        visits = traces.NodeVisits(codes, np.ascontiguousarray(table), count * count)
        return sequence.node_runs(visits, end)


def coded_chain(chain: Chain) -> CodedChain | None:
    """Return a chain with places, or None where that is impossible or not worth it.

    All states must be the same to end in, and no silent state may be passed.
    """
    symbols = chain.emissions.shape[1]
    of_states: Float64Array = chain.emissions[list(chain.shape.emissions)]
    count = int((of_states > 0).sum(axis=0).max())
    if not 0 < count <= _MAX_PLACES or chain.shape.emitting <= count * count:
        return None
    if symbols * symbols + symbols > _MAX_CODES or chain.shape.silent:
        return None
    if any(chain.ways) or any(chain.starts) or any(chain.ends) or np.ptp(chain.end) > 0:
        return None
    states = np.full((symbols, count), -1, dtype=np.int64)
    for symbol in range(symbols):
        own = np.flatnonzero(of_states[:, symbol] > 0)
        states[symbol, : own.size] = own
    return CodedChain(chain, states)
