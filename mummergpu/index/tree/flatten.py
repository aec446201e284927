"""Orders the nodes of a grown tree, and flattens it into the arrays that the kernels read.

Both follow the paper: section 2.1, and policy ``n``. The name of a node is the one in the children
of an inner node: the number of an inner node, or ``~s`` for the leaf of suffix s. An order is the
list of all names. The index of a name in the list is the number that the node gets.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from mummergpu.index.pages import Page
from mummergpu.index.tree.layout import (
    LEAF_FLAG,
    REFERENCE_WIDTH_BITS,
    ROOT,
    Layout,
    NodeHalfArray,
    length_in_strips,
    place_in_strips,
    zeros_aligned,
)
from mummergpu.index.tree.node_fields import (
    NodeWordArray,
    as_words,
    mark_leaf,
    write_child,
    write_flags,
    write_half,
)
from mummergpu.index.tree.ukkonen import (
    FIRST_CHILD,
    FIRST_SUFFIX,
    RECORD_NUMBERS,
    STRING_DEPTH,
    SUFFIX_LINK,
    GrownTree,
)
from mummergpu.runtime.arrays import ByteArray, Int32Array, Int64Array
from mummergpu.runtime.frozen import frozen
from mummergpu.runtime.jit import as_index, as_int64, inline, jit, prefetch
from mummergpu.sequence.codes import BREAK, CodeArray

BREADTH_FIRST_DEPTH: Final = 16
"""Nodes fewer than this many edges below the root are numbered breadth first."""

LOOK_AHEAD: Final = 16
"""The number of nodes by which prefetching runs ahead."""


def order_nodes(tree: GrownTree, reordered: bool) -> Int32Array:
    """Return the names of all nodes in the order of their numbers; the root is the first.

    Reordered nodes are numbered breadth first near the root and depth first below. Others keep the
    order of construction: by the suffix whose insertion made the node, an inner node before the
    leaf below it.
    """
    order = np.empty(len(tree.inner_nodes) + tree.leaf_count, dtype=np.int32)
    if reordered:
        waiting = np.empty_like(order)
        order_breadth_then_depth_first(tree.inner_nodes, tree.next_leaves, order, waiting)
    else:
        order_as_constructed(tree.codes, tree.inner_nodes, order)
    return order


@jit
def order_breadth_then_depth_first(
    inner_nodes: Int32Array, next_leaves: Int32Array, order: Int32Array, waiting: Int32Array
) -> None:
    """Fill `order` level by level down to depth 15 in edges, and subtree by subtree below.

    `waiting` is scratch memory for as many names as `order` has.
    """
    order[0] = 0
    filled = 1
    level_begin = 0
    for _ in range(1, BREADTH_FIRST_DEPTH):
        level_end = filled
        for place in range(level_begin, level_end):
            if place + LOOK_AHEAD < filled and order[place + LOOK_AHEAD] > 0:
                prefetch(inner_nodes, RECORD_NUMBERS * order[place + LOOK_AHEAD])
            if order[place] < 0:
                continue
            for code in range(BREAK + 1):
                child = inner_nodes[order[place], FIRST_CHILD + code]
                while child != 0:
                    order[filled] = child
                    filled += 1
                    child = next_leaves[~child] if child < 0 else 0
        level_begin = level_end
    for place in range(level_begin, filled):
        if order[place] > 0:
            filled = order_subtree(inner_nodes, next_leaves, order[place], waiting, order, filled)


@inline
def order_subtree(
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
    top: int,
    waiting: Int32Array,
    order: Int32Array,
    filled: int,
) -> int:
    """Append all nodes below `top` depth first, in the order A, C, G, T, $; return the count.

    `waiting` is scratch memory for as many names as `order` has.
    """
    # `waiting` is a stack of `count` names; children are pushed from the last to the first.
    count = 0
    node = top
    while True:
        for code in range(BREAK, -1, -1):
            child = inner_nodes[node, FIRST_CHILD + code]
            if child != 0:
                waiting[count] = child
                count += 1
                if child > 0:
                    prefetch(inner_nodes, RECORD_NUMBERS * child)
        node = 0
        while node == 0:
            if count == 0:
                return filled
            count -= 1
            child = waiting[count]
            if child > 0:
                node = child
            # A leaf of a chain is followed by the rest of the chain.
            while child != 0:
                order[filled] = child
                filled += 1
                child = next_leaves[~child] if child < 0 else 0


@jit
def order_as_constructed(codes: CodeArray, inner_nodes: Int32Array, order: Int32Array) -> None:
    """Fill `order` suffix by suffix: the inner node that its insertion made, then its leaf."""
    order[0] = 0
    filled = 1
    # Inner nodes are numbered in the order of their first suffixes, so one pass meets all of them.
    made = 1
    for suffix in range(codes.size):
        if codes[suffix] == BREAK:
            continue
        if made < len(inner_nodes) and inner_nodes[made, FIRST_SUFFIX] == suffix:
            order[filled] = made
            filled += 1
            made += 1
        order[filled] = ~suffix
        filled += 1


WordArray = Int64Array

ADDRESS_MASK: Final = (1 << 31) - 1
LENGTH_SHIFT: Final = 31
LENGTH_MASK: Final = (1 << 30) - 1
BASE_SHIFT: Final = 61
BASE_MASK: Final = 7
FAR_AHEAD: Final = 32
NEAR_AHEAD: Final = 16
"""The numbers of nodes by which prefetching runs ahead."""


@frozen
class FlatTree:
    """The suffix tree of a page in the form that the kernels read."""

    layout: Layout
    # First halves; the half of the node at address a begins at ``a * layout.node_stride``.
    # (n_elements,)
    nodes: NodeHalfArray
    # Second halves, at the same offsets. In a merged tree both are views of one array.
    # (n_elements,)
    children: NodeHalfArray
    # The codes of the page, followed by a break, in one or two dimensions (`layout`).
    reference: ByteArray
    base_count: int  # The number of bases of the page, including breaks inside it.
    node_count: int
    leaf_count: int

    @property
    def byte_count(self) -> int:
        """The size of the nodes and of the reference in bytes."""
        arrays = (self.nodes,) if self.layout.merged_tree else (self.nodes, self.children)
        return self.reference.size + sum(array.nbytes for array in arrays)


def flatten_tree(tree: GrownTree, order: Int32Array, layout: Layout, base_before: int) -> FlatTree:
    """Write the nodes of a grown tree in a given order (`order_nodes`) and layout.

    `base_before` is the code of the base before the page, or `BREAK`. A page with more bases than
    the format allows raises `ValueError`.
    """
    base_count = tree.codes.size - 1
    if base_count > layout.max_bases:
        raise ValueError(f"{base_count} bases do not fit {layout.address_bits}-bit addresses")
    facts = np.empty(tree.codes.size, dtype=np.int64)
    fill_leaf_facts(tree.codes, base_before, facts)
    addresses = np.zeros(len(tree.inner_nodes), dtype=np.int32)
    width_bits, strip_bits = layout.tree_width_bits, layout.tree_strip_bits
    place_nodes(order, facts, addresses, width_bits, strip_bits)
    nodes, children = empty_halves(length_in_strips(order.size, width_bits, strip_bits), layout)
    node_words, child_words = as_words(nodes), as_words(children)
    write_nodes(
        order,
        tree.inner_nodes,
        tree.next_leaves,
        facts,
        addresses,
        node_words,
        child_words,
        layout.node_stride_bytes // node_words.itemsize,
    )
    reference = lay_out_reference(tree.codes, layout)
    return FlatTree(layout, nodes, children, reference, base_count, order.size, tree.leaf_count)


def empty_halves(slots: int, layout: Layout) -> tuple[NodeHalfArray, NodeHalfArray]:
    """Return zeroed arrays for the first and the second halves of `slots` nodes."""
    if not layout.merged_tree:
        size = slots * layout.half_bytes
        return in_elements(zeros_aligned(size), layout), in_elements(zeros_aligned(size), layout)
    both = in_elements(zeros_aligned(slots * layout.node_stride_bytes), layout)
    return both, both[layout.half_elements :]


def in_elements(memory: ByteArray, layout: Layout) -> NodeHalfArray:
    """Return a view of memory for halves as an array of the format's elements."""
    return memory.view(np.uint32) if layout.wide else memory


