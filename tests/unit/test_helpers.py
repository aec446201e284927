"""The helpers that a green run relies on: loops, pairs of settings, kept libraries."""

import ctypes
import inspect
import os
import shutil
import time
from dataclasses import astuple
from itertools import combinations

import pytest
from helpers import host_libraries
from helpers.host_libraries import host_compiler, library_of
from helpers.loops import each
from helpers.pairwise import layouts_to_try, name_of, pairwise_policies, pairwise_rows
from helpers.trees import LAYOUTS, WIDE_LAYOUTS


def test_every_value_is_tried(tmp_path):
    tried = []

    @each("number", range(3))
    @each("letter", "ab")
    def several(tmp_path, number, letter):
        assert tmp_path.is_dir()
        tried.append((number, letter))

    assert list(inspect.signature(several).parameters) == ["tmp_path"]
    several(tmp_path=tmp_path)
    assert tried == [(number, letter) for number in range(3) for letter in "ab"]


@each("number", range(3))
@pytest.mark.parametrize("end", ["x"])
def test_fixtures_and_parameters_are_passed_on(tmp_path, number, end):
    assert tmp_path.is_dir() and end == "x" and number < 3


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


FACTORS = 8


def test_policies_and_formats_meet_in_all_pairs():
    choices = pairwise_policies()
    rows = [(*astuple(policy), wide) for policy, wide in choices]
    for one, other in combinations(range(FACTORS), 2):
        met = {(row[one], row[other]) for row in rows}
        assert met == {(False, False), (False, True), (True, False), (True, True)}, (one, other)
    assert len(choices) < 10, "few of 256"
    names = [name_of(choice) for choice in choices]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("levels", [(2, 3), (3, 2, 4), (2, 2, 2, 3)])
def test_factors_may_have_several_values(levels):
    rows = pairwise_rows(levels)
    for one, other in combinations(range(len(levels)), 2):
        assert len({(row[one], row[other]) for row in rows}) == levels[one] * levels[other]
    assert all(0 <= value < most for row in rows for value, most in zip(row, levels, strict=True))


def test_each_pair_of_layouts_is_among_the_few():
    few = [param.values[0] for param in layouts_to_try(LAYOUTS + WIDE_LAYOUTS) if not param.marks]
    rows = [astuple(layout) for layout in few]
    assert len(rows) < 10
    for one, other in combinations(range(5), 2):
        assert len({(row[one], row[other]) for row in rows}) == 4
    assert len(layouts_to_try(LAYOUTS + WIDE_LAYOUTS)) == 32


OPTIONS = ["-shared", "-fPIC", "-DMORE=1"]


@pytest.fixture
def sources(tmp_path):
    if shutil.which(host_compiler()) is None:
        pytest.skip("there is no compiler")
    (tmp_path / "headers").mkdir()
    (tmp_path / "headers" / "number.h").write_text("#define NUMBER 41\n")
    main = '#include "number.h"\nextern "C" int number() { return NUMBER + MORE; }\n'
    (tmp_path / "main.cpp").write_text(main)
    (tmp_path / "kept").mkdir()
    return tmp_path


def made(sources, options=OPTIONS):
    folder, headers = sources / "kept", sources / "headers"
    return library_of(folder, "number", sources / "main.cpp", [headers], options)


def number_of(library):
    return int(ctypes.CDLL(str(library)).number())


def test_a_library_is_compiled_once(sources, monkeypatch):
    library = made(sources)
    assert number_of(library) == 42
    os.utime(library, (1, 1))
    with monkeypatch.context() as no_compiler:
        no_compiler.setattr(host_libraries.subprocess, "run", None)
        assert made(sources) == library
    assert time.time() - library.stat().st_mtime < 1000, "it counts as used"
    assert list((sources / "kept").iterdir()) == [library]


def test_whatever_counts_makes_another_library(sources, monkeypatch):
    before = {made(sources)}
    library = made(sources, [*OPTIONS[:2], "-DMORE=2"])
    assert library not in before and number_of(library) == 43
    before.add(library)
    (sources / "headers" / "number.h").write_text("#define NUMBER 1\n")
    library = made(sources)
    assert library not in before and number_of(library) == 2
    before.add(library)
    (sources / "headers" / "more.h").write_text("")
    assert made(sources) not in before
    before.add(made(sources))
    monkeypatch.setattr(host_libraries, "_version_of", lambda compiler: b"another")
    assert made(sources) not in before
