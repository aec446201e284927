"""Hidden Markov models in Python: arrays in, arrays out."""

import numpy as np
import pytest
from helpers.tables import keywords, table

import mummergpu
from mummergpu.errors import OptionError

STEPS = [[0.95, 0.05], [0.1, 0.9]]
CHANCES = [[1 / 6] * 6, [0.1] * 5 + [0.5]]


def casino(steps=STEPS, **more):
    return mummergpu.HiddenMarkovModel(["fair", "loaded"], steps, CHANCES, **more)


def slow_forward(codes, start, end, steps=STEPS):
    values = np.array(start) * np.array(CHANCES)[:, codes[0]]
    for code in codes[1:]:
        values = values @ np.array(steps) * np.array(CHANCES)[:, code]
    return float(np.log(values @ np.array(end)))


def test_scores_of_one_and_of_several_sequences():
    model = casino(alphabet="123456")
    assert model.states == ["fair", "loaded"] and model.alphabet == list("123456")
    assert repr(model) == "HiddenMarkovModel(2 states, 6 symbols)"
    expected = slow_forward([2, 0, 5], [0.5, 0.5], [1, 1])
    assert model.forward("316") == pytest.approx(expected, rel=1e-12)
    assert model.backward(np.array([2, 0, 5])) == pytest.approx(expected, rel=1e-12)
    several = model.forward(["316", [2, 0, 5], b"316", ""])
    np.testing.assert_allclose(several, [expected] * 3 + [0], rtol=1e-12)
    table = model.posterior("316666")
    assert table.shape == (6, 2) and np.allclose(table.sum(axis=1), 1)
    path = model.viterbi([[5] * 30, "1212121212121212"])
    assert path[0].states.tolist() == [1] * 30 and path[1].states.tolist() == [0] * 16


def test_start_and_end_and_states_that_are_never_entered():
    start, end, steps = [0.0, 1.0], [0.25, 0.5], [[0.5, 0.25], [0.1, 0.4]]
    model = casino(steps, start=start, end=end)
    expected = slow_forward([1, 2, 3], start, end, steps)
    assert model.forward([1, 2, 3]) == pytest.approx(expected, rel=1e-12)
    lonely = mummergpu.HiddenMarkovModel("ab", [[0, 0], [0, 1]], [[1], [1]], start=[0, 1])
    assert lonely.viterbi([0, 0]).states.tolist() == [1, 1]
    assert lonely.posterior([0, 0]).tolist() == [[0, 1], [0, 1]]


def test_a_model_of_a_text():
    text = """hmm m { alphabet [A, C]; startstate s; state a emits x; state q; state b emits y;
    emission x = [1, 0]; emission y = [0, 1]; s -> a 1; a -> q 1; q -> b 1; b -> a 1; }"""
    model = mummergpu.HiddenMarkovModel.parse(text)
    assert model.states == ["a", "b"]
    best = model.viterbi("ACaC")
    assert best.score == 0 and best.states.tolist() == [0, 1, 0, 1]
    assert model.viterbi("AA").score == -np.inf and model.viterbi("AA").states.size == 0
    assert mummergpu.HiddenMarkovModel.parse(text, "m").states == ["a", "b"]
    with pytest.raises(mummergpu.MummergpuError, match="no model 'n'"):
        mummergpu.HiddenMarkovModel.parse(text, "n")


@pytest.mark.parametrize(("given", "message"), table(__file__, "arrays", keywords))
def test_arrays_that_do_not_fit_are_refused(given, message):
    words = {"states": "ab", "transitions": STEPS, "emissions": CHANCES, **given}
    with pytest.raises(OptionError, match=message):
        mummergpu.HiddenMarkovModel(**words)


def test_rows_of_a_little_more_than_1_are_warned_of(caplog):
    casino(start=[0.5, 0.5000009])
    mummergpu.HiddenMarkovModel.parse(
        "hmm m { alphabet [A]; startstate s; state a emits x; emission x = [0.5]; s -> a 1; }"
    )
    assert caplog.messages == []
    casino(start=[0.5, 0.50001])
    mummergpu.HiddenMarkovModel.parse(
        "hmm m { alphabet [A]; startstate s; state a emits x;\nemission x = [1.00001]; s -> a 1; }"
    )
    assert caplog.messages == [
        "start: the probabilities of row 0 sum to 1.00001",
        "<text>:2: the probabilities of x sum to 1.00001",
    ]


class Column:
    """What has an array, as tables of pandas and tensors have."""

    def __array__(self, dtype=None, copy=None):
        return np.array([[2], [0], [5]], dtype=dtype)


def test_an_array_of_one_column_is_a_sequence():
    """As hmmlearn has it."""
    model, column = casino(alphabet="123456"), np.array([[2], [0], [5]])
    expected = model.forward([2, 0, 5])
    for one in (column, Column(), column[:, 0], list(column[:, 0])):
        assert model.forward(one) == model.backward(one) == expected
        assert model.viterbi(one).states.size == 3 and model.posterior(one).shape == (3, 2)
    assert model.forward([column, column[:, 0], column[:1]]).tolist()[:2] == [expected] * 2
    assert model.forward(column[:1]) == model.forward([2]) and model.forward(column[:0]) == 0


