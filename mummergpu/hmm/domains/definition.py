"""From sequences that passed the filters to their domains: HMMER's domain definition.

Pieces of sequences are computed side by side, those of similar length together: first the whole
sequences, then the regions that may have several domains, then the envelopes of all domains. One
call computes all of them: threads would wait for the interpreter's lock between the groups.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.accuracy import Alignment, fill_accuracies
from mummergpu.hmm.domains.backward import fill_backward
from mummergpu.hmm.domains.clustering import copy_row
from mummergpu.hmm.domains.forward import Group, fill_forward
from mummergpu.hmm.domains.groups import (
    accuracies_of,
    cells_of,
    clusters_of,
    group_of,
    occupancy_of,
    samples_of,
)
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.parses import (
    Envelopes,
    Parses,
    divide_region,
    keep_envelopes,
    keep_regions,
)
from mummergpu.hmm.domains.quarters import MOST_QUARTERS
from mummergpu.hmm.domains.sampling import FULL, seeded
from mummergpu.hmm.domains.scores import bits_of, log_sums, score_sequences
from mummergpu.hmm.logarithms import Logarithms, exp64, logarithms
from mummergpu.hmm.proteins import meanings
from mummergpu.runtime.arrays import ByteArray, Float32Array, Float64Array, Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.jit import flattened, inline, jit
from mummergpu.runtime.lent_memory import LentMemory, needed, take
from mummergpu.runtime.row_sort import sort_rows

_FEW: Final = 2

_LARGE: Final = 1 << 17
"""The registers from which on fewer pieces are computed side by side: four take 24 MB, and of more
the memory sets the pace."""

_SEGMENTS: Final = 4000

_LEAST_BYTES: Final = 1 << 20
_LEAST_ROWS: Final = 1 << 11
_KEPT_BYTES: Final = 1 << 27
_KEPT_ROWS: Final = 1 << 15
"""The most memory of a thread that it keeps: tasks that need more get new pages."""

_ROW_BITS: Final = 24
_RESIDUE_BITS: Final = 20

PARSE, SAMPLE, ALIGN, SCORE = range(4)
"""The stages of a task, after none."""


class Pieces(NamedTuple):
    """Room for pieces of sequences, as many rows of each kind."""

    regions: Int64Array  # (n, PIECE_FIELDS)
    waiting: Int64Array  # (n, PIECE_FIELDS): those of a stage
    found: Int64Array  # (n, ENVELOPE_FIELDS): the envelopes as they are found
    envelopes: Int64Array  # (n, ENVELOPE_FIELDS): these in the order of the sequences
    numbers: Float32Array  # (n, NUMBERS): of the envelopes
    keys: Int64Array  # (n,): what those of a stage are sorted by
    rows: Int64Array  # (n,): which rows these are

    @classmethod
    def of_rows(cls, count: int) -> Pieces:
        """Return room for some pieces."""
        regions, waiting = np.empty((2, count, fields.PIECE_FIELDS), dtype=np.int64)
        found, envelopes = np.empty((2, count, fields.ENVELOPE_FIELDS), dtype=np.int64)
        numbers = np.empty((count, fields.NUMBERS), dtype=np.float32)
        keys, rows = np.empty((2, count), dtype=np.int64)
        return cls(regions, waiting, found, envelopes, numbers, keys, rows)

    def grown(self, count: int) -> Pieces:
        """Return the same pieces with room for more."""
        grown = Pieces.of_rows(count)
        pairs: Iterable[tuple[Any, Any]] = zip(grown, self, strict=True)
        for new, old in pairs:
            new[: len(old)] = old
        return grown


class Tables(NamedTuple):
    """What all tasks share."""

    meant: ByteArray  # As in `proteins.meanings`
    log_sums: Float32Array
    logs: Logarithms
    corrects: bool  # Whether scores are corrected for composition


class Task(NamedTuple):
    """Sequences that are compared with a profile."""

    odds: Odds
    parses: Parses
    pieces: Pieces
    state: Int64Array  # (STATE_FIELDS,)
    limits: Float64Array  # (3,): Forward's tau and lambda, and the chance up to which one passes it
    tables: Tables


class _Room(threading.local):
    """The memory of a thread, which its tasks take one after another: new memory costs time."""

    def __init__(self) -> None:
        self.memory = LentMemory.of_bytes(_LEAST_BYTES)
        self.pieces = Pieces.of_rows(_LEAST_ROWS)


class DomainFinder:
    """Finds domains; threads share it."""

    def __init__(self, seed: int, corrects: bool) -> None:
        self._seed = seed
        self._tables = flattened(Tables(meanings(), log_sums(), logarithms(), corrects))
        self._room = _Room()

    def find(self, odds: Odds, parses: Parses, limits: Float64Array) -> Envelopes:
        """Find the domains of sequences whose scores without the profile are known."""
        state = np.zeros(fields.STATE_FIELDS, dtype=np.int64)
        state[fields.STAGE], state[fields.SEGMENTS] = -1, _SEGMENTS
        first = seeded(self._seed or int.from_bytes(os.urandom(4), "little"))
        state[fields.SEED], state[fields.RANDOM] = first if self._seed else 0, first
        memory, pieces, parses = self._room.memory, self._room.pieces, flattened(parses)
        with flushed_floats():
            while missing := define_domains(
                odds, parses, pieces, state, limits, self._tables, memory
            ):
                if missing < 0:
                    pieces = pieces.grown(-2 * missing)
                elif missing > memory.content.size:
                    # Its pages are free before those of the new one are in use.
                    memory = self._room.memory = LentMemory.of_bytes(missing)
        if memory.content.size > _KEPT_BYTES:
            self._room.memory = LentMemory.of_bytes(_LEAST_BYTES)
        if pieces.keys.size <= _KEPT_ROWS:
            self._room.pieces = pieces
        found = state[fields.ENVELOPES_FOUND]
        return Envelopes(pieces.envelopes[:found].copy(), pieces.numbers[:found].copy())


@jit
def define_domains(
    odds: Odds,
    parses: Parses,
    pieces: Pieces,
    state: Int64Array,
    limits: Float64Array,
    tables: Tables,
    memory: LentMemory,
) -> int:
    """Find the domains of the sequences of a `Task`, and score them.

    Return 0 at the end. A result above 0 is the bytes of memory that the task needs to go on, one
    below 0 is minus the rows that `Pieces` need.
    """
    task = Task(odds, parses, pieces, state, limits, tables)
    if len(parses.sequences) > pieces.keys.size:
        return -len(parses.sequences)
    while state[fields.STAGE] != SCORE:
        if state[fields.DONE] == state[fields.COUNT]:
            begin_stage(task)
            continue
        memory.taken[0] = 0
        count = count_side_by_side(task)
        own = pieces.rows[state[fields.DONE] : state[fields.DONE] + count]
        if count <= _FEW:
            missing = compute_group((0, 1), task, own, memory)
        else:
            missing = compute_group((0, 1, 2, 3), task, own, memory)
        if missing:
            return missing
        state[fields.DONE] += count
    found = state[fields.ENVELOPES_FOUND]
    every = Envelopes(pieces.envelopes[:found], pieces.numbers[:found])
    score_sequences(parses, every, tables.corrects, tables.log_sums, tables.logs)
    return 0


@inline
def count_side_by_side(task: Task) -> int:
    """Return how many of the next pieces are computed side by side."""
    state = task.state
    piece = task.pieces.waiting[task.pieces.rows[state[fields.DONE]]]
    size = piece[fields.LAST] - piece[fields.FIRST] + 1
    is_large = state[fields.STAGE] != PARSE and size * task.odds.registers > _LARGE
    return min(_FEW if is_large else MOST_QUARTERS, int(state[fields.COUNT] - state[fields.DONE]))


@jit
def begin_stage(task: Task) -> None:
    """Sort the pieces of a task's next stage by their length, the longest first."""
    state, pieces, sequences = task.state, task.pieces, task.parses.sequences
    state[fields.STAGE] += 1
    state[fields.DONE] = state[fields.COUNT] = 0
    if state[fields.STAGE] == PARSE:
        for one in range(len(sequences)):
            wait(task, one, one, 1, sequences[one, fields.RESIDUES])
    elif state[fields.STAGE] == SAMPLE:
        for one in range(state[fields.REGIONS_FOUND]):
            region = pieces.regions[one]
            sequence, first, last = region[0], region[1], region[2]
            if passes_forward(task, sequence):
                if region[fields.IS_SEVERAL]:
                    wait(task, one, sequence, first, last)
                else:
                    add_envelope(task, sequence, first, last, False)
    elif state[fields.STAGE] == ALIGN:
        order_envelopes(task)
        for one in range(state[fields.ENVELOPES_FOUND]):
            piece = pieces.envelopes[one]
            if not sequences[piece[0], fields.IS_UNUSUAL]:
                wait(task, one, piece[0], piece[1], piece[2])
    sort_rows(pieces.keys, pieces.rows, 0, state[fields.COUNT])


