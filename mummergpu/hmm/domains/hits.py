"""Compares sequences that passed the filters to the end, as HMMER's pipeline does."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains.definition import DomainFinder, Envelope, Parse
from mummergpu.hmm.domains.logarithms import logarithms
from mummergpu.hmm.domains.odds import Odds, odds_of
from mummergpu.hmm.domains.scores import BITS, PLAIN, SCORE, SUM, score_backgrounds
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile, Statistics
from mummergpu.hmm.proteins import CODES, DEGENERATE, RESIDUES, SYMBOLS, ProteinBlock
from mummergpu.hmm.tables import BACKGROUND, LN2
from mummergpu.runtime.arrays import BoolArray, Float32Array, Int64Array

LONGEST: Final = 100_000
"""HMMER compares no longer sequences."""

_HIT: Final = Struct(">IId3f3df5iIiiiqqB")
_HAS_ACCESSION, _HAS_DESCRIPTION = 1, 2
_DOMAIN: Final = Struct(">I6q5fd3i")
_ALIGNMENT: Final = Struct(">I4iqqqB")
_RESIDUES_OF_ALIGNMENT: Final = 16
_EMPTY_TEXTS: Final = bytes(9)
_REPORTED, _INCLUDED = 1, 2


class Target(NamedTuple):
    """The words of a target of a search."""

    name: bytes
    accession: bytes
    description: bytes


class Limits(NamedTuple):
    """Scores from which on targets and domains are reported and included, if they decide."""

    T: float | None
    domT: float | None
    incT: float | None
    incdomT: float | None
    are_of_profile: bool


def exponential_tail(score: float, statistics: Statistics) -> float:
    """Return the logarithm of the chance of a score in bits or a higher one by chance."""
    if score < statistics.forward_tau:
        return 0.0
    return -statistics.forward_lambda * (score - statistics.forward_tau)


class ProfileDomains:
    """A profile whose domains are looked for; threads share it. `odds` are the profile's."""

    def __init__(
        self, profile_filter: ProfileFilter, finder: DomainFinder, odds: Odds | None = None
    ) -> None:
        self._filter = profile_filter
        self._finder = finder
        self._is_corrected = profile_filter.thresholds.bias_filter
        self._composition = profile_filter.profile.composition
        self.odds = odds or odds_of(profile_filter.profile)

    def backgrounds(self, block: ProteinBlock, sequences: Int64Array) -> Float32Array:
        """Return the scores of sequences without the profile: plain, and corrected for it."""
        scores = np.empty((sequences.size, 2), dtype=np.float32)
        odds, steps = np.ones((CODES, 2), dtype=np.float32), np.zeros(2, dtype=np.float32)
        if self._is_corrected and self._composition is not None:
            odds[:, 1] = composition_odds(self._composition)
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

    def found(self, block: ProteinBlock, sequences: Int64Array) -> tuple[list[Parse], BoolArray]:
        """Return the sequences that have domains, scored, in their order.

        The second result tells which ones HMMER itself must compare: those whose numbers float32
        cannot hold, and those of which the filters here cannot tell whether HMMER's let them pass.
        """
        others = np.zeros(sequences.size, dtype=np.bool_)
        if self._is_corrected and self._composition is None:
            return [], ~others
        sizes = np.diff(block.offsets)[sequences]
        others |= (sizes == 0) | (sizes > LONGEST)
        own = np.flatnonzero(~others)
        chosen = sequences[own]
        backgrounds = self.backgrounds(block, chosen)
        passes, unknown = self._decide(block, chosen, backgrounds)
        others[own[unknown]] = True
        own, backgrounds = own[passes & ~unknown], backgrounds[passes & ~unknown]
        parses = self._finder.parse(self.odds, block, sequences[own])
        kept = []
        for place, (parse, (null, corrected)) in zip(
            own.tolist(), zip(parses, backgrounds, strict=True), strict=True
        ):
            if parse.is_unusual:
                others[place] = True
            elif self._passes_forward(parse, corrected) and parse.regions:
                kept.append((place, parse, null))
        self._finder.define(self.odds, block, [parse for _, parse, _ in kept])
        found = []
        for place, parse, null in kept:
            if parse.is_unusual:
                others[place] = True
            elif parse.domains:
                self._finder.score(parse, null)
                found.append(parse)
        return found, others

    def _passes_forward(self, parse: Parse, background: np.float32) -> bool:
        bits = np.float32(float(np.float32(parse.forward) - background) / LN2)
        chance = math.exp(exponential_tail(float(bits), self._filter.profile.statistics))
        return not chance > self._filter.thresholds.F3

    def _decide(
        self, block: ProteinBlock, sequences: Int64Array, backgrounds: Float32Array
    ) -> tuple[BoolArray, BoolArray]:
        """Return `ProfileFilter.decide` for some sequences of a block."""
        parts = [block.codes[block.offsets[n] : block.offsets[n + 1]] for n in sequences.tolist()]
        offsets = np.cumsum([0, *(one.size for one in parts)], dtype=np.int64)
        codes = np.concatenate([np.zeros(0, dtype=np.uint8), *parts])
        exact = backgrounds[:, 1].astype(np.float64)
        return self._filter.decide(ProteinBlock(codes, offsets), exact)


