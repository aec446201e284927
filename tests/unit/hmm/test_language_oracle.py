"""Chains of HMMER's profiles and of pairwise alignment: the slow check of faster programs."""

import math
import random

import numpy as np
import pyhmmer
import pytest
from helpers.chain_builders import UNIT, pairwise, plan7
from helpers.full_matrix import NEVER, FullMatrix
from helpers.hidden_models import symbol_block
from helpers.profiles import built, profiles, sequences_like

import mummergpu
from mummergpu.errors import ModelError, OptionError
from mummergpu.hmm.filters import ProfileFilter, lengths_up_to
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.program import Algorithm
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.proteins import SYMBOLS, ProteinBlock
from mummergpu.hmm.tables import WORD_BASE, word_tables
from mummergpu.hmm.word_filter import OVERFLOW
from mummergpu.viterbi.recurrence.model import Costs


def best_scores(model, block):
    """The scores of best paths in units of `UNIT`, which must be integers."""
    codes = [
        block.codes[begin:end].tolist()
        for begin, end in zip(block.offsets[:-1], block.offsets[1:], strict=True)
    ]
    found = evaluate(model, Algorithm.VITERBI, symbol_block(codes)).scores / UNIT
    np.testing.assert_allclose(found, np.rint(found), atol=1e-3)
    return np.rint(found)


@pytest.mark.parametrize("nodes", [3, 40])
def test_the_viterbi_filter_of_profiles_finds_the_best_path(nodes):
    profile = built(nodes)
    one = ProfileFilter(profile, FilterThresholds())
    length = 90
    choice = random.Random(nodes)
    every = [list(sequence) for sequence in sequences_like(profile, 30)]
    codes = [[int(code) for code in sequence if code < 20] for sequence in every]
    same = [
        (sequence + [choice.randrange(20) for _ in range(length)])[:length] for sequence in codes
    ]
    flat = np.array([code for sequence in same for code in sequence], dtype=np.uint8)
    block = ProteinBlock(flat, np.arange(len(same) + 1, dtype=np.int64) * length)
    words = one.viterbi_words(block, np.arange(len(same)), lengths_up_to(length))
    model = CompiledModel(plan7(word_tables(profile), length))
    found = best_scores(model, block) + WORD_BASE
    fits = words < OVERFLOW
    assert fits.sum() > 10
    np.testing.assert_array_equal(found[fits], words[fits])


@pytest.mark.parametrize("number", [0, 3])
def test_a_profile_has_the_bit_scores_of_hmmer(number, tmp_path):
    """Those before corrections, which are of all paths; and best paths are those of the filter."""
    profile, length = profiles()[number], 130
    choice = np.random.default_rng(number)
    consensus = profile.matches.argmax(axis=1)
    piece = consensus[: min(profile.nodes, 90)]
    same = choice.integers(0, 20, (12, length))
    for share, row in enumerate(same):
        noisy = choice.random(piece.size) < (0.3 + share / 20 if share else 0)
        row[5 : 5 + piece.size] = np.where(noisy, row[5 : 5 + piece.size], piece)
    hmm, alphabet = profile.hmm, profile.hmm.alphabet
    with open(tmp_path / "one.hmm", "wb") as file:
        hmm.write(file)
    model = mummergpu.HiddenMarkovModel.from_profile(
        tmp_path / "one.hmm", length=length, name=profile.name
    )
    every = [
        pyhmmer.easel.DigitalSequence(alphabet, name=f"{at}", sequence=row.astype(np.uint8))
        for at, row in enumerate(same)
    ]
    kept = {"F1": 1.0, "F2": 1.0, "F3": 1.0, "E": 1e9, "bias_filter": False, "null2": False}
    pipeline = pyhmmer.plan7.Pipeline(alphabet, **kept)
    hits = pipeline.search_hmm(hmm, pyhmmer.easel.DigitalSequenceBlock(alphabet, every))
    expected = {int(hit.name): hit.pre_score for hit in hits}
    assert len(expected) == len(same)
    texts = ["".join(SYMBOLS[code] for code in row) for row in same]
    found = np.array(model.forward(texts)) / math.log(2)
    np.testing.assert_allclose(found, [expected[at] for at in range(len(same))], atol=1e-3)
    block = ProteinBlock(same.ravel().astype(np.uint8), np.arange(len(same) + 1) * length)
    one = ProfileFilter(profile, FilterThresholds())
    words = one.viterbi_words(block, np.arange(len(same)), lengths_up_to(length))
    paths = model.viterbi(texts)
    # The filter takes 3 nats for all symbols outside alignments, however many there are.
    outside = [sum(model.states[state] in "NJC" for state in path.states) for path in paths]
    loops = np.array(outside) * math.log(length / (length + 3))
    best = np.array([path.score for path in paths]) - loops
    null = length * math.log(length / (length + 1)) - math.log(length + 1)
    move = math.log(3 / (length + 3))
    filtered = (words - WORD_BASE) * math.log(2) / 500 + move - null
    # A word is rounded for each step and each symbol. Where no path is good, another one may be the
    # best without the loops.
    fits = words < OVERFLOW
    assert (filtered[fits] > best[fits] - 0.05).all()
    good = fits & (best > 2)
    assert good.sum() > 2
    np.testing.assert_allclose(best[good], filtered[good], atol=0.05)
    states = paths[0].states
    assert [model.states[state] for state in states[[4, 5, 6]]] == ["N", "M[1]", "M[2]"]


def test_profiles_that_are_not_there_are_told(tmp_path):
    with open(tmp_path / "one.hmm", "wb") as file:
        built(5).hmm.write(file)
    with pytest.raises(ModelError, match="no profile 'other'"):
        mummergpu.HiddenMarkovModel.from_profile(tmp_path / "one.hmm", length=9, name="other")
    for wrong in (0, -3, 2.5, "9", None):
        with pytest.raises(OptionError, match="length"):
            mummergpu.HiddenMarkovModel.from_profile(tmp_path / "one.hmm", length=wrong)


def test_the_recurrence_of_alignments_finds_the_best_path():
    choice, costs = random.Random(3), Costs(match=2, mismatch=3, insertion_open=3, deletion_open=4)
    for _ in range(3):
        reference = [choice.randrange(4) for _ in range(14)]
        model = CompiledModel(pairwise(reference, costs))
        for _ in range(6):
            read = list(reference[:10])
            del read[choice.randrange(9)]
            read.insert(choice.randrange(9), choice.randrange(5))
            read[choice.randrange(9)] = choice.randrange(4)
            matrix = FullMatrix(read, reference, costs)
            ends = [
                matrix.scores.get(("match", (len(read), at)), NEVER)
                for at in range(len(reference) + 1)
            ]
            block = symbol_block([read])
            score = evaluate(model, Algorithm.VITERBI, block).scores[0] / UNIT
            assert score == pytest.approx(max(ends), abs=1e-3)
