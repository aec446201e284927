"""Runs the programs of a chain on the processor."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.indexed import Keeps, ShapeArrays, run_best, run_sums
from mummergpu.hmm.language.lanes import Lanes
from mummergpu.hmm.language.processor_text import (
    ARGUMENTS,
    LANES,
    Kept,
    ProgramKind,
    program_text,
)
from mummergpu.hmm.language.recurrence import TraceBits
from mummergpu.hmm.language.tables import (
    ChainTables,
    Numbers,
    best_tables,
    log_of_units,
    sum_tables,
)
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.compiled.native.written import compiled_text


class Computed(NamedTuple):
    """What a program has left behind.

    Attributes
    ----------
    slots : ndarray, shape=(n_slots, n_nodes + 1, LANES)
        The values of states behind each segment, and how they were scaled.
    columns : ndarray, shape=(n_rows, n_nodes + 1, LANES), or empty
        The same for each row.
    bits : ndarray, shape=(n_rows, n_words, LANES), or empty
        The bits of `TraceBits` for each row.
    """

    slots: Numbers
    columns: Numbers
    bits: Numbers


class ChainPrograms:
    """A chain in one direction, and the programs that compute it as they are asked for."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.trace_bits = TraceBits.of(chain.shape)

    @cached_property
    def sums(self) -> ChainTables:
        """The numbers for sums."""
        return sum_tables(self.chain)

    @cached_property
    def best(self) -> ChainTables:
        """The numbers for best paths."""
        return best_tables(self.chain)

    @property
    def padding(self) -> int:
        """The code behind the symbols."""
        return min(len(self.chain.alphabet), 255)

    def compute(
        self,
        kind: ProgramKind,
        rows: Any,
        segments: Int64Array,
        given: Numbers | None = None,
    ) -> Computed:
        """Run segments; `given` are slots behind theirs, from which some go on."""
        tables = self.sums if kind.sums else self.best
        nodes, dtype = self.chain.shape.nodes, tables.numbers.dtype
        count = segments.shape[0]
        extra = 0 if given is None else given.shape[0]
        slots = np.empty((count + extra, nodes + 1, LANES), dtype=dtype)
        if given is not None:
            slots[count:] = given
        has_columns = bool(kind.kept & (Kept.COLUMN | Kept.BEFORE))
        columns = np.empty((len(rows) if has_columns else 0, nodes + 1, LANES), dtype=dtype)
        bits = self.trace_bits
        has_bits = Kept.TRACE in kind.kept
        shape = (len(rows) if has_bits else 0, bits.words, LANES)
        kept_bits = np.empty(shape, dtype=f"u{bits.word_bits // 8}")
        computed = Computed(slots, columns, kept_bits)
        if not self.chain.shape.is_unrolled:
            self._run_indexed(kind, rows, segments, computed)
            return computed
        call = compiled_text(program_text(self.chain.shape, kind), len(ARGUMENTS))
        segments = np.ascontiguousarray(segments)
        arrays = (rows, segments, tables.numbers, tables.emissions, slots, columns, kept_bits)
        places = [array.ctypes.data for array in arrays]
        call([*places[:2], count, *places[2:], tables.chunk])
        return computed

    @cached_property
    def _arrays(self) -> ShapeArrays:
        return ShapeArrays.of(self.chain.shape)

    def _run_indexed(
        self, kind: ProgramKind, rows: Any, segments: Int64Array, computed: Computed
    ) -> None:
        tables = self.sums if kind.sums else self.best
        slots, columns, bits = computed
        nodes = self.chain.shape.nodes
        keeps = Keeps(
            bool(kind.kept & (Kept.COLUMN | Kept.BEFORE)),
            Kept.BEFORE in kind.kept,
            Kept.TRACE in kind.kept,
        )
        common = (self._arrays, tables.numbers, tables.emissions, rows, segments, tables.chunk)
        scratch = np.empty((4, nodes, LANES), dtype=slots.dtype)
        if not kind.sums:
            ranks = bits if keeps.ranks else np.empty((1, nodes, LANES), dtype=np.uint16)
            run_best(*common, keeps, slots, columns, scratch, ranks)
            return
        exponents = np.zeros((len(slots) + len(columns) + 1, LANES), dtype=np.int64)
        exponents[: len(slots)] = slots[:, nodes].view(np.int64)
        run_sums(*common, keeps, slots, exponents, columns, scratch)
        slots[:, nodes].view(np.int64)[:] = exponents[: len(slots)]
        columns[:, nodes].view(np.int64)[:] = exponents[len(slots) : -1]


def sum_scores(chain: Chain, lanes: Lanes, computed: Computed) -> Float64Array:
    """Return the logarithms of the sums over all paths, in the order of the lanes.

    They are no numbers where a sum has become too small beside others.
    """
    states = _states_of(lanes, computed.slots)
    count = chain.shape.emitting
    totals = (states[:, :count] * chain.end).sum(axis=1)
    exponents = np.ascontiguousarray(states[:, -1]).view(np.int64)
    with np.errstate(divide="ignore"):
        found: Float64Array = np.log(totals) + exponents * np.log(2)
    return found


def best_ends(
    tables: ChainTables, count: int, lanes: Lanes, computed: Computed
) -> tuple[Float64Array, Int64Array]:
    """Return the logarithms of the best paths, and the states that they end in."""
    states = _states_of(lanes, computed.slots)
    totals = states[:, :count] + tables.end
    last = totals.argmax(axis=1)
    best = np.take_along_axis(totals, last[:, None], axis=1)[:, 0]
    return log_of_units(best, states[:, -1]), last


def _states_of(lanes: Lanes, slots: Numbers) -> Numbers:
    """Return the values behind each sequence, and how they were scaled."""
    return np.ascontiguousarray(slots[lanes.slots, :, np.arange(lanes.slots.size) % LANES])
