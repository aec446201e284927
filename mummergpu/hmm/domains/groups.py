"""Groups of comparisons side by side, and the memory in which they are computed."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.hmm.domains.accuracy import Accuracies
from mummergpu.hmm.domains.clustering import Clusters
from mummergpu.hmm.domains.forward import STATES, Cells, Group
from mummergpu.hmm.domains.null2 import meanings
from mummergpu.hmm.domains.odds import LANES as NODES
from mummergpu.hmm.domains.odds import Odds, lengths_of
from mummergpu.hmm.domains.sampling import Samples, seeded
from mummergpu.hmm.proteins import CODES, RESIDUES
from mummergpu.runtime.arrays import ByteArray, Float32Array, Int64Array

_LINE: Final = 16
"""The floats of a cache line."""

_KEPT_FLOATS: Final = 1 << 24
"""Larger memory is given back at once."""


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


class Arena:
    """Memory of a thread that its comparisons take one after another: new memory costs time."""

    def __init__(self) -> None:
        self._kept: dict[str, Float32Array] = {}

    def floats(self, name: str, count: int) -> Float32Array:
        """Return memory for floats; what had this name before is overwritten."""
        if count > _KEPT_FLOATS:
            return aligned_floats(count)
        memory = self._kept.get(name)
        if memory is None or memory.size < count:
            memory = self._kept[name] = aligned_floats(count + count // 4)
        return memory[:count]

    def bytes_of(self, name: str, rows: int, odds: Odds, quarters: tuple[int, ...]) -> ByteArray:
        """Return memory for a byte of each cell."""
        shape = rows + 1, odds.registers, len(quarters) * NODES
        size = shape[0] * shape[1] * shape[2]
        return self.floats(name, size // 4).view(np.uint8).reshape(shape)

    def cells(
        self,
        name: str,
        odds: Odds,
        quarters: tuple[int, ...],
        rows: int,
        keeps: bool,
        keeps_deletions: bool = False,
    ) -> Cells:
        """Return `cells_of` in memory of a name."""
        return cells_of(odds, quarters, rows, keeps, keeps_deletions, self, name)

    def accuracies(self, odds: Odds, quarters: tuple[int, ...], rows: int) -> Accuracies:
        """Return memory for the alignments of a group of so many residues."""
        size = 2 * odds.registers * len(quarters) * NODES
        shape = odds.registers, 2, len(quarters) * NODES
        return Accuracies(
            self.bytes_of("choices", rows, odds, quarters),
            self.floats("weights", size).reshape(shape),
            np.zeros((3, len(quarters)), dtype=np.float32),
            np.zeros((2, shape[2]), dtype=np.float32),
            np.zeros((2, shape[2]), dtype=np.int32),
            np.zeros(len(quarters), dtype=np.int64),
            np.zeros(len(quarters), dtype=np.float32),
            np.zeros((CODES, len(quarters)), dtype=np.float32),
            meanings(),
        )


def cells_of(
    odds: Odds,
    quarters: tuple[int, ...],
    rows: int,
    keeps: bool,
    keeps_deletions: bool = False,
    arena: Arena | None = None,
    name: str = "cells",
) -> Cells:
    """Return memory for a group of so many residues, for the cells of one row or of all."""
    arena = arena or Arena()
    lanes = len(quarters) * NODES
    width = odds.registers * lanes
    return Cells(
        quarters,
        arena.floats(f"{name} emitting", (rows * keeps + 1) * 2 * width),
        arena.floats(f"{name} deletions", (rows * keeps_deletions + 1) * width),
        (2 * width * keeps, width * keeps_deletions),
        np.empty((rows + 1, STATES, len(quarters)), dtype=np.float32),
        np.zeros(len(quarters), dtype=np.int64),
    )


def samples_of(odds: Odds, residues: int, segments: int, seed: int) -> Samples:
    """Return memory for the paths of a sequence, and up to some segments."""
    sums = RESIDUES * NODES
    return Samples(
        np.empty((segments, 5), dtype=np.int64),
        np.empty(residues + 1, dtype=np.float32),
        np.empty((odds.registers, NODES), dtype=np.float32),
        np.empty((CODES + sums, 1), dtype=np.float32),
        np.empty(NODES, dtype=np.float32),
        np.array([seeded(seed)]),
        meanings(),
    )


def clusters_of(segments: int, places: int) -> Clusters:
    """Return memory to divide some segments, with so many residues or nodes."""
    available, connected, labels = np.empty((3, segments), dtype=np.int64)
    return Clusters(
        available,
        connected,
        labels,
        np.empty(places + 1, dtype=np.int64),
        np.empty((segments, 4), dtype=np.int64),
    )


def aligned_floats(count: int) -> Float32Array:
    """Return memory for floats in which no register lies across two cache lines."""
    memory = np.empty(count + _LINE - 1, dtype=np.float32)
    skipped = -memory.ctypes.data // memory.itemsize % _LINE
    return memory[skipped : skipped + count]
