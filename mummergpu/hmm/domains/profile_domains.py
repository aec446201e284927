"""Compares sequences that passed the filters to the end, as HMMER's pipeline does."""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.definition import DomainFinder
from mummergpu.hmm.domains.hits import FoundDomains
from mummergpu.hmm.domains.odds import Odds, odds_of
from mummergpu.hmm.domains.parses import Parses
from mummergpu.hmm.domains.scores import score_backgrounds
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.logarithms import logarithms
from mummergpu.hmm.proteins import CODES, ProteinBlock
from mummergpu.hmm.stage_counts import UNKNOWN, Reached
from mummergpu.runtime.arrays import BoolArray, Float32Array, Int64Array
from mummergpu.runtime.jit import flattened

LONGEST: Final = 100_000
"""HMMER compares no longer sequences."""


class ProfileDomains:
    """A profile whose domains are looked for; threads share it. `odds` are the profile's."""

    def __init__(
        self, profile_filter: ProfileFilter, finder: DomainFinder, odds: Odds | None = None
    ) -> None:
        self._filter = profile_filter
        self._finder = finder
        self._is_corrected = profile_filter.thresholds.bias_filter
        statistics = profile_filter.profile.statistics
        limits = statistics.forward_tau, statistics.forward_lambda, profile_filter.thresholds.F3
        self._limits = np.array(limits)
        self.odds = odds or flattened(odds_of(profile_filter.profile))

    def backgrounds(self, block: ProteinBlock, sequences: Int64Array) -> Float32Array:
        """Return the scores of sequences without the profile: plain, and corrected for it."""
        scores = np.empty((sequences.size, 2), dtype=np.float32)
        odds, steps = np.ones((CODES, 2), dtype=np.float32), np.zeros(2, dtype=np.float32)
        bias = self._filter.bias
        if self._is_corrected and bias is not None:
            odds[:, 1] = bias.odds
            length = np.float32(self._filter.profile.nodes / 8.0)
            steps[0] = np.float32(1) / (length + np.float32(1))
            steps[1] = length / (length + np.float32(1))
        score_backgrounds(
            block.codes,
            block.offsets,
            sequences,
            odds,
            steps,
            self._is_corrected,
            logarithms(),
            scores,
        )
        return scores

    def found(self, block: ProteinBlock, reached: Reached) -> tuple[FoundDomains, BoolArray]:
        """Return the sequences that have domains, scored, in their order.

        The second result tells which ones HMMER itself must compare: those whose numbers float32
        cannot hold, and those of which the filters here cannot tell whether HMMER's let them pass.
        """
        sequences = reached.sequences
        others = np.zeros(sequences.size, dtype=np.bool_)
        if self._is_corrected and self._filter.bias is None:
            others[:] = True
        sizes = block.offsets[sequences + 1] - block.offsets[sequences]
        others |= (sizes == 0) | (sizes > LONGEST)
        own = np.flatnonzero(~others)
        backgrounds = self.backgrounds(block, sequences[own])
        doubtful = np.flatnonzero(reached.filters[own] == UNKNOWN)
        if doubtful.size:
            passes, unknown = self._decide(block, sequences[own[doubtful]], backgrounds[doubtful])
            others[own[doubtful[unknown]]] = True
            left = doubtful[~passes | unknown]
            own, backgrounds = np.delete(own, left), np.delete(backgrounds, left, axis=0)
        parses = Parses.of(block, sequences[own])
        parses.scores[:, [fields.NULL, fields.CORRECTED]] = backgrounds
        envelopes = self._finder.find(self.odds, parses, self._limits)
        is_unusual = parses.sequences[:, fields.IS_UNUSUAL] != 0
        others[own[is_unusual]] = True
        kept = np.flatnonzero(~is_unusual & (parses.sequences[:, fields.DOMAINS] > 0))
        return FoundDomains(sequences[own[kept]], kept, parses, envelopes), others

    def _decide(
        self, block: ProteinBlock, sequences: Int64Array, backgrounds: Float32Array
    ) -> tuple[BoolArray, BoolArray]:
        """Return `ProfileFilter.decide` for some sequences of a block."""
        parts = [block.codes[block.offsets[n] : block.offsets[n + 1]] for n in sequences.tolist()]
        offsets = np.cumsum([0, *(one.size for one in parts)], dtype=np.int64)
        codes = np.concatenate([np.zeros(0, dtype=np.uint8), *parts])
        exact = backgrounds[:, 1].astype(np.float64)
        return self._filter.decide(ProteinBlock(codes, offsets), exact)
