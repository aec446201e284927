"""What any device must make of chains: the scores, paths and posteriors of the processor.

The tests of the kernels on the host and of those on a real device import these tests, and open
chains in ways of their own.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from helpers.chain_builders import dense
from helpers.hidden_models import (
    APART,
    DEAD_ENDS,
    FAR_APART,
    FAR_APART_CODES,
    TWO_WAYS,
    cliques,
    far_within_a_piece,
    local_profile,
    long_models,
    profile,
    random_model,
    runs_of,
    some_sequences,
    symbol_block,
)
from mummergpu.hmm.language import evaluation
from mummergpu.hmm.language.device_pieces import DeviceLongSequence
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm, Attribute
from mummergpu.matching.options import DeviceOptions
from mummergpu.pipeline import evaluate_models
from mummergpu.pipeline.context import RunContext
from mummergpu.runtime.stats import Stats

SCORE, TRACE, TABLE = Attribute.SCORE, Attribute.TRACEBACK, Attribute.TABLE
SUMS = (Algorithm.FORWARD, Algorithm.BACKWARD)

NARROW = {"random": random_model(2), "loops": random_model(100, loops=True), "profile": profile(9)}
WIDE = {"global profile": profile(70), "local profile": local_profile(45), "hubs": dense(40)}


@pytest.mark.parametrize("name", NARROW)
def test_threads_find_what_the_processor_finds(name, open_chains):
    check(NARROW[name], "run_chain", open_chains)


@pytest.mark.parametrize("name", WIDE)
def test_blocks_find_what_the_processor_finds(name, open_chains):
    check(WIDE[name], "run_wide_chain", open_chains)


def check_sums(model, block, chains, algorithms=SUMS, left=0):
    """Compare sums with the processor's, to which so many sequences are left for each algorithm."""
    for algorithm in algorithms:
        chains.fallback_count = 0
        found = evaluate(model, algorithm, block, device=chains)
        expected = evaluate(model, algorithm, block)
        tolerance = 1e-12 if chains.double else 1e-5
        np.testing.assert_allclose(found.scores, expected.scores, rtol=tolerance)
        assert chains.fallback_count == left


def check(model, kernel, open_chains):
    compiled = CompiledModel(model)
    block = symbol_block(some_sequences(5, len(model.alphabet), 90, 40))
    for double in (False, True):
        stats = Stats()
        with open_chains(double, stats) as chains:
            assert chains.supports(compiled.chain.shape)
            check_sums(compiled, block, chains, (*SUMS, Algorithm.POSTERIOR))
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
            for one, other in zip(found.tables, expected.tables, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-12)
            assert {*stats.kernels} == {kernel, "walk_chain", "finish_shares", "list_states"}


@pytest.mark.parametrize(
    ("name", "double"),
    [
        *(("random", True), ("profile", False), ("loops", True)),
        *(("islands", False), ("sticky", True)),
    ],
)
def test_pieces_of_long_sequences_are_joined_exactly(name, double, open_chains, monkeypatch):
    model = CompiledModel(long_models()[name])
    choice = random.Random(4)
    sequences = [[choice.randrange(3) for _ in range(size)] for size in (9, 10, 63, 64, 65, 191)]
    block = symbol_block(sequences)
    monkeypatch.setattr(DeviceLongSequence, "piece_symbols", 7)
    monkeypatch.setattr(evaluation, "DEVICE_LONG_SYMBOLS", 9)
    stats = Stats()
    with open_chains(double, stats) as chains:
        check_sums(model, block, chains)
        found = evaluate(model, Algorithm.VITERBI, block, (SCORE, TRACE), device=chains)
        expected = evaluate(model, Algorithm.VITERBI, block, (SCORE, TRACE))
        np.testing.assert_array_equal(found.scores, expected.scores)
        check_paths(found, expected)
        assert "cross_pieces" in stats.kernels


APART_MODEL = parse_program(APART).models["m"]
DEAD_ENDS_MODEL = parse_program(DEAD_ENDS).models["m"]
FAR = [runs_of((0, 400), (1, 420)), runs_of((0, 25), (1, 3)), [0, 1], runs_of((1, 12))]
"""The second one has a common scale of numbers of 64 bits."""


@pytest.mark.parametrize(
    "model, double, left",
    [
        *((APART_MODEL, False, 2), (APART_MODEL, True, 1)),
        *((cliques(9), False, 1), (cliques(9), True, 1)),
    ],
)
def test_what_has_no_common_scale_is_the_processor_s(model, double, left, open_chains):
    compiled = CompiledModel(model)
    with open_chains(double, Stats()) as chains:
        check_sums(compiled, symbol_block(FAR), chains, left=left)
        check_posteriors(compiled, FAR, chains, 1)


