"""The kernel of chains, run on the host: the scores and the paths of the processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.hidden_models import profile, random_model, some_sequences, symbol_block
from helpers.host_device import HostCompiler, HostDevice, everything_given_back

from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.program import Algorithm, Attribute, Model
from mummergpu.runtime.stats import Stats

MODELS = {
    "random": random_model(2),
    "loops": random_model(100, loops=True),
    "profile": profile(9),
}


@pytest.mark.parametrize("name", MODELS)
def test_scores_and_paths_are_those_of_the_processor(
    name: str, cxx: str, library_folder: Path
) -> None:
    check(MODELS[name], library_folder)


def check(model: Model, folder: Path) -> None:
    compiled = CompiledModel(model)
    assert compiled.fits_device
    block = symbol_block(some_sequences(5, 3, 90, 40))
    for double in (False, True):
        device, compiler = HostDevice(), HostCompiler(folder)
        cache: Any = compiler
        chains = DeviceChains(device, cache, 1 << 26, Stats(), double)
        for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD, Algorithm.POSTERIOR):
            found = evaluate(compiled, algorithm, block, device=chains)
            expected = evaluate(compiled, algorithm, block)
            tolerance = 1e-12 if double else 1e-5
            np.testing.assert_allclose(found.scores, expected.scores, rtol=tolerance)
        wanted = (Attribute.SCORE, Attribute.TRACEBACK)
        found = evaluate(compiled, Algorithm.VITERBI, block, wanted, device=chains)
        expected = evaluate(compiled, Algorithm.VITERBI, block, wanted)
        assert "run_chain" in device.launches
        # Best paths are integers: nothing may differ.
        np.testing.assert_array_equal(found.scores, expected.scores)
        assert found.runs is not None and expected.runs is not None
        for one, other in zip(found.runs, expected.runs, strict=True):
            np.testing.assert_array_equal(one, other)
        chains.close()
        device.close()
        assert everything_given_back(device)
