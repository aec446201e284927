"""Tables and trees with values that cannot be end a search on the processor with an error."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.decoded_trees import decode_nodes
from helpers.in_memory import block_of
from helpers.search_cases import find_on

from mummergpu.errors import InputError
from mummergpu.index.kmer_sampling import KmerSampling
from mummergpu.index.kmer_table import KmerPage, build_kmer_table
from mummergpu.index.pages import Page
from mummergpu.index.tree.layout import EDGE_START, FIELDS, PARENT, Layout
from mummergpu.index.tree_index import build_page
from mummergpu.input.reference import Reference
from mummergpu.matching.kmer.cpu import KmerCpuBackend
from mummergpu.matching.tree.cpu import TreeCpuBackend
from mummergpu.runtime.stats import Stats
from mummergpu.sequence.codes import decode, with_margins

KMER = 6
BASES = 500
TABLE_CODES = np.random.default_rng(3).integers(0, 4, BASES, dtype=np.uint8)


def table_page(change, path="r.mgi"):
    padded = with_margins(TABLE_CODES)
    table = build_kmer_table(padded, 100, BASES, KmerSampling(KMER))
    change(table)
    return KmerPage(Page(1, 100, BASES, BASES), table, padded, path)


def matches_of_table(page):
    """Search the last part of the reference, with every sample a k-mer of it."""
    block = block_of([decode(TABLE_CODES[200:]).decode()])
    backend = KmerCpuBackend(Stats())
    backend.load_pages([page], KMER)
    return find_on(backend, block).count


def kmer_number(position):
    return sum(int(code) << 2 * place for place, code in enumerate(TABLE_CODES[position:][:KMER]))


def set_position(value):
    def change(table):
        table.positions[table.offsets[kmer_number(300)]] = value

    return change


def set_offset(behind, value):
    def change(table):
        table.offsets[kmer_number(300) + behind] = value

    return change


def test_positions_inside_the_reference_are_followed():
    for value in (0, 200, BASES - 100 - KMER):
        assert matches_of_table(table_page(set_position(value))) > 0


@pytest.mark.parametrize(
    "change",
    [
        set_position(BASES - 100 - KMER + 1),
        set_position((1 << 32) - 1),
        set_offset(0, 1 << 31),
        set_offset(0, (1 << 32) - 1),
        set_offset(1, 0),
        set_offset(1, BASES - 100 - KMER + 2),
        set_offset(1, (1 << 32) - 1),
    ],
)
def test_what_is_outside_is_an_error(change):
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 1 holds"):
        matches_of_table(table_page(change))


def test_a_table_that_was_built_in_memory_is_no_fault_of_the_user():
    page = replace(table_page(set_position(1 << 31)), index_path="")
    with pytest.raises(RuntimeError, match="page 1 was built with a value that cannot be"):
        matches_of_table(page)


LENGTH = 12
WIDE = Layout(True, False, False, False, wide=True)
CODES = np.random.default_rng(5).integers(0, 4, 600, dtype=np.uint8)
CODES[300:340] = CODES[100:140]
CODES[500:540] = CODES[100:140]


def tree_page():
    """Return a page in the wide format, in which each field is a word of an array."""
    reference = Reference("r", CODES, np.array([0]), np.array([CODES.size]), (b"r",))
    built = build_page(reference, Page(0, 0, CODES.size, CODES.size), WIDE, Stats())
    return replace(built, index_path="r.mgi")


def matches_of_tree(indexed):
    block = block_of([decode(CODES[90:560]).decode()])
    backend = TreeCpuBackend(Stats())
    backend.load_pages([indexed], LENGTH)
    return find_on(backend, block).count


def nodes_of(indexed):
    """Return the nodes as rows of words: the fields of the first half, then the second's."""
    return indexed.tree.nodes.reshape(-1, 2 * FIELDS)


def deep_node(indexed):
    """Return the inner node of the repeat: more than `LENGTH` bases deep, with leaves below."""
    columns = decode_nodes(indexed.tree)
    return int(columns.addresses[np.argmax(np.where(columns.is_leaf, 0, columns.string_depths))])


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
    assert matches_of_tree(tree_page()) > 3


@pytest.mark.parametrize(
    "damage",
    [
        *(circle_of_children, circle_of_parents, circle_below, circle_of_leaves),
        *(edges_of_no_length, edges_above_the_root),
    ],
)
def test_a_tree_that_cannot_be_is_an_error(damage):
    indexed = tree_page()
    damage(indexed)
    with pytest.raises(InputError, match=r"^r\.mgi: the index is damaged: its page 0 holds"):
        matches_of_tree(indexed)


def test_a_tree_that_was_built_in_memory_is_no_fault_of_the_user():
    indexed = replace(tree_page(), index_path="")
    circle_below(indexed)
    with pytest.raises(RuntimeError, match="page 0 was built with a value that cannot be"):
        matches_of_tree(indexed)