def test_small_products_from_both_ends_are_the_processor_s(open_chains):
    with open_chains(False, Stats()) as chains:
        sequences = [runs_of((0, half), (1, half)) for half in (20, 130, 161)]
        check_posteriors(CompiledModel(DEAD_ENDS_MODEL), sequences, chains, 1)


def check_posteriors(model, sequences, chains, left):
    block = symbol_block(sequences)
    for wanted in ((SCORE, TRACE), (TABLE, TRACE)):
        chains.fallback_count = 0
        found = evaluate(model, Algorithm.POSTERIOR, block, wanted, device=chains)
        expected = evaluate(model, Algorithm.POSTERIOR, block, wanted)
        check_paths(found, expected)
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
        for one, other in zip(found.tables or [], expected.tables or [], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
        assert chains.fallback_count == left


def test_pieces_without_a_common_scale_are_the_processor_s(open_chains, monkeypatch):
    model = CompiledModel(APART_MODEL)
    monkeypatch.setattr(DeviceLongSequence, "piece_symbols", 7)
    monkeypatch.setattr(evaluation, "DEVICE_LONG_SYMBOLS", 9)
    with open_chains(True, Stats()) as chains:
        check_sums(model, symbol_block(FAR), chains, left=1)


@pytest.mark.parametrize("name", ["threads", "blocks", "pieces", "within"])
def test_paths_too_far_apart_are_the_processor_s(name, open_chains, monkeypatch):
    model = parse_program(FAR_APART).models["m"]
    if name == "blocks":
        model = replace(cliques(17), emissions={"a": (0.9, 1e-300), "b": (1e-300, 0.9)})
    if name == "pieces":
        monkeypatch.setattr(DeviceLongSequence, "piece_symbols", 3000)
        monkeypatch.setattr(evaluation, "DEVICE_LONG_SYMBOLS", 9)
    codes = FAR_APART_CODES
    if name == "within":
        model, codes = parse_program(TWO_WAYS).models["m"], far_within_a_piece()
        monkeypatch.setattr(DeviceLongSequence, "piece_symbols", 10_000)
        monkeypatch.setattr(evaluation, "DEVICE_LONG_SYMBOLS", 9)
    compiled, block = CompiledModel(model), symbol_block([codes, [0, 1, 1]])
    with open_chains(False, Stats()) as chains:
        found = evaluate(compiled, Algorithm.VITERBI, block, (SCORE, TRACE), device=chains)
        expected = evaluate(compiled, Algorithm.VITERBI, block, (SCORE, TRACE))
        np.testing.assert_array_equal(found.scores, expected.scores)
        check_paths(found, expected)
        assert chains.fallback_count == 1


def test_a_run_tells_what_was_left_to_the_processor(open_chains, monkeypatch, tmp_path):
    told = []
    with open_chains(True, Stats()) as chains:
        monkeypatch.setattr(evaluate_models, "_open_device", lambda *given: chains)
        main = "main() { print forward(new m()).score; }"
        (tmp_path / "apart.hmm").write_text(f"{APART} {main}")
        (tmp_path / "lines.txt").write_text("".join("AB"[code] for code in FAR[0]) + "\nAB\nBA\n")
        program, lines, out = (
            str(tmp_path / name) for name in ("apart.hmm", "lines.txt", "out.tsv")
        )
        files = program, (lines,), out
        options = evaluate_models.ModelRunOptions(*files, device=DeviceOptions(), double=True)
        evaluate_models.run(options, RunContext(notice=told.append))
        (line,) = told
        assert line.startswith("1 sequence computed without the device:")
        lines = (tmp_path / "out.tsv").read_text().split("\n")[1:-1]
        scores = [float(line.split("\t")[1]) for line in lines]
        assert scores == pytest.approx([-965.978600954, -2.40794560865, -2.40794560865])


def test_chances_too_small_for_a_device_are_the_processor_s(open_chains):
    """Those of 1e-30 need 64 bits, and of those of 1e-200 the device is told nothing."""
    for tiny, takes in ((1e-30, True), (1e-200, False)):
        model = parse_program(APART.replace("0.1]", f"{tiny}]")).models["m"]
        compiled, block = CompiledModel(model), symbol_block(FAR)
        stats = Stats()
        with open_chains(False, stats) as chains:
            found = evaluate(compiled, Algorithm.FORWARD, block, device=chains)
            expected = evaluate(compiled, Algorithm.FORWARD, block)
            np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-12)
            assert bool(stats.kernels) == takes


def check_paths(found, expected):
    for one, other in zip(found.runs, expected.runs, strict=True):
        np.testing.assert_array_equal(one, other)
