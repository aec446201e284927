"""Profiles that are parsed here are those of HMMER's parser, which gets all others."""

import io
import random
import re

import numpy as np
import pytest
from helpers.profiles import built, profiles

from mummergpu.errors import InputError
from mummergpu.hmm import profiles as reading
from mummergpu.hmm.plain_profiles import parse_profile

pyhmmer = pytest.importorskip("pyhmmer")


def with_all_words(hmm):
    """A copy of a profile with everything that a text may say."""
    hmm, choice = hmm.copy(), random.Random(1)
    hmm.reference = "".join(choice.choice("x.") for _ in range(hmm.M))
    hmm.model_mask = "".join(choice.choice("m.") for _ in range(hmm.M))
    hmm.consensus_structure = "".join(choice.choice("HE-S") for _ in range(hmm.M))
    hmm.accession, hmm.description = "PF00001.2", "one  (of two); another"
    hmm.command_line = "hmmbuild a b\nhmmcalibrate  -x  c"
    hmm.cutoffs.gathering, hmm.cutoffs.trusted, hmm.cutoffs.noise = (20.1, 19), (-3.5, 1), (0, 7)
    transitions = np.asarray(hmm.transition_probabilities)
    transitions[1:-1, 2] = 0
    return hmm


def text_of(hmm):
    file = io.BytesIO()
    hmm.write(file)
    return file.getvalue()


def older(text, letter):
    """The text in an older format: without masks, and up to d without the consensus."""
    kept = rb"\1 \2 \3 \5" if letter == "e" else rb"\1 \3 \5"
    text = re.sub(rb"(?m)^( +\d+(?: +\S+){21}) (\S) (\S) (\S) (\S)$", kept, text)
    text = re.sub(rb"(?m)^MM .*\n" if letter == "e" else rb"(?m)^(MM|CONS) .*\n", b"", text)
    return text.replace(b"HMMER3/f", b"HMMER3/" + letter.encode())


def state_of(hmm):
    """The text that HMMER writes of a profile, and the bits of its numbers."""
    arrays = hmm.match_emissions, hmm.insert_emissions, hmm.transition_probabilities
    vectors = hmm.evalue_parameters.as_vector(), hmm.cutoffs.as_vector()
    bits = [np.asarray(one).tobytes() for one in (*arrays, *vectors)]
    composition = hmm.composition and np.asarray(hmm.composition).tobytes()
    return text_of(hmm), *bits, composition, hmm.nseq_effective, hmm.checksum


@pytest.fixture
def parsed(monkeypatch):
    """The names of the profiles that HMMER's parser did not get."""
    names = []

    def parse(text, at):
        found = parse_profile(text, at)
        names.extend([] if found is None else [found.hmm.name])
        return found

    monkeypatch.setattr(reading, "parse_profile", parse)
    return names


def test_plain_profiles_are_those_of_hmmers_parser(parsed):
    some = [one.hmm for one in (*profiles(), *map(built, (1, 2, 3, 4, 5, 63, 64, 65, 2405)))]
    some += [with_all_words(built(nodes).hmm) for nodes in (1, 90)]
    text = b"".join(map(text_of, some))
    for whole in (text, *(older(text, letter) for letter in "bcde")):
        parsed.clear()
        found = [*reading.read_profiles(io.BytesIO(whole))]
        assert parsed == [one.name for one in found] == [one.name for one in some]
        with pyhmmer.plan7.HMMFile(io.BytesIO(whole)) as theirs:
            for ours, their in zip(found, theirs, strict=True):
                assert state_of(ours.hmm) == state_of(their)
                assert ours.matches.tobytes() == np.asarray(their.match_emissions)[1:].tobytes()


def outcome(text):
    """The states of profiles, and the error after them."""
    found = []
    try:
        for one in reading.read_profiles(io.BytesIO(text)):
            found.append(state_of(one.hmm))
    except InputError as error:
        return found, str(error)
    return found, None


EDITS = b"0123456789.*- \n/#AZaz\t\r\x00\xff"


def edited(text, choice):
    """A text with a change, most often among its titles."""
    text = bytearray(text)
    at = choice.randrange(choice.choice([700, len(text)]))
    end = text.index(b"\n", at) + 1
    size = choice.choice([1, 1, 1, 40, end - at, len(text)])
    other = bytes([choice.choice(EDITS)])
    text[at : at + size] = choice.choice([other, other, other, b"", b"# x\n"])
    return bytes(text)


def test_other_profiles_are_left_to_hmmers_parser(parsed, monkeypatch):
    choice = random.Random(5)
    texts = [text_of(with_all_words(built(nodes).hmm)) for nodes in (3, 7, 20)]
    families = [texts, texts, [older(text, "b") for text in texts]]
    every = []
    for _ in range(300):
        texts = choice.choice(families)
        text = b"".join(choice.choices(texts, k=choice.randrange(3)))
        every.append(text + edited(choice.choice(texts), choice) + choice.choice(texts))
    ours = [outcome(text) for text in every]
    assert len(parsed) > 300
    monkeypatch.setattr(reading, "parse_profile", lambda text, at: None)
    for text, (found, error) in zip(every, ours, strict=True):
        their, their_error = outcome(text)
        # HMMER's parser may be told of an error before it has returned the profiles above it.
        is_early = their_error is not None and "a profile without" in their_error
        assert error == their_error
        assert found[: len(their)] == their and (is_early or len(found) == len(their))
    assert (
        sum(error is None for _, error in ours) > 50 < sum(error is not None for _, error in ours)
    )
