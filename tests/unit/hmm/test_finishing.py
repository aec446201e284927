"""pyhmmer compares as HMMER does, which knows no denormal numbers."""

import platform
import sys

import numpy as np
import pytest
from helpers.profiles import profiles

from mummergpu.hmm.finishing import Finisher
from mummergpu.hmm.options import FinishingOptions
from mummergpu.input.blocks.protein_rules import ProteinRules
from mummergpu.input.blocks.proteins import ProteinsInMemory


class _Pipeline:
    """Notes what the half of the least normal number is while something is compared."""

    def __init__(self):
        self.halves = []

    def search_hmm(self, *_):
        self.halves.append(float(np.finfo(np.float32).tiny * np.array([0.5], np.float32)[0]))

    def clear(self):
        """Forget nothing."""

    scan_seq = search_hmm


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="elsewhere nothing is flushed"
)
def test_denormal_numbers_are_zero_while_pyhmmer_compares():
    profile = profiles()[0]
    finisher = Finisher(FinishingOptions(), profile.hmm.alphabet, None)
    pipeline = finisher._of_thread.pipeline = _Pipeline()
    (proteins,) = ProteinsInMemory([("one", "A" * 9)], ProteinRules()).blocks()
    finisher.search(profile, proteins, np.array([0]))
    finisher.scan(proteins, 0, [profile])
    assert pipeline.halves == [0.0, 0.0]
    pipeline.search_hmm()
    assert pipeline.halves[-1] > 0
