"""Reads flat trees of any layout back into columns of numbers, one per field of a node.

It serves inspection and tests; the kernels read the arrays directly.
"""

from typing import NamedTuple

import numpy as np

from mummergpu.index.tree.layout import (
    EDGE_END,
    EDGE_START,
    NO_NODE,
    PARENT,
    STRING_DEPTH,
    SUFFIX_LINK,
    place_in_strips,
)
from mummergpu.index.tree.node_fields import load_flags, load_number
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BREAK

NO_LEAF = -1
"""The leaf id of an inner node."""

_SLOTS = 7
_FIELDS = _SLOTS + BREAK + 2
"""The rows of fields: an address, the six fields of the first half, the five slots and the flags
of the second half."""


class NodeColumns(NamedTuple):
    """The fields of nodes that are consecutive in the tree's order, one in each column.

    Nodes are named by their addresses; `layout.NO_NODE` stands for none, and `NO_LEAF` for the leaf
    id of inner nodes. The root's parent and suffix link are itself. The five children are those of
    A, C, G, T and $. Positions count from the first base of the page; edges are half open.
    """

    addresses: np.ndarray
    edge_starts: np.ndarray
    edge_ends: np.ndarray
    string_depths: np.ndarray
    parents: np.ndarray
    suffix_links: np.ndarray
    is_leaf: np.ndarray
    children: np.ndarray
    leaf_ids: np.ndarray
    next_leaves: np.ndarray
    flags: np.ndarray


def decode_nodes(tree, begin=0, end=None):
    """Return the fields of a range of nodes, as new arrays of 68 bytes per node.

    The range counts nodes in the tree's order; in one dimension the number of a node is its
    address.
    """
    end = tree.node_count if end is None else min(end, tree.node_count)
    fields = np.empty((_FIELDS, max(end - begin, 0)), dtype=np.int32)
    layout = tree.layout
    bits = layout.tree_width_bits, layout.tree_strip_bits
    decode_fields(tree.nodes, tree.children, layout.node_stride, *bits, begin, fields)
    is_leaf = fields[_SLOTS - 1] != 0
    slots = fields[_SLOTS : _SLOTS + BREAK + 1]
    return NodeColumns(
        *fields[:6],
        is_leaf=is_leaf,
        children=np.where(is_leaf, np.int32(NO_NODE), slots),
        leaf_ids=np.where(is_leaf, slots[0], np.int32(NO_LEAF)),
        next_leaves=np.where(is_leaf, slots[BREAK], np.int32(NO_NODE)),
        flags=fields[_FIELDS - 1],
    )


@jit
def decode_fields(nodes, children, stride, width_bits, strip_bits, begin, fields):
    """Fill the columns of `fields` with the nodes from number `begin` on.

    A column has the address of a node, the six fields of its first half, and the six of its second.
    """
    for column in range(fields.shape[1]):
        address = place_in_strips(begin + column, width_bits, strip_bits)
        half = address * stride
        fields[0, column] = address
        fields[1, column] = load_number(nodes, half, EDGE_START)
        fields[2, column] = load_number(nodes, half, EDGE_END)
        fields[3, column] = load_number(nodes, half, STRING_DEPTH)
        fields[4, column] = load_number(nodes, half, PARENT)
        fields[5, column] = load_number(nodes, half, SUFFIX_LINK)
        fields[6, column] = load_flags(nodes, half)
        for code in range(BREAK + 1):
            fields[_SLOTS + code, column] = load_number(children, half, code)
        fields[_FIELDS - 1, column] = load_flags(children, half)