@pytest.mark.parametrize("shape", [(1, 3), (3, 2), (2, 0), (0, 0), (1, 3, 1), (3, 1, 1)])
def test_arrays_of_other_shapes_are_refused(shape):
    for work in (casino().forward, casino().viterbi, casino().posterior):
        with pytest.raises(OptionError, match=r"a sequence has the shape \(n,\) or \(n, 1\)"):
            work(np.zeros(shape, dtype=int))
    with pytest.raises(OptionError, match="sequence 1 is no row of integers"):
        casino().forward([[1], np.zeros(shape, dtype=int)])


@pytest.mark.parametrize("sequence", ["317", [6], np.array([-1]), [[1.5]]])
def test_symbols_that_there_are_not(sequence):
    with pytest.raises(OptionError, match="sequences: "):
        casino(alphabet="123456").forward(sequence)
    with pytest.raises(OptionError, match="the model has no alphabet"):
        casino().forward("1")


LENGTHS = (40, 1, 25, 25, 60)
START = [0.6, 0.4]

HMMLEARN_SCORES = [
    -248.7445343354,
    -240.4371351214,
    -239.7773797812,
    -239.4041660117,
    -239.0520428873,
    -238.645835951,
    -238.1749986242,
    -237.6907499703,
]
"""Of hmmlearn 0.3.3, `CategoricalHMM(2, n_iter=8, tol=0, init_params="")`: `monitor_.history`."""

HMMLEARN_TRANSITIONS = [[0.8348779157, 0.1651220843], [0.0711479507, 0.9288520493]]
HMMLEARN_EMISSION = [
    0.1562122824,
    0.0692916278,
    0.0912610686,
    0.0714196745,
    0.1187437563,
    0.4930715904,
]


def throws():
    """Sequences that do not change with the version of numpy."""
    state, codes = 1, []
    for _ in range(sum(LENGTHS)):
        state = state * 48_271 % 2_147_483_647
        codes.append(min(state // 1000 % 9, 5))
    return [codes[sum(LENGTHS[:one]) : sum(LENGTHS[: one + 1])] for one in range(len(LENGTHS))]


def test_training_has_the_likelihoods_of_hmmlearn():
    fit = casino(start=START).fit(throws(), iterations=8, tolerance=0)
    np.testing.assert_allclose(fit.scores, HMMLEARN_SCORES, atol=1e-6)
    np.testing.assert_allclose(fit.model.transitions, HMMLEARN_TRANSITIONS, atol=1e-9)
    np.testing.assert_allclose(fit.model.emissions[1], HMMLEARN_EMISSION, atol=1e-9)
    assert fit.model.start.sum() == pytest.approx(1) and fit.model.end is None


def test_training_ends_where_it_gains_little():
    model = casino(start=START)
    all_scores = model.fit(throws(), iterations=8, tolerance=0).scores
    gains = np.diff(all_scores)
    assert (gains > 0).all()
    few = model.fit(throws(), iterations=8, tolerance=float(gains[2] * 1.01))
    np.testing.assert_array_equal(few.scores, all_scores[:4])
    again = few.model.fit(throws(), iterations=1)
    np.testing.assert_allclose(again.scores, all_scores[4:5], rtol=1e-12)


def test_a_trained_model_is_a_program():
    model = casino(start=START, end=[0.0, 0.0], alphabet="123456")
    fit = casino(start=START, alphabet="123456").fit(throws()).model
    for one in (model, fit):
        text = one.to_program("casino")
        again = mummergpu.HiddenMarkovModel.parse(text, "casino")
        assert again.states == ["fair", "loaded"] and again.to_program() == text
        np.testing.assert_array_equal(again.transitions, one.transitions)
        np.testing.assert_array_equal(again.emissions, one.emissions)
        np.testing.assert_array_equal(again.start, one.start)
        assert again.forward("316") == one.forward("316")
    start = mummergpu.HiddenMarkovModel(["start", "end"], STEPS, CHANCES, alphabet="12345,")
    again = mummergpu.HiddenMarkovModel.parse(start.to_program())
    assert again.states == ["start", "end"] and again.forward("31,") == start.forward("31,")


def test_models_that_no_program_or_no_array_has():
    with pytest.raises(mummergpu.MummergpuError, match="needs an alphabet"):
        casino().to_program()
    named = mummergpu.HiddenMarkovModel(["a b", "c"], STEPS, CHANCES, alphabet="123456")
    with pytest.raises(mummergpu.MummergpuError, match="'a b' is no name in the language"):
        named.to_program()
    silent = mummergpu.HiddenMarkovModel.parse(
        "hmm m { alphabet [A]; startstate s; state a emits x; state q; emission x = [1];"
        " s -> q 1; q -> a 1; a -> a 1; }"
    )
    for name in ("start", "transitions", "emissions"):
        with pytest.raises(mummergpu.MummergpuError, match="has silent states"):
            getattr(silent, name)
    assert mummergpu.HiddenMarkovModel.parse(silent.to_program()).fit("AA").scores[0] == 0


@pytest.mark.parametrize(("given", "message"), table(__file__, "training", keywords))
def test_training_that_cannot_be(given, message):
    model = mummergpu.HiddenMarkovModel(["a"], [[1]], [[0.2] * 5 + [0]], alphabet="123456")
    with pytest.raises(OptionError, match=message):
        model.fit(**{"sequences": ["12"], **given})


def test_a_model_of_more_than_probabilities_is_not_trained():
    model = mummergpu.HiddenMarkovModel(["a"], [[1]], [[1]], alphabet="A")
    model._compiled.model.emissions["0"] = (1.5,)
    with pytest.raises(OptionError, match=r"fit: .* of 0 sum to 1\.5, which is more"):
        model.fit("A")
