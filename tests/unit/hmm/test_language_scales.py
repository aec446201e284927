"""Sums of states that fall out of the range of numbers, compared with decimal numbers."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest
from helpers.decimal_models import decimal_sums
from helpers.hidden_models import (
    APART,
    DEAD_ENDS,
    FAR_APART,
    FAR_APART_CODES,
    TWO_WAYS,
    cliques,
    far_within_a_piece,
    runs_of,
    symbol_block,
)
from helpers.loops import each
from helpers.profiles import built
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mummergpu.hmm.language import evaluation, pieces, posteriors
from mummergpu.hmm.language.chain import chain_of
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.plan7 import plan7_model
from mummergpu.hmm.language.program import Algorithm, Attribute, Model, State, Transition
from mummergpu.hmm.language.tables import LOG_UNITS, LONGEST_CHUNK, log_units, sum_tables
from mummergpu.runtime.compiled.levels import usable_levels

ALL = (Attribute.SCORE, Attribute.TRACEBACK, Attribute.TABLE)
SCORE = (Attribute.SCORE,)


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9)


def check(model, sequences, patch):
    """Compare all that there is of some sequences; with a patch, scores and paths in pieces."""
    compiled, block = CompiledModel(model), symbol_block(sequences)
    expected = [decimal_sums(model, codes, compiled.state_names) for codes in sequences]
    scores = [one.score for one in expected]
    for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD):
        found = evaluate(compiled, algorithm, block, (*SCORE, Attribute.TABLE))
        close(found.scores, scores)
        for table, one in zip(found.tables, expected, strict=True):
            close(table, one.forward if algorithm is Algorithm.FORWARD else one.backward)
        close(evaluate(compiled, algorithm, block).scores, scores)
    check_posteriors(evaluate(compiled, Algorithm.POSTERIOR, block, ALL), compiled, expected)
    if patch is None:
        return
    with patch.context() as small:
        small.setattr(evaluation, "LONG_SYMBOLS", 9)
        small.setattr(pieces.LongSequence, "piece_symbols", 7)
        small.setattr(posteriors, "PIECE_VALUES", 14 * compiled.chain.shape.nodes)
        for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD, Algorithm.POSTERIOR):
            close(evaluate(compiled, algorithm, block).scores, scores)
        check_posteriors(evaluate(compiled, Algorithm.POSTERIOR, block, ALL), compiled, expected)


def check_posteriors(found, compiled, expected):
    runs, names = found.runs, compiled.visits.names
    for number, (table, one) in enumerate(zip(found.tables, expected, strict=True)):
        close(found.scores[number], one.score)
        part = slice(int(runs.offsets[number]), int(runs.offsets[number + 1]))
        if math.isinf(one.score):
            assert np.isnan(table).all() and part.start == part.stop
            continue
        shares = one.posteriors()
        np.testing.assert_allclose(table, shares, atol=1e-9)
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)
        visits = [names[visit] for visit in runs.visits[part]]
        path = np.repeat([compiled.state_names.index(name) for name in visits], runs.lengths[part])
        likely = shares[path, np.arange(path.size)]
        np.testing.assert_allclose(likely, shares.max(axis=0), atol=1e-9)


def test_a_piece_may_end_what_a_state_had(monkeypatch):
    """Both states are even behind the first piece; behind the second one has become nothing."""
    codes = runs_of((0, 100), (1, 100), (0, 100), (1, 100), (0, 400), (1, 800))
    model = CompiledModel(parse_program(APART).models["m"])
    expected = decimal_sums(model.model, codes, model.state_names).score
    monkeypatch.setattr(evaluation, "LONG_SYMBOLS", 9)
    monkeypatch.setattr(pieces.LongSequence, "piece_symbols", 400)
    for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD):
        close(evaluate(model, algorithm, symbol_block([codes])).scores, [expected])
    # Without an image, each run of a long sequence would import numba.
    assert pieces._join_sums._images or not usable_levels()


def test_a_state_that_falls_behind_catches_up(monkeypatch):
    model = parse_program(APART).models["m"]
    sequences = [runs_of((0, 400), (1, 420)), runs_of((0, 900), (1, 900)), [0, 1], runs_of((1, 50))]
    check(model, sequences, monkeypatch)
    found = evaluate(CompiledModel(model), Algorithm.FORWARD, symbol_block(sequences[:1]))
    likeliest = math.log(0.5) + 400 * math.log(0.1) + 420 * math.log(0.9)
    assert found.scores[0] == pytest.approx(likeliest + math.log1p(9**-20), abs=1e-10)


TINY = (0.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.9, 0.1, 1e-3, 1e-20, 1e-100, 1e-200, 1e-300)
MILD = (0.0, 1.0, 0.5, 0.9, 0.1, 1e-3, 1e-8)
WAYS = {"apart": "", "to the right": "ab bc", "all": "ab ac ba bc ca cb"}


@st.composite
def models(draw):
    """Three states of one shape, whose steps may be impossible."""
    chances = st.sampled_from(draw(st.sampled_from([TINY, MILD, MILD])))
    ways = draw(st.sampled_from(list(WAYS.values())))
    names = "abc"

    def chance(source, target):
        return draw(chances) if source == target or f"{source}{target}" in ways else 0.0

    states = [State("s"), *(State(name, name) for name in names), State("q"), State("e")]
    emissions = {name: (draw(chances), draw(chances)) for name in names}
    steps = [Transition("s", name, draw(chances)) for name in names]
    steps += [Transition(one, two, chance(one, two)) for one in names for two in names]
    # A silent state; what is less than a number after both steps no program knows.
    steps += [Transition("b", "q", draw(st.sampled_from(MILD)) if "bc" in ways else 0.0)]
    steps += [Transition("q", name, draw(chances)) for name in "bc"]
    end = draw(st.sampled_from(["e", None]))
    if end is not None:
        steps += [Transition(name, "e", draw(chances)) for name in "abcq"]
    return Model("m", ("A", "B"), tuple(states), "s", end, emissions, tuple(steps))


@st.composite
def sequences(draw):
    parts = st.tuples(st.sampled_from([0, 1]), st.sampled_from([1, 2, 3, 20, 90, 400]))
    return runs_of(*draw(st.lists(parts, min_size=1, max_size=4)))


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(model=models(), some=st.lists(sequences(), min_size=1, max_size=3))
def test_sums_need_no_common_scale(model, some, monkeypatch):
    check(model, some, monkeypatch)


def test_chains_without_a_program_of_their_own(monkeypatch):
    model = cliques(9)
    assert not chain_of(model).shape.is_unrolled
    check(model, [runs_of((0, 400), (1, 420)), runs_of((1, 30))], monkeypatch)


def test_sums_in_lines_of_silent_states_are_seen(monkeypatch):
    """Behind one symbol all deletions are passed, and what is left of that is no number."""
    steps = "D[k] -> D[k+1] 1e-11; D[k] -> M[k+1] 1e-3; M[k] -> M[k+1] 0.5; M[k] -> D[k+1] 0.5;"
    text = f"""hmm m {{ alphabet [A, B, C]; startstate s; endstate e; s -> M[1] 1; M[60] -> e 1;
        emission x = [1, 0, 0]; emission y = [0, 1, 0]; emission z = [0, 0, 1];
        state M[1] emits x; for k in 2..59 {{ state M[k] emits z; }} state M[60] emits y;
        for k in 1..60 {{ state D[k]; }} for k in 1..59 {{ {steps} }} }}"""
    model = parse_program(text).models["m"]
    chain = chain_of(model)
    assert chain.shape.silent > 20 and sum_tables(chain).chunk == 1
    check(model, [[0, 1], [0, 2, 1], [0, 1, 1]], monkeypatch)
    found = evaluate(CompiledModel(model), Algorithm.FORWARD, symbol_block([[0, 1]])).scores[0]
    assert found < 57 * math.log(1e-11)


def test_silent_states_before_a_piece_are_seen(monkeypatch):
    """A row of silent states that each state might lead to, with one way through all of them."""
    steps = [f"a -> q[1] 0.5; q[1] -> q[2] 1e-60; q[7] -> b 1; {'b -> e 0.5;'}"]
    steps += [f"{name} -> q[{k}] 0; q[{k}] -> {name} 0;" for name in "abc" for k in range(1, 8)]
    text = f"""hmm m {{ alphabet [A, B]; startstate s; endstate e;
        emission x = [1, 0]; emission y = [0, 1]; emission z = [0.5, 0.5];
        state a emits x; state b emits y; state c emits z; for k in 1..7 {{ state q[k]; }}
        s -> a 1; a -> a 0.5; b -> b 0.5; for k in 2..6 {{ q[k] -> q[k+1] 1e-60; }}
        {" ".join(steps).replace("a -> q[1] 0;", "").replace("q[7] -> b 0;", "")} }}"""
    model = parse_program(text).models["m"]
    chain = chain_of(model)
    assert chain.shape.silent == 7 and sum_tables(chain).chunk == 1
    check(model, [[0] * 7 + [1] * 4, [0] * 14 + [1] * 4], monkeypatch)


def test_products_from_both_ends_may_be_small(monkeypatch):
    """Beside two states where no path can end or begin, those of paths are small in the middle."""
    for half in (100, 140, 161, 170):
        check(parse_program(DEAD_ENDS).models["m"], [runs_of((0, half), (1, half))], monkeypatch)


def test_starts_and_ends_may_be_small(monkeypatch):
    start = """hmm m { alphabet [A, B]; startstate s; state a emits x; state b emits y;
        emission x = [1, 1e-40]; emission y = [1e-40, 1];
        s -> a 1; s -> b 1e-300; a -> a 1e-60; b -> b 1; }"""
    check(parse_program(start).models["m"], [[0, 1, 1, 1, 1, 1], [0]], monkeypatch)
    end = APART.replace("}", "endstate e; b -> e 1e-250; }")
    check(parse_program(end).models["m"], [[0] * 178, [0] * 30], monkeypatch)


def test_a_hit_of_more_than_a_thousand_bits():
    """A profile that may occur once: what is before its hit is far behind what is in it."""
    profile, length = built(430), 450
    multiple = plan7_model(profile, length)
    steps = [
        step._replace(probability=1.0) if (step.source, step.target) == ("E", "C") else step
        for step in multiple.transitions
        if "J" not in (step.source, step.target)
    ]
    states = tuple(state for state in multiple.states if state.name != "J")
    model = replace(multiple, states=states, transitions=tuple(steps))
    sequence = np.random.default_rng(1).integers(0, 20, length)
    sequence[10:440] = profile.matches.argmax(axis=1)
    compiled, codes = CompiledModel(model), [sequence.tolist()]
    expected = decimal_sums(model, codes[0], compiled.state_names)
    assert expected.score / math.log(2) > 1000
    block = symbol_block(codes)
    for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD):
        close(evaluate(compiled, algorithm, block).scores, [expected.score])
    check_posteriors(evaluate(compiled, Algorithm.POSTERIOR, block, ALL), compiled, [expected])


def test_long_sequences_are_computed_without_a_common_scale():
    model = CompiledModel(parse_program(APART).models["m"])
    codes = np.repeat(np.array([0, 1], dtype=np.uint8), [4_000_000, 6_000_000])
    block = SymbolBlock(codes, np.array([0, codes.size]))
    expected = math.log(0.5) + 4e6 * math.log(0.1) + 6e6 * math.log(0.9)
    for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD):
        assert evaluate(model, algorithm, block).scores[0] == pytest.approx(expected, rel=1e-12)
    found = evaluate(model, Algorithm.POSTERIOR, block, (Attribute.TRACEBACK,))
    assert found.runs.lengths.tolist() == [codes.size]
    assert [model.visits.names[visit] for visit in found.runs.visits] == ["b"]


def test_usual_models_have_a_common_scale_for_many_columns():
    text = APART.replace("a -> a 1", "a -> a 0.9; a -> b 0.1")
    assert sum_tables(chain_of(parse_program(text).models["m"])).chunk == LONGEST_CHUNK
    tiny = APART.replace("[0.9, 0.1]", "[0.9, 1e-150]")
    assert sum_tables(chain_of(parse_program(tiny).models["m"])).chunk == 0


def best_path(model, codes):
    """The logarithm of the best path and its states, of whole numbers; there are no silent ones."""

    def unit(chance):
        return int(log_units(np.array([chance]))[0]) if chance > 0 else None

    def both(one, other):
        return None if one is None or other is None else one + other

    states = [state.name for state in model.states if state.emission]
    chances = {(step.source, step.target): unit(step.probability) for step in model.transitions}
    emission_of = {state.name: str(state.emission) for state in model.states}
    emitted = {
        name: [unit(chance) for chance in model.emissions[emission_of[name]]] for name in states
    }
    values = [both(chances.get(("s", name)), emitted[name][codes[0]]) for name in states]
    back = []
    for code in codes[1:]:
        found, ways = [], []
        for name in states:
            into = [
                both(v, chances.get((one, name))) for v, one in zip(values, states, strict=True)
            ]
            best = max((value for value in into if value is not None), default=None)
            ways.append(into.index(best))
            found.append(both(best, emitted[name][code]))
        values = found
        back.append(ways)
    score = max((value for value in values if value is not None), default=None)
    if score is None:
        return -math.inf, []
    path = [values.index(score)]
    for ways in reversed(back):
        path.append(ways[path[-1]])
    return score / LOG_UNITS, [states[place] for place in reversed(path)]


def far_models():
    """Models some of whose paths fall tens of millions of nats behind others."""
    found = {"apart": parse_program(FAR_APART).models["m"]}
    found["groups"] = replace(cliques(9), emissions={"a": (0.9, 1e-300), "b": (1e-300, 0.9)})
    choice = random.Random(5)
    for number in range(4):
        names = choice.sample("abc", 3)
        ways = choice.choice(list(WAYS.values()))
        rows = (0.9, 1e-300), (1e-300, 0.9), (0.5, 0.5)
        emissions = {name: choice.choice(rows) for name in names}
        steps = [Transition("s", name, 0.25) for name in names]
        for one, two in itertools.product(names, names):
            chance = choice.choice([0.5, 0.25]) if one == two or one + two in ways else 0.0
            steps.append(Transition(one, two, chance))
        states = (State("s"), *(State(name, name) for name in names))
        model = Model("m", ("A", "B"), states, "s", None, emissions, tuple(steps))
        found[f"random {number}"] = model
    return found


@each("name", list(far_models()))
def test_paths_that_fall_behind_catch_up(name, monkeypatch):
    model = far_models()[name]
    if name == "groups":
        # As many states of a group are equally good, the first one is taken.
        score = math.log(0.5 / 9) + 100_000 * math.log(1 / 9)
        score += 50_000 * math.log(1e-300) + 50_001 * math.log(0.9)
        path = ["b0"] * len(FAR_APART_CODES)
    else:
        score, path = best_path(model, FAR_APART_CODES)
    compiled, block = CompiledModel(model), symbol_block([[1, 0], FAR_APART_CODES])
    for size in (1 << 20, 40_000):
        with monkeypatch.context() as small:
            small.setattr(evaluation, "LONG_SYMBOLS", size)
            small.setattr(pieces.LongSequence, "piece_symbols", 3000)
            found = evaluate(compiled, Algorithm.VITERBI, block, ALL[:2])
            again = evaluate(compiled, Algorithm.VITERBI, block).scores[1]
        assert found.scores[1] == pytest.approx(score, rel=1e-14 if name != "groups" else 1e-11)
        assert again == found.scores[1]
        part = slice(int(found.runs.offsets[1]), None)
        names = [compiled.visits.names[visit] for visit in found.runs.visits[part]]
        assert np.repeat(names, found.runs.lengths[part]).tolist() == path
    table = evaluate(compiled, Algorithm.VITERBI, block, ALL[2:]).tables
    assert table[1][:, -1].max() == found.scores[1]


def test_a_path_may_be_lost_when_it_is_walked(monkeypatch):
    """The operator of a piece holds a path that is too far behind the others before the piece."""
    codes = far_within_a_piece()
    model = parse_program(TWO_WAYS).models["m"]
    score, path = best_path(model, codes)
    assert path[0] in "bc" and path.count("b") > 20_000
    compiled = CompiledModel(model)
    monkeypatch.setattr(evaluation, "LONG_SYMBOLS", 9)
    monkeypatch.setattr(pieces.LongSequence, "piece_symbols", 10_000)
    found = evaluate(compiled, Algorithm.VITERBI, symbol_block([codes]), ALL[:2])
    assert found.scores[0] == pytest.approx(score, rel=1e-14)
    names = [compiled.visits.names[visit] for visit in found.runs.visits]
    assert np.repeat(names, found.runs.lengths).tolist() == path
