"""Suffix trees of made texts, in every layout, against their definition."""

import numpy as np
from helpers.strategies import references, sequences
from helpers.trees import (
    LAYOUTS,
    WIDE_LAYOUTS,
    breadth_then_depth_first,
    check_tree,
    flat_tree_of,
    naive_names,
    naive_tree,
    names_in_order,
    page_codes_of,
    path_ends,
)
from hypothesis import example, given
from hypothesis import strategies as st

from mummergpu.index.tree.layout import place_in_strips

texts = st.one_of(sequences(), references().map("N".join))


@given(text=texts, base_before=st.integers(0, 4))
@example("", 4)
@example("N", 0)
@example("NNNN", 2)
@example("A", 1)
@example("ANAN", 4)
@example("AANAANA", 3)
@example("ACNACNCNAC", 0)
@example("A" * 40, 0)
@example("AC" * 30, 3)
def test_every_layout_holds_the_suffix_tree(text, base_before):
    codes = page_codes_of(text)
    for layout in LAYOUTS + WIDE_LAYOUTS:
        check_tree(flat_tree_of(codes, layout, base_before), codes, base_before)


@given(text=texts)
@example("")
@example("A" * 40)
@example("A" * 25 + "N" + "A" * 22)
@example("AC" * 25 + "N" + "AC" * 20 + "CA")
def test_nodes_are_those_of_a_naive_tree_in_both_orders(text):
    codes = page_codes_of(text)
    root, constructed = naive_tree(text)
    expected = naive_names(constructed), naive_names(breadth_then_depth_first(root))
    for layout in LAYOUTS + WIDE_LAYOUTS:
        found = names_in_order(flat_tree_of(codes, layout), text)
        assert found == expected[layout.node_reordering], layout


@given(text=texts)
def test_the_reference_is_found_again_in_strips(text):
    codes = page_codes_of(text)
    for layout in LAYOUTS:
        tree = flat_tree_of(codes, layout)
        places = [
            place_in_strips(position, 16, layout.reference_strip_bits)
            for position in range(codes.size)
        ]
        assert np.array_equal(tree.reference[places], codes)


@given(text=texts)
def test_path_ends_are_the_next_breaks(text):
    ends = path_ends(page_codes_of(text))
    assert ends.tolist() == [(text + "N").index("N", start) for start in range(len(text) + 1)]
