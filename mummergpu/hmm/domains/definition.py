"""From sequences that passed the filters to their domains: HMMER's domain definition.

Parts of sequences are computed side by side, those of similar length together: first the whole
sequences, then the regions that may have several domains, then the envelopes of all domains. Python
is entered a few times for each group.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.accuracy import Alignment, fill_accuracies
from mummergpu.hmm.domains.backward import fill_backward
from mummergpu.hmm.domains.forward import fill_forward
from mummergpu.hmm.domains.groups import Arena, clusters_of, group_of, samples_of
from mummergpu.hmm.domains.logarithms import logarithms
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.parses import (
    Envelopes,
    Parses,
    divide_region,
    keep_envelopes,
    keep_regions,
)
from mummergpu.hmm.domains.quarters import MOST_QUARTERS
from mummergpu.hmm.domains.regions import Occupancy
from mummergpu.hmm.domains.sampling import FULL
from mummergpu.hmm.domains.scores import log_sums, score_sequences
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.runtime.arrays import Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats
from mummergpu.runtime.jit import flattened

_SEGMENTS: Final = 4000
_FEW: Final = 2

_LARGE: Final = 1 << 17
"""The registers from which on fewer pieces are computed side by side: four take 24 MB, and of more
the memory sets the pace."""


def _in_groups(pieces: Int64Array, registers: int = 0) -> Iterator[Int64Array]:
    """Yield rows of pieces to compute side by side, of similar length.

    Fewer are if their cells, with so many registers a row, would need much memory.
    """
    sizes = pieces[:, fields.LAST] - pieces[:, fields.FIRST] + 1
    ordered, begin = np.argsort(-sizes, kind="stable"), 0
    while begin < ordered.size:
        is_large = sizes[ordered[begin]] * registers > _LARGE
        count = _FEW if is_large else MOST_QUARTERS
        yield ordered[begin : begin + count]
        begin += count


class DomainFinder:
    """Finds domains; threads share it."""

    def __init__(self, seed: int, corrects: bool) -> None:
        self._seed = seed
        self._corrects = corrects
        self._of_thread = threading.local()

    @property
    def _arena(self) -> Arena:
        arena: Arena | None = getattr(self._of_thread, "arena", None)
        if arena is None:
            arena = self._of_thread.arena = Arena()
        return arena

    def parse(self, odds: Odds, block: ProteinBlock, sequences: Int64Array) -> Parses:
        """Score some sequences of a block over all paths; those that none emits are unusual."""
        parses = Parses.of(block, sequences)
        pieces = parses.whole()
        with flushed_floats():
            parts = [self._parse_group(odds, parses, pieces[own]) for own in _in_groups(pieces)]
        return parses._replace(regions=np.concatenate([parses.regions, *parts]))

    def define(self, odds: Odds, parses: Parses) -> Envelopes:
        """Find the domains of sequences from `parse`, and the corrections of their residues."""
        regions = parses.regions
        several = np.flatnonzero(regions[:, fields.IS_SEVERAL])
        envelopes = np.zeros((len(regions), fields.ENVELOPE_FIELDS), dtype=np.int64)
        envelopes[:, : fields.PIECE_FIELDS] = regions
        parts = [np.delete(envelopes, several, axis=0)]
        with flushed_floats():
            for own in _in_groups(regions[several], odds.registers):
                parts += self._sample_group(odds, parses, regions[several[own]])
            every = np.concatenate(parts)
            # Those of a region keep their order, even where one begins before another.
            every = every[
                np.argsort(every[:, fields.SEQUENCE] << 32 | every[:, fields.FIRST], kind="stable")
            ]
            found = Envelopes(every, np.zeros((len(every), fields.NUMBERS), dtype=np.float32))
            usual = np.flatnonzero(
                parses.sequences[every[:, fields.SEQUENCE], fields.IS_UNUSUAL] == 0
            )
            for own in _in_groups(every[usual], odds.registers):
                self._align_group(odds, parses, found, usual[own])
        return found

    def score(self, parses: Parses, found: Envelopes) -> None:
        """Compute the scores of sequences and of their domains, in bits."""
        score_sequences(parses, found, self._corrects, log_sums(), logarithms())

    def _group(
        self, parses: Parses, pieces: Int64Array, several: bool
    ) -> tuple[tuple[int, ...], Any, int]:
        """Return the quarters for pieces, their group, and its rows."""
        quarters = tuple(range(_FEW if len(pieces) <= _FEW else MOST_QUARTERS))
        whole = parses.sequences[pieces[:, fields.SEQUENCE]]
        sizes = pieces[:, fields.LAST] - pieces[:, fields.FIRST] + 1
        begins = whole[:, fields.BEGIN] + pieces[:, fields.FIRST] - 1
        self._arena.begin()
        group = group_of(quarters, parses.codes, begins, sizes, whole[:, fields.RESIDUES], several)
        return quarters, group, int(sizes.max())

    def _parse_group(self, odds: Odds, parses: Parses, pieces: Int64Array) -> Int64Array:
        """Find the regions of whole sequences."""
        quarters, group, rows = self._group(parses, pieces, several=True)
        forward, backward = (
            flattened(self._arena.cells(odds, quarters, rows, keeps=False)) for _ in range(2)
        )
        group = flattened(group)
        fill_forward(odds, group, forward, rows)
        fill_backward(odds, group, forward, backward, rows)
        occupancy = Occupancy(*np.empty((3, rows + 1), dtype=np.float32))
        regions = np.empty((MOST_QUARTERS * (rows // 2 + 1), fields.PIECE_FIELDS), dtype=np.int64)
        own = pieces, occupancy, logarithms(), regions
        count = keep_regions(group, forward, backward, rows, parses, *own)
        return regions[:count].copy()

    def _sample_group(self, odds: Odds, parses: Parses, pieces: Int64Array) -> Iterator[Int64Array]:
        """Yield the envelopes of regions, divided by what sampled paths have in common."""
        quarters, group, rows = self._group(parses, pieces, several=True)
        cells = self._arena.cells(odds, quarters, rows, keeps=True, keeps_deletions=True)
        group, cells = flattened(group), flattened(cells)
        fill_forward(odds, group, cells, rows)
        for quarter, piece in enumerate(pieces):
            size = int(piece[fields.LAST] - piece[fields.FIRST] + 1)
            sequence = parses.sequences[piece[fields.SEQUENCE]]
            sequence[fields.CLUSTERED] += 1
            segments, count = _SEGMENTS, FULL
            while count == FULL:
                seed = self._seed or secrets.randbits(32)
                samples = samples_of(odds, size, segments, seed)
                clusters = clusters_of(segments, max(size, odds.nodes))
                own = samples, clusters, parses, piece, logarithms()
                count = divide_region(odds, group, cells, rows, quarter, *own)
                segments *= 2
            sequence[fields.IS_UNUSUAL] |= count < 0
            found = np.zeros((max(count, 0), fields.ENVELOPE_FIELDS), dtype=np.int64)
            found[:, fields.SEQUENCE], found[:, fields.IS_SAMPLED] = piece[fields.SEQUENCE], 1
            found[:, [fields.FIRST, fields.LAST]] = clusters.found[: len(found), :2] + (
                piece[fields.FIRST] - 1
            )
            yield found

    def _align_group(self, odds: Odds, parses: Parses, found: Envelopes, own: Int64Array) -> None:
        """Score some of the envelopes found, and align the sequence in each."""
        quarters, group, rows = self._group(parses, found.places[own], several=False)
        arena = self._arena
        group = flattened(group)
        forward = flattened(arena.cells(odds, quarters, rows, keeps=True))
        backward, cells = (
            flattened(arena.cells(odds, quarters, rows, keeps=False)) for _ in range(2)
        )
        accuracies = arena.accuracies(odds, quarters, rows)
        alignment = flattened(Alignment(group, forward, backward, cells, accuracies))
        fill_forward(odds, group, forward, rows)
        fill_backward(odds, group, forward, backward, rows)
        fill_accuracies(odds, alignment, rows)
        scales = np.empty(len(quarters), dtype=np.float32)
        keep_envelopes(odds, alignment, rows, parses, found, own, scales, logarithms())
