"""The hits of sequences that passed the filters are HMMER's, number by number."""

import math

import numpy as np
import pytest
from helpers.hmmer_library import hmmer_of, some_profiles
from helpers.profiles import block_of, repeats, sequences_like

from mummergpu.hmm.domains import definition
from mummergpu.hmm.domains.definition import DomainFinder
from mummergpu.hmm.domains.hits import HitWriter, Limits
from mummergpu.hmm.domains.profile_domains import LONGEST, ProfileDomains
from mummergpu.hmm.filters import ProfileFilter
from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.hit_lists import HitRecords
from mummergpu.hmm.options import FilterThresholds, FinishingOptions
from mummergpu.hmm.proteins import SYMBOLS, ProteinBlock
from mummergpu.hmm.stage_counts import UNKNOWN, VITERBI, Reached
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinsInMemory
from mummergpu.runtime.stats import Stats

pytest.importorskip("pyhmmer")

NO_LIMITS = Limits(None, None, None, None, False)
HEAD, ENDS_OF_NAME = 109, b"\0"
# Of a hit, the length of a window, marks and places that only nhmmer and pyhmmer's thresholds set.
UNSET = (4, 8), (76, 88), (92, 108)
# Of a domain, the places of a reading frame, which HMMER leaves as they are, and marks.
UNSET_OF_DOMAIN = (36, 52), (80, 88)


def comparable(record):
    """A record without what HMMER leaves unset, or sets later."""
    record = bytearray(record)

    def size_at(place):
        return int.from_bytes(record[place : place + 4], "big")

    for begin, end in UNSET:
        record[begin:end] = bytes(end - begin)
    at = size_at(0)
    for _ in range(size_at(72)):
        for begin, end in UNSET_OF_DOMAIN:
            record[at + begin : at + end] = bytes(end - begin)
        at += size_at(at)
        at += size_at(at)
    return bytes(record)


def proteins_of(sequences):
    names = [f"protein{n}" for n in range(len(sequences))]
    texts = ["".join(SYMBOLS[code] for code in one) for one in sequences]
    texts = [one.replace("-", "*").replace("~", "*") for one in texts]
    (proteins,) = ProteinsInMemory(zip(names, texts, strict=True), ProteinRules()).blocks()
    return proteins


OPTIONS = {
    "default": FinishingOptions(),
    "all": FinishingOptions(thresholds=FilterThresholds.without_filters(), E=1e9),
    "plain": FinishingOptions(
        thresholds=FilterThresholds(bias_filter=False), null2=False, seed=7, E=1e9
    ),
    "loose": FinishingOptions(thresholds=FilterThresholds(0.5, 0.3, 0.1), E=1e9, seed=1),
}


def compared_hits(options, profile, sequences):
    """Compare the hits of sequences with HMMER's; return their number, and of those left to it."""
    proteins = proteins_of([one for one in sequences if one.size])
    block = ProteinBlock(proteins.codes, proteins.offsets)
    survivors = np.arange(proteins.count)
    hits, _ = Finisher(options, profile.hmm.alphabet, 1.0).search(profile, proteins, survivors)
    theirs = {}
    for record in HitRecords.of_hits(hits, False).records():
        theirs[record[HEAD : record.index(ENDS_OF_NAME, HEAD)]] = record
    domains = ProfileDomains(
        ProfileFilter(profile, options.thresholds), DomainFinder(options.seed, options.null2)
    )
    found, left = domains.found(block, Reached.of_all(survivors, UNKNOWN))
    writer = HitWriter(options, profile, NO_LIMITS)
    names = [proteins.name(number).encode() for number in found.numbers]
    records = writer.records(found, proteins.words(found.numbers))
    ours = {
        name: record
        for name, record, score in zip(names, records.records(), found.scores, strict=True)
        if writer.is_kept(score, 1.0)
    }
    for number in np.flatnonzero(left):
        theirs.pop(proteins.name(number).encode(), None)
    assert ours.keys() == theirs.keys()
    for one, record in ours.items():
        assert comparable(record) == comparable(theirs[one])
    return len(ours), int(left.sum())


