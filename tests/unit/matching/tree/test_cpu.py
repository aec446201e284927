"""Trees with circles and wrong depths end a search on the processor with an error."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.decoded_trees import decode_nodes
from helpers.in_memory import block_of
from helpers.search_cases import find_on

from mummergpu.errors import InputError
from mummergpu.index.pages import Page
from mummergpu.index.tree.layout import EDGE_START, FIELDS, PARENT, Layout
from mummergpu.index.tree_index import build_page
from mummergpu.input.reference import Reference
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode

LENGTH = 12
WIDE = Layout(True, False, False, False, wide=True)
CODES = np.random.default_rng(5).integers(0, 4, 600, dtype=np.uint8)
CODES[300:340] = CODES[100:140]
CODES[500:540] = CODES[100:140]


def page():
    """Return a page in the wide format, in which each field is a word of an array."""
    reference = Reference("r", CODES, np.array([0]), np.array([CODES.size]), (b"r",))
    built = build_page(reference, Page(0, 0, CODES.size, CODES.size), WIDE, Stats())
    return replace(built, index_path="r.mgi")


def matches_of(indexed):
    block = block_of([decode(CODES[90:560]).decode()])
    backend = TreeCpuBackend(Stats())
    backend.load_pages([indexed], LENGTH)
    found = find_on(backend, block)
    assert found is not None
    return found.count


def nodes_of(indexed):
    """Return the nodes as rows of words: the fields of the first half, then the second's."""
    return indexed.tree.nodes.reshape(-1, 2 * FIELDS)


def deep_node(indexed):
    """Return the inner node of the repeat: more than `LENGTH` bases deep, with leaves below."""
    columns = decode_nodes(indexed.tree)
    depths = np.where(columns.is_leaf, 0, columns.string_depths)
    return int(columns.addresses[np.argmax(depths)])


def circle_of_children(indexed):
    """Let the children of the nodes below the root lead back to them."""
    nodes = nodes_of(indexed)
    columns = decode_nodes(indexed.tree)
    for node in columns.addresses[~columns.is_leaf & (columns.parents == 0)]:
        if node > 0:
            nodes[node, FIELDS : FIELDS + 4] = node


def circle_of_parents(indexed):
    """Let no node but the root be less deep than the one below it."""
    nodes = nodes_of(indexed)
    node = deep_node(indexed)
    nodes[node, PARENT] = node
    nodes[node, EDGE_START] = nodes[node, EDGE_START + 1] - 1


def circle_below(indexed):
    """Let a child of the repeat's node be that node."""
    node = deep_node(indexed)
    nodes_of(indexed)[node, FIELDS : FIELDS + 4] = node


def circle_of_leaves(indexed):
    """Let each leaf be the one behind itself."""
    nodes = nodes_of(indexed)
    columns = decode_nodes(indexed.tree)
    for leaf in columns.addresses[columns.is_leaf]:
        nodes[leaf, FIELDS + 4] = leaf


def edges_of_no_length(indexed):
    """Let the edges of leaves begin where no page has a base."""
    columns = decode_nodes(indexed.tree)
    nodes_of(indexed)[columns.addresses[columns.is_leaf], EDGE_START] = (1 << 32) - 1


def edges_above_the_root(indexed):
    """Let the edges of leaves be longer than the way from the root."""
    columns = decode_nodes(indexed.tree)
    nodes_of(indexed)[columns.addresses[columns.is_leaf], EDGE_START] = 0


def test_a_sound_tree_is_searched():
    assert matches_of(page()) > 3


@pytest.mark.parametrize(
    "damage",
    [
        circle_of_children,
        circle_of_parents,
        circle_below,
        circle_of_leaves,
        edges_of_no_length,
        edges_above_the_root,
    ],
)
def test_a_tree_that_cannot_be_is_an_error(damage):
    indexed = page()
    damage(indexed)
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 0 holds"):
        matches_of(indexed)


def test_a_tree_that_was_built_in_memory_is_no_fault_of_the_user():
    indexed = replace(page(), index_path="")
    circle_below(indexed)
    with pytest.raises(RuntimeError, match="page 0 was built with a value that cannot be"):
        matches_of(indexed)
