"""Groups of comparisons side by side, and the memory in which they are computed."""

from __future__ import annotations

from mmap import mmap
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

_KEPT_FLOATS: Final = 1 << 23
"""The most memory of a thread that it keeps, 32 MB: groups that need more get new pages."""


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
    """Memory of a thread that its groups take one after another: new memory costs time."""

    def __init__(self) -> None:
        self._memory = mapped_floats(1)
        self._used = self._needed = 0

    def begin(self) -> None:
        """Begin a group: the memory of the last one is overwritten from here on."""
        needed = min(self._needed, _KEPT_FLOATS)
        if self._memory.size < needed:
            self._memory = mapped_floats(needed)
        self._used = 0

    def floats(self, count: int) -> Float32Array:
        """Return memory for floats."""
        begin = self._used
        self._used += -(-count // _LINE) * _LINE
        self._needed = max(self._needed, self._used)
        if self._used <= self._memory.size:
            return self._memory[begin : begin + count]
        return mapped_floats(count)

    def cells(
        self,
        odds: Odds,
        quarters: tuple[int, ...],
        rows: int,
        keeps: bool,
        keeps_deletions: bool = False,
    ) -> Cells:
        """Return memory for a group of so many residues, for the cells of one row or of all."""
        width = odds.registers * len(quarters) * NODES
        return Cells(
            quarters,
            self.floats((rows * keeps + 1) * 2 * width),
            self.floats((rows * keeps_deletions + 1) * width),
            (2 * width * keeps, width * keeps_deletions),
            np.empty((rows + 1, STATES, len(quarters)), dtype=np.float32),
            np.zeros(len(quarters), dtype=np.int64),
        )

    def accuracies(self, odds: Odds, quarters: tuple[int, ...], rows: int) -> Accuracies:
        """Return memory for the alignments of a group of so many residues."""
        count, lanes = len(quarters), len(quarters) * NODES
        shape = rows + 1, odds.registers, lanes
        choices = self.floats(shape[0] * shape[1] * lanes // 4).view(np.uint8)
        return Accuracies(
            choices.reshape(shape),
            self.floats(2 * odds.registers * lanes).reshape(odds.registers, 2, lanes),
            np.zeros((3, count), dtype=np.float32),
            np.zeros((2, lanes), dtype=np.float32),
            np.zeros((2, lanes), dtype=np.int32),
            np.zeros(count, dtype=np.int64),
            np.zeros(count, dtype=np.float32),
            np.zeros((CODES, count), dtype=np.float32),
            meanings(),
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


def mapped_floats(count: int) -> Float32Array:
    """Return memory for floats in pages of its own, which go back to the system at once."""
    memory = mmap(-1, 4 * count)
    return np.frombuffer(memory, dtype=np.float32)
