"""Hidden Markov models in Python: arrays in, arrays out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mummergpu
from mummergpu.errors import OptionError

STEPS = [[0.95, 0.05], [0.1, 0.9]]
CHANCES = [[1 / 6] * 6, [0.1] * 5 + [0.5]]


def casino(**more: Any) -> mummergpu.HiddenMarkovModel:
    return mummergpu.HiddenMarkovModel(["fair", "loaded"], STEPS, CHANCES, **more)


def slow_forward(codes: list[int], start: list[float], end: list[float]) -> float:
    values = np.array(start) * np.array(CHANCES)[:, codes[0]]
    for code in codes[1:]:
        values = values @ np.array(STEPS) * np.array(CHANCES)[:, code]
    return float(np.log(values @ np.array(end)))


def test_scores_of_one_and_of_several_sequences() -> None:
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


def test_start_and_end_and_states_that_are_never_entered() -> None:
    start, end = [0.0, 1.0], [0.25, 0.5]
    model = casino(start=start, end=end)
    expected = slow_forward([1, 2, 3], start, end)
    assert model.forward([1, 2, 3]) == pytest.approx(expected, rel=1e-12)
    lonely = mummergpu.HiddenMarkovModel("ab", [[0, 0], [0, 1]], [[1], [1]], start=[0, 1])
    assert lonely.viterbi([0, 0]).states.tolist() == [1, 1]
    assert lonely.posterior([0, 0]).tolist() == [[0, 1], [0, 1]]


def test_a_model_of_a_text() -> None:
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"transitions": [[1, 0]]}, "transitions: an array of shape"),
        ({"emissions": [[1, -1], [0, 1]]}, "emissions: a probability that is negative"),
        ({"emissions": [["x"], ["y"]]}, "emissions: no array of numbers"),
        ({"start": [1]}, "start: an array of shape"),
        ({"states": ["a", "a"]}, "states: no names"),
        ({"alphabet": "AC"}, "alphabet: not 6 different symbols"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(given: dict[str, Any], message: str) -> None:
    words: dict[str, Any] = {"states": "ab", "transitions": STEPS, "emissions": CHANCES, **given}
    with pytest.raises(OptionError, match=message):
        mummergpu.HiddenMarkovModel(**words)


@pytest.mark.parametrize("sequence", ["317", [6], np.array([-1]), [[1.5]]])
def test_symbols_that_there_are_not(sequence: Any) -> None:
    with pytest.raises(OptionError, match="sequences: "):
        casino(alphabet="123456").forward(sequence)
    with pytest.raises(OptionError, match="the model has no alphabet"):
        casino().forward("1")
