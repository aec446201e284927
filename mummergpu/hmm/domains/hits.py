"""Records of hits: bytes of HMMER's ``p7_hit_Serialize``, without alignments."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.parses import Envelopes, Parses
from mummergpu.hmm.hit_lists import (
    ALIGNMENT,
    DOMAIN,
    HAS_ACCESSION,
    HAS_DESCRIPTION,
    HAS_RESIDUES,
    HIT,
    INCLUDED,
    NO_TEXTS,
    REPORTED,
    HitRecords,
)
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile
from mummergpu.input.records.record_arrays import ACCESSION, DESCRIPTION, NAME, Words
from mummergpu.runtime.arrays import ByteArray, Float64Array, Int64Array
from mummergpu.runtime.jit import inline, jit

_HIT_BYTES: Final = HIT.size
_DOMAIN_BYTES: Final = DOMAIN.size
_ALIGNMENT_BYTES: Final = ALIGNMENT.size + NO_TEXTS
_NOWHERE: Final = -1

T_SCORE, INCLUDED_SCORE, DOMAIN_SCORE, INCLUDED_DOMAIN_SCORE = range(4)
"""The scores from which on HMMER marks targets and domains here: only a profile's own cutoffs."""


class Limits(NamedTuple):
    """Scores from which on targets and domains are reported and included, if they decide."""

    T: float | None
    domT: float | None
    incT: float | None
    incdomT: float | None
    are_of_profile: bool


class FoundDomains(NamedTuple):
    """Sequences that have domains."""

    numbers: Int64Array  # Their numbers in the block
    own: Int64Array  # Their numbers among those of `parses`
    parses: Parses
    envelopes: Envelopes

    def those(self, chosen: Int64Array) -> FoundDomains:
        """Return some of the sequences."""
        return self._replace(numbers=self.numbers[chosen], own=self.own[chosen])

    @property
    def scores(self) -> list[float]:
        """Their scores in bits."""
        scores: list[float] = self.parses.scores[self.own, fields.SCORE].tolist()
        return scores


class MarkedProfile(NamedTuple):
    """What the records of hits take from a profile."""

    numbers: Float64Array  # (2,): Forward's tau and lambda
    limits: Float64Array  # (4,): `T_SCORE` and the others; infinite where nothing is marked
    nodes: int


class HitWriter:
    """Writes hits as bytes of HMMER's ``p7_hit_Serialize``, without alignments."""

    def __init__(self, options: FinishingOptions, profile: Profile, limits: Limits) -> None:
        self._options = options
        self._statistics = profile.statistics
        self._limits = limits
        tail = profile.statistics.forward_tau, profile.statistics.forward_lambda
        marked = [
            one if limits.are_of_profile and one is not None else math.inf
            for one in (limits.T, limits.incT, limits.domT, limits.incdomT)
        ]
        self._profile = MarkedProfile(np.array(tail), np.array(marked), profile.nodes)

    def is_kept(self, score: float, targets: float) -> bool:
        """Return whether a target with a score may be reported among so many."""
        if self._limits.T is not None:
            return score >= self._limits.T
        above = max(score - self._statistics.forward_tau, 0.0)
        return math.exp(-self._statistics.forward_lambda * above) * targets <= self._options.E

    def records(self, found: FoundDomains, words: Words) -> HitRecords:
        """Return the record of each sequence, in their order; `words` are those of the targets."""
        sizes = np.diff(words.places, axis=2)
        size = int(sizes.sum()) + (3 + _HIT_BYTES) * found.own.size
        domains = int(found.parses.sequences[found.own, fields.DOMAINS].sum())
        record = np.empty(size + (_DOMAIN_BYTES + _ALIGNMENT_BYTES) * domains, dtype=np.uint8)
        offsets = np.zeros(found.own.size + 1, dtype=np.int64)
        by_score = self._limits.incT is not None
        _write_records(found, words, self._profile, by_score, record, offsets)
        return HitRecords(record[: offsets[-1]], offsets, {})


@inline
def _put(record: ByteArray, at: int, number: int, size: int) -> int:
    """Write an integer, the highest byte first; return where the next one goes."""
    for byte in range(size):
        record[at + byte] = (number >> 8 * (size - 1 - byte)) & 255
    return at + size


@inline
def _put_float(record: ByteArray, at: int, number: np.float32) -> int:
    return _put(record, at, int(np.float32(number).view(np.int32)), 4)


@inline
def _put_double(record: ByteArray, at: int, number: np.float64) -> int:
    return _put(record, at, int(np.float64(number).view(np.int64)), 8)


@inline
def _tail(score: np.float32, profile: MarkedProfile) -> np.float64:
    """Return the logarithm of the chance of a score in bits, or a higher one."""
    bits, tau = np.float64(score), profile.numbers[0]
    return np.float64(0) if bits < tau else np.float64(-profile.numbers[1] * (bits - tau))


@inline
def _marks(score: np.float32, reported: float, included: float) -> int:
    if not score >= reported:
        return 0
    return REPORTED | INCLUDED if score >= included else REPORTED


