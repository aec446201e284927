"""Finishes searches and scans without alignments; HMMER compares the few others itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from mummergpu.hmm.domains.definition import DomainFinder
from mummergpu.hmm.domains.hits import HitWriter, Limits
from mummergpu.hmm.domains.odds import Odds
from mummergpu.hmm.domains.profile_domains import ProfileDomains
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.hit_lists import HitRecords
from mummergpu.hmm.options import FinishingOptions
from mummergpu.hmm.profiles import Profile
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.stage_counts import Reached
from mummergpu.input.blocks.proteins import NamedProteins
from mummergpu.input.records.record_arrays import Words
from mummergpu.runtime.pyhmmer_library import bytes_of


class ScannedPair(NamedTuple):
    """A protein and a profile that were compared: a hit, or HMMER has to compare them."""

    writer: HitWriter
    record: bytes = b""
    score: float = 0.0


class DomainFinisher:
    """Compares sequences with profiles to the end; threads share it. `Z` is as for `Finisher`."""

    def __init__(self, finisher: Finisher, options: FinishingOptions, Z: float | None) -> None:
        self._finisher = finisher
        self._options = options
        self._Z = Z
        self._finder = DomainFinder(options.seed, options.null2)
        self._odds: WeakKeyDictionary[ProfileFilter, Odds] = WeakKeyDictionary()

    def _domains_of(self, profile_filter: ProfileFilter) -> ProfileDomains:
        domains = ProfileDomains(profile_filter, self._finder, self._odds.get(profile_filter))
        self._odds[profile_filter] = domains.odds
        return domains

    def _cutoffs(self, profile: Profile) -> dict[str, Any]:
        """Return the profile's own thresholds, if they are to be used."""
        return {} if self._options.bit_cutoffs is None else self._finisher.cutoffs(profile)

    def _writer(self, profile: Profile, cutoffs: dict[str, Any]) -> HitWriter:
        scores = {
            name: cutoffs.get(name, getattr(self._options, name))
            for name in ("T", "domT", "incT", "incdomT")
        }
        limits = Limits(**scores, are_of_profile=bool(cutoffs))
        return HitWriter(self._options, profile, limits)

    def search(
        self, profile_filter: ProfileFilter, proteins: NamedProteins, reached: Reached
    ) -> tuple[HitRecords, list[int]]:
        """Compare the survivors of a block with a profile (HMMER's hmmsearch).

        Return the hits, and the numbers of the proteins that no path through the profile emits.
        `InputError` is raised if HMMER cannot compare a sequence for another reason.
        """
        profile = profile_filter.profile
        block = ProteinBlock(proteins.codes, proteins.offsets)
        found, others = self._domains_of(profile_filter).found(block, reached)
        survivors = reached.sequences
        if others.all():
            top_hits, impossible = self._finisher.search(profile, proteins, survivors)
            return HitRecords.of_hits(top_hits, False), impossible
        cutoffs = self._cutoffs(profile)
        writer = self._writer(profile, cutoffs)
        places = (np.searchsorted(survivors, found.numbers) + 1).tolist()
        pairs = zip(found.scores, places, strict=True)
        kept = [
            writer.is_kept(score, place if self._Z is None else self._Z) for score, place in pairs
        ]
        found = found.those(np.flatnonzero(kept))
        words = proteins.words(found.numbers)
        hits = writer.records(found, words)._replace(cutoffs=cutoffs)
        if not others.any():
            return hits, []
        numbers = found.numbers.tolist()
        records = {number: [record] for number, record in zip(numbers, hits.records(), strict=True)}
        left_out = []
        for number in survivors[others].tolist():
            top_hits, impossible = self._finisher.search(profile, proteins, np.array([number]))
            records[number] = [*HitRecords.of_hits(top_hits, False).records()]
            left_out += impossible
        ordered = [one for number in sorted(records) for one in records[number]]
        return HitRecords.of_records(ordered, cutoffs), left_out

    def scan(
        self, profile_filter: ProfileFilter, proteins: NamedProteins, reached: Reached
    ) -> dict[int, ScannedPair]:
        """Compare proteins that passed the filters with a profile, for `of_protein`."""
        profile = profile_filter.profile
        block = ProteinBlock(proteins.codes, proteins.offsets)
        found, others = self._domains_of(profile_filter).found(block, reached)
        writer = self._writer(profile, self._cutoffs(profile))
        pairs = {number: ScannedPair(writer) for number in reached.sequences[others].tolist()}
        own = profile.name, profile.accession, profile.description
        name, accession, description = map(bytes_of, own)
        targets = Words.of_texts(found.own.size * [(name, accession, description)])
        records = writer.records(found, targets).records()
        for number, record, score in zip(
            found.numbers.tolist(), records, found.scores, strict=True
        ):
            pairs[number] = ScannedPair(writer, record, score)
        return pairs

    def of_protein(
        self,
        proteins: NamedProteins,
        number: int,
        profiles: Sequence[Profile],
        pairs: Sequence[ScannedPair | None],
    ) -> tuple[HitRecords, list[Profile]]:
        """Return the hits of a protein and profiles (HMMER's hmmscan), as `search` does.

        `pairs` are what `scan` returned for each, None where it returned nothing.
        """
        records: list[bytes] = []
        left_out: list[Profile] = []
        for place, (profile, pair) in enumerate(zip(profiles, pairs, strict=True), 1):
            if pair is None:
                continue
            if not pair.record:
                hits, impossible = self._finisher.scan(proteins, number, [profile])
                records += HitRecords.of_hits(hits, False).records()
                left_out += impossible
            elif pair.writer.is_kept(pair.score, place if self._Z is None else self._Z):
                records.append(pair.record)
        cutoffs = self._cutoffs(profiles[0]) if profiles else {}
        return HitRecords.of_records(records, cutoffs), left_out
