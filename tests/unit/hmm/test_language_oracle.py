"""Chains of HMMER's profiles and of pairwise alignment: the slow check of faster programs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from helpers.chain_builders import UNIT, pairwise, plan7
from helpers.full_matrix import NEVER, FullMatrix
from helpers.hidden_models import symbol_block
from helpers.profiles import built, sequences_like

from mummergpu.hmm.filters import FilterThresholds, ProfileFilter, lengths_up_to
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.program import Algorithm
from mummergpu.hmm.proteins import ProteinBlock
from mummergpu.hmm.tables import WORD_BASE, word_tables
from mummergpu.hmm.word_filter import OVERFLOW
from mummergpu.viterbi.recurrence.model import Costs


def best_scores(model: CompiledModel, block: ProteinBlock) -> np.ndarray:
    """The scores of best paths in units of `UNIT`, which must be integers."""
    codes = [
        block.codes[begin:end].tolist()
        for begin, end in zip(block.offsets[:-1], block.offsets[1:], strict=True)
    ]
    found = evaluate(model, Algorithm.VITERBI, symbol_block(codes)).scores / UNIT
    np.testing.assert_allclose(found, np.rint(found), atol=1e-3)
    return np.rint(found)


@pytest.mark.parametrize("nodes", [3, 40])
def test_the_viterbi_filter_of_profiles_finds_the_best_path(nodes: int) -> None:
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


def test_the_recurrence_of_alignments_finds_the_best_path() -> None:
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
