"""Paths of long sequences in chains where each symbol has one node: walked piece by piece.

Where the states emit and no silent one is passed, a path is a node for each symbol. The pieces of a
sequence are walked at the same time, each from the node that is likely behind it; then what was
guessed wrong is walked again, up to where both ways are one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from mummergpu.hmm.language.chain import Chain
from mummergpu.hmm.language.lanes import offsets_of_counts
from mummergpu.hmm.language.processor_text import LANES
from mummergpu.hmm.language.traces import Runs, TraceTables, step_into
from mummergpu.runtime.arrays import BoolArray, ByteArray, Int64Array
from mummergpu.runtime.jit import as_index, inline, jit


class NodeVisits(NamedTuple):
    """What a node behind a symbol stands for.

    Attributes
    ----------
    codes : ndarray of uint8
        The symbols of the sequence.
    table : ndarray of int64
        The visit of each node behind each symbol, `width` of a symbol; of `width` 0, of each node.
    width : int
        How many nodes a symbol has.
    """

    codes: ByteArray
    table: Int64Array
    width: int


def has_node_paths(chain: Chain) -> bool:
    """Return whether a path is told by the node of each symbol."""
    passes = (*chain.ways, *chain.starts, *chain.ends)
    return not chain.shape.silent and not any(passes) and chain.shape.nodes <= 256


class WalkedPieces(NamedTuple):
    """Pieces side by side that were walked.

    Attributes
    ----------
    begins, ends : ndarray of int64
        Where each lies in the sequence.
    words : ndarray
        The bits of their rows, as `TraceBits`.
    guessed, before : ndarray of int64
        The node behind each piece that was begun with, and the one before it that was found.
    """

    begins: Int64Array
    ends: Int64Array
    words: Any
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
    """Write the nodes of pieces into `path`, from those that are likely behind them."""
    words = bits.reshape(bits.shape[0], -1)
    before = guessed.copy()
    _walk(tables, words, begins, ends, before, path)
    return WalkedPieces(begins, ends, words, guessed, before)


def settle(groups: list[WalkedPieces], tables: TraceTables, end: int, path: ByteArray) -> None:
    """Walk again what was walked from a node that the path does not go through."""
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
    """Walk pieces from their last symbols on; `nodes` are those behind, and then those before.

    A step waits for the one behind it, so that pieces are walked in turns.
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
    """Parts of a path, one behind the other: how many runs each has, its first and last visit."""

    run_counts: Int64Array
    firsts: Int64Array
    lasts: Int64Array


def stretches_of(stretches: Iterable[tuple[int, int, int]]) -> Stretches:
    """Return the runs, the first and the last visit of parts as arrays."""
    columns = np.array(list(stretches), dtype=np.int64).reshape(-1, 3).T
    return Stretches(*(np.ascontiguousarray(column) for column in columns))


def stretch_of(path: ByteArray, visits: NodeVisits, begin: int, end: int) -> tuple[int, int, int]:
    """Return how many runs a part has that is not empty, its first and its last visit."""
    count = _count_runs(path, visits, begin, end)
    first, last = (_visit_at(path, visits, at) for at in (begin, end - 1))
    return count, first, last


def _visit_at(path: ByteArray, visits: NodeVisits, at: int) -> int:
    return int(visits.table[int(visits.codes[at]) * visits.width + int(path[at])])


class RunPlaces(NamedTuple):
    """Where the runs of each stretch go, whether the first goes on with that before, and how many.

    All runs have places of their own but those that go on.
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
    """Add the lengths of first runs that go on with the run before them to that."""
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