def lay_out_reference(codes: CodeArray, layout: Layout) -> ByteArray:
    """Return the codes of a page in the layout's dimensions, copied only if there are two."""
    strip_bits = layout.reference_strip_bits
    if strip_bits == 0:
        return codes
    reference = zeros_aligned(length_in_strips(codes.size, REFERENCE_WIDTH_BITS, strip_bits))
    place_bases(codes, reference, strip_bits)
    return reference


@jit
def place_bases(codes: CodeArray, reference: ByteArray, strip_bits: int) -> None:
    """Write each base of a page to its place in strips of zeros."""
    for position in range(codes.size):
        place = place_in_strips(position, REFERENCE_WIDTH_BITS, strip_bits)
        reference[place] = codes[position]


@jit
def fill_leaf_facts(codes: CodeArray, base_before: int, facts: WordArray) -> None:
    """Pack the facts about each leaf that need no tree into a number.

    Bits 31 to 60 are the number of bases from the suffix to the next break, minus one. Bits 61 to
    63 are the base before the suffix. Bits 0 to 30 are free for the leaf's address.
    """
    path_end = codes.size - 1
    # From right to left, `path_end` is the next break.
    for position in range(codes.size - 1, -1, -1):
        if codes[position] == BREAK:
            path_end = position
        before = as_int64(codes[position - 1]) if position > 0 else as_int64(base_before)
        length_less_one = (path_end - position - 1) & LENGTH_MASK
        facts[position] = (length_less_one << LENGTH_SHIFT) | (before << BASE_SHIFT)


