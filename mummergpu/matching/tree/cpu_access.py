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
from mummergpu.runtime.jit import inline_without_refcounts, prefetch, unsigned, widened


@inline_without_refcounts
def prefetch_node(nodes: NodeHalfArray, stride: int, node: int) -> None:
    """Prefetch a node that will be read later.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.
    """
    prefetch(nodes, node * stride)


@inline_without_refcounts
def string_depth_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the string depth of a node.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    int
        The bases from the root to the node.
    """
    return load_number(nodes, node * stride, STRING_DEPTH)


@inline_without_refcounts
def path_start_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return where in the page one occurrence of a node's path begins.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    int
        A position in the page, 0-based.
    """
    half = node * stride
    return load_number(nodes, half, EDGE_END) - load_number(nodes, half, STRING_DEPTH)


@inline_without_refcounts
def parent_depth_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the string depth of a node's parent, without reading the parent.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    int
        The bases from the root to the parent.
    """
    half = node * stride
    edge_length = load_number(nodes, half, EDGE_END) - load_number(nodes, half, EDGE_START)
    return load_number(nodes, half, STRING_DEPTH) - edge_length


@inline_without_refcounts
def parent_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the parent of a node.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    int
        The address of the parent; `ROOT` for the root itself.
    """
    return load_number(nodes, node * stride, PARENT)


@inline_without_refcounts
def suffix_link_of(nodes: NodeHalfArray, stride: int, node: int) -> int:
    """Return the node whose path lacks the first base of this node's path.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    int
        The address of that node.
    """
    return load_number(nodes, node * stride, SUFFIX_LINK)


@inline_without_refcounts
def is_leaf(nodes: NodeHalfArray, stride: int, node: int) -> bool:
    """Return whether a node is a leaf.

    Parameters
    ----------
    nodes : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The first halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the node.

    Returns
    -------
    bool
        True for a leaf.
    """
    return load_flags(nodes, node * stride) != 0


@inline_without_refcounts
def child_of(children: NodeHalfArray, stride: int, node: int, code: int) -> int:
    """Return the child of an inner node whose edge begins with a code.

    Parameters
    ----------
    children : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The second halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    node : int
        The address of the inner node.
    code : int
        A base code, or `codes.BREAK` for the ``$`` child.

    Returns
    -------
    int
        The address of the child, or `NO_NODE`.
    """
    return load_number(children, node * stride, code)


@inline_without_refcounts
def leaf_id_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return where in the page the suffix of a leaf begins.

    Parameters
    ----------
    children : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The second halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    leaf : int
        The address of the leaf.

    Returns
    -------
    int
        A position in the page, 0-based.
    """
    return load_number(children, leaf * stride, LEAF_ID)


@inline_without_refcounts
def next_leaf_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return the next leaf of a ``$`` chain, whose path has the same bases.

    Parameters
    ----------
    children : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The second halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    leaf : int
        The address of the leaf.

    Returns
    -------
    int
        The address of that leaf, or `NO_NODE`.
    """
    return load_number(children, leaf * stride, NEXT_LEAF)


@inline_without_refcounts
def preceding_base_of(children: NodeHalfArray, stride: int, leaf: int) -> int:
    """Return the code of the base before the suffix of a leaf.

    Parameters
    ----------
    children : ndarray, dtype=uint8 or uint32, shape=(n_elements,)
        The second halves of the nodes, as in `flatten.FlatTree`.
    stride : int
        Elements from one node to the next.
    leaf : int
        The address of the leaf.

    Returns
    -------
    int
        A base code; `codes.BREAK` where there is no base.
    """
    return load_flags(children, leaf * stride) & PRECEDING_BASE_MASK


@inline_without_refcounts
def reference_base(reference: ByteArray, strip_bits: int, position: int) -> int:
    """Return the code at a position of the page.

    Parameters
    ----------
    reference : ndarray, dtype=uint8, shape=(n_places,)
        The codes of the page, in one or two dimensions as the layout says.
    strip_bits : int
        Binary logarithm of the rows in a strip; 0 in one dimension.
    position : int
        A position in the page, 0-based.

    Returns
    -------
    int
        The code.
    """
    place = place_in_strips(position, REFERENCE_WIDTH_BITS, strip_bits)
    return widened(reference[unsigned(place)])