@inline
def wait(task: Task, row: int, sequence: int, first: int, last: int) -> None:
    """Add a row to those of the pieces of a stage."""
    count, piece = task.state[fields.COUNT], task.pieces.waiting[row]
    piece[fields.SEQUENCE], piece[fields.FIRST], piece[fields.LAST] = sequence, first, last
    task.pieces.keys[count], task.pieces.rows[count] = first - last, row
    task.state[fields.COUNT] += 1


@inline
def add_envelope(task: Task, sequence: int, first: int, last: int, is_sampled: bool) -> None:
    """Add an envelope."""
    envelope = task.pieces.found[task.state[fields.ENVELOPES_FOUND]]
    envelope[:] = 0
    envelope[fields.SEQUENCE], envelope[fields.FIRST], envelope[fields.LAST] = sequence, first, last
    envelope[fields.IS_SAMPLED] = is_sampled
    task.state[fields.ENVELOPES_FOUND] += 1


@inline
def order_envelopes(task: Task) -> None:
    """Bring the envelopes into the order of the sequences; those of a region keep theirs."""
    pieces, count = task.pieces, task.state[fields.ENVELOPES_FOUND]
    for row in range(count):
        piece = pieces.found[row]
        place = (piece[fields.SEQUENCE] << _RESIDUE_BITS) + piece[fields.FIRST]
        pieces.keys[row], pieces.rows[row] = (place << _ROW_BITS) + row, row
    sort_rows(pieces.keys, pieces.rows, 0, count)
    for row in range(count):
        copy_row(pieces.found[pieces.rows[row]], pieces.envelopes[row])
        pieces.numbers[row] = 0


