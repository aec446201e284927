"""Scores, paths and posteriors of models, against all paths one by one and other programs."""

import math
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyhmmer
import pytest
from helpers.chain_builders import UNIT, pairwise, plan7
from helpers.full_matrix import NEVER, FullMatrix
from helpers.hidden_models import (
    PROFILE,
    best_score_of,
    every_path,
    log,
    long_models,
    profile,
    random_model,
    some_sequences,
    symbol_block,
    whole_matrix_scores,
)
from helpers.loops import each
from helpers.profiles import built, profiles, sequences_like

import mummergpu
from mummergpu.errors import ModelError, OptionError
from mummergpu.hmm.filters import ProfileFilter, lengths_up_to
from mummergpu.hmm.language import evaluation, pieces, posteriors
from mummergpu.hmm.language.evaluation import CompiledModel, evaluate
from mummergpu.hmm.language.lanes import SymbolBlock
from mummergpu.hmm.language.parser import parse_program
from mummergpu.hmm.language.program import ATTRIBUTES, Algorithm, Attribute
from mummergpu.hmm.language.traces import has_node_paths
from mummergpu.hmm.options import FilterThresholds
from mummergpu.hmm.proteins import SYMBOLS, ProteinBlock
from mummergpu.hmm.tables import WORD_BASE, filter_tables
from mummergpu.hmm.word_filter import OVERFLOW
from mummergpu.runtime.compiled import llvm_text
from mummergpu.viterbi.recurrence.model import Costs

ALL = (Attribute.SCORE, Attribute.TRACEBACK, Attribute.TABLE)


def check_model(model, sequences, silent=7):
    compiled = CompiledModel(model)
    block = symbol_block(sequences)
    found = {
        algorithm: evaluate(compiled, algorithm, block, ATTRIBUTES[algorithm])
        for algorithm in Algorithm
    }
    for number, codes in enumerate(sequences):
        paths = list(every_path(model, codes, silent))
        total, best = sum(weight for weight, _ in paths), max((w for w, _ in paths), default=0.0)
        for algorithm in (Algorithm.FORWARD, Algorithm.BACKWARD, Algorithm.POSTERIOR):
            assert close(found[algorithm].scores[number], log(total)), (algorithm, codes)
        assert close(found[Algorithm.VITERBI].scores[number], log(best)), codes
        visits = visits_of(compiled, found[Algorithm.VITERBI], number)
        if best > 0:
            shown = [one for one in visits if one[0] != model.end or one[1]]
            assert close(best_score_of(model, codes, shown), log(best)), (codes, visits)
        else:
            assert visits == []
        check_posterior(compiled, found[Algorithm.POSTERIOR], number, codes, paths)
    check_tables(compiled, found, sequences)


def close(found, expected):
    if math.isinf(expected) or expected == 0:
        return found == expected or abs(found - expected) < 1e-9
    return abs(found - expected) <= 1e-9 * max(1.0, abs(expected))


def visits_of(compiled, found, number):
    runs, names = found.runs, compiled.visits
    places = range(int(runs.offsets[number]), int(runs.offsets[number + 1]))
    return [
        (names.names[runs.visits[at]], bool(names.emits[runs.visits[at]]))
        for at in places
        for _ in range(int(runs.lengths[at]))
    ]


def check_posterior(compiled, found, number, codes, paths):
    table = found.tables[number]
    total = sum(weight for weight, _ in paths)
    if total == 0 or not codes:
        return
    expected = np.zeros((len(compiled.state_names), len(codes)))
    for weight, path in paths:
        emitting = [name for name, emits in path if emits]
        for at, name in enumerate(emitting):
            expected[compiled.state_names.index(name), at] += weight / total
    np.testing.assert_allclose(table, expected, atol=1e-9)
    np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)


def check_tables(compiled, found, sequences):
    """Each value of a table is that of all paths to its state, or from it, one by one."""
    model, names = compiled.model, compiled.state_names
    for number, codes in enumerate(sequences):
        expected = {one: np.zeros((len(names), len(codes))) for one in Algorithm}
        for at in range(len(codes)):
            # A path may end here.
            for weight, path in every_path(replace(model, end=None), codes[: at + 1]):
                state = names.index(path[-1][0])
                expected[Algorithm.FORWARD][state, at] += weight
                best = expected[Algorithm.VITERBI]
                best[state, at] = max(best[state, at], weight)
            for state, name in enumerate(names):
                rest = every_path(replace(model, start=name), codes[at + 1 :])
                expected[Algorithm.BACKWARD][state, at] = sum(weight for weight, _ in rest)
        for algorithm in (Algorithm.FORWARD, Algorithm.VITERBI, Algorithm.BACKWARD):
            table = np.exp(found[algorithm].tables[number])
            np.testing.assert_allclose(table, expected[algorithm], rtol=1e-9, err_msg=str(codes))


def check_seed(seed):
    model = random_model(seed, symbols=2 + seed % 2, with_end=seed % 3 > 0)
    check_model(model, some_sequences(seed, len(model.alphabet), 4))


@each("seed", range(4))
def test_small_models_have_the_scores_of_all_paths(seed):
    check_seed(seed)


