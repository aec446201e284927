"""Best paths of sequences whose paths fall so far behind others that no number holds both.

Logarithms are those of the other programs, units of 2**-LOG_BITS, but in two numbers: multiples of
2**OFFSET_BITS, and the rest. So scores and paths are what those would find with longer numbers.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.indexed import ShapeArrays
from mummergpu.hmm.language.processor_text import IMPOSSIBLE, OFFSET_BITS
from mummergpu.hmm.language.recurrence import TraceBits
from mummergpu.hmm.language.tables import LOG_UNITS, best_tables
from mummergpu.hmm.language.traces import Runs, StateNames, runs_of, trace_piece, trace_tables
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import jit_without_refcounts

_NEVER: Final = -(1 << 60)
"""The multiples of an impossible path."""
_REST: Final = (1 << OFFSET_BITS) - 1


class ExactPath(NamedTuple):
    """The best path of a sequence.

    Attributes
    ----------
    score : float
        Its logarithm, -inf if there is none.
    end : int
        The node that it ends in.
    ranks : ndarray of uint16, shape (n_symbols, n_nodes)
        Which step into each node is the best one behind each symbol.
    logs : ndarray of float64, shape (n_symbols, n_nodes), or empty
        The logarithms of the best paths to each node.
    """

    score: float
    end: int
    ranks: Any
    logs: Float64Array


class ExactBest:
    """The best paths of a chain."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._shape = ShapeArrays.of(chain.shape)
        self._tables = best_tables(chain)

    def run(self, codes: ByteArray, keeps_ranks: bool, keeps_logs: bool) -> ExactPath:
        """Return the best path of some symbols."""
        nodes, tables = self._chain.shape.nodes, self._tables
        values = np.full((2, 2, nodes + 1), _NEVER, dtype=np.int64)
        ranks = np.zeros((codes.size if keeps_ranks else 1, nodes), dtype=np.uint16)
        columns = np.empty((codes.size if keeps_logs else 0, 2, nodes), dtype=np.int64)
        ends = np.zeros(2, dtype=np.int64)
        codes = np.ascontiguousarray(codes)
        numbers = tables.numbers, tables.emissions, tables.end
        end = _run(self._shape, *numbers, codes, values, ranks, columns, ends)
        logs = _logs(columns[:, 0], columns[:, 1])
        return ExactPath(float(_logs(ends[0], ends[1])), end, ranks, logs)

    def runs(self, path: ExactPath, names: StateNames) -> Runs:
        """Return the best path as runs of states."""
        shape, ranks = self._chain.shape, path.ranks
        steps, size = len(shape.steps), len(ranks)
        room = np.empty(size * (1 + shape.silent) + 2, dtype=np.int64)
        room[-1] = steps + shape.emitting + path.end
        tables = trace_tables(self._chain, TraceBits.by_node(shape))
        _, at = trace_piece(tables, ranks, size, 1, 0, path.end, True, steps, room[:-1])
        bounds = np.array([at, room.size], dtype=np.int64)
        return runs_of(room, bounds, np.zeros(1, dtype=np.int64), names)


def _logs(multiples: Any, rests: Any) -> Any:
    """Return natural logarithms."""
    found = rests / LOG_UNITS + multiples * ((1 << OFFSET_BITS) / LOG_UNITS)
    return np.where(multiples <= _NEVER // 2, -np.inf, found)


@jit_without_refcounts
def _run(
    shape: ShapeArrays,
    numbers: Int64Array,
    emissions: Int64Array,
    end: Int64Array,
    codes: ByteArray,
    values: Int64Array,
    ranks: Any,
    columns: Int64Array,
    ends: Int64Array,
) -> int:
    """Compute columns; write the value of the best end, and return its node.

    Columns before and behind a symbol take turns in `values`; its last node is the start.
    """
    nodes, emitting = shape.first_steps.size - 1, shape.emissions.size
    first_start = shape.first_steps[nodes]
    values[0, 0, nodes] = values[0, 1, nodes] = 0
    for at in range(codes.size):
        before, behind = at % 2, 1 - at % 2
        row = at if ranks.shape[0] > 1 else 0
        for node in range(nodes):
            side = before if node < emitting else behind
            first, last = shape.first_steps[node], shape.first_steps[node + 1]
            if at == 0 and node < emitting:
                # One way, from the start.
                first, last = first_start + node, first_start + node + 1
            best, best_rest, rank = _NEVER, 0, 0
            for step in range(first, last):
                source = nodes if step >= first_start else shape.sources[step]
                multiple, rest = values[side, 0, source], values[side, 1, source] + numbers[step]
                multiple += rest >> OFFSET_BITS
                rest &= _REST
                if multiple > best or (multiple == best and rest > best_rest):
                    if numbers[step] > IMPOSSIBLE // 2:
                        best, best_rest, rank = multiple, rest, step - first
            if node < emitting:
                emitted = emissions[shape.emissions[node], codes[at]]
                best_rest += emitted
                best = best + (best_rest >> OFFSET_BITS) if emitted > IMPOSSIBLE // 2 else _NEVER
                best_rest &= _REST
            is_possible = best > _NEVER // 2
            values[behind, 0, node] = best if is_possible else _NEVER
            values[behind, 1, node] = best_rest if is_possible else 0
            ranks[row, node] = rank
        if columns.shape[0] > 0:
            for node in range(nodes):
                columns[at, 0, node] = values[behind, 0, node]
                columns[at, 1, node] = values[behind, 1, node]
    side, found = codes.size % 2, 0
    ends[0] = _NEVER
    for node in range(emitting):
        rest = values[side, 1, node] + end[node]
        multiple = values[side, 0, node] + (rest >> OFFSET_BITS)
        rest &= _REST
        is_better = multiple > ends[0] or (multiple == ends[0] and rest > ends[1])
        if is_better and end[node] > IMPOSSIBLE // 2 and multiple > _NEVER // 2:
            ends[0], ends[1], found = multiple, rest, node
    return found
