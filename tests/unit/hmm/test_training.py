"""Expected counts and trained models, beside derivatives of an oracle and stored likelihoods."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from helpers.hidden_models import (
    FAR_APART,
    TWO_WAYS,
    local_profile,
    profile,
    random_model,
    runs_of,
    some_sequences,
    symbol_block,
    whole_matrix_scores,
)
from helpers.loops import each

from mummergpu.hmm.language import evaluation, pieces, posteriors
from mummergpu.hmm.language.evaluation import CompiledModel
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import Algorithm
from mummergpu.hmm.language.training import expected_counts, fit_model

STEP = 1e-4


def score(model, sequences):
    return sum(whole_matrix_scores(model, codes)[0] for codes in sequences)


def derivatives(model, sequences):
    """Expected counts: how the logarithm of the probability changes with that of each number."""

    def slope(changed):
        up, down = (score(changed(1 + sign * STEP), sequences) for sign in (1, -1))
        return (up - down) / (2 * STEP)

    def with_step(number, factor):
        steps = list(model.transitions)
        steps[number] = steps[number]._replace(probability=steps[number].probability * factor)
        return replace(model, transitions=tuple(steps))

    def with_emission(name, symbol, factor):
        row = list(model.emissions[name])
        row[symbol] *= factor
        return replace(model, emissions={**model.emissions, name: tuple(row)})

    transitions = [
        slope(lambda factor, n=number: with_step(n, factor))
        for number in range(len(model.transitions))
    ]
    emissions = {
        name: [
            slope(lambda f, n=name, s=symbol: with_emission(n, s, f)) for symbol in range(len(row))
        ]
        for name, row in model.emissions.items()
    }
    return transitions, emissions


def check_counts(model, sequences):
    possible = [one for one in sequences if np.isfinite(score(model, [one]))]
    found = expected_counts(CompiledModel(model), symbol_block(possible))
    transitions, emissions = derivatives(model, possible)
    np.testing.assert_allclose(found.score, score(model, possible), rtol=1e-9)
    np.testing.assert_allclose(found.transitions, transitions, atol=2e-6)
    for name, row in found.emissions.items():
        np.testing.assert_allclose(row, emissions[name], atol=2e-6)


@each("seed", range(8))
def test_counts_are_derivatives(seed):
    loops, with_end = seed % 3 == 0, seed % 2 == 0
    model = random_model(seed, loops=loops, with_end=with_end)
    check_counts(model, some_sequences(seed, 3, longest=9, count=12))


def test_counts_of_silent_states_that_are_kept():
    model = random_model(1, with_end=False)
    assert CompiledModel(model).chain.shape.silent
    check_counts(model, some_sequences(5, 3, longest=9, count=12))


def test_an_empty_path_is_counted():
    text = """hmm m { alphabet [A]; startstate s; endstate e; state a emits x; state quiet;
    emission x = [1]; s -> a 0.5; s -> quiet 0.5; a -> a 0.5; a -> e 0.5; quiet -> e 1; }"""
    model = parse_program(text).models["m"]
    found = expected_counts(CompiledModel(model), symbol_block([[], [0, 0], []]))
    # s -> a, s -> quiet, a -> a, a -> e, quiet -> e
    np.testing.assert_allclose(found.transitions, [1, 2, 1, 1, 2])


def check_flow(model, sequences):
    """Each path leaves the start once, and a state as often as it comes; all symbols are there."""
    found = expected_counts(CompiledModel(model), symbol_block(sequences))
    come, go = defaultdict(float), defaultdict(float)
    for step, count in zip(model.transitions, found.transitions, strict=True):
        go[step.source] += count
        come[step.target] += count
    assert go[model.start] == pytest.approx(len(sequences))
    if model.end is not None:
        assert come[model.end] == pytest.approx(len(sequences))
        inner = {one.name for one in model.states} - {model.start, model.end}
        for name in inner:
            assert come[name] == pytest.approx(go[name], abs=1e-9)
    total = sum(found.emissions.values())
    codes = [code for one in sequences for code in one]
    np.testing.assert_allclose(total, np.bincount(codes, minlength=len(model.alphabet)))
    return found


def test_counts_of_a_chain_of_many_steps():
    model = local_profile(40)
    assert CompiledModel(model).forward.is_exact
    choice = np.random.default_rng(3)
    sequences = [choice.integers(0, 4, size).tolist() for size in (30, 1, 64, 64, 90)]
    check_flow(model, sequences)
    check_counts(local_profile(4), [one[:12] for one in sequences[:2]])


@each("name", ["random", "profile", "far apart", "two ways"])
def test_counts_of_pieces_are_those_of_whole_sequences(name):
    models = {
        "random": random_model(2),
        "profile": profile(5),
        "far apart": parse_program(FAR_APART).models["m"],
        "two ways": parse_program(TWO_WAYS).models["m"],
    }
    model, choice = models[name], np.random.default_rng(4)
    sequences = [choice.integers(0, len(model.alphabet), 40).tolist() for _ in range(3)]
    sequences += [runs_of((0, 30), (1, 31))]
    possible = np.isfinite(
        evaluation.evaluate(CompiledModel(model), Algorithm.FORWARD, symbol_block(sequences)).scores
    )
    sequences = [one for one, is_possible in zip(sequences, possible, strict=True) if is_possible]
    assert sequences
    whole = check_flow(model, sequences)
    with pytest.MonkeyPatch.context() as small:
        small.setattr(evaluation, "LONG_SYMBOLS", 9)
        small.setattr(pieces.LongSequence, "piece_symbols", 7)
        small.setattr(posteriors, "PIECE_VALUES", 14 * CompiledModel(model).chain.shape.nodes)
        cut = expected_counts(CompiledModel(model), symbol_block(sequences))
    np.testing.assert_allclose(cut.score, whole.score, rtol=1e-12)
    np.testing.assert_allclose(cut.transitions, whole.transitions, atol=1e-9)
    for emission, row in cut.emissions.items():
        np.testing.assert_allclose(row, whole.emissions[emission], atol=1e-9)


def test_states_far_apart_have_exact_counts():
    # Of two paths, each is by far the likelier one in a half, and both have the same probability.
    model = parse_program(FAR_APART).models["m"]
    found = expected_counts(CompiledModel(model), symbol_block([runs_of((0, 3), (1, 3))] * 2))
    np.testing.assert_allclose(found.transitions, [1, 1, 5, 5])


def test_a_shared_emission_is_trained_once():
    text = """hmm m { alphabet [A, B]; startstate s; state a emits x; state b emits x;
    emission x = [0.5, 0.5]; s -> a 1; a -> b 1; b -> a 1; }"""
    fit = fit_model(
        CompiledModel(parse_program(text).models["m"]), symbol_block([[0, 0, 0, 1]]), 1, 0
    )
    assert fit.model.emissions == {"x": (0.75, 0.25)}


def test_states_without_a_path_stay_as_they_are():
    text = """hmm m { alphabet [A, B]; startstate s; state a emits x; state b emits y;
    emission x = [0.5, 0.5]; emission y = [0.2, 0.7]; s -> a 0.9; s -> b 0; a -> a 0.5;
    b -> a 0.3; }"""
    fit = fit_model(CompiledModel(parse_program(text).models["m"]), symbol_block([[0, 1, 1]]), 3, 0)
    assert [step.probability for step in fit.model.transitions] == [1, 0, 1, 0.3]
    assert fit.model.emissions["y"] == (0.2, 0.7)