@pytest.mark.slow
@each("seed", range(4, 200))
def test_many_small_models_have_the_scores_of_all_paths(seed):
    check_seed(seed)


def check_scores(model, sequences):
    """Compare scores with those from matrices of all states, and paths with their own scores."""
    compiled, block = CompiledModel(model), symbol_block(sequences)
    wanted = {Algorithm.FORWARD: ALL[:1], Algorithm.BACKWARD: ALL[:1], Algorithm.VITERBI: ALL[:2]}
    found = {one: evaluate(compiled, one, block, parts) for one, parts in wanted.items()}
    for number, codes in enumerate(sequences):
        total, best = whole_matrix_scores(model, codes)
        assert close(found[Algorithm.FORWARD].scores[number], total)
        assert close(found[Algorithm.BACKWARD].scores[number], total)
        assert close(found[Algorithm.VITERBI].scores[number], best)
        visits = visits_of(compiled, found[Algorithm.VITERBI], number)
        if math.isfinite(best):
            assert close(best_score_of(model, codes, visits), best)
            assert sum(emits for _, emits in visits) == len(codes)
        else:
            assert visits == []


@each("seed", range(100, 104))
def test_silent_loops_are_closed(seed):
    check_scores(random_model(seed, loops=True), some_sequences(seed, 3, 30, 21))


@each("length", [2, 9, 60])
def test_profiles_keep_some_deletions_as_silent_states(length):
    model = profile(length)
    shape = CompiledModel(model).chain.shape
    assert (shape.silent > 0) == (length > 2)
    # Without silent states there would be a transition for each two places.
    assert len(shape.steps) < 8 * length
    check_scores(model, some_sequences(length, 3, length + 5, 19))


FAR_APART = """hmm m { alphabet [A, B, C]; startstate s; state a emits x; state b emits y;
    emission x = [1, exp(-700), 0]; emission y = [exp(-700), 1, 0];
    s -> a 0.5; s -> b 0.5; a -> a 1; b -> b 1; }"""


def test_impossible_and_tiny_sequences_are_told_apart():
    model = parse_program(FAR_APART).models["m"]
    sequences = [[0, 0, 1, 1, 0, 1], [0] * 200 + [1] * 200, [0, 2], [2], [0] * 300]
    check_scores(model, [sequences[2], sequences[3], sequences[4]])
    found = evaluate(CompiledModel(model), Algorithm.FORWARD, symbol_block(sequences))
    # Both states have half of the paths, and emit as many likely symbols.
    assert found.scores[1] == pytest.approx(-200 * 700, rel=1e-13)
    assert found.scores[0] == pytest.approx(-3 * 700, rel=1e-13)


def test_long_sequences_are_told_apart_piece_by_piece(monkeypatch):
    """Laid out for lanes, an impossible chromosome would need eight times its memory."""
    model = CompiledModel(parse_program(FAR_APART).models["m"])
    block = symbol_block([[0] * 200 + [1] * 200, [0] * 200 + [2] + [1] * 200])
    monkeypatch.setattr(pieces.LongSequence, "piece_symbols", 7)
    monkeypatch.setattr(evaluation, "LONG_SYMBOLS", 9)
    monkeypatch.setattr(evaluation, "lanes_of", None)
    found = evaluate(model, Algorithm.FORWARD, block).scores
    assert found[0] == pytest.approx(-200 * 700, rel=1e-13) and found[1] == -math.inf


def test_ten_million_symbols_do_not_underflow():
    text = """hmm m { alphabet [A, B]; startstate s; state a emits x; state b emits y;
    emission x = [0.001, 0.002]; emission y = [0.004, 0.003]; s -> a 1;
    a -> a 0.5; a -> b 0.5; b -> b 0.25; b -> a 0.75; }"""
    model = CompiledModel(parse_program(text).models["m"])
    codes = np.tile(np.array([0, 1, 1, 0], dtype=np.uint8), 2_500_000)
    block = SymbolBlock(codes, np.array([0, codes.size], dtype=np.int64))
    best = evaluate(model, Algorithm.VITERBI, block, (Attribute.TRACEBACK,))
    forward = evaluate(model, Algorithm.FORWARD, block)
    backward = evaluate(model, Algorithm.BACKWARD, block)
    short = evaluate(model, Algorithm.FORWARD, SymbolBlock(codes[:4000], np.array([0, 4000])))
    assert forward.scores[0] == pytest.approx(backward.scores[0], rel=1e-12)
    assert forward.scores[0] == pytest.approx(2500 * short.scores[0], rel=1e-4)
    assert best.runs.lengths.sum() == codes.size and best.scores[0] < forward.scores[0] < 0
    likeliest = evaluate(model, Algorithm.POSTERIOR, block, (Attribute.TRACEBACK,))
    assert likeliest.scores[0] == forward.scores[0] and likeliest.runs.lengths.sum() == codes.size


def test_a_loop_that_lasts_for_ever_is_refused():
    text = """hmm m { alphabet [A]; startstate s; state a emits x; state q; state r;
    emission x = [1]; s -> a 1; a -> q 1; q -> r 1; r -> q 1; }"""
    with pytest.raises(ModelError, match="a loop of probability 1"):
        CompiledModel(parse_program(text).models["m"])