@inline
def passes_forward(task: Task, one: int) -> bool:
    """Return whether HMMER's Forward filter lets a sequence pass."""
    scores, limits = task.parses.scores[one], task.limits
    bits = np.float64(bits_of(scores[fields.FORWARD] - scores[fields.CORRECTED]))
    tail = 0.0 if bits < limits[0] else -limits[1] * (bits - limits[0])
    return not exp64(task.tables.logs.exponential, tail) > limits[2]


@jit
def compute_group(
    quarters: tuple[int, ...], task: Task, own: Int64Array, memory: LentMemory
) -> int:
    """Compute some pieces of a stage side by side; return 0, or what `define_domains` returns."""
    stage, parses = task.state[fields.STAGE], task.parses
    several = stage != ALIGN
    pieces = task.pieces.waiting
    group = group_of(quarters, parses.codes, parses.sequences, pieces, own, several, memory)
    if stage == PARSE:
        return parse_group(quarters, task, group, own, memory)
    if stage == SAMPLE:
        return sample_group(quarters, task, group, own, memory)
    return align_group(quarters, task, group, own, memory)


@jit
def parse_group(
    quarters: tuple[int, ...], task: Task, group: Group, own: Int64Array, memory: LentMemory
) -> int:
    """Score whole sequences over all paths, and find their regions."""
    odds, state, regions = task.odds, task.state, task.pieces.regions
    rows, found = group.sizes[0], int(state[fields.REGIONS_FOUND])
    forward = cells_of(odds, quarters, rows, False, False, memory)
    backward = cells_of(odds, quarters, rows, False, False, memory)
    occupancy = occupancy_of(rows, memory)
    if needed(memory):
        return needed(memory)
    most = found + own.size * int(rows // 2 + 1)
    if most > len(regions):
        return -most
    fill_forward(odds, group, forward, rows)
    fill_backward(odds, group, forward, backward, rows)
    logs = task.tables.logs
    state[fields.REGIONS_FOUND] += keep_regions(
        group, forward, backward, rows, task.parses, own, occupancy, logs, regions[found:]
    )
    return 0


@jit
def sample_group(
    quarters: tuple[int, ...], task: Task, group: Group, own: Int64Array, memory: LentMemory
) -> int:
    """Divide regions by what sampled paths have in common."""
    odds, state, tables = task.odds, task.state, task.tables
    rows, segments = group.sizes[0], state[fields.SEGMENTS]
    cells = cells_of(odds, quarters, rows, True, True, memory)
    random = state[fields.RANDOM :]
    samples = samples_of(odds, rows, segments, random, tables.meant, memory)
    clusters = clusters_of(segments, max(rows, odds.nodes), memory)
    if needed(memory):
        return needed(memory)
    fill_forward(odds, group, cells, rows)
    found = state[fields.ENVELOPES_FOUND]
    for quarter in range(own.size):
        region = task.pieces.regions[own[quarter]]
        sequence = task.parses.sequences[region[fields.SEQUENCE]]
        if state[fields.SEED]:
            random[0] = state[fields.SEED]
        count = divide_region(
            odds, group, cells, rows, quarter, samples, clusters, task.parses, region, tables.logs
        )
        if count == FULL or state[fields.ENVELOPES_FOUND] + count > len(task.pieces.found):
            most = int(state[fields.ENVELOPES_FOUND]) + count
            state[fields.ENVELOPES_FOUND] = found
            if count != FULL:
                return -most
            state[fields.SEGMENTS] *= 2
            return int(memory.taken[0])
        sequence[fields.IS_UNUSUAL] |= count < 0
        for one in range(count):
            first, last = clusters.found[one, 0], clusters.found[one, 1]
            before = region[fields.FIRST] - 1
            add_envelope(task, region[fields.SEQUENCE], before + first, before + last, True)
    for quarter in range(own.size):
        region = task.pieces.regions[own[quarter]]
        task.parses.sequences[region[fields.SEQUENCE], fields.CLUSTERED] += 1
    return 0


@jit
def align_group(
    quarters: tuple[int, ...], task: Task, group: Group, own: Int64Array, memory: LentMemory
) -> int:
    """Score envelopes, and align the sequence in each."""
    odds, tables, rows = task.odds, task.tables, group.sizes[0]
    forward = cells_of(odds, quarters, rows, True, False, memory)
    backward = cells_of(odds, quarters, rows, False, False, memory)
    cells = cells_of(odds, quarters, rows, False, False, memory)
    accuracies = accuracies_of(odds, quarters, rows, tables.meant, memory)
    scales = take(memory, (len(quarters),), np.float32)
    if needed(memory):
        return needed(memory)
    alignment = Alignment(group, forward, backward, cells, accuracies)
    fill_forward(odds, group, forward, rows)
    fill_backward(odds, group, forward, backward, rows)
    fill_accuracies(odds, alignment, rows)
    found = Envelopes(task.pieces.envelopes, task.pieces.numbers)
    keep_envelopes(odds, alignment, rows, task.parses, found, own, scales, tables.logs)
    return 0
