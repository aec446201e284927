"""What the kernels that search trees are compiled for."""

from itertools import product

import pytest

from mummergpu.index.tree import layout
from mummergpu.index.tree.policy import LETTERS, Policy
from mummergpu.matching.tree.cuda_program import tree_program

NONE = tree_program(Policy(), wide=False, profile=False)


def test_the_order_of_nodes_makes_no_difference():
    assert tree_program(Policy(node_reordering=True), wide=False, profile=False) == NONE
    assert "NODE_REORDERING" not in dict(NONE.macros)


@pytest.mark.parametrize("flag", [flag for flag in LETTERS if flag != "node_reordering"])
def test_each_policy_is_one_macro(flag):
    made = tree_program(Policy(**{flag: True}), wide=False, profile=False)
    assert dict(made.macros) == dict(NONE.macros) | {flag.upper(): 1}
    assert made.name == f"tree-{LETTERS[flag]}" and made.entry == NONE.entry


def test_every_macro_is_always_defined():
    assert set(NONE.definitions()) == {
        "-DQUERY_TEXTURE=0",
        "-DREFERENCE_TEXTURE=0",
        "-DTREE_TEXTURE=0",
        "-DMERGED_TREE=0",
        "-DTWO_DIMENSIONAL_REFERENCE=0",
        "-DTWO_DIMENSIONAL_TREE=0",
        "-DWIDE=0",
        "-DPROFILE=0",
    }
    every = tree_program(Policy(*[True] * len(LETTERS)), wide=True, profile=True)
    assert [text.replace("=1", "=0") for text in every.definitions()] == NONE.definitions()


def test_names_tell_programs_apart():
    assert NONE.name == "tree-none"
    made = tree_program(Policy.from_code("Tmnrt"), wide=True, profile=False)
    assert sorted(made.name.removeprefix("tree-")) == sorted("TmrtW")
    assert tree_program(Policy.from_code("n"), wide=False, profile=True).name == "tree-P"
    flags = product((False, True), repeat=len(LETTERS) + 2)
    every = {tree_program(Policy(*each[:-2]), *each[-2:]) for each in flags}
    assert len({one.name for one in every}) == len(every) == 256


def test_the_constants_are_those_of_the_layout():
    constants = dict(NONE.constants)
    for name in ("EDGE_START", "LEAF_ID", "NO_NODE", "REFERENCE_WIDTH_BITS"):
        assert constants[name] == getattr(layout, name)
    assert constants["NODE_HALF_BYTES"] == 16
    wide = dict(tree_program(Policy(merged_tree=True), wide=True, profile=False).constants)
    assert wide["NODE_STRIDE_BYTES"] == 2 * wide["NODE_HALF_BYTES"] == 48
