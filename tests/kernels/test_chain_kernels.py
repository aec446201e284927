"""The kernels of chains, run on the host: the scores, paths and posteriors of the processor."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.chain_builders import dense
from helpers.hidden_models import (
    local_profile,
    long_models,
    profile,
    random_model,
    some_sequences,
    symbol_block,
)
from helpers.host_device import HostCompiler, HostDevice, everything_given_back

from mummergpu.hmm.language import evaluation
from mummergpu.hmm.language.device import DeviceChains
from mummergpu.hmm.language.device_pieces import DeviceLongSequence
from mummergpu.hmm.language.evaluation import CompiledModel, Evaluation, evaluate
from mummergpu.hmm.language.program import Algorithm, Attribute, Model
from mummergpu.runtime.stats import Stats

SCORE, TRACE, TABLE = Attribute.SCORE, Attribute.TRACEBACK, Attribute.TABLE

NARROW = {
    "random": random_model(2),
    "loops": random_model(100, loops=True),
    "profile": profile(9),
}
WIDE = {
    "global profile": profile(70),
    "local profile": local_profile(45),
    "hubs": dense(40),
}


@pytest.mark.parametrize("name", NARROW)
def test_threads_find_what_the_processor_finds(name: str, cxx: str, library_folder: Path) -> None:
    check(NARROW[name], "run_chain", library_folder)


@pytest.mark.parametrize("name", WIDE)
def test_blocks_find_what_the_processor_finds(name: str, cxx: str, library_folder: Path) -> None:
    check(WIDE[name], "run_wide_chain", library_folder)


def test_what_no_block_has_room_for_is_the_processor_s(cxx: str, library_folder: Path) -> None:
    cache: Any = HostCompiler(library_folder)
    device = HostDevice()
    device.shared_bytes = 2 << 10
    chains = DeviceChains(device, cache, 1 << 26, Stats(), False)
    compiled, block = CompiledModel(WIDE["hubs"]), symbol_block([[0, 1, 2]])
    assert not chains.takes(compiled.chain.shape)
    found = evaluate(compiled, Algorithm.FORWARD, block, device=chains)
    assert found.scores == evaluate(compiled, Algorithm.FORWARD, block).scores
    assert not device.launches
    chains.close()


def check(model: Model, kernel: str, folder: Path) -> None:
    compiled = CompiledModel(model)
    block = symbol_block(some_sequences(5, len(model.alphabet), 90, 40))
    for double in (False, True):
        device, compiler = HostDevice(), HostCompiler(folder)
        cache: Any = compiler
        chains = DeviceChains(device, cache, 1 << 26, Stats(), double)
        assert chains.takes(compiled.chain.shape)
        for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD, Algorithm.POSTERIOR):
            found = evaluate(compiled, algorithm, block, device=chains)
            expected = evaluate(compiled, algorithm, block)
            tolerance = 1e-12 if double else 1e-5
            np.testing.assert_allclose(found.scores, expected.scores, rtol=tolerance)
        found = evaluate(compiled, Algorithm.VITERBI, block, (SCORE, TRACE), device=chains)
        expected = evaluate(compiled, Algorithm.VITERBI, block, (SCORE, TRACE))
        # Best paths are integers: nothing may differ.
        check_paths(found, expected)
        np.testing.assert_array_equal(found.scores, expected.scores)
        found = evaluate(compiled, Algorithm.POSTERIOR, block, (SCORE, TRACE), device=chains)
        expected = evaluate(compiled, Algorithm.POSTERIOR, block, (SCORE, TRACE))
        check_paths(found, expected)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
        found = evaluate(compiled, Algorithm.POSTERIOR, block, (TABLE, TRACE), device=chains)
        expected = evaluate(compiled, Algorithm.POSTERIOR, block, (TABLE, TRACE))
        check_paths(found, expected)
        assert found.tables is not None and expected.tables is not None
        for one, other in zip(found.tables, expected.tables, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        assert {*device.launches} == {kernel, "walk_chain", "finish_shares", "list_states"}
        chains.close()
        device.close()
        assert everything_given_back(device)


@pytest.mark.parametrize("name", ["random", "profile", "loops", "islands", "sticky"])
@pytest.mark.parametrize("double", [False, True])
def test_pieces_of_long_sequences_are_joined_exactly(
    name: str, double: bool, cxx: str, library_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = CompiledModel(long_models()[name])
    choice = random.Random(4)
    sequences = [[choice.randrange(3) for _ in range(size)] for size in (9, 10, 63, 64, 65, 191)]
    block = symbol_block(sequences)
    monkeypatch.setattr(DeviceLongSequence, "piece_symbols", 7)
    monkeypatch.setattr(evaluation, "DEVICE_LONG_SYMBOLS", 9)
    device, cache = HostDevice(), HostCompiler(library_folder)
    taken: Any = cache
    chains = DeviceChains(device, taken, 1 << 26, Stats(), double)
    for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD):
        found = evaluate(model, algorithm, block, device=chains)
        expected = evaluate(model, algorithm, block)
        tolerance = 1e-12 if double else 1e-5
        np.testing.assert_allclose(found.scores, expected.scores, rtol=tolerance)
    found = evaluate(model, Algorithm.VITERBI, block, (SCORE, TRACE), device=chains)
    expected = evaluate(model, Algorithm.VITERBI, block, (SCORE, TRACE))
    np.testing.assert_array_equal(found.scores, expected.scores)
    check_paths(found, expected)
    assert "cross_pieces" in device.launches
    chains.close()
    device.close()
    assert everything_given_back(device)


def check_paths(found: Evaluation, expected: Evaluation) -> None:
    assert found.runs is not None and expected.runs is not None
    for one, other in zip(found.runs, expected.runs, strict=True):
        np.testing.assert_array_equal(one, other)
