"""Small functions by which the kernels read a flat tree, the same for every layout.

In every layout, an address is the index of a node. The type of the arrays shows the node format,
and the functions are compiled for each format. In a reference in strips, the index of a base
differs from its position.
"""

from __future__ import annotations

from typing import NamedTuple

from mummergpu.index.tree.flatten import FlatTree
from mummergpu.index.tree.layout import (
    EDGE_END,
    EDGE_START,
    LEAF_ID,
    NEXT_LEAF,
    NO_NODE,
    PARENT,
    PRECEDING_BASE_MASK,
    REFERENCE_WIDTH_BITS,
    STRING_DEPTH,
    SUFFIX_LINK,
    NodeHalfArray,
    place_in_strips,
)
from mummergpu.index.tree.node_fields import load_flags, load_number
from mummergpu.runtime.arrays import ByteArray
from mummergpu.runtime.jit import as_index, as_int64, inline, prefetch
from mummergpu.sequence.codes import BREAK


class TreeArrays(NamedTuple):
    """A flat tree as compiled functions take it (`flatten.FlatTree`)."""

    # The two halves of the nodes; (n_elements,).
    nodes: NodeHalfArray
    children: NodeHalfArray
    stride: int  # Elements from one node to the next, in either array.
    slots: int  # The number of nodes that the arrays can hold.
    reference: ByteArray  # The codes of the page, in one or two dimensions.
    strip_bits: int  # Binary logarithm of the rows in a strip of the reference; 0 in one dimension.


def arrays_of(tree: FlatTree) -> TreeArrays:
    """Return a tree as compiled functions take it."""
    stride = tree.layout.node_stride
    return TreeArrays(
        tree.nodes,
        tree.children,
        stride,
        tree.nodes.size // stride,
        tree.reference,
        tree.layout.reference_strip_bits,
    )


@inline
def prefetch_node(tree: TreeArrays, node: int) -> None:
    """Prefetch a node that will be read later."""
    prefetch(tree.nodes, node * tree.stride)


@inline
def string_depth_of(tree: TreeArrays, node: int) -> int:
    """Return the bases from the root to a node."""
    return load_number(tree.nodes, node * tree.stride, STRING_DEPTH)


@inline
def path_start_of(tree: TreeArrays, node: int) -> int:
    """Return where in the page one occurrence of a node's path begins."""
    half = node * tree.stride
    return load_number(tree.nodes, half, EDGE_END) - load_number(tree.nodes, half, STRING_DEPTH)


@inline
def parent_depth_of(tree: TreeArrays, node: int) -> int:
    """Return the string depth of a node's parent, without reading the parent."""
    half = node * tree.stride
    edge_length = load_number(tree.nodes, half, EDGE_END) - load_number(
        tree.nodes, half, EDGE_START
    )
    return load_number(tree.nodes, half, STRING_DEPTH) - edge_length


@inline
def parent_of(tree: TreeArrays, node: int) -> int:
    """Return the parent of a node; `ROOT` for the root itself."""
    return load_number(tree.nodes, node * tree.stride, PARENT)


@inline
def suffix_link_of(tree: TreeArrays, node: int) -> int:
    """Return the node whose path lacks the first base of this node's path."""
    return load_number(tree.nodes, node * tree.stride, SUFFIX_LINK)


@inline
def is_leaf(tree: TreeArrays, node: int) -> bool:
    """Return whether a node is a leaf."""
    return load_flags(tree.nodes, node * tree.stride) != 0


@inline
def child_of(tree: TreeArrays, node: int, code: int) -> int:
    """Return the child of an inner node whose edge begins with a code, or `NO_NODE`.

    `BREAK` is the code of the ``$`` child.
    """
    return load_number(tree.children, node * tree.stride, code)


@inline
def next_child(tree: TreeArrays, node: int, slot: int) -> tuple[int, int]:
    """Return the first child of a node at or after a slot, and the slot after that child.

    Slots 0 to 3 are the bases, 4 is ``$``, and 5 is after them. Without a child it is `NO_NODE`.
    """
    child = NO_NODE
    while slot <= BREAK and child == NO_NODE:
        child = child_of(tree, node, slot)
        slot += 1
    return child, slot


@inline
def slot_behind(tree: TreeArrays, node: int, child: int) -> int:
    """Return the slot after that of a child; leaves further down a ``$`` chain count as last."""
    slot = 0
    while slot <= BREAK and child_of(tree, node, slot) != child:
        slot += 1
    return slot + 1


@inline
def leaf_id_of(tree: TreeArrays, leaf: int) -> int:
    """Return where in the page the suffix of a leaf begins."""
    return load_number(tree.children, leaf * tree.stride, LEAF_ID)


@inline
def next_leaf_of(tree: TreeArrays, leaf: int) -> int:
    """Return the next leaf of a ``$`` chain, whose path has the same bases, or `NO_NODE`."""
    return load_number(tree.children, leaf * tree.stride, NEXT_LEAF)


@inline
def preceding_base_of(tree: TreeArrays, leaf: int) -> int:
    """Return the code of the base before the suffix of a leaf; `BREAK` where there is none."""
    return load_flags(tree.children, leaf * tree.stride) & PRECEDING_BASE_MASK


@inline
def reference_base(tree: TreeArrays, position: int) -> int:
    """Return the code at a position of the page."""
    place = place_in_strips(position, REFERENCE_WIDTH_BITS, tree.strip_bits)
    return as_int64(tree.reference[as_index(place)])
