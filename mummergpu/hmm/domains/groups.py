"""Groups of comparisons side by side, and the parts of lent memory in which they are computed."""

from __future__ import annotations

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.accuracy import Accuracies
from mummergpu.hmm.domains.clustering import Clusters
from mummergpu.hmm.domains.forward import STATES, Cells, Group
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.regions import Occupancy
from mummergpu.hmm.domains.sampling import Samples
from mummergpu.hmm.proteins import CODES, RESIDUES
from mummergpu.runtime.arrays import ByteArray, Int64Array
from mummergpu.runtime.jit import inline
from mummergpu.runtime.lent_memory import LentMemory, take


@inline
def group_of(
    quarters: tuple[int, ...],
    codes: ByteArray,
    sequences: Int64Array,
    pieces: Int64Array,
    own: Int64Array,
    several: bool,
    memory: LentMemory,
) -> Group:
    """Return some pieces of sequences, as many as there are quarters or fewer, as a group.

    With `several`, a sequence may have several hits.
    """
    count = len(quarters)
    begins, sizes = take(memory, (count,), np.int64), take(memory, (count,), np.int64)
    chances = take(memory, (4, count), np.float32)
    hits, again = np.float32(3 if several else 2), np.float32(0.5 if several else 0)
    for quarter in range(count):
        begins[quarter] = sizes[quarter] = 0
        whole = 1
        if quarter < own.size:
            piece = pieces[own[quarter]]
            sequence = sequences[piece[fields.SEQUENCE]]
            begins[quarter] = sequence[fields.BEGIN] + piece[fields.FIRST] - 1
            sizes[quarter] = piece[fields.LAST] - piece[fields.FIRST] + 1
            whole = sequence[fields.RESIDUES]
        move = hits / (np.float32(whole) + hits)
        chances[0, quarter], chances[1, quarter] = np.float32(1) - move, move
        chances[2, quarter], chances[3, quarter] = again, np.float32(1) - again
    return Group(codes, begins, sizes, chances)


@inline
def cells_of(
    odds: Odds,
    quarters: tuple[int, ...],
    rows: int,
    keeps: bool,
    keeps_deletions: bool,
    memory: LentMemory,
) -> Cells:
    """Return memory for a group of so many residues, for the cells of one row or of all."""
    width = odds.registers * len(quarters) * NODES
    return Cells(
        quarters,
        take(memory, ((rows * keeps + 1) * 2 * width,), np.float32),
        take(memory, ((rows * keeps_deletions + 1) * width,), np.float32),
        (2 * width * keeps, width * keeps_deletions),
        take(memory, (rows + 1, STATES, len(quarters)), np.float32),
        take(memory, (len(quarters),), np.int64),
    )


@inline
def accuracies_of(
    odds: Odds, quarters: tuple[int, ...], rows: int, meant: ByteArray, memory: LentMemory
) -> Accuracies:
    """Return memory for the alignments of a group of so many residues."""
    count, lanes = len(quarters), len(quarters) * NODES
    return Accuracies(
        take(memory, (rows + 1, odds.registers, lanes), np.uint8),
        take(memory, (odds.registers, 2, lanes), np.float32),
        take(memory, (3, count), np.float32),
        take(memory, (2, lanes), np.float32),
        take(memory, (2, lanes), np.int32),
        take(memory, (count,), np.int64),
        take(memory, (count,), np.float32),
        take(memory, (CODES, count), np.float32),
        meant,
    )


@inline
def occupancy_of(rows: int, memory: LentMemory) -> Occupancy:
    """Return memory for what is expected up to each of so many residues."""
    return Occupancy(
        take(memory, (rows + 1,), np.float32),
        take(memory, (rows + 1,), np.float32),
        take(memory, (rows + 1,), np.float32),
    )


@inline
def samples_of(
    odds: Odds,
    residues: int,
    segments: int,
    random: Int64Array,
    meant: ByteArray,
    memory: LentMemory,
) -> Samples:
    """Return memory for the paths of a sequence, and up to some segments."""
    return Samples(
        take(memory, (segments, 5), np.int64),
        take(memory, (residues + 1,), np.float32),
        take(memory, (odds.registers, NODES), np.float32),
        take(memory, (CODES + RESIDUES * NODES, 1), np.float32),
        take(memory, (NODES,), np.float32),
        random,
        meant,
    )


@inline
def clusters_of(segments: int, places: int, memory: LentMemory) -> Clusters:
    """Return memory to divide some segments, with so many residues or nodes."""
    return Clusters(
        take(memory, (segments,), np.int64),
        take(memory, (segments,), np.int64),
        take(memory, (segments,), np.int64),
        take(memory, (places + 1,), np.int64),
        take(memory, (segments, 4), np.int64),
    )