def test_a_change_of_probabilities_compiles_nothing():
    sequences = some_sequences(1, 2, 9)
    text = PROFILE.replace("LENGTH", "2").replace("BEFORE", "1").replace("FIRST", "1")
    first = parse_program(text).models["profile"]
    evaluate(CompiledModel(first), Algorithm.FORWARD, symbol_block(sequences))
    count = llvm_text.compiled_count
    other = parse_program(text.replace("0.8", "0.75")).models["profile"]
    check = evaluate(CompiledModel(other), Algorithm.FORWARD, symbol_block(sequences))
    assert llvm_text.compiled_count == count
    assert close(check.scores[4], whole_matrix_scores(other, sequences[4])[0])


def test_ties_are_decided_by_the_order_of_declaration():
    states = ["state a emits x; ", "state b emits x; "]
    steps = "s -> a 0.5; s -> b 0.5; a -> a 0.5; a -> b 0.5; b -> a 0.5; b -> b 0.5;"
    for order in (states, states[::-1]):
        text = f"hmm m {{ alphabet [A]; startstate s; {''.join(order)} emission x = [1]; {steps} }}"
        model = CompiledModel(parse_program(text).models["m"])
        found = evaluate(model, Algorithm.VITERBI, symbol_block([[0] * 9]), ALL[:2])
        assert {name for name, _ in visits_of(model, found, 0)} == {order[0][6]}


@each("name", ["random", "profile", "loops", "large", "islands", "sticky"])
def test_pieces_of_long_sequences_are_joined_exactly(name, monkeypatch):
    model = CompiledModel(long_models()[name])
    assert has_node_paths(model.best.chain) == (name in ("islands", "sticky"))
    assert (model.coded is None) == (name != "islands")
    choice = random.Random(4)
    sequences = [[choice.randrange(3) for _ in range(size)] for size in (9, 10, 63, 64, 65, 191)]
    block = symbol_block(sequences)
    for algorithm in (Algorithm.VITERBI, Algorithm.FORWARD, Algorithm.BACKWARD):
        wanted = ALL[: 2 if algorithm is Algorithm.VITERBI else 1]
        whole = evaluate(model, algorithm, block, wanted)
        with monkeypatch.context() as small:
            small.setattr(pieces.LongSequence, "piece_symbols", 7)
            small.setattr(evaluation, "LONG_SYMBOLS", 9)
            found = evaluate(model, algorithm, block, wanted)
        np.testing.assert_allclose(found.scores, whole.scores, rtol=1e-12)
        if algorithm is Algorithm.VITERBI:
            # Best paths are integers: pieces may change nothing.
            np.testing.assert_array_equal(found.scores, whole.scores)
            for one, other in zip(found.runs, whole.runs, strict=True):
                np.testing.assert_array_equal(one, other)
    whole = evaluate(model, Algorithm.POSTERIOR, block, ALL)
    monkeypatch.setattr(evaluation, "LONG_SYMBOLS", 9)
    monkeypatch.setattr(posteriors, "PIECE_VALUES", 7 * model.chain.shape.nodes)
    with ThreadPoolExecutor(2) as executor:
        found = evaluate(model, Algorithm.POSTERIOR, block, ALL, executor.map)
    np.testing.assert_allclose(found.scores, whole.scores, rtol=1e-12)
    for table, other in zip(found.tables, whole.tables, strict=True):
        np.testing.assert_allclose(table, other, atol=1e-12)
    for one, other in zip(found.runs, whole.runs, strict=True):
        np.testing.assert_array_equal(one, other)


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
    found = (
        best_scores(CompiledModel(plan7(filter_tables(profile).words, length)), block) + WORD_BASE
    )
    fits = words < OVERFLOW
    assert fits.sum() > 10
    np.testing.assert_array_equal(found[fits], words[fits])


@pytest.mark.parametrize("number", [0, 3])
def test_a_profile_has_the_bit_scores_of_hmmer(number, tmp_path):
    """Those before corrections, which are of all paths; and best paths are those of the filter."""
    profile, length = profiles()[number], 130
    choice = np.random.default_rng(number)
    piece = profile.matches.argmax(axis=1)[: min(profile.nodes, 90)]
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
    filtered = (words - WORD_BASE) * math.log(2) / 500 + math.log(3 / (length + 3)) - null
    # A word is rounded for each step and each symbol. Where no path is good, another one may be the
    # best without the loops.
    fits = words < OVERFLOW
    assert (filtered[fits] > best[fits] - 0.05).all()
    good = fits & (best > 2)
    assert good.sum() > 2
    np.testing.assert_allclose(best[good], filtered[good], atol=0.05)
    assert [model.states[state] for state in paths[0].states[[4, 5, 6]]] == ["N", "M[1]", "M[2]"]


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
            score = evaluate(model, Algorithm.VITERBI, symbol_block([read])).scores[0] / UNIT
            assert score == pytest.approx(max(ends), abs=1e-3)