@jit
def _write_records(
    found: FoundDomains,
    words: Words,
    profile: MarkedProfile,
    by_score: bool,
    record: ByteArray,
    offsets: Int64Array,
) -> None:
    """Write the records of all sequences: their heads, their words, and their domains."""
    places = found.envelopes.places
    at, envelope = 0, 0
    for number in range(found.own.size):
        own, begin = found.own[number], at
        at = _put_hit(found, own, profile, by_score, record, at)
        at = _put_words(words, number, record, at)
        _put(record, begin, at - begin, 4)
        while envelope < len(places) and places[envelope, fields.SEQUENCE] <= own:
            if places[envelope, fields.SEQUENCE] == own and places[envelope, fields.IS_DOMAIN]:
                at = _put_domain(found, envelope, profile, record, at)
            envelope += 1
        offsets[number + 1] = at


@inline
def _put_words(words: Words, number: int, record: ByteArray, at: int) -> int:
    """Write which words there are, and these with a byte 0 after each."""
    flags = at
    record[flags] = 0
    at += 1
    for word in range(3):
        begin, end = words.places[number, word]
        if word != NAME and begin == end:
            continue
        if word == ACCESSION:
            record[flags] |= HAS_ACCESSION
        elif word == DESCRIPTION:
            record[flags] |= HAS_DESCRIPTION
        content = words.accessions if word == ACCESSION else words.headers
        for byte in range(end - begin):
            record[at + byte] = content[begin + byte]
        at += end - begin
        record[at] = 0
        at += 1
    return at


@inline
def _put_hit(
    found: FoundDomains,
    own: int,
    profile: MarkedProfile,
    by_score: bool,
    record: ByteArray,
    at: int,
) -> int:
    sequence, scores = found.parses.sequences[own], found.parses.scores[own]
    best = scores[fields.SCORE]
    chance = _tail(best, profile)
    # Its size up to the domains, which is not known yet, and a number that is not used.
    at = _put(record, at, 0, 8)
    key = np.float64(best) if by_score else np.float64(-chance)
    at = _put_double(record, at, key)
    for column in (fields.SCORE, fields.PLAIN, fields.SUM):
        at = _put_float(record, at, scores[column])
    for column in (fields.SCORE, fields.PLAIN, fields.SUM):
        at = _put_double(record, at, _tail(scores[column], profile))
    at = _put_float(record, at, scores[fields.EXPECTED])
    for column in (
        fields.REGIONS,
        fields.CLUSTERED,
        fields.OVERLAPS,
        fields.ENVELOPES,
        fields.DOMAINS,
    ):
        at = _put(record, at, sequence[column], 4)
    marks = _marks(best, profile.limits[T_SCORE], profile.limits[INCLUDED_SCORE])
    at = _put(record, at, marks, 4)
    # HMMER counts reported and included domains when it knows the number of all targets.
    at = _put(record, at, 0, 8)
    at = _put(record, at, sequence[fields.BEST], 4)
    at = _put(record, at, _NOWHERE, 8)
    return _put(record, at, _NOWHERE, 8)


@inline
def _put_domain(
    found: FoundDomains, envelope: int, profile: MarkedProfile, record: ByteArray, at: int
) -> int:
    """Write a domain, and its alignment without texts."""
    places, numbers = found.envelopes.places[envelope], found.envelopes.numbers[envelope]
    limits, bits = profile.limits, numbers[fields.BITS]
    at = _put(record, at, _DOMAIN_BYTES, 4)
    for column in (fields.FIRST, fields.LAST, fields.RESIDUE, fields.LAST_RESIDUE):
        at = _put(record, at, places[column], 8)
    at = _put(record, at, 0, 16)
    for column in (
        fields.ENVELOPE,
        fields.CORRECTION,
        fields.BIAS,
        fields.ACCURACY,
        fields.BITS,
    ):
        at = _put_float(record, at, numbers[column])
    at = _put_double(record, at, _tail(bits, profile))
    marks = _marks(bits, limits[DOMAIN_SCORE], limits[INCLUDED_DOMAIN_SCORE])
    at = _put(record, at, marks // REPORTED, 4)
    at = _put(record, at, marks & INCLUDED, 4)
    at = _put(record, at, 0, 4)
    # The alignment: its size, a number that is not used, and its places on profile and sequence.
    at = _put(record, at, _ALIGNMENT_BYTES, 4)
    at = _put(record, at, 0, 4)
    at = _put(record, at, places[fields.NODE], 4)
    at = _put(record, at, places[fields.LAST_NODE], 4)
    at = _put(record, at, profile.nodes, 4)
    at = _put(record, at, places[fields.RESIDUE], 8)
    at = _put(record, at, places[fields.LAST_RESIDUE], 8)
    residues = found.parses.sequences[places[fields.SEQUENCE], fields.RESIDUES]
    at = _put(record, at, residues, 8)
    at = _put(record, at, HAS_RESIDUES, 1)
    return _put(record, at, 0, NO_TEXTS)
