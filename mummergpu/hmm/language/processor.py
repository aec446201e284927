"""Runs the programs of a chain on the processor."""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.lanes import Lanes
from mummergpu.hmm.language.looped import KeptRows, Values, new_scratch, run
from mummergpu.hmm.language.processor_text import (
    ARGUMENTS,
    IMPOSSIBLE,
    LANES,
    OFFSET_BITS,
    Kept,
    ProgramKind,
    program_text,
)
from mummergpu.hmm.language.recurrence import TraceBits
from mummergpu.hmm.language.tables import (
    NEVER,
    ChainTables,
    Numbers,
    ShapeArrays,
    best_tables,
    log_of_units,
    sum_tables,
)
from mummergpu.hmm.language.traces import TraceTables, trace_tables
from mummergpu.runtime.arrays import Float64Array, Int64Array
from mummergpu.runtime.compiled.llvm_text import compiled_text


class Computed(NamedTuple):
    """The results of a program."""

    # (n_slots, width, LANES): the values of states after each segment, and how they were scaled
    # (`ChainPrograms.width`).
    slots: Numbers
    columns: Numbers  # (n_rows, width, LANES): the same for each row
    bits: Numbers  # (n_rows, n_words, LANES): the bits of `TraceBits` for each row


class ChainPrograms:
    """A chain in one direction, and the programs that compute it as they are asked for.

    A column has `width` numbers in a lane: the values of nodes, and the exponent of all or of each.
    """

    is_exact = False
    """Whether each value has an exponent of its own, so that no small value is lost."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        nodes = chain.shape.nodes
        self.width = 2 * nodes if self.is_exact else nodes + 1

    @classmethod
    def of(cls, chain: Chain) -> ChainPrograms:
        """Return the programs of a chain: unrolled, or in loops if it has many transitions."""
        return cls(chain) if chain.shape.is_unrolled else LoopedPrograms(chain)

    @property
    def values_of_column(self) -> int:
        """The numbers of a column in a lane, without a common exponent."""
        return self.width - (not self.is_exact)

    @cached_property
    def exact(self) -> ChainPrograms:
        """The programs of the chain with an exponent for each value."""
        return self if self.is_exact else LoopedPrograms(self.chain)

    @cached_property
    def trace_bits(self) -> TraceBits:
        """Where the bits of best ways lie."""
        shape = self.chain.shape
        return TraceBits.by_node(shape) if self.is_exact else TraceBits.of(shape)

    @cached_property
    def trace_tables(self) -> TraceTables:
        """The tables for walking best paths backwards."""
        return trace_tables(self.chain, self.trace_bits)

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
        """The code after the symbols."""
        return min(len(self.chain.alphabet), 255)

    def compute(
        self, kind: ProgramKind, rows: Any, segments: Int64Array, given: Numbers | None = None
    ) -> Computed:
        """Run segments; `given` are slots after theirs, from which some go on."""
        tables = self.sums if kind.sums else self.best
        dtype, count = tables.numbers.dtype, segments.shape[0]
        extra = 0 if given is None else given.shape[0]
        slots = np.empty((count + extra, self.width, LANES), dtype=dtype)
        if given is not None:
            slots[count:] = given
        has_columns = bool(kind.kept & (Kept.COLUMN | Kept.BEFORE))
        columns = np.empty((len(rows) if has_columns else 0, self.width, LANES), dtype=dtype)
        bits = self.trace_bits
        has_bits = Kept.TRACE in kind.kept
        shape = (len(rows) if has_bits else 0, bits.words, LANES)
        kept_bits = np.empty(shape, dtype=f"u{bits.word_bits // 8}")
        computed = Computed(slots, columns, kept_bits)
        self._run(kind, tables, rows, np.ascontiguousarray(segments), computed)
        return computed

    def _run(
        self,
        kind: ProgramKind,
        tables: ChainTables,
        rows: Any,
        segments: Int64Array,
        computed: Computed,
    ) -> None:
        call = compiled_text(program_text(self.chain.shape, kind), len(ARGUMENTS))
        arrays = (rows, segments, tables.numbers, tables.emissions, *computed)
        places = [array.ctypes.data for array in arrays]
        call([*places[:2], segments.shape[0], *places[2:], tables.chunk])

    def parted(self, states: Numbers) -> tuple[Numbers, Int64Array]:
        """Return the values in columns, and their exponents: one a column or one a value."""
        nodes = self.chain.shape.nodes
        return states[:, :nodes], np.ascontiguousarray(states[:, nodes:]).view(np.int64)

    def logs(self, states: Numbers, sums: bool) -> Float64Array:
        """Return the natural logarithms of the states that emit, of some columns."""
        values, exponents = (one[:, : self.chain.shape.emitting] for one in self.parted(states))
        if not sums:
            return log_of_units(values, exponents)
        with np.errstate(divide="ignore"):
            found: Float64Array = np.log(values) + exponents * np.log(2)
        return found


class LoopedPrograms(ChainPrograms):
    """A chain in loops over its transitions, with an exponent for each value (`looped`)."""

    is_exact = True

    def __init__(self, chain: Chain) -> None:
        super().__init__(chain)
        self._shape = ShapeArrays.of(chain.shape)
        self._values: dict[bool, tuple[Values, Values]] = {}

    def _run(
        self,
        kind: ProgramKind,
        tables: ChainTables,
        rows: Any,
        segments: Int64Array,
        computed: Computed,
    ) -> None:
        if kind.sums not in self._values:
            # The emission of a silent node changes nothing.
            nothing = np.full_like(tables.emissions[:1], 1 if kind.sums else 0)
            emissions = np.append(tables.emissions, nothing, axis=0)
            self._values[kind.sums] = Values.of(tables.numbers), Values.of(emissions)
        keeps = KeptRows(
            computed.columns.size > 0, Kept.BEFORE in kind.kept, computed.bits.size > 0
        )
        nodes = self.chain.shape.nodes
        ranks = computed.bits if keeps.ranks else np.empty((1, nodes, LANES), dtype=np.uint16)
        slots, columns = Values.within(computed.slots), Values.within(computed.columns)
        scratch = new_scratch(nodes, computed.slots.dtype)
        values = self._values[kind.sums]
        run(self._shape, *values, rows, segments, keeps, slots, columns, scratch, ranks)


def sum_scores(programs: ChainPrograms, states: Numbers) -> Float64Array:
    """Return the logarithms of the sums over all paths, from columns after sequences.

    They are NaN where a sum has become too small compared with others.
    """
    with np.errstate(divide="ignore"):
        if programs.is_exact:
            logs = programs.logs(states, True) + np.log(programs.sums.end)
            exact: Float64Array = np.logaddexp.reduce(logs, axis=1)
            return exact
        values, exponents = programs.parted(states)
        totals = (values[:, : programs.chain.shape.emitting] * programs.sums.end).sum(axis=1)
        found: Float64Array = np.log(totals) + exponents[:, 0] * np.log(2)
    return found


def best_ends(programs: ChainPrograms, states: Numbers) -> tuple[Float64Array, Int64Array]:
    """Return the logarithms of the best paths, and the states that they end in."""
    end, count = programs.best.end, programs.chain.shape.emitting
    values, exponents = (one[:, :count] for one in programs.parted(states))
    if programs.is_exact:
        impossible = end <= IMPOSSIBLE // 2
        end, exponents = np.where(impossible, 0, end), np.where(impossible, NEVER, exponents)
    totals = in_one_scale(values, exponents) + end
    last = totals.argmax(axis=1)[:, None]
    best = np.take_along_axis(values, last, axis=1) + end[last]
    if programs.is_exact:
        exponents = np.take_along_axis(exponents, last, axis=1)
    return log_of_units(best, exponents)[:, 0], last[:, 0]


def in_one_scale(values: Int64Array, exponents: Int64Array) -> Int64Array:
    """Return logarithms whose exponents are those of the largest of each column, to compare them.

    Values far below it are impossible.
    """
    less = exponents - exponents.max(axis=1, keepdims=True)
    found: Int64Array = values + (np.maximum(less, IMPOSSIBLE >> OFFSET_BITS) << OFFSET_BITS)
    return found


def final_columns(lanes: Lanes, slots: Numbers) -> Numbers:
    """Return the columns after sequences, in the order of the lanes."""
    return np.ascontiguousarray(slots[lanes.slots, :, np.arange(lanes.slots.size) % LANES])
