"""Reads flat trees of any layout back into columns of numbers, one per field of a node.

It serves inspection and tests; the kernels read the arrays directly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import jit
from mummergpu.sequence.codes import BREAK

if TYPE_CHECKING:
    from mummergpu.runtime.arrays import BoolArray, Int32Array

NO_LEAF: Final = -1
"""The leaf id of an inner node."""

_SLOTS: Final = 7
_FIELDS: Final = _SLOTS + BREAK + 2
"""The rows of fields: an address, the six fields of the first half, the five slots and the flags
of the second half."""


@frozen
class NodeColumns:
    """The fields of nodes that are consecutive in the tree's order.

    All arrays have dtype int32 and shape (n_nodes,) unless stated otherwise. Positions are
    0-based, counted from the first base of the page.

    Attributes
    ----------
    addresses : ndarray
        The address of each node; all other columns refer to nodes by address.
    edge_starts, edge_ends : ndarray
        The half-open range of the page that labels the edge from the parent.
    string_depths : ndarray
        The number of bases from the root to the node.
    parents, suffix_links : ndarray
        The addresses of these nodes; `layout.ROOT` for the root itself.
    is_leaf : ndarray, dtype=bool
        Whether each node is a leaf.
    children : ndarray, shape=(5, n_nodes)
        The addresses of the A, C, G, T and $ children; `layout.NO_NODE` for a missing child,
        and in leaves.
    leaf_ids : ndarray
        The position at which the suffix of a leaf begins; `NO_LEAF` in inner nodes.
    next_leaves : ndarray
        The address of the next leaf of a ``$`` chain, or `layout.NO_NODE`.
    flags : ndarray
        The flags of the second half.
    """

    addresses: Int32Array
    edge_starts: Int32Array
    edge_ends: Int32Array
    string_depths: Int32Array
    parents: Int32Array
    suffix_links: Int32Array
    is_leaf: BoolArray
    children: Int32Array
    leaf_ids: Int32Array
    next_leaves: Int32Array
    flags: Int32Array


def decode_nodes(tree, begin=0, end=None):
    """Return the fields of a range of nodes, as new arrays of 68 bytes per node.

    The range counts nodes in the tree's order; in one dimension the number of a node is its
    address.
    """
    end = tree.node_count if end is None else min(end, tree.node_count)
    fields = np.empty((_FIELDS, max(end - begin, 0)), dtype=np.int32)
    layout = tree.layout
    decode_fields(
        tree.nodes,
        tree.children,
        layout.node_stride,
        layout.tree_width_bits,
        layout.tree_strip_bits,
        begin,
        fields,
    )
    is_leaf = fields[_SLOTS - 1] != 0
    slots = fields[_SLOTS : _SLOTS + BREAK + 1]
    return NodeColumns(
        addresses=fields[0],
        edge_starts=fields[1],
        edge_ends=fields[2],
        string_depths=fields[3],
        parents=fields[4],
        suffix_links=fields[5],
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