def composition_odds(composition: Float32Array) -> Float32Array:
    """Return the odds of each code in a composition, as HMMER rounds them."""
    odds = np.ones(CODES, dtype=np.float32)
    odds[:RESIDUES] = composition / BACKGROUND
    for letter, meant in DEGENERATE.items():
        total, other = np.float32(0), np.float32(0)
        for code in map(SYMBOLS.index, meant):
            total += composition[code]
            other += BACKGROUND[code]
        odds[SYMBOLS.index(letter)] = total / other
    return odds


class HitWriter:
    """Writes hits as bytes of HMMER's ``p7_hit_Serialize``, without alignments."""

    def __init__(self, options: FinishingOptions, profile: Profile, limits: Limits) -> None:
        self._options = options
        self._statistics = profile.statistics
        self._nodes = profile.nodes
        self._limits = limits

    def is_kept(self, parse: Parse, targets: float) -> bool:
        """Return whether a target may be reported among so many."""
        score = float(parse.scores[SCORE])
        if self._limits.T is not None:
            return score >= self._limits.T
        return math.exp(exponential_tail(score, self._statistics)) * targets <= self._options.E

    def record(self, parse: Parse, target: Target) -> bytes:
        """Return the record of a target."""
        domains = parse.domains
        bits = [float(one.numbers[BITS]) for one in domains]
        scores = [float(parse.scores[which]) for which in (SCORE, PLAIN, SUM)]
        chances = [exponential_tail(one, self._statistics) for one in scores]
        by_score = self._limits.incT is not None
        present = [*filter(None, target[1:])]
        flags = _HAS_ACCESSION * bool(target.accession)
        flags |= _HAS_DESCRIPTION * bool(target.description)
        texts = b"".join(one + b"\0" for one in (target.name, *present))
        counts = sum(map(len, parse.envelopes))
        head = _HIT.pack(
            _HIT.size + len(texts),
            0,
            scores[0] if by_score else -chances[0],
            *scores,
            *chances,
            parse.expected,
            len(parse.regions),
            parse.clustered,
            parse.overlaps,
            counts,
            len(domains),
            self._flags_of(scores[0], self._limits.T, self._limits.incT),
            0,
            0,
            bits.index(max(bits)),
            -1,
            -1,
            flags,
        )
        return b"".join([head, texts, *self._domains(parse, domains)])

    def _flags_of(self, score: float, reported: float | None, included: float | None) -> int:
        """Return HMMER's marks, which it sets here only for the profile's own cutoffs."""
        if not self._limits.are_of_profile or reported is None or score < reported:
            return 0
        return _REPORTED | (_INCLUDED if included is not None and score >= included else 0)

    def _domains(self, parse: Parse, domains: Sequence[Envelope]) -> Iterator[bytes]:
        for one in domains:
            envelope, correction, accuracy, bias, bits = (float(n) for n in one.numbers)
            marks = self._flags_of(bits, self._limits.domT, self._limits.incdomT)
            yield _DOMAIN.pack(
                _DOMAIN.size,
                *(one.first, one.last, *one.residues, 0, 0),
                *(envelope, correction, bias, accuracy, bits),
                exponential_tail(bits, self._statistics),
                *(marks & _REPORTED, bool(marks & _INCLUDED), 0),
            )
            yield (
                _ALIGNMENT.pack(
                    _ALIGNMENT.size + len(_EMPTY_TEXTS),
                    0,
                    *one.nodes,
                    self._nodes,
                    *one.residues,
                    parse.residues,
                    _RESIDUES_OF_ALIGNMENT,
                )
                + _EMPTY_TEXTS
            )
