"""Chains whose states emit few of the symbols each, with fewer nodes for long sequences.

In a model of CpG islands eight states emit one base each, so that two of them are possible after
each base. A node here stands for a step from one of the possible states to another, and emits the
pair of symbols before and after it: four nodes with 8 transitions replace eight states with 64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.pieces import LongSequence, MapPieces
from mummergpu.hmm.language.processor import ChainPrograms
from mummergpu.hmm.language.processor_text import IMPOSSIBLE
from mummergpu.hmm.language.recurrence import Shape
from mummergpu.hmm.language.tables import (
    EMISSION_ROW,
    LONGEST_CHUNK,
    ChainTables,
    Numbers,
    best_tables,
    sum_tables,
)
from mummergpu.hmm.language.traces import NodeVisits, Runs, StateNames
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array

_MAX_CODES: Final = 250
_MAX_PLACES: Final = 2
"""With more possible states after a symbol there would be as many nodes as before."""


class CodedChain:
    """A chain whose possible states after each symbol have places.

    `states`, of shape (n_symbols, n_places), has -1 where there is none.
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
        """Return what each node adds for each pair, and for the first symbol."""
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
        # What follows a node depends on its place alone.
        places = np.arange(count * count) // count
        return make(self.programs(sums), codes, sums, map_pieces, places, symbols)

    def runs(self, sequence: LongSequence, codes: ByteArray, end: int, names: StateNames) -> Runs:
        """Return the best path that ends in a node, as runs of the states of the chain."""
        count = self.states.shape[1]
        # The visit after each symbol in each node.
        table = names.node_visits[np.maximum(self.states, 0)].repeat(count, axis=1).ravel()
        visits = NodeVisits(codes, np.ascontiguousarray(table), count * count)
        return sequence.node_runs(visits, end)


def coded_chain(chain: Chain) -> CodedChain | None:
    """Return a chain with places, or None where that is not possible or not worth it.

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
