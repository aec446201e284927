"""From sequences that passed the filters to their domains: HMMER's domain definition.

Parts of sequences are computed side by side, those of similar length together: first the whole
sequences, then the regions that may have several domains, then the envelopes of all domains.
"""

from __future__ import annotations

import math
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from mummergpu.hmm.domains.accuracy import fill_accuracies, trace_alignment
from mummergpu.hmm.domains.backward import fill_backward
from mummergpu.hmm.domains.clustering import find_domains
from mummergpu.hmm.domains.forward import BEGIN, END, Group, fill_forward
from mummergpu.hmm.domains.groups import Arena, clusters_of, group_of, samples_of
from mummergpu.hmm.domains.logarithms import logarithms
from mummergpu.hmm.domains.null2 import expected_odds, meanings
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.quarters import MOST_QUARTERS
from mummergpu.hmm.domains.regions import Occupancy, regions_of
from mummergpu.hmm.domains.sampling import FULL, sample_paths
from mummergpu.hmm.domains.scores import (
    ACCURACY,
    CORRECTION,
    ENVELOPE,
    keep_odds,
    keep_sampled_odds,
    log_sums,
    score_sequence,
    score_sums,
    sum_corrections,
)
from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.runtime.arrays import Float32Array, Int64Array
from mummergpu.runtime.flushed_floats import flushed_floats

_SEGMENTS: Final = 4000
_FEW: Final = 2

_LARGE: Final = 1 << 20
"""The registers from which on fewer pieces are computed side by side: 128 MB for each four."""


@dataclass
class Envelope:
    """A part of a sequence that one domain is looked for in; residues count from 1 on."""

    first: int
    last: int
    is_sampled: bool  # Whether its correction is known from sampled paths
    is_domain: bool = False
    # The first and last aligned node, and residue of the sequence.
    nodes: tuple[int, int] = (0, 0)
    residues: tuple[int, int] = (0, 0)
    numbers: Float32Array = field(default_factory=lambda: np.zeros(5, dtype=np.float32))


@dataclass
class Parse:
    """What is known about a sequence."""

    number: int
    begin: int  # The place of its first residue
    residues: int
    forward: float = math.nan  # The score of all paths, in nats
    is_unusual: bool = False  # Whether float32 cannot hold its numbers
    expected: float = 0.0  # How many domains it has
    regions: list[tuple[int, int, bool]] = field(default_factory=list)
    clustered: int = 0
    # The envelopes of each region.
    envelopes: list[list[Envelope]] = field(default_factory=list)
    corrections: Float32Array = field(default_factory=lambda: np.zeros(0, dtype=np.float32))
    scores: Float32Array = field(default_factory=lambda: np.zeros(3, dtype=np.float32))

    @property
    def domains(self) -> list[Envelope]:
        """The envelopes in which there is a domain."""
        return [one for region in self.envelopes for one in region if one.is_domain]

    @property
    def overlaps(self) -> int:
        """The number of envelopes of sampled paths that overlap with the one before."""
        count = 0
        for region in self.envelopes:
            last = 0
            for one in region:
                count += one.is_sampled and one.first <= last
                last = one.last if one.is_domain else last
        return count


@dataclass(frozen=True)
class _Piece:
    """A part of a sequence to compute, with residues from 1 on."""

    parse: Parse
    first: int
    last: int
    envelope: Envelope | None = None

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def _in_groups(pieces: Sequence[_Piece], registers: int = 0) -> Iterator[list[_Piece]]:
    """Yield pieces to compute side by side, of similar length.

    Fewer are if their cells, with so many registers a row, would need much memory.
    """
    ordered = sorted(pieces, key=lambda one: -one.size)
    while ordered:
        is_large = ordered[0].size * registers > _LARGE
        count = _FEW if is_large else MOST_QUARTERS
        yield ordered[:count]
        ordered = ordered[count:]


