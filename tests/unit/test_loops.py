"""A loop in one test fails if it fails with any value, and tells with which."""

from __future__ import annotations

import pytest
from helpers.loops import each

tried: list[tuple[int, str]] = []


@each("number", range(3))
@each("letter", "ab")
@pytest.mark.parametrize("end", ["x"])
def test_every_value_is_tried(tmp_path, number, letter, end):
    assert tmp_path.is_dir() and end == "x"
    tried.append((number, letter))


def test_all_of_them_were():
    assert tried == [(number, letter) for number in range(3) for letter in "ab"]


def test_what_failed_is_told():
    seen = []

    @each("one, other", [(number, number % 3) for number in range(9)])
    def small(one, other):
        seen.append(one)
        assert other < 2

    with pytest.raises(AssertionError) as caught:
        small()
    assert seen == list(range(9)), "the first failure ends nothing"
    places = "one=2, other=2; one=5, other=2; one=8, other=2"
    assert caught.value.__notes__ == [f"failed with 3 of 9 values: {places}"]


def test_an_exception_that_does_not_come_fails_too():
    @each("number", [0, 1])
    def raises(number):
        with pytest.raises(ZeroDivisionError):
            assert 1 // number

    with pytest.raises(pytest.fail.Exception) as caught:
        raises()
    assert caught.value.__notes__ == ["failed with 1 of 2 values: number=1"]


def test_names_must_be_parameters():
    with pytest.raises(AssertionError):

        @each("other", [0])
        def _test(number): ...
