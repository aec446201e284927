"""Small functions by which the kernels read a flat tree, the same for every layout.

In every layout, an address is the index of a node. Layouts differ only in the distance between
two nodes (`stride`, in elements of the array). The type of the array shows the node format, and
the functions are compiled for each format. In a reference in strips, the index of a base differs
from its position.
"""

from __future__ import annotations

from mummergpu.index.tree.layout import (
    EDGE_END,
    EDGE_START,
    LEAF_ID,
    NEXT_LEAF,
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
from mummergpu.runtime.jit import as_index, as_int64, inline_without_refcounts, prefetch


@inline_without_refcounts
def prefetch_node(nodes: NodeHalfArray, stride: int, node: int) -> None:
    """Prefetch a node that will be read later."""
    prefetch(nodes, node * stride)


@inline_without_refcounts
def string_depth_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the bases from the root to a node."""
    return load_number(nodes, node * stride, STRING_DEPTH)


@inline_without_refcounts
def path_start_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return where in the page one occurrence of a node's path begins."""
    half = node * stride
    return load_number(nodes, half, EDGE_END) - load_number(nodes, half, STRING_DEPTH)


@inline_without_refcounts
def parent_depth_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the string depth of a node's parent, without reading the parent."""
    half = node * stride
    edge_length = load_number(nodes, half, EDGE_END) - load_number(nodes, half, EDGE_START)
    return load_number(nodes, half, STRING_DEPTH) - edge_length


@inline_without_refcounts
def parent_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the parent of a node; `ROOT` for the root itself."""
    return load_number(nodes, node * stride, PARENT)


@inline_without_refcounts
def suffix_link_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the node whose path lacks the first base of this node's path."""
    return load_number(nodes, node * stride, SUFFIX_LINK)


@inline_without_refcounts
def is_leaf(nodes: NodeHalfArray, stride: int, node: int) -> bool:
    """Return whether a node is a leaf."""
    return load_flags(nodes, node * stride) != 0


@inline_without_refcounts
def child_of(children: NodeHalfArray, stride: int, node: int, code: int) -> int:
    """Return the child of an inner node whose edge begins with a code, or `NO_NODE`."""
    return load_number(children, node * stride, code)


@inline_without_refcounts
def leaf_id_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return where in the page the suffix of a leaf begins."""
    return load_number(children, leaf * stride, LEAF_ID)


@inline_without_refcounts
def next_leaf_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return the next leaf of a ``$`` chain, whose path has the same bases, or `NO_NODE`."""
    return load_number(children, leaf * stride, NEXT_LEAF)


@inline_without_refcounts
def preceding_base_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return the code of the base before the suffix of a leaf; `BREAK` where there is none."""
    return load_flags(children, leaf * stride) & PRECEDING_BASE_MASK


@inline_without_refcounts
def reference_base(reference: ByteArray, strip_bits: int, position: int) -> int:
    """Return the code at a position of the page, in one or two dimensions."""
    place = place_in_strips(position, REFERENCE_WIDTH_BITS, strip_bits)
    return as_int64(reference[as_index(place)])
