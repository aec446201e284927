"""The seven policies and their letters."""

from dataclasses import fields, replace
from itertools import combinations

import pytest
from helpers.loops import each

from mummergpu.errors import OptionError
from mummergpu.index.tree.layout import Layout
from mummergpu.index.tree.policy import DEFAULT_POLICY, LETTERS, Policy

ALL_CODES = [
    "".join(letters) or "none" for count in range(8) for letters in combinations("QRTmrtn", count)
]


def test_there_are_128_policies():
    assert len({Policy.from_code(code) for code in ALL_CODES}) == 128


@each("code", ALL_CODES)
def test_a_code_comes_back(code):
    assert Policy.from_code(code).code == code


@pytest.mark.parametrize("code", ["nT", "nmT", "tnrmTRQ"])
def test_letters_may_stand_in_any_order(code):
    assert sorted(Policy.from_code(code).code) == sorted(code)


@pytest.mark.parametrize(
    ("letter", "flag"),
    [
        ("Q", "query_texture"),
        ("R", "reference_texture"),
        ("T", "tree_texture"),
        ("m", "merged_tree"),
        ("r", "two_dimensional_reference"),
        ("t", "two_dimensional_tree"),
        ("n", "node_reordering"),
    ],
)
def test_each_letter_is_the_papers(letter, flag):
    assert Policy.from_code(letter) == replace(Policy(), **{flag: True})
    assert LETTERS[flag] == letter


def test_none_switches_everything_off():
    policy = Policy.from_code("none")
    assert not any(getattr(policy, field.name) for field in fields(policy))


@pytest.mark.parametrize("code", ["", "x", "TT", "Tnx", "TnT", "NONE", "q", "T n", "Tn\n", "nonen"])
def test_other_codes_are_refused(code):
    with pytest.raises(OptionError, match=r"^policy: ") as caught:
        Policy.from_code(code)
    assert caught.value.option == "policy"
    assert caught.value.exit_code == 2


def test_by_default_the_halves_of_a_node_share_a_cache_line():
    assert DEFAULT_POLICY.merged_tree


@each("code", ALL_CODES)
def test_a_layout_takes_over_the_four_flags_that_are_no_textures(code):
    layout = Layout.of(Policy.from_code(code))
    assert layout == Layout("m" in code, "r" in code, "t" in code, "n" in code.replace("none", ""))