@pytest.mark.parametrize("name", OPTIONS)
def test_hits(name):
    options = OPTIONS[name]
    compared = others = 0
    for profile in some_profiles((1, 2, 3, 4, 5, 63, 64, 65, 600)):
        count = 8 if profile.nodes > 300 else 30
        sequences = repeats(profile, count, profile.nodes) + sequences_like(profile, count)
        hits, left = compared_hits(options, profile, sequences)
        compared += hits
        without = options.thresholds.bias_filter and profile.composition is None
        others += 0 if without else left
    assert compared > 200
    assert others < compared / 20


def test_hits_of_long_profiles_and_in_long_sequences():
    *_, short, long = some_profiles((64, 2405))
    assert compared_hits(FinishingOptions(), long, repeats(long, 2))[0] == 2
    random = np.random.default_rng(3)
    noise = random.integers(0, 20, LONGEST).astype(np.uint8)
    for number, copy in enumerate(repeats(short, 8)):
        noise[number * 12_000 :][: copy.size] = copy
    sequences = [noise, noise[: LONGEST - 1], noise[:1]]
    assert compared_hits(FinishingOptions(), short, sequences) == (2, 0)


def test_memory_that_is_too_small_at_first(monkeypatch):
    profile = some_profiles((64,))[-1]
    sequences = repeats(profile, 30)
    block = block_of(sequences)
    every = Reached.of_all(np.arange(len(sequences)), UNKNOWN)

    def found():
        filters = ProfileFilter(profile, FilterThresholds())
        found, _ = ProfileDomains(filters, DomainFinder(42, True)).found(block, every)
        return found.parses.scores.tobytes(), found.envelopes.places.tolist()

    usual = found()
    for name, least in (("_SEGMENTS", 8), ("_LEAST_BYTES", 1 << 13), ("_LEAST_ROWS", 1)):
        monkeypatch.setattr(definition, name, least)
        assert found() == usual
    assert len(usual[1]) > len(sequences)


def test_the_background_of_sequences(tmp_path):
    for profile in some_profiles((5, 64, 300)):
        if profile.composition is None:
            continue
        sequences = [one for one in sequences_like(profile, 20) if one.size]
        block = block_of(sequences)
        domains = ProfileDomains(ProfileFilter(profile, FilterThresholds()), DomainFinder(42, True))
        ours = domains.backgrounds(block, np.arange(len(sequences)))
        hmmer = hmmer_of(profile, tmp_path)
        theirs = np.array([hmmer.bias(one) for one in sequences], dtype=np.float32)
        np.testing.assert_array_equal(ours[:, 1].view(np.int32), theirs.view(np.int32))
        for one, score in zip(sequences, ours[:, 0], strict=True):
            assert math.isclose(score, one.size * math.log(one.size / (one.size + 1)), abs_tol=20)


def test_what_the_filters_are_sure_of():
    sure = doubtful = dropped = 0
    for profile in some_profiles((5, 64, 300)):
        if profile.composition is None:
            continue
        sequences = [one for one in sequences_like(profile, 300) if one.size]
        block = block_of(sequences)
        for limits in ((0.02, 1e-3), (0.5, 0.3), (0.9, 0.8)):
            own = ProfileFilter(profile, FilterThresholds(*limits))
            domains = ProfileDomains(own, DomainFinder(42, True))
            exact = domains.backgrounds(block, np.arange(len(sequences)))[:, 1]
            passes, unknown = own.decide(block, exact.astype(np.float64))
            reached = own.filtered(block, Stats(), False)
            is_sure = reached.filters == VITERBI
            assert (passes & ~unknown)[reached.sequences[is_sure]].all()
            assert (is_sure | (reached.filters == UNKNOWN)).all()
            left = np.delete(np.arange(len(sequences)), reached.sequences)
            assert not (passes | unknown)[left].any()
            sure, doubtful = sure + is_sure.sum(), doubtful + (~is_sure).sum()
            dropped += left.size
    assert sure > 500 and dropped > 200 and 0 < doubtful < sure / 20, (sure, doubtful, dropped)
