"""Construction of suffix trees: by the definition, on awkward texts, at full size."""

import numpy as np
import pytest
from helpers.trees import (
    PLAIN,
    TEXTS,
    check_tree,
    flat_tree_of,
    naive_names,
    naive_tree,
    page_codes_of,
)

from mummergpu.index.tree.ukkonen import FIRST_SUFFIX, STRING_DEPTH, grow_tree
from mummergpu.sequence.codes import BREAK


def inner_paths(tree, text):
    starts = tree.inner_nodes[:, FIRST_SUFFIX].tolist()
    depths = tree.inner_nodes[:, STRING_DEPTH].tolist()
    return [
        (text[start : start + depth], None) for start, depth in zip(starts, depths, strict=True)
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_inner_nodes_are_those_of_a_naive_tree_in_the_order_of_their_making(text):
    tree = grow_tree(page_codes_of(text))
    _, constructed = naive_tree(text)
    expected = [name for name in naive_names(constructed) if name[1] is None]
    assert inner_paths(tree, text) == expected


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_tree_of_an_awkward_text_is_a_suffix_tree(text):
    codes = page_codes_of(text)
    check_tree(flat_tree_of(codes, PLAIN), codes)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_each_base_begins_a_leaf_and_no_break_does(text):
    assert grow_tree(page_codes_of(text)).leaf_count == len(text) - text.count("N")


def test_suffixes_with_the_same_bases_are_chained_the_last_first():
    tree = grow_tree(page_codes_of("ACNACNAC"))
    chain = [6]
    while tree.next_leaves[chain[-1]] != 0:
        chain.append(int(~tree.next_leaves[chain[-1]]))
    assert chain == [6, 3, 0]


@pytest.mark.parametrize("letters", [4, 2, 1], ids=["random", "two letters", "homopolymer"])
@pytest.mark.parametrize("break_every", [0, 7, 1000])
def test_the_tree_of_a_long_text_is_a_suffix_tree(letters, break_every):
    codes = np.random.default_rng(letters).integers(0, letters, 60_001).astype(np.uint8)
    if break_every:
        codes[::break_every] = BREAK
    codes[-1] = BREAK
    check_tree(flat_tree_of(codes, PLAIN), codes)


def test_the_tree_of_diverged_long_repeats_is_a_suffix_tree():
    random = np.random.default_rng(3)
    unit = random.integers(0, 4, 171).astype(np.uint8)
    codes = np.append(np.tile(unit, 300), np.uint8(BREAK))
    changed = random.integers(0, codes.size - 1, codes.size // 50)
    codes[changed] = random.integers(0, 5, changed.size)
    check_tree(flat_tree_of(codes, PLAIN), codes)


def test_a_fibonacci_word_is_a_suffix_tree():
    one, other = "A", "AC"
    while len(other) < 40_000:
        one, other = other, other + one
    codes = page_codes_of(other)
    check_tree(flat_tree_of(codes, PLAIN), codes)
