"""Paths of states: from the bits of a program to runs of states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain, Way
from mummergpu.hmm.language.lanes import is_every, offsets_of_counts
from mummergpu.hmm.language.processor_text import LANES
from mummergpu.hmm.language.recurrence import TraceBits
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit


class Runs(NamedTuple):
    """Paths as runs of equal states."""

    visits: Int64Array  # The visited states, numbers into `StateNames.names`, path after path
    lengths: Int64Array  # How often each is visited in a row
    offsets: Int64Array  # (n_paths + 1,): where each path begins, and where the last ends


class TraceTables(NamedTuple):
    """A chain in the form in which `steps_of` walks it backwards."""

    # (n_nodes,): where the bits of each node lie.
    words: Int64Array
    shifts: Int64Array
    masks: Int64Array
    # (n_nodes,): the first step into each node; those of other ranks follow.
    first_steps: Int64Array
    sources: Int64Array  # (n_steps,): the source of each step
    emitting: int


class StateNames:
    """The visits that steps of a chain stand for.

    The number of a visit is one of a name (`names`), and of whether the state emits (`emits`).
    """

    def __init__(self, chain: Chain) -> None:
        self._numbers: dict[tuple[str, bool], int] = {}
        shape = chain.shape
        of_nodes = [self._number(name, True) for name in chain.states[: shape.emitting]]
        self.node_visits = np.array(of_nodes, dtype=np.int64)
        paths = []
        for (_, target), way in zip(shape.steps, chain.ways, strict=True):
            # The way into a silent state that was kept names it.
            own = of_nodes[target : target + 1] if target < shape.emitting else []
            paths.append([*self._silent(way), *own])
        for node, way in enumerate(chain.starts):
            paths.append([*self._silent(way), of_nodes[node]])
        paths += [self._silent(way) for way in chain.ends]
        paths.append(self._silent(chain.empty_way))
        self.offsets = offsets_of_counts(np.array([len(path) for path in paths], dtype=np.int64))
        flat = [visit for path in paths for visit in path]
        self.visits = np.array(flat or [0], dtype=np.int64)
        self.names = [name for name, _ in self._numbers]
        self.emits: BoolArray = np.array([emits for _, emits in self._numbers])

    def _silent(self, way: Way) -> list[int]:
        return [self._number(name, False) for name in way]

    def _number(self, name: str, emits: bool) -> int:
        return self._numbers.setdefault((name, emits), len(self._numbers))


def trace_tables(chain: Chain, bits: TraceBits) -> TraceTables:
    """Return the tables of a chain for traces."""
    shape = chain.shape
    into = shape.into()
    words, shifts, counts = (
        np.array(numbers, dtype=np.int64) for numbers in zip(*bits.places, strict=True)
    )
    return TraceTables(
        words,
        shifts,
        (1 << counts) - 1,
        np.array([steps[0] if steps else 0 for steps in into], dtype=np.int64),
        np.array([source for source, _ in shape.steps] or [0], dtype=np.int64),
        shape.emitting,
    )


class LanePlaces(NamedTuple):
    """The places of the bits of sequences: first rows, lanes and lengths; and their last nodes.

    A row has a word for each of `LANES` lanes, and so has each further word.
    """

    first_rows: Int64Array
    lanes: Int64Array
    lengths: Int64Array
    ends: Int64Array


def steps_of(
    tables: TraceTables, bits: Any, places: LanePlaces, start_step: int, end_step: int
) -> tuple[Int64Array, Int64Array]:
    """Return the steps of best paths, and where each begins.

    A path begins with `start_step` plus its first node, and ends with `end_step` plus its last.
    """
    words = bits.view(f"u{bits.itemsize}").reshape(bits.shape[0], -1)
    counts, nothing = places.lengths + 1, np.empty(0, dtype=np.int64)
    scratch = np.empty((3, LANES), dtype=np.int64)
    common = (tables, words, places, (start_step, end_step), scratch)
    if tables.words.size > tables.emitting:
        _walk_steps(*common, counts, nothing, nothing)
    offsets = offsets_of_counts(counts)
    steps = np.empty(int(offsets[-1]), dtype=np.int64)
    _walk_steps(*common, counts, offsets, steps)
    return steps, offsets


@inline
def step_into(tables: TraceTables, words: Any, row: int, lanes: int, lane: int, node: int) -> int:
    """Return the step of the best way into a node of a row."""
    # With one word a row, its address does not have to wait for the node.
    place = lane
    if words.shape[1] != lanes:
        place += tables.words[as_index(node)] * lanes
    word = np.uint64(words[as_index(row), as_index(place)])
    rank = np.int64(word >> np.uint64(tables.shifts[as_index(node)])) & tables.masks[as_index(node)]
    return tables.first_steps[as_index(node)] + rank  # type: ignore[no-any-return]


@jit
def _walk_steps(
    tables: TraceTables,
    words: Any,
    places: LanePlaces,
    bounds: tuple[int, int],
    scratch: Int64Array,
    counts: Int64Array,
    offsets: Int64Array,
    steps: Int64Array,
) -> None:
    """Walk all paths backwards: count their steps, or write those of a path before its offset.

    A step waits for the one after it, so that the sequences of all lanes are walked in turns.
    `bounds` are the steps of the first start and the first end; `steps` is empty while they are
    counted.
    """
    nodes, rows, ats = scratch[0], scratch[1], scratch[2]
    writes = steps.size > 0
    start_step, end_step = bounds
    for first in range(0, places.lengths.size, LANES):
        count = min(LANES, places.lengths.size - first)
        for place in range(count):
            number = first + place
            nodes[place] = places.ends[number]
            rows[place] = places.first_rows[number] + places.lengths[number] - 1
            ats[place] = offsets[number + 1] - 1 if writes else 0
            if writes:
                steps[as_index(ats[place])] = end_step + nodes[place]
        going = count
        while going > 0:
            going = 0
            for place in range(count):
                node, row, number = nodes[place], rows[place], first + place
                # A step into a silent state comes from the same row, one into another from the
                # row before.
                if row > places.first_rows[number] or node >= tables.emitting:
                    step = step_into(tables, words, row, LANES, places.lanes[number], node)
                    rows[place] = row - (node < tables.emitting)
                    nodes[place] = tables.sources[as_index(step)]
                    ats[place] -= 1
                    if writes:
                        steps[as_index(ats[place])] = step
                    going += 1
        for place in range(count):
            if writes:
                steps[as_index(ats[place] - 1)] = start_step + nodes[place]
            else:
                counts[first + place] = 2 - ats[place]


@jit
def _trace_piece(
    tables: TraceTables,
    words: Any,
    size: int,
    lanes: int,
    lane: int,
    node: int,
    steps: Int64Array,
    stop: int,
) -> int:
    """Write the steps of a piece from its end on; return the node before it, and where they begin.

    Both are in one number: the place times 2**32, and the node.
    """
    at = steps.size
    row = size - 1
    while row > stop or node >= tables.emitting:
        step = step_into(tables, words, row, lanes, lane, node)
        if node < tables.emitting:
            row -= 1
        node = tables.sources[as_index(step)]
        at -= 1
        steps[as_index(at)] = step
        # The nodes before a piece are those after the last one, whose own bits say more.
        if row < 0:
            break
    return (at << 32) | node


def trace_piece(
    tables: TraceTables,
    words: Any,
    size: int,
    lanes: int,
    lane: int,
    node: int,
    is_first: bool,
    start_step: int,
    steps: Int64Array,
) -> tuple[int, int]:
    """Write the steps of a piece into the end of an array; return the node before, and the place.

    A path begins with `start_step` plus its first node.
    """
    both = _trace_piece(tables, words, size, lanes, lane, node, steps, 0 if is_first else -1)
    node, at = both & 0xFFFFFFFF, both >> 32
    if is_first:
        at -= 1
        steps[at] = start_step + node
    return node, at


def runs_of(steps: Int64Array, offsets: Int64Array, order: Int64Array, names: StateNames) -> Runs:
    """Return paths of steps as runs; `order` has the numbers of paths."""
    # Memory that nothing is written to costs nothing.
    most = max(1, steps.size * int(np.diff(names.offsets).max()))
    visits, lengths = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    run_offsets = np.zeros(order.size + 1, dtype=np.int64)
    _fill_runs(steps, offsets, order, names.visits, names.offsets, run_offsets, visits, lengths)
    count = int(run_offsets[-1])
    return Runs(visits[:count].copy(), lengths[:count].copy(), run_offsets)


@jit
def _fill_runs(
    steps: Int64Array,
    offsets: Int64Array,
    order: Int64Array,
    visits: Int64Array,
    visit_offsets: Int64Array,
    run_offsets: Int64Array,
    found: Int64Array,
    lengths: Int64Array,
) -> None:
    to = -1
    for number in range(order.size):
        path = order[number]
        last = -1
        for at in range(offsets[path], offsets[path + 1]):
            step = steps[as_index(at)]
            for place in range(visit_offsets[as_index(step)], visit_offsets[as_index(step + 1)]):
                visit = visits[as_index(place)]
                if visit != last:
                    to += 1
                    found[as_index(to)] = visit
                    lengths[as_index(to)] = 0
                    last = visit
                lengths[as_index(to)] += 1
        run_offsets[number + 1] = to + 1


def joined_runs(parts: list[tuple[Int64Array, Runs]], count: int) -> Runs:
    """Return the runs of parts of sequences in the order of all `count` sequences."""
    for numbers, runs in parts:
        # A single part with all runs is not copied: a chromosome's runs may have gigabytes.
        if is_every(numbers, count):
            return runs
    counts = np.zeros(count, dtype=np.int64)
    for numbers, runs in parts:
        counts[numbers] = np.diff(runs.offsets)
    offsets = offsets_of_counts(counts)
    visits = np.empty(int(offsets[-1]), dtype=np.int64)
    lengths = np.empty(int(offsets[-1]), dtype=np.int64)
    for numbers, runs in parts:
        _place_runs(np.ascontiguousarray(numbers), runs, offsets, visits, lengths)
    return Runs(visits, lengths, offsets)


@jit
def _place_runs(
    numbers: Int64Array, runs: Runs, offsets: Int64Array, visits: Int64Array, lengths: Int64Array
) -> None:
    for place in range(numbers.size):
        to = offsets[numbers[place]]
        for at in range(runs.offsets[place], runs.offsets[place + 1]):
            visits[to] = runs.visits[at]
            lengths[to] = runs.lengths[at]
            to += 1


def some_runs(part: tuple[Int64Array, Runs], chosen: BoolArray) -> tuple[Int64Array, Runs]:
    """Return the runs of some sequences of a part."""
    numbers, runs = part
    if chosen.all():
        return part
    counts = np.diff(runs.offsets)
    kept = np.repeat(chosen, counts)
    offsets = offsets_of_counts(counts[chosen])
    return numbers[chosen], Runs(runs.visits[kept], runs.lengths[kept], offsets)


class NodeVisits(NamedTuple):
    """The visits that nodes stand for after symbols."""

    codes: ByteArray
    # The visit of each node after each symbol, `width` of a symbol; of `width` 0, of each node.
    table: Int64Array
    width: int  # The nodes of a symbol


def has_node_paths(chain: Chain) -> bool:
    """Return whether a path is a node for each symbol."""
    passes = (*chain.ways, *chain.starts, *chain.ends)
    return not chain.shape.silent and not any(passes) and chain.shape.nodes <= 256


class WalkedPieces(NamedTuple):
    """Pieces side by side that were walked."""

    # Where each lies in the sequence.
    begins: Int64Array
    ends: Int64Array
    words: Any  # The bits of their rows, as `TraceBits`
    # The node after each piece that was begun with, and the one before it that was found.
    guessed: Int64Array
    before: Int64Array


def walk_pieces(
    tables: TraceTables,
    bits: Any,
    begins: Int64Array,
    ends: Int64Array,
    guessed: Int64Array,
    path: ByteArray,
) -> WalkedPieces:
    """Write the nodes of pieces into `path`, from a guess of the node after each.

    All pieces are walked at the same time; `settle` walks those with a wrong guess again, up to
    where both paths join.
    """
    words = bits.reshape(bits.shape[0], -1)
    before = guessed.copy()
    _walk(tables, words, begins, ends, before, path)
    return WalkedPieces(begins, ends, words, guessed, before)


def settle(groups: list[WalkedPieces], tables: TraceTables, end: int, path: ByteArray) -> None:
    """Walk the pieces again that were walked from a node which is not on the path."""
    for group in reversed(groups):
        for lane in reversed(range(group.begins.size)):
            if end != group.guessed[lane]:
                begin, size = int(group.begins[lane]), int(group.ends[lane] - group.begins[lane])
                own = path[begin : begin + size]
                found = _walk_again(tables, group.words, lane, end, begin == 0, own)
                end = int(group.before[lane]) if found < 0 else found
            else:
                end = int(group.before[lane])


@jit
def _walk(
    tables: TraceTables,
    words: Any,
    begins: Int64Array,
    ends: Int64Array,
    nodes: Int64Array,
    path: ByteArray,
) -> None:
    """Walk pieces from their last symbols on; `nodes` are those after, and then those before.

    A step waits for the one after it, so that pieces are walked in turns.
    """
    for row in range(words.shape[0] - 1, -1, -1):
        for lane in range(begins.size):
            at = begins[lane] + row
            if at < ends[lane]:
                node = nodes[lane]
                path[as_index(at)] = node
                # The first symbol has no step into its node.
                if at > 0:
                    step = step_into(tables, words, row, LANES, lane, node)
                    nodes[lane] = tables.sources[as_index(step)]


@jit
def _walk_again(
    tables: TraceTables, words: Any, lane: int, end: int, is_first: bool, path: ByteArray
) -> int:
    """Walk a piece from another node; return the node before it, or -1 if it is the same."""
    node = end
    for row in range(path.size - 1, -1, -1):
        if path[as_index(row)] == node:
            return -1
        path[as_index(row)] = node
        if row > 0 or not is_first:
            step = step_into(tables, words, row, LANES, lane, node)
            node = tables.sources[as_index(step)]
    return node


class Stretches(NamedTuple):
    """Successive parts of a path: the number of runs, the first and the last visit of each."""

    run_counts: Int64Array
    firsts: Int64Array
    lasts: Int64Array


def stretches_of(stretches: Iterable[tuple[int, int, int]]) -> Stretches:
    """Return the runs, the first and the last visit of parts as arrays."""
    columns = np.array(list(stretches), dtype=np.int64).reshape(-1, 3).T
    return Stretches(*(np.ascontiguousarray(column) for column in columns))


def stretch_of(path: ByteArray, visits: NodeVisits, begin: int, end: int) -> tuple[int, int, int]:
    """Return the number of runs, the first and the last visit of a part that is not empty."""
    count = _count_runs(path, visits, begin, end)
    first, last = (_visit_at(path, visits, at) for at in (begin, end - 1))
    return count, first, last


def _visit_at(path: ByteArray, visits: NodeVisits, at: int) -> int:
    return int(visits.table[int(visits.codes[at]) * visits.width + int(path[at])])


class RunPlaces(NamedTuple):
    """The places of each stretch's runs, whether its first continues the last, and their number.

    Each run has a place of its own, except those that continue the run before.
    """

    firsts: Int64Array
    joins: BoolArray
    run_count: int


def run_places(stretches: Stretches) -> RunPlaces:
    """Return the places of all runs of a path."""
    joins = np.append(False, stretches.firsts[1:] == stretches.lasts[:-1])
    ends = np.cumsum(stretches.run_counts) - np.cumsum(joins)
    return RunPlaces(ends - stretches.run_counts, joins, int(ends[-1]))


def add_joined(runs: Runs, places: RunPlaces, lengths: Int64Array) -> None:
    """Add the length of each first run that continues the run before it to that run."""
    np.add.at(runs.lengths, places.firsts[places.joins], lengths[places.joins])


def empty_runs(count: int) -> Runs:
    """Return the runs of one path that are still to be written."""
    visits, lengths = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    return Runs(visits, lengths, offsets_of_counts(np.array([count], dtype=np.int64)))


@inline
def _visit_of(path: ByteArray, visits: NodeVisits, at: int) -> int:
    node, code = path[as_index(at)], visits.codes[as_index(at)]
    return visits.table[as_index(code * visits.width + node)]  # type: ignore[no-any-return]


@jit
def _count_runs(path: ByteArray, visits: NodeVisits, begin: int, end: int) -> int:
    count, last = 0, -1
    for at in range(begin, end):
        visit = _visit_of(path, visits, at)
        count += visit != last
        last = visit
    return count


@jit
def fill_stretch(
    path: ByteArray,
    visits: NodeVisits,
    begin: int,
    end: int,
    first: int,
    joins: bool,
    found: Int64Array,
    lengths: Int64Array,
) -> int:
    """Write the runs of a stretch from place `first` on; return the length of the first one.

    If it `joins` the run before the stretch, that is left as it is.
    """
    last = _visit_of(path, visits, begin)
    at = begin + 1
    while at < end and _visit_of(path, visits, at) == last:
        at += 1
    length = at - begin
    if not joins:
        found[as_index(first)] = last
        lengths[as_index(first)] = length
    # No branch: most symbols of some models begin a run, and others do not.
    to, begun = first, at
    for place in range(at, end):
        visit = _visit_of(path, visits, place)
        is_new = visit != last
        to += is_new
        begun = place if is_new else begun
        found[as_index(to)] = visit
        lengths[as_index(to)] = place + 1 - begun
        last = visit
    return length
