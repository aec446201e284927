"""Paths that are drawn at random from Forward's cells, as often as their chances say.

A region that may have several domains is divided by what such paths have in common. The random
numbers are HMMER's: each is 69069 times the last one plus 1, modulo 2**32.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains.forward import AGAIN, BEGIN, END, ENTER, LEAVE, SCALE, Cells, Group
from mummergpu.hmm.domains.null2 import complete_odds, traced_odds
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import STEPS, Odds
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array
from mummergpu.runtime.jit import inline, jit

SAMPLES: Final = 200

_WORD: Final = 0xFFFFFFFF
_MATCH, _DELETION, _INSERTION, _ENTER = range(4)

_CLOSE: Final = 1e-12
"""More than roundings of numbers up to 1 add up to in float64."""

FULL, IMPOSSIBLE = -1, -2
"""The results where the memory for segments is too small, and where a path cannot go on."""


class Samples(NamedTuple):
    """The memory of `sample_paths`."""

    # (n, 5): path, first and last residue from 1 on, first and last node.
    segments: Int64Array
    totals: Float32Array  # (residues + 1,): for each residue the sum of its odds in all paths
    counts: Float32Array  # (registers, 4): how often a path has a residue at each node
    # (29 + 80, 1): of each code in a domain of a path, and their sums lane by lane.
    odds: Float32Array
    paths: Float32Array  # (4,): the chances of the steps to choose from
    random: Int64Array  # (1,): the last random number
    meant: ByteArray  # As in `proteins.meanings`


def seeded(seed: int) -> int:
    """Return HMMER's first number for a seed, which R. Jenkins' mixing spreads."""
    a, b, c = seed, 87654321, 12345678
    for first, second, third in ((13, 8, 13), (12, 16, 5), (3, 10, 15)):
        a = (a - b - c & _WORD) ^ c >> first
        b = (b - c - a & _WORD) ^ a << second & _WORD
        c = (c - a - b & _WORD) ^ b >> third
    return c or 42


@inline
def roll(samples: Samples) -> float:
    """Return the next random number, from 0 on and below 1."""
    samples.random[0] = (samples.random[0] * 69069 + 1) & _WORD
    return float(samples.random[0]) / 4294967296.0


@inline
def choose(samples: Samples, count: int) -> int:
    """Return one of the first steps in `paths` by their chances."""
    paths = samples.paths
    total, lost = np.float32(0), np.float32(0)
    for one in range(count):
        # Kahan's sum, as in Easel.
        term = paths[one] - lost
        raised = total + term
        lost = (raised - total) - term
        total = raised
    norm = 0.0
    for one in range(count):
        paths[one] = paths[one] / total if total != 0 else np.float32(1) / np.float32(count)
        norm += np.float64(paths[one])
    drawn, reached = roll(samples), 0.0
    for one in range(count):
        reached += np.float64(paths[one])
        # HMMER compares with a quotient, which takes longer: it matters only close to it.
        difference = reached - drawn * norm
        if difference > _CLOSE or (difference > -_CLOSE and drawn < reached / norm):
            return one
    return count - 1


@inline
def choose_end(odds: Odds, cells: Cells, quarter: int, row: int, samples: Samples) -> int:
    """Return the node from which a path comes to the end; negative, -1 - node, for a deletion."""
    lanes = NODES * len(cells.quarters)
    emitting, deletions = row * cells.strides[0], row * cells.strides[1]
    drawn, reached = roll(samples), 0.0
    factor = np.float32(1) / cells.kept[row, LEAVE, quarter]
    # The numbers may add up to a little less than what is drawn.
    for _ in range(2):
        for register in range(odds.registers):
            at = emitting + 2 * register * lanes + quarter * NODES
            for lane in range(NODES):
                reached += np.float64(cells.emitting[at + lane] * factor)
                if drawn < reached:
                    return lane * odds.registers + register
            at = deletions + register * lanes + quarter * NODES
            for lane in range(NODES):
                reached += np.float64(cells.deletions[at + lane] * factor)
                if drawn < reached:
                    return -1 - (lane * odds.registers + register)
    return 0


@inline
def score_domain(
    odds: Odds, group: Group, quarter: int, segment: Int64Array, residues: int, samples: Samples
) -> None:
    """Add the odds of a domain's residues; the first one is not among them, as in HMMER."""
    scale = np.float32(1) / np.float32(residues)
    traced_odds(odds, samples.counts, scale, samples.odds)
    complete_odds(samples.meant, samples.odds, 0)
    begin = group.begins[quarter] - 1
    for place in range(segment[1] + 1, segment[2] + 1):
        samples.totals[place] += samples.odds[np.int64(group.codes[begin + place]), 0]
    samples.counts[:] = 0


@inline
def goes_on_outside(
    group: Group, cells: Cells, quarter: int, row: int, which: int, samples: Samples
) -> bool:
    """Choose whether a path outside the profile goes on, after the last hit (END) or between."""
    kept, paths = cells.kept, samples.paths
    leaves = group.chances[3 if which == END else 2, quarter]
    paths[0] = kept[row - 1, which, quarter] * group.chances[0, quarter]
    paths[1] = kept[row, LEAVE, quarter] * leaves * kept[row, SCALE, quarter]
    return choose(samples, 2) == 0


