"""Long sequences in pieces: what a piece does to each state, then all pieces at once.

A piece is an operator from the states before it to those behind it. Operators of few states are
computed side by side, a lane for each state that a piece may begin in, and joined one after the
other; then all pieces run again from the values that they begin with, to find paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.language.lanes import offsets_of_counts
from mummergpu.hmm.language.node_paths import (
    NodeVisits,
    WalkedPieces,
    empty_runs,
    fill_stretch,
    run_places,
    settle,
    stretch_of,
    walk_pieces,
)
from mummergpu.hmm.language.processor import ChainPrograms, Computed
from mummergpu.hmm.language.processor_text import (
    IMPOSSIBLE,
    LANES,
    OFFSET_BITS,
    Kept,
    ProgramKind,
)
from mummergpu.hmm.language.recurrence import with_silent
from mummergpu.hmm.language.tables import LOG_UNITS, Numbers
from mummergpu.hmm.language.traces import Runs, StateNames, TraceTables, runs_of, trace_piece
from mummergpu.runtime.arrays import ByteArray, Int64Array

LONG_SYMBOLS: Final = 1 << 20
"""A sequence of more symbols is computed in pieces."""
PIECE_SYMBOLS: Final = 1 << 16
_MAX_STATES: Final = LANES
"""With more states than lanes, operators would cost more than a pass over the sequence."""

MapPieces = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class Piece(NamedTuple):
    """Symbols `begin` to `end` of a sequence."""

    begin: int
    end: int

    @property
    def size(self) -> int:
        """How many symbols it has."""
        return self.end - self.begin


def pieces_of(length: int) -> list[Piece]:
    """Cut a sequence in pieces of equal sizes, but for the last."""
    begins = range(0, length, PIECE_SYMBOLS)
    return [Piece(begin, min(length, begin + PIECE_SYMBOLS)) for begin in begins]


class Borders(NamedTuple):
    """The values behind each piece.

    Attributes
    ----------
    slots : ndarray, shape (n_pieces, n_nodes + 1)
        The values of states, and what was taken off them since the piece began.
    totals : list of int
        What was taken off all values before each piece: exponents of 2, or units.
    """

    slots: Numbers
    totals: list[int]


class LongSequence:
    """A sequence, and the programs of a chain that run over its pieces.

    `places` has for each state a number, the same for states that go on alike; by default none do.
    """

    def __init__(
        self,
        programs: ChainPrograms,
        codes: ByteArray,
        sums: bool,
        map_pieces: MapPieces,
        places: Int64Array | None = None,
    ) -> None:
        self._programs = programs
        self._codes = codes
        self._sums = sums
        self._map = map_pieces
        self._pieces = pieces_of(codes.size)
        self._tables = programs.sums if sums else programs.best
        self._shape = programs.chain.shape
        self._places = np.arange(self._shape.emitting) if places is None else places
        self._borders = self._joined() if self._places.max() < _MAX_STATES else self._passed()

    def score(self) -> tuple[float, int]:
        """Return the logarithm of the sum or the best path, and the state that this ends in."""
        values = self._borders.slots[-1]
        count = self._shape.emitting
        taken = self._borders.totals[-1]
        if self._sums:
            total = float(values[:count] @ self._tables.end)
            exponent = taken + int(values[-1:].view(np.int64)[0])
            score = np.log(total) + exponent * np.log(2) if total > 0 else -np.inf
            return float(score), 0
        ends = values[:count] + self._tables.end
        last = int(ends.argmax())
        best = int(ends[last])
        if best < IMPOSSIBLE // 2:
            return -np.inf, last
        return (best + taken + (int(values[-1]) << OFFSET_BITS)) / LOG_UNITS, last

    def runs(self, tables: TraceTables, names: StateNames, end: int) -> Runs:
        """Return the best path that ends in a state, as runs."""
        path = [len(self._shape.steps) + self._shape.emitting + end]
        found: list[Runs] = []
        for steps in self._steps(tables, end):
            own = np.concatenate([steps, np.array(path, dtype=np.int64)])
            path = []
            bounds = np.array([0, own.size], dtype=np.int64)
            found.append(runs_of(own, bounds, np.zeros(1, dtype=np.int64), names))
        return merged_runs(found[::-1])

    def node_runs(self, tables: TraceTables, visits: NodeVisits, end: int) -> Runs:
        """Return the best path that ends in a node of a chain with `has_node_paths`, as runs."""
        path = np.empty(self._codes.size, dtype=np.uint8)

        def walked(group: list[Piece]) -> WalkedPieces:
            pieces, bits = self._trace_group(group)
            begins, ends = np.array(pieces, dtype=np.int64).T
            numbers = (ends - 1) // PIECE_SYMBOLS
            likely = self._borders.slots[numbers, : self._shape.emitting].argmax(axis=1)
            likely[ends == self._codes.size] = end
            places = np.ascontiguousarray(begins), np.ascontiguousarray(ends)
            return walk_pieces(tables, bits, *places, likely.astype(np.int64), path)

        settle(list(self._map(walked, self._groups())), tables, end, path)
        stretches = list(self._map(lambda one: stretch_of(path, visits, *one), self._pieces))
        firsts, joins, count = run_places(stretches)
        runs = empty_runs(count)

        def filled(number: int) -> int:
            place = (*self._pieces[number], firsts[number], joins[number])
            return fill_stretch(path, visits, *place, runs.visits, runs.lengths)

        first_lengths = list(self._map(filled, range(len(self._pieces))))
        for first, is_joined, length in zip(firsts, joins, first_lengths, strict=True):
            runs.lengths[first] += length if is_joined else 0
        return runs

    def _steps(self, tables: TraceTables, end: int) -> Iterator[Int64Array]:
        """Yield the steps of the best path that ends in a state, the last piece first."""
        computed = list(self._map(self._trace_group, self._groups()))
        start = len(self._shape.steps)
        for one, bits in reversed(computed):
            words = bits.reshape(bits.shape[0], -1)
            for lane in reversed(range(len(one))):
                piece, is_first = one[lane], one[lane].begin == 0
                room = np.empty(piece.size * (1 + self._shape.silent) + 1, dtype=np.int64)
                end, at = trace_piece(
                    tables, words, piece.size, LANES, lane, end, is_first, start, room
                )
                yield room[at:]

    def _groups(self) -> list[list[Piece]]:
        """Return the first piece, and groups of the others."""
        rest = self._pieces[1:]
        groups = [rest[at : at + LANES] for at in range(0, len(rest), LANES)]
        return [self._pieces[:1], *groups]

    def _rows(self, pieces: Sequence[Piece]) -> ByteArray:
        """Return the symbols of pieces, a lane each; the lanes behind them repeat the last one."""
        rows = np.full((pieces[0].size, LANES), self._programs.padding, dtype=np.uint8)
        for lane, piece in enumerate(pieces):
            rows[: piece.size, lane] = self._codes[piece.begin : piece.end]
        return rows

    def _trace_group(self, pieces: list[Piece]) -> tuple[list[Piece], Any]:
        kind = ProgramKind(False, Kept.TRACE)
        rows = self._rows(pieces)
        if pieces[0].begin == 0:
            return pieces, self._run(kind, rows, None).bits
        first = pieces[0].begin // PIECE_SYMBOLS
        before = self._borders.slots[first - 1 : first - 1 + len(pieces)].copy()
        before[:, -1] = 0
        return pieces, self._run(kind, rows, before).bits

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
        rows[:, 0] = self._codes
        segments = np.array(
            [[one.begin, one.size, number - 1] for number, one in enumerate(self._pieces)],
            dtype=np.int64,
        )
        found = self._programs.compute(ProgramKind(self._sums), rows, segments)
        slots = np.ascontiguousarray(found.slots[:, :, 0])
        return Borders(slots, [0] * len(slots))

    def _joined(self) -> Borders:
        """Return the borders from the operators of all pieces."""
        first = self._run(ProgramKind(self._sums), self._rows(self._pieces[:1]), None)
        slots = np.empty((len(self._pieces), self._shape.nodes + 1), dtype=first.slots.dtype)
        slots[0] = first.slots[0, :, 0]
        units = self._units()
        count = int(self._places.max()) + 1
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
            return np.ascontiguousarray(found[0].T[: len(lanes)]).reshape(len(group), count, -1)

        totals, number = [0], 1
        join = self._join_sums if self._sums else self._join_best
        for found in self._map(operators, groups):
            for operator in found:
                slots[number], taken = join(slots[number - 1], operator)
                totals.append(totals[-1] + taken)
                number += 1
        return Borders(slots, totals)

    def _units(self) -> Numbers:
        """Return the values of a piece that begins in each state."""
        count, nodes = self._shape.emitting, self._shape.nodes
        tables = self._tables
        firsts = np.unique(self._places, return_index=True)[1].tolist()
        found = np.zeros((len(firsts), nodes + 1), dtype=tables.numbers.dtype)
        for number, state in enumerate(firsts):
            values = np.full(count, 0.0 if self._sums else IMPOSSIBLE).tolist()
            values[state] = 1.0 if self._sums else 0
            arithmetic = _Plain(tables.numbers.tolist(), self._sums)
            found[number, :nodes] = with_silent(self._shape, arithmetic, values)
        return found

    def _join_sums(self, before: Numbers, operator: Numbers) -> tuple[Numbers, int]:
        count = self._shape.emitting
        exponents = np.ascontiguousarray(operator[:, -1]).view(np.int64)
        weights = np.bincount(self._places, before[:count])
        some = exponents[weights > 0]
        most = int(some.max()) if some.size else 0
        scaled = np.ldexp(operator[:, :-1], np.clip(exponents - most, -2000, 0)[:, None])
        values = weights @ scaled
        top = float(values.max())
        shift = int(np.frexp(top)[1]) if top > 0 else 0
        found = np.zeros_like(before)
        found[:-1] = np.ldexp(values, -shift)
        return found, most + shift + int(before[-1:].view(np.int64)[0])

    def _join_best(self, before: Numbers, operator: Numbers) -> tuple[Numbers, int]:
        count = self._shape.emitting
        dead = IMPOSSIBLE // 2
        values = operator[:, :-1] + (operator[:, -1:] << OFFSET_BITS)
        values = np.where(operator[:, :-1] < dead, IMPOSSIBLE, values)
        own = np.full(operator.shape[0], IMPOSSIBLE, dtype=np.int64)
        np.maximum.at(own, self._places, before[:count])
        ways = np.where(own[:, None] < dead, IMPOSSIBLE, own[:, None] + values)
        best = np.where(ways < dead, IMPOSSIBLE, ways).max(axis=0)
        top = int(best.max())
        found = np.zeros_like(before)
        found[:-1] = best if top < dead else np.where(best < dead, IMPOSSIBLE, best - top)
        taken = (0 if top < dead else top) + (int(before[-1]) << OFFSET_BITS)
        return found, taken


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


def merged_runs(parts: list[Runs]) -> Runs:
    """Return the runs of one path from those of its parts."""
    visits = np.concatenate([one.visits for one in parts])
    lengths = np.concatenate([one.lengths for one in parts])
    begins = np.flatnonzero(np.diff(visits, prepend=-1))
    merged: Int64Array = np.add.reduceat(lengths, begins)
    return Runs(visits[begins], merged, offsets_of_counts(np.array([begins.size])))
