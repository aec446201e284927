"""Groups of comparisons side by side, and the memory in which they are computed."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.hmm.domains.forward import STATES, SUMS, Cells, Group
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds, lengths_of
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array

_LINE: Final = 16
"""The floats of a cache line."""


def group_of(
    quarters: tuple[int, ...],
    codes: ByteArray,
    begins: Int64Array,
    sizes: Int64Array,
    lengths: Int64Array,
    several: bool,
) -> Group:
    """Return pieces of sequences, as many as there are quarters or fewer, as a group.

    `lengths` are those of the whole sequences; with `several`, a sequence may have several hits.
    """
    places, counts, whole = (np.zeros(len(quarters), dtype=np.int64) for _ in range(3))
    whole += 1
    places[: begins.size], counts[: begins.size], whole[: begins.size] = begins, sizes, lengths
    stay, move = lengths_of(whole, several)
    again, end = (0.5, 0.5) if several else (0.0, 1.0)
    rows = [stay, move, np.full(len(quarters), again), np.full(len(quarters), end)]
    return Group(codes, places, counts, np.array(rows, dtype=np.float32))


def cells_of(
    odds: Odds, quarters: tuple[int, ...], rows: int, emitting_rows: int, deletion_rows: int
) -> Cells:
    """Return memory for a group of so many residues, and for some rows of cells."""
    lanes = len(quarters) * NODES
    width = odds.registers * lanes
    return Cells(
        quarters,
        aligned_floats(emitting_rows * 2 * width),
        aligned_floats(deletion_rows * width),
        np.zeros((STATES, len(quarters)), dtype=np.float32),
        aligned_floats(SUMS * lanes).reshape(SUMS, lanes),
        np.empty((rows + 1, STATES, len(quarters)), dtype=np.float32),
        np.empty(len(quarters), dtype=np.int64),
    )


def aligned_floats(count: int) -> Float32Array:
    """Return memory for floats in which no register lies across two cache lines."""
    memory = np.empty(count + _LINE - 1, dtype=np.float32)
    skipped = -memory.ctypes.data // memory.itemsize % _LINE
    return memory[skipped : skipped + count]
