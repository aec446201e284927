"""Groups of four comparisons, and the memory in which they are computed."""

from __future__ import annotations

import numpy as np

from mummergpu.hmm.domains.forward import SPECIALS, STATES, Cells, Group
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds, lengths_of
from mummergpu.hmm.domains.quarters import LANES, QUARTERS
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array


def group_of(
    codes: ByteArray, begins: Int64Array, sizes: Int64Array, lengths: Int64Array, several: bool
) -> Group:
    """Return up to four pieces of sequences as a group.

    `lengths` are those of the whole sequences; with `several`, a sequence may have several hits.
    """
    places, counts, whole = (np.zeros(QUARTERS, dtype=np.int64) for _ in range(3))
    whole += 1
    places[: begins.size], counts[: begins.size], whole[: begins.size] = begins, sizes, lengths
    stay, move = lengths_of(whole, several)
    again, end = (0.5, 0.5) if several else (0.0, 1.0)
    rows = [stay, move, np.full(QUARTERS, again), np.full(QUARTERS, end)]
    chances = np.repeat(np.array(rows, dtype=np.float32), NODES, axis=1)
    return Group(codes, places, counts, np.ascontiguousarray(chances))


def cells_of(odds: Odds, rows: int, emitting_rows: int, deletion_rows: int) -> Cells:
    """Return memory for a group of so many residues, and for some rows of cells."""
    width = odds.registers * LANES
    return Cells(
        aligned_floats(emitting_rows * 2 * width),
        aligned_floats(deletion_rows * width),
        aligned_floats(STATES * LANES).reshape(STATES, LANES),
        np.empty((rows + 1, SPECIALS, QUARTERS), dtype=np.float32),
        np.empty(QUARTERS, dtype=np.int64),
    )


def aligned_floats(count: int) -> Float32Array:
    """Return memory for floats in which no register lies across two cache lines."""
    memory = np.empty(count + LANES - 1, dtype=np.float32)
    skipped = -memory.ctypes.data // memory.itemsize % LANES
    return memory[skipped : skipped + count]