@jit
def place_nodes(
    order: Int32Array, facts: WordArray, addresses: Int32Array, width_bits: int, strip_bits: int
) -> None:
    """Assign an address to each node: for leaves in `facts`, for others in `addresses`."""
    for place in range(order.size):
        name = order[as_index(place)]
        address = place_in_strips(place, width_bits, strip_bits)
        if name < 0:
            facts[~name] |= address
        else:
            addresses[name] = address


@jit
def write_nodes(
    order: Int32Array,
    inner_nodes: Int32Array,
    next_leaves: Int32Array,
    facts: WordArray,
    addresses: Int32Array,
    nodes: NodeWordArray,
    children: NodeWordArray,
    stride: int,
) -> None:
    """Write every node: an inner node at its turn in the order, a leaf with its parent.

    Two fields of an inner node depend on its parent: the parent's address, and the start of the
    edge, which is the first suffix plus the parent's string depth. The parent adds its part at its
    own turn, which can be before or after the turn of the node. The other fields of a half are
    disjoint parts of zeroed memory.
    """
    for place in range(order.size):
        prefetch_nodes(order, inner_nodes, facts, addresses, place)
        name = order[as_index(place)]
        # A leaf has no record: writing it needs facts from its parent.
        if name < 0:
            continue
        address = as_int64(addresses[as_index(name)])
        half = address * stride
        depth = as_int64(inner_nodes[name, STRING_DEPTH])
        first_suffix = as_int64(inner_nodes[name, FIRST_SUFFIX])
        link = as_int64(addresses[inner_nodes[name, SUFFIX_LINK]])
        # The parent adds its own string depth at its turn, before or after this one.
        path_start = first_suffix if name > 0 else 0
        write_half(nodes, half, path_start, first_suffix + depth, depth, 0, link)
        for code in range(BREAK + 1):
            child = as_int64(inner_nodes[as_index(name), as_index(FIRST_CHILD + code)])
            if child == 0:
                continue
            if child > 0:
                # Only the fields that the child does not know: its edge's start and its parent.
                child_address = as_int64(addresses[as_index(child)])
                write_half(nodes, child_address * stride, depth, 0, 0, address, 0)
            else:
                child_address = facts[as_index(~child)] & ADDRESS_MASK
                write_leaves(~child, depth, address, next_leaves, facts, nodes, children, stride)
            write_child(children, half, code, child_address)


@inline
def prefetch_nodes(
    order: Int32Array, inner_nodes: Int32Array, facts: WordArray, addresses: Int32Array, place: int
) -> None:
    """Prefetch the record of an inner node some turns ahead, and later the nodes it points to."""
    if place + FAR_AHEAD >= order.size:
        return
    name = order[place + FAR_AHEAD]
    if name > 0:
        prefetch(inner_nodes, RECORD_NUMBERS * name)
    name = order[place + NEAR_AHEAD]
    if name > 0:
        prefetch(addresses, inner_nodes[name, SUFFIX_LINK])
        for code in range(BREAK + 1):
            child = inner_nodes[as_index(name), as_index(FIRST_CHILD + code)]
            if child > 0:
                prefetch(addresses, child)
            elif child < 0:
                prefetch(facts, ~child)


@inline
def write_leaves(
    suffix: int,
    parent_depth: int,
    parent: int,
    next_leaves: Int32Array,
    facts: WordArray,
    nodes: NodeWordArray,
    children: NodeWordArray,
    stride: int,
) -> None:
    """Write a leaf and the leaves chained to it.

    The suffix link of a leaf is the leaf of the suffix that begins one base later, or the root if
    there is none. Matching uses this link; construction does not.
    """
    while True:
        fact = facts[as_index(suffix)]
        half = (fact & ADDRESS_MASK) * stride
        length = ((fact >> LENGTH_SHIFT) & LENGTH_MASK) + 1
        link = ROOT if length == 1 else facts[as_index(suffix + 1)] & ADDRESS_MASK
        write_half(nodes, half, suffix + parent_depth, suffix + length, length, parent, link)
        mark_leaf(nodes, half)
        following = as_int64(next_leaves[as_index(suffix)])
        next_address = facts[~following] & ADDRESS_MASK if following < 0 else 0
        write_half(children, half, suffix, 0, 0, 0, next_address)
        write_flags(children, half, LEAF_FLAG | ((fact >> BASE_SHIFT) & BASE_MASK))
        if following == 0:
            return
        suffix = ~following


@frozen
class TreePage:
    """A page of a reference and its tree: the input of a tree search."""

    page: Page
    tree: FlatTree
    # The codes of the whole reference, shared by all pages. They let the search follow a match
    # beyond the end of its page.
    joined_reference: CodeArray
    # The index file that the page is from, or ``""`` if it was built in memory.
    index_path: str = ""