@inline
def before_match(
    odds: Odds, cells: Cells, lane: int, row: int, register: int, samples: Samples
) -> int:
    """Choose the state of a row from which a path comes to the match of a node.

    `lane` is the node's among those of all quarters.
    """
    lanes, paths, steps = NODES * len(cells.quarters), samples.paths, odds.steps
    at, into = register * STEPS, lane % NODES
    paths[0] = cells.kept[row, ENTER, lane // NODES] * steps[at, into]
    for one in range(1, 4):
        paths[one] = 0
    if register or into:
        # The node before is in the register before, or the last one of the lane before.
        before, own = (register - 1, lane) if register else (odds.registers - 1, lane - 1)
        own += before * lanes
        emitting = cells.strides[0] * row + own + before * lanes
        paths[1] = cells.emitting[emitting] * steps[at + 1, into]
        paths[2] = cells.emitting[emitting + lanes] * steps[at + 2, into]
        paths[3] = cells.deletions[cells.strides[1] * row + own] * steps[at + 3, into]
    chosen = choose(samples, 4)
    if chosen == 0:
        return _ENTER
    return _MATCH if chosen == 1 else (_INSERTION if chosen == 2 else _DELETION)


@inline
def before_deletion(
    odds: Odds, cells: Cells, lane: int, row: int, register: int, samples: Samples
) -> int:
    """Choose the state of a node from which a path comes to the next one's deletion."""
    lanes, paths, into = NODES * len(cells.quarters), samples.paths, lane % NODES
    own = cells.strides[0] * row + 2 * register * lanes + lane
    paths[0] = cells.emitting[own] * odds.steps[register * STEPS + 4, into]
    own = cells.strides[1] * row + register * lanes + lane
    paths[1] = cells.deletions[own] * odds.steps[odds.registers * STEPS + register, into]
    return _MATCH if choose(samples, 2) == 0 else _DELETION


@inline
def before_insertion(
    odds: Odds, cells: Cells, lane: int, row: int, register: int, samples: Samples
) -> int:
    """Choose the state of a row from which a path comes to a node's insertion."""
    lanes, paths, into = NODES * len(cells.quarters), samples.paths, lane % NODES
    own = cells.strides[0] * row + 2 * register * lanes + lane
    paths[0] = cells.emitting[own] * odds.steps[register * STEPS + 5, into]
    paths[1] = cells.emitting[own + lanes] * odds.steps[register * STEPS + 6, into]
    return _MATCH if choose(samples, 2) == 0 else _INSERTION


@inline
def sample_domain(
    odds: Odds, cells: Cells, quarter: int, begin: int, row: int, samples: Samples, count: int
) -> int:
    """Draw the path of a domain from its end to its begin; return the row before it.

    Its segment is number `count`, and `counts` are where its residues are. Nodes are followed by
    their register and lane, as to divide takes longer than all else here.
    """
    segment = samples.segments[count]
    segment[0] = segment[2] = 0
    node = choose_end(odds, cells, quarter, row, samples)
    state = _MATCH
    if node < 0:
        node, state = -1 - node, _DELETION
    lane, register = node // odds.registers, node % odds.registers
    first = quarter * NODES
    while state != _ENTER:
        if state == _MATCH or state == _INSERTION:
            if row == begin:
                return IMPOSSIBLE
            samples.counts[register, lane] += np.float32(1)
            segment[0] += 1
            row -= 1
        if state == _INSERTION:
            state = before_insertion(odds, cells, first + lane, row, register, samples)
            continue
        if state == _MATCH:
            node = lane * odds.registers + register + 1
            if segment[2] == 0:
                segment[2], segment[4] = row - begin + 1, node
            segment[1], segment[3] = row - begin + 1, node
            state = before_match(odds, cells, first + lane, row, register, samples)
            register, lane = (register - 1, lane) if register else (odds.registers - 1, lane - 1)
            continue
        register, lane = (register - 1, lane) if register else (odds.registers - 1, lane - 1)
        if lane < 0:
            return IMPOSSIBLE
        state = before_deletion(odds, cells, first + lane, row, register, samples)
    return row


@inline
def sample_path(
    odds: Odds, group: Group, cells: Cells, rows: int, quarter: int, count: int, samples: Samples
) -> int:
    """Draw a path from its end to its begin; return the number of segments up to its own."""
    begin = rows - group.sizes[quarter]
    which, row, after = END, rows, group.sizes[quarter]
    while True:
        while row > begin and goes_on_outside(group, cells, quarter, row, which, samples):
            row -= 1
        if count == samples.segments.shape[0]:
            return FULL
        if row <= begin or not cells.kept[row, LEAVE, quarter] > 0:
            return IMPOSSIBLE
        row = sample_domain(odds, cells, quarter, begin, row, samples, count)
        if row < 0:
            return IMPOSSIBLE
        segment = samples.segments[count]
        score_domain(odds, group, quarter, segment, segment[0], samples)
        for place in range(segment[2] + 1, after + 1):
            samples.totals[place] += np.float32(1)
        after = segment[1]
        count += 1
        samples.paths[0] = cells.kept[row, BEGIN, quarter] * group.chances[1, quarter]
        samples.paths[1] = cells.kept[row, AGAIN, quarter] * group.chances[1, quarter]
        if choose(samples, 2) == 0:
            break
        which = AGAIN
    for place in range(1, after + 1):
        samples.totals[place] += np.float32(1)
    return count


@jit
def sample_paths(
    odds: Odds, group: Group, cells: Cells, rows: int, quarter: int, samples: Samples
) -> int:
    """Draw `SAMPLES` paths of a sequence after `fill_forward`; return the number of segments.

    Those of a path are in the order of the sequence.
    """
    samples.totals[:] = 0
    samples.counts[:] = 0
    count = 0
    for path in range(SAMPLES):
        first = count
        count = sample_path(odds, group, cells, rows, quarter, first, samples)
        if count < 0:
            return count
        segments = samples.segments
        for one in range((count - first) // 2):
            for field in range(1, 5):
                left, right = segments[first + one, field], segments[count - 1 - one, field]
                segments[first + one, field], segments[count - 1 - one, field] = right, left
        for one in range(first, count):
            segments[one, 0] = path
    return count
