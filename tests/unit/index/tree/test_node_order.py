"""In which order nodes are numbered."""

from dataclasses import replace

import pytest
from helpers.trees import (
    AS_CONSTRUCTED,
    PLAIN,
    WIDE,
    breadth_then_depth_first,
    flat_tree_of,
    naive_names,
    naive_tree,
    names_in_order,
    page_codes_of,
)

from mummergpu.index.tree.flatten import order_nodes
from mummergpu.index.tree.ukkonen import grow_tree

TEXTS = {
    "nothing": "",
    "one base": "G",
    "shallow": "GATTACAGATTACC",
    "many records": "N".join("AC ACG A C CA AC ACG G".split()),
    "just as deep as the border": "A" * 16,
    "one deeper": "A" * 17,
    "two deeper": "A" * 18,
    "far deeper": "A" * 40,
    "branches below the border": "A" * 30 + "C" + "A" * 25 + "G" + "A" * 33,
    "chains below the border": "A" * 30 + "N" + "A" * 30 + "N" + "A" * 22,
    "tandem repeat": "ACG" * 20 + "T" + "ACG" * 19,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_nodes_are_numbered_breadth_first_and_then_depth_first(text):
    root, _ = naive_tree(text)
    for layout in (PLAIN, WIDE):
        tree = flat_tree_of(page_codes_of(text), layout)
        assert names_in_order(tree, text) == naive_names(breadth_then_depth_first(root))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_nodes_are_numbered_as_they_were_constructed(text):
    _, constructed = naive_tree(text)
    for layout in (AS_CONSTRUCTED, replace(AS_CONSTRUCTED, wide=True)):
        tree = flat_tree_of(page_codes_of(text), layout)
        assert names_in_order(tree, text) == naive_names(constructed)


@pytest.mark.parametrize("reordered", [False, True])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_every_node_has_one_place_and_the_root_the_first(text, reordered):
    grown = grow_tree(page_codes_of(text))
    order = order_nodes(grown, reordered)
    suffixes = [~position for position, base in enumerate(text) if base != "N"]
    assert order[0] == 0
    assert sorted(order.tolist()) == sorted([*suffixes, *range(len(grown.inner_nodes))])


def test_the_naive_order_itself_on_a_tree_drawn_by_hand():
    # Root: A -> (A$, $), the leaf of suffix 1 behind the empty edge.
    root, constructed = naive_tree("AA")
    assert naive_names(constructed) == [("", None), ("AA", 0), ("A", None), ("A", 1)]
    assert naive_names(breadth_then_depth_first(root)) == [
        ("", None),
        ("A", None),
        ("AA", 0),
        ("A", 1),
    ]