def _quarters_for(pieces: Sequence[_Piece]) -> tuple[int, ...]:
    return tuple(range(_FEW if len(pieces) <= _FEW else MOST_QUARTERS))


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

    def parse(self, odds: Odds, block: ProteinBlock, sequences: Int64Array) -> list[Parse]:
        """Score some sequences of a block over all paths; those that none emits are unusual."""
        begins, sizes = block.offsets[sequences], np.diff(block.offsets)[sequences]
        numbers = zip(sequences.tolist(), begins.tolist(), sizes.tolist(), strict=True)
        parses = [Parse(*one) for one in numbers]
        with flushed_floats():
            for group in _in_groups([_Piece(one, 1, one.residues) for one in parses]):
                self._parse_group(odds, block, group)
        return parses

    def define(self, odds: Odds, block: ProteinBlock, parses: Sequence[Parse]) -> None:
        """Find the domains of sequences from `parse`, and the corrections of their residues."""
        with flushed_floats():
            sampled = []
            for parse in parses:
                parse.corrections = np.zeros(parse.residues + 1, dtype=np.float32)
                for first, last, is_several in parse.regions:
                    if is_several:
                        parse.clustered += 1
                        sampled.append(_Piece(parse, first, last))
            found: dict[tuple[int, int], list[Envelope]] = {}
            for group in _in_groups(sampled, odds.registers):
                self._sample_group(odds, block, group, found)
            envelopes = []
            for parse in parses:
                for first, last, is_several in parse.regions:
                    own = [Envelope(first, last, False)]
                    if is_several:
                        own = found.get((parse.number, first), [])
                    parse.envelopes.append(own)
                    envelopes += [_Piece(parse, one.first, one.last, one) for one in own]
            usual = [one for one in envelopes if not one.parse.is_unusual]
            for group in _in_groups(usual, odds.registers):
                self._align_group(odds, block, group)

    def score(self, parse: Parse, null: np.float32) -> None:
        """Compute the scores of a sequence and of its domains, in bits."""
        domains = parse.domains
        nats = np.array([parse.forward, null], dtype=np.float32)
        ends = np.array([(one.first, one.last) for one in domains], dtype=np.int64)
        numbers = np.array([one.numbers for one in domains], dtype=np.float32)
        score_sequence(
            nats,
            parse.residues,
            self._corrects,
            parse.corrections,
            log_sums(),
            logarithms(),
            ends,
            numbers,
            parse.scores,
        )
        for one, own in zip(domains, numbers, strict=True):
            one.numbers = own

    def _group(
        self, block: ProteinBlock, pieces: Sequence[_Piece], several: bool
    ) -> tuple[tuple[int, ...], Group, int]:
        """Return the quarters for pieces, their group, and its rows."""
        quarters = _quarters_for(pieces)
        begins = np.array([one.parse.begin + one.first - 1 for one in pieces])
        sizes = np.array([one.size for one in pieces])
        lengths = np.array([one.parse.residues for one in pieces])
        group = group_of(quarters, block.codes, begins, sizes, lengths, several)
        return quarters, group, int(sizes.max())

    def _parse_group(self, odds: Odds, block: ProteinBlock, pieces: Sequence[_Piece]) -> None:
        """Find the regions of whole sequences."""
        quarters, group, rows = self._group(block, pieces, several=True)
        forward = self._arena.cells("forward", odds, quarters, rows, keeps=False)
        backward = self._arena.cells("backward", odds, quarters, rows, keeps=False)
        fill_forward(odds, group, forward, rows)
        scores = np.empty(len(quarters), dtype=np.float32)
        score_sums(group, forward, rows, logarithms(), scores)
        fill_backward(odds, group, forward, backward, rows)
        for quarter, piece in enumerate(pieces):
            parse = piece.parse
            parse.forward = float(scores[quarter])
            first = backward.kept[rows - parse.residues, BEGIN, quarter]
            if not (np.isfinite(scores[quarter]) and 0 < first < np.inf):
                parse.is_unusual = True
                continue
            found = Occupancy(*np.empty((3, parse.residues + 1), dtype=np.float32))
            regions = np.empty((parse.residues // 2 + 1, 3), dtype=np.int64)
            count = regions_of(group, forward, backward, rows, quarter, found, regions)
            parse.is_unusual = count < 0
            parse.expected = float(found.begins[-1])
            for begin, end, is_several in regions[: max(count, 0)].tolist():
                parse.regions.append((begin, end, bool(is_several)))

    def _sample_group(
        self,
        odds: Odds,
        block: ProteinBlock,
        pieces: Sequence[_Piece],
        found: dict[tuple[int, int], list[Envelope]],
    ) -> None:
        """Divide regions into envelopes, by what sampled paths have in common."""
        quarters, group, rows = self._group(block, pieces, several=True)
        cells = self._arena.cells("forward", odds, quarters, rows, keeps=True, keeps_deletions=True)
        fill_forward(odds, group, cells, rows)
        for quarter, piece in enumerate(pieces):
            segments, count = _SEGMENTS, FULL
            while count == FULL:
                seed = self._seed or secrets.randbits(32)
                samples = samples_of(odds, piece.size, segments, seed)
                count = sample_paths(odds, group, cells, rows, quarter, samples)
                segments *= 2
            if count < 0:
                piece.parse.is_unusual = True
                continue
            keep_sampled_odds(samples.totals, piece.first, logarithms(), piece.parse.corrections)
            memory = clusters_of(count, max(piece.size, odds.nodes))
            domains = find_domains(samples.segments, count, memory)
            found[piece.parse.number, piece.first] = [
                Envelope(piece.first + first - 1, piece.first + last - 1, True)
                for first, last in memory.found[:domains, :2].tolist()
            ]

    def _align_group(self, odds: Odds, block: ProteinBlock, pieces: Sequence[_Piece]) -> None:
        """Score envelopes, and align each one's sequence."""
        quarters, group, rows = self._group(block, pieces, several=False)
        arena = self._arena
        forward = arena.cells("forward", odds, quarters, rows, keeps=True)
        backward, cells = (
            arena.cells(name, odds, quarters, rows, keeps=False) for name in ("backward", "cells")
        )
        found = arena.accuracies(odds, quarters, rows)
        fill_forward(odds, group, forward, rows)
        scores = np.empty(len(quarters), dtype=np.float32)
        score_sums(group, forward, rows, logarithms(), scores)
        fill_backward(odds, group, forward, backward, rows)
        fill_accuracies(odds, group, forward, backward, cells, found, rows)
        null2 = np.empty((CODES, len(quarters)), dtype=np.float32)
        scales = np.float32(1) / np.maximum(group.sizes, 1).astype(np.float32)
        own = found.weights, found.outside, scales, meanings()
        expected_odds(quarters, odds, *own, null2)
        ends, sums = np.empty(4, dtype=np.int64), np.empty(1, dtype=np.float32)
        for quarter, piece in enumerate(pieces):
            parse, envelope = piece.parse, piece.envelope
            assert envelope is not None
            first = backward.kept[rows - piece.size, BEGIN, quarter]
            if not (np.isfinite(scores[quarter]) and 0 < first < np.inf):
                parse.is_unusual = True
                continue
            if np.isinf(found.products[quarter]):
                # HMMER takes such an envelope for a repeat.
                continue
            if not trace_alignment(odds, cells, found, quarter, rows - piece.size, ends):
                parse.is_unusual = True
                continue
            if not envelope.is_sampled:
                begin = parse.begin + piece.first - 1
                codes = block.codes[begin : begin + piece.size]
                keep_odds(null2, quarter, codes, piece.first, logarithms(), parse.corrections)
            sum_corrections(parse.corrections, piece.first, piece.last, sums)
            node, residue, last_node, last = ends.tolist()
            envelope.is_domain = True
            envelope.nodes = node, last_node
            envelope.residues = residue + piece.first - 1, last + piece.first - 1
            envelope.numbers[ENVELOPE] = scores[quarter]
            envelope.numbers[CORRECTION] = sums[0]
            envelope.numbers[ACCURACY] = cells.kept[rows, END, quarter]
