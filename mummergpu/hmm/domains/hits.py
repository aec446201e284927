"""Records of hits: bytes of HMMER's ``p7_hit_Serialize``, without alignments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from mummergpu.hmm.domains import fields
from mummergpu.hmm.domains.parses import Envelopes, Parses
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile, Statistics
from mummergpu.runtime.arrays import Float64Array, Int64Array

_HIT: Final = np.dtype(
    [
        *[("size", ">u4"), ("window", ">u4"), ("key", ">f8"), ("scores", ">f4", 3)],
        *[("chances", ">f8", 3), ("expected", ">f4"), ("counts", ">i4", 5), ("marks", ">u4")],
        *[("numbers", ">i4", 2), ("best", ">i4"), ("offsets", ">i8", 2), ("texts", "u1")],
    ]
)
_HAS_ACCESSION, _HAS_DESCRIPTION = 1, 2
_DOMAIN: Final = np.dtype(
    [
        *[("size", ">u4"), ("places", ">i8", 6), ("numbers", ">f4", 5), ("chance", ">f8")],
        *[("marks", ">i4", 3), ("alignment_size", ">u4"), ("number", ">i4")],
        *[("nodes", ">i4", 3), ("residues", ">i8", 3), ("texts", "u1"), ("empty", "u1", 9)],
    ]
)
"""A domain with its alignment, which has places but no texts."""
_ALIGNED_AT: Final = 92
_RESIDUES_OF_ALIGNMENT: Final = 16
_COUNTS: Final = [
    *(fields.REGIONS, fields.CLUSTERED, fields.OVERLAPS, fields.ENVELOPES, fields.DOMAINS)
]
_PLACES: Final = [fields.FIRST, fields.LAST, fields.RESIDUE, fields.LAST_RESIDUE]
_NUMBERS: Final = [*(fields.ENVELOPE, fields.CORRECTION, fields.BIAS, fields.ACCURACY, fields.BITS)]
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


class FoundDomains(NamedTuple):
    """Sequences that have domains."""

    numbers: Int64Array  # Their numbers in the block
    own: Int64Array  # Their numbers among those of `parses`
    parses: Parses
    envelopes: Envelopes

    @property
    def scores(self) -> list[float]:
        """Their scores in bits."""
        scores: list[float] = self.parses.scores[self.own, fields.SCORE].tolist()
        return scores


def exponential_tails(scores: Float64Array, statistics: Statistics) -> Float64Array:
    """Return the logarithms of the chances of scores in bits or higher ones by chance."""
    tails = -statistics.forward_lambda * (scores - statistics.forward_tau)
    return np.where(scores < statistics.forward_tau, 0.0, tails)


class HitWriter:
    """Writes hits as bytes of HMMER's ``p7_hit_Serialize``, without alignments."""

    def __init__(self, options: FinishingOptions, profile: Profile, limits: Limits) -> None:
        self._options = options
        self._statistics = profile.statistics
        self._nodes = profile.nodes
        self._limits = limits

    def is_kept(self, score: float, targets: float) -> bool:
        """Return whether a target with a score may be reported among so many."""
        if self._limits.T is not None:
            return score >= self._limits.T
        above = max(score - self._statistics.forward_tau, 0.0)
        return math.exp(-self._statistics.forward_lambda * above) * targets <= self._options.E

    def records(self, found: FoundDomains, targets: Iterable[Target]) -> Iterator[bytes]:
        """Yield the record of each sequence; `targets` are their words."""
        words = [*islice(targets, found.own.size)]
        texts = [b"\0".join([one.name, *filter(None, one[1:]), b""]) for one in words]
        heads = self._heads(found)
        heads["size"] += np.array([*map(len, texts)], dtype=np.uint32)
        heads["texts"] = [
            _HAS_ACCESSION * bool(one.accession) + _HAS_DESCRIPTION * bool(one.description)
            for one in words
        ]
        ends = np.cumsum(heads["counts"][:, -1] * _DOMAIN.itemsize).tolist()
        own, domains = heads.tobytes(), self._domains(found).tobytes()
        for number, (text, begin, end) in enumerate(zip(texts, [0, *ends], ends, strict=False)):
            at = number * _HIT.itemsize
            yield own[at : at + _HIT.itemsize] + text + domains[begin:end]

    def _heads(self, found: FoundDomains) -> Any:
        sequences, scores = found.parses.sequences[found.own], found.parses.scores[found.own]
        heads = np.zeros(len(sequences), dtype=_HIT)
        heads["size"] = _HIT.itemsize
        heads["scores"] = scores[:, [fields.SCORE, fields.PLAIN, fields.SUM]]
        in_bits = heads["scores"].astype(np.float64)
        heads["chances"] = exponential_tails(in_bits, self._statistics)
        by_score = self._limits.incT is not None
        heads["key"] = in_bits[:, 0] if by_score else -heads["chances"][:, 0]
        heads["expected"] = scores[:, fields.EXPECTED]
        heads["counts"] = sequences[:, _COUNTS]
        heads["marks"] = self._marks(in_bits[:, 0], self._limits.T, self._limits.incT)
        heads["best"] = sequences[:, fields.BEST]
        heads["offsets"] = -1
        return heads

    def _domains(self, found: FoundDomains) -> Any:
        envelopes, is_own = found.envelopes, np.zeros(len(found.parses.sequences), dtype=np.bool_)
        is_own[found.own] = True
        places = envelopes.places
        chosen = is_own[places[:, fields.SEQUENCE]] & (places[:, fields.IS_DOMAIN] != 0)
        places, numbers = places[chosen], envelopes.numbers[chosen]
        domains = np.zeros(len(places), dtype=_DOMAIN)
        domains["size"] = _ALIGNED_AT
        domains["places"][:, :4] = places[:, _PLACES]
        domains["numbers"] = numbers[:, _NUMBERS]
        bits = numbers[:, fields.BITS].astype(np.float64)
        domains["chance"] = exponential_tails(bits, self._statistics)
        marks = self._marks(bits, self._limits.domT, self._limits.incdomT)
        domains["marks"][:, 0] = marks & _REPORTED
        domains["marks"][:, 1] = marks & _INCLUDED != 0
        domains["alignment_size"] = _DOMAIN.itemsize - _ALIGNED_AT
        domains["nodes"][:, :2] = places[:, [fields.NODE, fields.LAST_NODE]]
        domains["nodes"][:, 2] = self._nodes
        domains["residues"][:, :2] = places[:, [fields.RESIDUE, fields.LAST_RESIDUE]]
        domains["residues"][:, 2] = found.parses.sequences[
            places[:, fields.SEQUENCE], fields.RESIDUES
        ]
        domains["texts"] = _RESIDUES_OF_ALIGNMENT
        return domains

    def _marks(self, scores: Float64Array, reported: float | None, included: float | None) -> Any:
        """Return HMMER's marks, which it sets here only for the profile's own cutoffs."""
        if not self._limits.are_of_profile or reported is None:
            return np.zeros(scores.shape, dtype=np.int64)
        is_included = False if included is None else scores >= included
        return np.where(scores >= reported, _REPORTED | np.where(is_included, _INCLUDED, 0), 0)
